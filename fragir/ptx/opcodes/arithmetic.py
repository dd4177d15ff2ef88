"""Arithmetic, logic, comparisons, conversions, moves (PTX ISA 9.2, sections 9.7.1 to 9.7.9).

What a row computes is said in the language of `fragir/emulator/values/language.py`.
"""

from __future__ import annotations

from fragir.ptx.opcodes.row import Constant, Logic, Moves, Opcode, by_bytes
from fragir.ptx.opcodes.syntax import Words

# -- integer --------------------------------------------------------------------------------------


def _picks(words: Words, constant: Constant) -> bool:
    """prmt keeps bytes whole unless it is known to spread a sign."""
    selector = constant(3)
    return len(words) == 2 and not (selector is not None and selector & 0x8888)


# The carry is the adder's own: a subtraction adds the complement, so that its carry is "no borrow"
# (SASS of ptxas 13.2; it shows only where an addition and a subtraction are chained). ptxas accepts
# .sat too; addc and subc clamp, madc does not (the same).
_ADD = "x = unsigned(a) + unsigned(b); d = x; cc = x < unsigned(a)"
_SUBTRACT = "d = a - b; cc = unsigned(a) >= unsigned(b)"
_ADD_CARRY = """
x = unsigned(a) + unsigned(b)
y = x + 1 if cc else x
d = saturate(s64(a) + s64(b) + s64(cc)) if sat else y
cc = x < unsigned(a) or y < x
"""
_SUBTRACT_CARRY = """
x = a - b
d = saturate(s64(a) - s64(b) - s64(not cc)) if sat else x if cc else x - 1
cc = unsigned(a) > unsigned(b) or a == b and cc
"""
_UP = {"lo": "a * b", "hi": "high(a, b)"}
#: mad.cc and madc by their halves of the product.
_PRODUCT = {
    half: f"p = unsigned({text}); x = p + unsigned(c); d = x; cc = x < p"
    for half, text in _UP.items()
}
_PRODUCT_CARRY = {
    half: f"""
    p = unsigned({text})
    x = p + unsigned(c)
    y = x + 1 if cc else x
    d = y
    cc = x < p or y < x
    """
    for half, text in _UP.items()
}
#: mul24 and mad24: the product of the lowest 24 bits.
_LOW = "(wide(a) << 40 >> 40) * (wide(b) << 40 >> 40)"
_24 = {"lo": _LOW, "hi": f"{_LOW} >> 16"}
_FUNNEL = "n = c & 31 if wrap else min(c, 32)\nx = u64(b) << 32 | u64(a)\n"
_EXTRACT = """
at = b & 255
n = c & 255
field = (u64(s64(a) >> at) if signed(a) else u64(a) >> at) & ones(n)
last = s64(a) >> min(at + n - 1, width - 1) & 1
d = (0 if n == 0 else field | ~ones(n) if last == 1 else field) if signed(a) else field
"""
_INSERT = """
at = c & 255
field = ones(e & 255) << at
d = u64(b) & ~field | u64(a) << at & field
"""
#: Four selectors of one nibble each, by the two lowest bits of c.
_PERMUTE = """
n = c & 3
f = 0x3210 + 0x1111 * n
b4 = 0x5670 + 0x1111 * n & 0x7777
cl = u32(u64(0x3333322232113210) >> 16 * n)
cr = u32(u64(0x3210221011100000) >> 16 * n)
rc = 0x1111 * n if rc8 else 0x1010 + 0x2222 * (n & 1) if rc16 else c
d = permute(a, b, f if f4e else b4 if b4e else cl if ecl else cr if ecr else rc)
"""
#: addc, subc.
_WITH_CARRY = """
    {.cc}.u32|s32|u64|s64 d, a, b
    .u16|s16 d, a, b
    .sat.s32 d, a, b
"""
_INTEGER: tuple[Opcode, ...] = (
    Opcode(
        "add",
        """
        .INT|u16x2|s16x2|u8x4|s8x4 d, a, b
        .sat.u32|s32|u16x2|s16x2|u8x4|s8x4 d, a, b
        """,
        "saturate(s64(a) + s64(b)) if sat else a + b",
    ),
    Opcode(
        "sub",
        """
        .INT|u16x2|s16x2|u8x4|s8x4 d, a, b
        .sat.s32|u8x4|s8x4 d, a, b
        """,
        "saturate(s64(a) - s64(b)) if sat else a - b",
    ),
    Opcode("add", ".cc.u32|s32|u64|s64 d, a, b", _ADD),
    Opcode("sub", ".cc.u32|s32|u64|s64 d, a, b", _SUBTRACT),
    Opcode("addc", _WITH_CARRY, _ADD_CARRY, address="sum"),
    Opcode("subc", _WITH_CARRY, _SUBTRACT_CARRY, address="difference"),
    Opcode("mul.lo", ".INT d, a, b", "a * b"),
    Opcode("mul.hi", ".INT d, a, b", "high(a, b)"),
    Opcode("mul.wide", ".u16|s16|u32|s32 d:wide, a, b", "wide(a) * wide(b)"),
    *(Opcode(f"mul24.{half}", ".u32|s32 d, a, b", text) for half, text in _24.items()),
    Opcode("mad.lo", ".INT d, a, b, c", "a * b + c"),
    Opcode("mad.hi", ".INT d, a, b, c", "high(a, b) + c"),
    Opcode("mad.hi", ".sat.s32 d, a, b, c", "saturate(s64(high(a, b)) + s64(c))"),
    Opcode(
        "mad.wide",
        ".u16|s16|u32|s32 d:wide, a, b, c:wide",
        "wide(a) * wide(b) + c",
    ),
    *(
        Opcode(f"mad.{half}", ".cc.u32|s32|u64|s64 d, a, b, c", text)
        for half, text in _PRODUCT.items()
    ),
    Opcode(
        "madc.lo",
        "{.cc}.u32|s32|u64|s64 d, a, b, c\n.u16|s16 d, a, b, c",
        _PRODUCT_CARRY["lo"],
        address="product",
    ),
    Opcode(
        "madc.hi",
        """
        {.cc}.u32|s32|u64|s64 d, a, b, c
        .u16|s16 d, a, b, c
        .sat.s32 d, a, b, c
        """,
        _PRODUCT_CARRY["hi"],
        address="product",
    ),
    Opcode("mad24.lo", ".u32|s32 d, a, b, c", f"result({_LOW}) + c"),
    Opcode(
        "mad24.hi",
        ".u32|s32 d, a, b, c\n.sat.s32 d, a, b, c",
        f"x = {_24['hi']}; d = saturate(x + wide(c)) if sat else result(x) + c",
    ),
    Opcode("div", ".INT d, a, b", "a / b"),
    Opcode("rem", ".INT d, a, b", "a % b"),
    *(
        Opcode(
            name,
            """
            .INT|u16x2|s16x2|u8x4|s8x4 d, a, b
            .relu.s32|s16x2|s8x4 d, a, b
            """,
            f"max({name}(a, b), 0) if relu else {name}(a, b)",
        )
        for name in ("min", "max")
    ),
    Opcode("abs", ".s16|s32|s64 d, a", "abs(a)"),
    Opcode("neg", ".s16|s32|s64|s8x4 d, a", "-a"),
    Opcode("sad", ".INT d, a, b, c", "(b - a if a < b else a - b) + c"),
    Opcode("and", ".BITS|pred d, a, b", "a & b"),
    Opcode("or", ".BITS|pred d, a, b", "a | b"),
    Opcode("xor", ".BITS|pred d, a, b", "a ^ b"),
    Opcode("not", ".BITS|pred d, a", "~a"),
    Opcode("cnot", ".BITS d, a", "a == 0"),
    Opcode("shl", ".BITS d, a, b:u32", "a << b"),
    Opcode("shr", ".BITS|INT d, a, b:u32", "a >> b"),
    Opcode(
        "shf.l",
        ".clamp|wrap.b32 d, a, b, c",
        f"{_FUNNEL}d = x << n >> 32",
        bits=Moves((3,), by_bytes(3)),
    ),
    Opcode(
        "shf.r",
        ".clamp|wrap.b32 d, a, b, c",
        f"{_FUNNEL}d = x >> n",
        bits=Moves((3,), by_bytes(3)),
    ),
    Opcode("popc", ".b32|b64 d:u32, a", "popc(a)"),
    Opcode("clz", ".b32|b64 d:u32, a", "clz(a)"),
    Opcode("brev", ".b32|b64 d, a", "brev(a)"),
    Opcode(
        "bfind",
        "{.shiftamt}.u32|s32|u64|s64 d:u32, a",
        """
        x = unsigned((~a if a < 0 else a) if signed(a) else a)
        d = 0xFFFFFFFF if x == 0 else clz(x) if shiftamt else width - 1 - clz(x)
        """,
    ),
    Opcode("fns", ".b32 d, a, b, c", "fns(a, b, c)"),
    Opcode(
        "bfe",
        ".u32|s32|u64|s64 d, a, b:u32, c:u32",
        _EXTRACT,
        bits=Moves((2, 3), by_bytes(2, 3)),
        address="shifted",
    ),
    Opcode("bfi", ".b32|b64 d, a, b, c:u32, e:u32", _INSERT, bits=Moves((3, 4), by_bytes(3, 4))),
    Opcode("lop3", ".b32 d_, a, b, c, i:imm", "look_up(a, b, c, i)", bits=Logic(None, 3)),
    Opcode(
        "lop3",
        ".and|or.b32 d_|p, a, b, c, i:imm, q:pred",
        "d = look_up(a, b, c, i)\np = combine(d != 0, q)",
    ),
    Opcode(
        "prmt",
        "{.f4e|b4e|rc8|ecl|ecr|rc16}.b32 d, a, b, c",
        _PERMUTE,
        bits=Moves((3,), _picks),
    ),
    Opcode("dp4a", ".u32|s32.u32|s32 d, a:1, b:2, c", "dot4(a, b, c)"),
    Opcode("dp2a.lo", ".u32|s32.u32|s32 d, a:1, b:2, c", "dot2(a, b, c)"),
    Opcode("dp2a.hi", ".u32|s32.u32|s32 d, a:1, b:2, c", "dot2_high(a, b, c)"),
    Opcode(
        "bmsk",
        ".clamp|wrap.b32 d, a, b",
        """
        at = a & 31 if wrap else min(a, 32)
        d = ones(b & 31 if wrap else min(b, 32)) << at
        """,
    ),
    Opcode(
        "szext",
        ".clamp|wrap.u32|s32 d, a, b",
        """
        n = 32 - unsigned(b & 31 if wrap else min(unsigned(b), 32))
        d = a << n >> n
        """,
    ),
)

