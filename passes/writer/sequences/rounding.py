"""Short sequences: rounding, integers of 32 and 64 bits, and what `fastmath` allows."""

from __future__ import annotations

from fragir.passes.writer.sequences.sequence import Sequence

# ties away from zero: the rest x - trunc(x) is exact
_ROUND = """
    cvt.rzi.{f}.{f} t, x
    sub.rn.{f} r, x, t
    abs.{f} r, r
    setp.ge.{f} p, r, 0.5
    copysign.{f} s, x, 1.0
    add.rn.{f} s, t, s
    selp.{f} d, s, t, p
"""

# f32 towards zero, its last bit set where that lost anything: one more rounding, to 22 bits or
# fewer, is the only one (Boldo and Melquiond, "When double rounding is odd", IMACS 2005)
_ODD = """
    cvt.rz.f32.{kind} r, x
    {back}
    or.b32 o, r, 1
    selp.b32 d, o, r, p
"""
_FLOAT_BACK = "cvt.f64.f32 b, r; setp.neu.f64 p, b, x"
_INTEGER_BACK = "cvt.rzi.{kind}.f32 b, r; setp.ne.{kind} p, b, x"


def to_odd(kind: str) -> Sequence:
    """f64, or integers of 32 and 64 bits, as f32 rounded to odd."""
    back = _FLOAT_BACK if kind == "f64" else _INTEGER_BACK.format(kind=kind)
    return Sequence("x", _ODD.format(kind=kind, back=back))


# the exponent of the nearest power of two, the larger one of two as near: 2^-127 (a subnormal
# number of f32) for all that is less, 2^127 for all that is more, 255 for NaN
UE8M0 = Sequence(
    "x",
    """
    max.s32 m, x, 0
    min.s32 m, m, 0x7F000000
    setp.lt.s32 q, m, 0x00800000
    selp.b32 h, 0x00200000, 0x00400000, q
    add.s32 m, m, h
    shr.u32 m, m, 23
    setp.num.f32 p, x, x
    selp.b32 d, m, 255, p
""",
)


# -- fast ------------------------------------------------------------------------------------------
# What `fastmath` allows: approximate instructions that flush subnormal numbers to zero.
#
# afn: functions by their `.approx.ftz` forms, which ptxas emits as one instruction where the exact
# ones scale small numbers before and after; division by `div.full`. arcp: division as a product
# with `rcp.approx.ftz`. PTX ISA 9.2, sections 9.7.3.8 (div), 13 (rcp), 15 (sqrt), 16 (rsqrt), 18 to
# 21.

_AFN = {
    "math.exp2": "ex2.approx.ftz.f32 d, x",
    "math.exp": "mul.rn.f32 t, x, 1.4426950408889634; ex2.approx.ftz.f32 d, t",
    "math.log2": "lg2.approx.ftz.f32 d, x",
    "math.log": "lg2.approx.ftz.f32 t, x; mul.rn.f32 d, t, 0.6931471805599453",
    "math.log10": "lg2.approx.ftz.f32 t, x; mul.rn.f32 d, t, 0.3010299956639812",
    "math.rsqrt": "rsqrt.approx.ftz.f32 d, x",
    "math.sqrt": "sqrt.approx.ftz.f32 d, x",
    "math.sin": "sin.approx.ftz.f32 d, x",
    "math.cos": "cos.approx.ftz.f32 d, x",
}
_AFN_SEQUENCES = {name: Sequence("x", text) for name, text in _AFN.items()}
_RECIPROCAL = Sequence("x y", "rcp.approx.ftz.f32 t, y; mul.rn.f32 d, x, t")
_FULL = Sequence("x y", "div.full.f32 d, x, y")


def fast(name: str, flags: frozenset[str]) -> Sequence | None:
    """The faster text of an operation on f32, where its flags allow one."""
    if name == "arith.divf":
        return _RECIPROCAL if "arcp" in flags else _FULL if "afn" in flags else None
    return _AFN_SEQUENCES.get(name) if "afn" in flags else None


# -- integers --------------------------------------------------------------------------------------
# Integers of 32 and 64 bits: rounded quotients, counted bits, both halves of a product.

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


SEQUENCES = {
    **{("math.round", f): Sequence("x", _ROUND.format(f=f)) for f in ("f32", "f64")},
    **{("math.copysign", f): Sequence("x y", f"copysign.{f} d, y, x") for f in ("f32", "f64")},
    ("math.rsqrt", "f64"): Sequence("x", "sqrt.rn.f64 r, x; rcp.rn.f64 d, r"),
    **{(name, f"b{w}"): each for w in (32, 64) for name, each in _of(w).items()},
}
