"""Integers of 32 and 64 bits: rounded quotients, counted bits, both halves of a product."""

from __future__ import annotations

from fragir.passes.writer.sequences.sequence import Sequence

# the quotient towards zero, moved by one where there is a rest on the side that is wanted
_ROUNDED = """
    div.{s}{w} q, x, y
    mul.lo.s{w} r, q, y
    setp.ne.s{w} p, r, x
    {side}
    {step}.s{w} t, q, 1
    selp.b{w} d, t, q, p
"""
_SIGNS = "xor.b{w} s, x, y; setp.{relation}.and.s{w} p, s, 0, p"
_HALVES = {
    32: "mul.wide.{s}32 v, x, y; mov.b64 {{d, e}}, v",
    64: "mul.hi.{s}64 h, x, y; mul.lo.{s}64 d, x, y; mov.b64 e, h",
}
_CARRY = "add.s{w} t, x, y; setp.lt.u{w} e, t, x; mov.b{w} d, t"


def _of(w: int) -> dict[str, Sequence]:
    above, below = (_SIGNS.format(w=w, relation=relation) for relation in ("ge", "lt"))
    # popc and clz of 64 bits give 32
    last = "{op}.b32 d, {x}" if w == 32 else "{op}.b64 n, {x}; cvt.u64.u32 d, n"
    return {
        "arith.ceildivui": Sequence("x y", _ROUNDED.format(s="u", w=w, side="", step="add")),
        "arith.ceildivsi": Sequence("x y", _ROUNDED.format(s="s", w=w, side=above, step="add")),
        "arith.floordivsi": Sequence("x y", _ROUNDED.format(s="s", w=w, side=below, step="sub")),
        "math.ctpop": Sequence("x", last.format(op="popc", x="x")),
        "math.ctlz": Sequence("x", last.format(op="clz", x="x")),
        "math.cttz": Sequence("x", f"brev.b{w} t, x; {last.format(op='clz', x='t')}"),
        "arith.mului_extended": Sequence("x y", _HALVES[w].format(s="u")),
        "arith.mulsi_extended": Sequence("x y", _HALVES[w].format(s="s")),
        "arith.addui_extended": Sequence("x y", _CARRY.format(w=w)),
    }


SEQUENCES = {(name, f"b{w}"): each for w in (32, 64) for name, each in _of(w).items()}