# -- floating -------------------------------------------------------------------------------------

_PRODUCT_FLOATING = """
    {.RND}{.ftz}{.sat}.f32 d, a, b
    {.RND}{.ftz}.f32x2 d, a, b
    {.RND}.f64 d, a, b
    {.rn}{.ftz}{.sat}.f16|f16x2 d, a, b
    {.rn}.bf16|bf16x2 d, a, b
"""
_SUM = f"""{_PRODUCT_FLOATING}
    {{.RND}}{{.sat}}.f32.f16|bf16 d, a:2, b:1
"""
_EXTREME = """
x = {0}(abs(a), abs(b)) if abs and not xorsign else {0}(a, b)
d = x if not given(c) else {0}(x, abs(c) if abs else c)
"""
_FLOATING: tuple[Opcode, ...] = (
    Opcode("add", _SUM, "round(a + b)"),
    Opcode("sub", _SUM, "round(a - b)"),
    Opcode("mul", _PRODUCT_FLOATING, "round(a * b)"),
    Opcode(
        "fma",
        """
        .RND{.ftz}{.sat}.f32 d, a, b, c
        .RND{.ftz}.f32x2 d, a, b, c
        .RND.f64 d, a, b, c
        .rn{.ftz}{.sat}.f16|f16x2 d, a, b, c
        .rn{.ftz}.relu.f16|f16x2 d, a, b, c
        .RND{.relu}.bf16|bf16x2 d, a, b, c
        .rn.oob{.sat|relu}.f16|f16x2 d, a, b, c
        .RND.oob{.relu}.bf16|bf16x2 d, a, b, c
        .RND{.sat}.f32.f16|bf16 d, a:2, b:2, c:1
        """,
        "round(a * b + c)",
    ),
    Opcode(
        "mad",
        """
        .RND{.ftz}{.sat}.f32 d, a, b, c
        .RND.f64 d, a, b, c
        """,
        "round(a * b + c)",
    ),
    Opcode(
        "div",
        ".approx|RND{.ftz}.f32 d, a, b\n.RND.f64 d, a, b",
        "approx(divide_approximately(a, b)) if approx else round(a / b)",
    ),
    Opcode("div.full", "{.ftz}.f32 d, a, b", "approx(a / b)"),
    Opcode(
        "rcp",
        """
        .approx|RND{.ftz}.f32 d, a
        .RND.f64 d, a
        .approx|RND.ftz.f64 d, a
        """,
        "approx(1 / a) if approx else round(1 / a)",
    ),
    Opcode(
        "sqrt",
        ".approx|RND{.ftz}.f32 d, a\n.RND.f64 d, a",
        "approx(sqrt(a)) if approx else round(sqrt(a))",
    ),
    Opcode("rsqrt", ".approx{.ftz}.f32|f64 d, a", "approx(1 / sqrt(a))"),
    Opcode("sin", ".approx{.ftz}.f32 d, a", "approx(sin(a))"),
    Opcode("cos", ".approx{.ftz}.f32 d, a", "approx(cos(a))"),
    Opcode("lg2", ".approx{.ftz}.f32 d, a", "approx(log2(a))"),
    Opcode(
        "ex2",
        """
        .approx{.ftz}.f32 d, a
        .approx.f16|f16x2 d, a
        .approx.ftz.bf16|bf16x2 d, a
        """,
        "approx(exp2(a))",
    ),
    Opcode("tanh", ".approx.f32|f16|f16x2|bf16|bf16x2 d, a", "approx(tanh(a))"),
    *(
        Opcode(
            name,
            """
            .f64 d, a, b
            {.ftz}{.NaN}.f32|f16|f16x2 d, a, b
            {.NaN}.bf16|bf16x2 d, a, b
            {.ftz}{.NaN}.xorsign.abs.f32|f16|f16x2 d, a, b
            {.NaN}.xorsign.abs.bf16|bf16x2 d, a, b
            {.ftz}{.NaN}{.abs}.f32 d, a, b, c
            """,
            _EXTREME.format(name),
        )
        for name in ("min", "max")
    ),
    Opcode("neg", "{.ftz}.f32|f16|f16x2 d, a\n.f64|bf16|bf16x2 d, a", "-a"),
    Opcode("abs", "{.ftz}.f32|f16|f16x2 d, a\n.f64|bf16|bf16x2 d, a", "abs(a)"),
    Opcode("copysign", ".f32|f64 d, a, b", "copysign(a, b)"),
    Opcode(
        "testp",
        """
        .finite|infinite|number|notanumber|normal|subnormal.f32|f64 d:pred, a
        .f32|f64 d:pred, a ! what it tests without a property is not documented
        """,
        "property(a)",
    ),
)

# -- compare --------------------------------------------------------------------------------------

_COMPARE: tuple[Opcode, ...] = (
    Opcode(
        "setp",
        """
        .eq|ne{.BOOL}.BITS d_:pred{|q}, a, b{, c:pred?BOOL}
        .CMP{.BOOL}.s16|s32|s64 d_:pred{|q}, a, b{, c:pred?BOOL}
        .UCMP{.BOOL}.u16|u32|u64 d_:pred{|q}, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.f32|f16x2 d_:pred{|q}, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.f64|bf16x2 d_:pred{|q}, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.f16 d_:pred, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.bf16 d_:pred, a, b{, c:pred?BOOL}
        """,
        "p = compare(a, b)\nd = combine(p, c)\nq = combine(not p, c)",
        apart=True,
    ),
    Opcode(
        "set",
        """
        .eq|ne{.BOOL}.TRUTH.BITS d, a, b{, c:pred?BOOL}
        .CMP{.BOOL}.TRUTH.s16|s32|s64 d, a, b{, c:pred?BOOL}
        .UCMP{.BOOL}.TRUTH.u16|u32|u64 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.u32|s32|f32|f16.f32 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.u16|s16|u32|s32|f16.f16 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}{.ftz}.u32|s32|f16x2.f16x2 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.TRUTH.f64 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.bf16.f16|f32 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.u16|s16|u32|s32|bf16.bf16 d, a, b{, c:pred?BOOL}
        .FCMP{.BOOL}.u32|s32|bf16x2.bf16x2 d, a, b{, c:pred?BOOL}
        """,
        "truth(combine(compare(a, b), c))",
        apart=True,
    ),
)

# -- convert --------------------------------------------------------------------------------------


def _pack(into: str) -> Opcode:
    """cvt.pack: a and b as integers of so few bits, b the lower one, c behind them."""
    width = int(into[1:])
    low, high = (
        (-(1 << width - 1), (1 << width - 1) - 1) if into[0] == "s" else (0, (1 << width) - 1)
    )
    upper, lower = (f"unsigned(max(min({x}, {high}), {low}) & {(1 << width) - 1})" for x in "ab")
    text = f"{upper} << {width} | {lower}"
    if width == 16:
        return Opcode("cvt.pack", f".sat.{into}.s32 d:u32, a, b", text, address="same")
    line = f".sat.{into}.s32.b32 d:u32, a:2, b:2, c:b32"
    return Opcode("cvt.pack", line, f"{text} | c << {2 * width}", address="same")


_CONVERT: tuple[Opcode, ...] = (
    Opcode("cvt", ".INT8.INT8 d, a", "convert(a)", wider=True),
    Opcode(
        "cvt",
        """
        .sat.u8.s8|INT d, a
        .sat.s8.u8|INT d, a
        .sat.u16.s8|s16|u32|s32|u64|s64 d, a
        .sat.s16.u16|u32|s32|u64|s64 d, a
        .sat.u32.s8|s16|s32|u64|s64 d, a
        .sat.s32.u32|u64|s64 d, a
        .sat.u64.s8|s16|s32|s64 d, a
        .sat.s64.u64 d, a
        .RND{.sat}.f16|f64.INT8 d, a
        .RND{.ftz}{.sat}.f32.INT8|f64 d, a
        .RND.bf16.INT8 d, a
        .IRND{.ftz}{.sat}.INT8.f32 d, a
        .IRND{.sat}.INT8.f16|f64 d, a
        .IRND.INT8.bf16 d, a
        {.IRND}{.sat}.f16.f16 d, a
        {.IRND}{.sat}.f64.f64 d, a
        {.IRND}{.ftz}{.sat}.f32.f32 d, a
        {.IRND}.bf16.bf16 d, a
        {.RND}.bf16.f16 d, a
        {.RND}.f16|f64.bf16 d, a
        {.RND}{.ftz}.f32.bf16 d, a
        {.ftz}{.sat}.f32.f16 d, a
        {.ftz}{.sat}.f64.f32 d, a
        {.sat}.f64.f16 d, a
        .RND{.sat}.f16.f64 d, a
        .RND.bf16.f64 d, a
        .RND{.ftz}{.sat}.f16.f32 d, a
        .RND{.ftz}.bf16.f32 d, a
        .rn|rz{.satfinite}{.relu}.f16|bf16|tf32.f32 d, a
        .rna{.satfinite}.tf32.f32 d, a
        """,
        "convert(a)",
        wider=True,
    ),
    Opcode(
        "cvt",
        """
        .rn|rz{.satfinite}{.relu}.f16x2|bf16x2.f32 d, a, b
        .rn.satfinite{.relu}.NARROWx2|s2f6x2.f32 d, a, b
        .rz|rp{.satfinite}.ue8m0x2.f32 d, a, b
        """,
        step="convert to pair",
        bits="halves",
        address="same",
    ),
    Opcode(
        "cvt",
        """
        .rs{.satfinite}{.relu}.f16x2|bf16x2.f32 d, a, b, r:b32
        .rs.satfinite{.relu}.NARROWx4.f32 d, a:f32x4, r:b32
        .rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.f32 d, a, b, s:b16
        .rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.bf16x2 d, a, s:b16
        .rn.satfinite{.relu}.NARROWx2.f16x2|bf16x2 d, a
        .rn.satfinite{.relu}.s2f6x2.bf16x2 d, a
        .rn{.relu}.f16x2.NARROWx2 d, a
        .rn{.satfinite}{.relu}.bf16x2.NARROWx2|s2f6x2 d, a
        .rn{.satfinite}{.relu}.scaled::n2::ue8m0.bf16x2.NARROWx2|s2f6x2 d, a, s:b16
        .rz|rp{.satfinite}.ue8m0x2.bf16x2 d, a
        .rn.bf16x2.ue8m0x2 d, a
        """,
        step="convert packed",
        address="same",
    ),
    *(_pack(into) for into in "u16 s16 u8 s8 u4 s4 u2 s2".split()),
)

# -- register moves -------------------------------------------------------------------------------


def _is_no_predicate(words: Words, constant: Constant) -> bool:
    return words[-1] != "pred"


_REGISTER_MOVES: tuple[Opcode, ...] = (
    Opcode(
        "mov",
        """
        .INT|BITS|f32|f64|pred|b128 d, a
        .v2.INT|BITS|f32|f64 d:v, a:v
        .v4.u16|u32|s16|s32|b16|b32|f32 d:v, a:v
        """,
        step="move",
        bits=Moves((), _is_no_predicate),
        address="same",
    ),
    Opcode(
        "selp",
        ".INT|BITS|f32|f64 d, a, b, c:pred",
        "bits(a) if c else bits(b)",
    ),
    Opcode(
        "slct",
        """
        .INT|BITS|f32|f64.s32 d, a:1, b:1, c:2
        {.ftz}.INT|BITS|f32|f64.f32 d, a:1, b:1, c:2
        """,
        "bits(a) if c >= 0 else bits(b)",
    ),
)

# -- video ----------------------------------------------------------------------------------------

_THREE = ".u32|s32.u32|s32.u32|s32"
_SECOND = ".add|min|max"
_SIMPLE = f"{{.sat}}{_THREE} d, a, b{{, c}}\n{{.sat}}{_SECOND}{_THREE} d, a, b, c"
_SHIFTED = ".clamp|wrap{.sat}"
_BY = ".u32|s32.u32|s32.u32"
_VIDEO: tuple[Opcode, ...] = (
    *(Opcode(name, _SIMPLE, step="video") for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax")),
    *(
        Opcode(
            name,
            f"{_SHIFTED}{_BY} d, a, b{{, c}}\n{_SHIFTED}{_SECOND}{_BY} d, a, b, c",
            step="video",
        )
        for name in ("vshl", "vshr")
    ),
    Opcode("vmad", f"{{.po}}{{.sat}}{{.shr7|shr15}}{_THREE} d, a, b, c", step="video multiply-add"),
    Opcode(
        "vset",
        f"""
        .CMP.u32|s32.u32|s32 d:u32, a:1, b:2{{, c}}
        .CMP{_SECOND}.u32|s32.u32|s32 d:u32, a:1, b:2, c
        """,
        step="video",
    ),
    *(
        Opcode(f"{name}{many}", f"{{.sat|add}}{_THREE} d, a, b, c", step="packed video")
        for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")
        for many in (2, 4)
    ),
    *(
        Opcode(f"vset{many}", ".CMP{.add}.u32|s32.u32|s32 d:u32, a:1, b:2, c", step="packed video")
        for many in (2, 4)
    ),
)

OPCODES: tuple[Opcode, ...] = (
    *_INTEGER,
    *_FLOATING,
    *_COMPARE,
    *_CONVERT,
    *_REGISTER_MOVES,
    *_VIDEO,
)
