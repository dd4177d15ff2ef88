"""Integer and logic instructions (PTX ISA 9.2, sections 9.7.1, 9.7.2, 9.7.8)."""

from __future__ import annotations

from typing import Any

from fragir.emulator.program.opcode import LOGIC, Constant, Logic, Moves, Opcode, by_bytes
from fragir.emulator.program.syntax import Words


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
_SHIFT = Moves((2,), by_bytes(2))
_DIFFERENCE: dict[str, Any] = {"address": "difference", "cancels": True}

OPCODES: tuple[Opcode, ...] = (
    Opcode(
        "add",
        """
        .INT|u16x2|s16x2|u8x4|s8x4 d, a, b
        .sat.u32|s32|u16x2|s16x2|u8x4|s8x4 d, a, b
        """,
        "saturate(s64(a) + s64(b)) if sat else a + b",
        address="sum",
    ),
    Opcode(
        "sub",
        """
        .INT|u16x2|s16x2|u8x4|s8x4 d, a, b
        .sat.s32|u8x4|s8x4 d, a, b
        """,
        "saturate(s64(a) - s64(b)) if sat else a - b",
        **_DIFFERENCE,
    ),
    Opcode("add", ".cc.u32|s32|u64|s64 d, a, b", _ADD, address="sum"),
    Opcode("sub", ".cc.u32|s32|u64|s64 d, a, b", _SUBTRACT, **_DIFFERENCE),
    Opcode("addc", _WITH_CARRY, _ADD_CARRY, address="sum"),
    Opcode("subc", _WITH_CARRY, _SUBTRACT_CARRY, address="difference"),
    Opcode("mul.lo", ".INT d, a, b", "a * b"),
    Opcode("mul.hi", ".INT d, a, b", "high(a, b)"),
    Opcode("mul.wide", ".u16|s16|u32|s32 d:wide, a, b", "wide(a) * wide(b)"),
    *(Opcode(f"mul24.{half}", ".u32|s32 d, a, b", text) for half, text in _24.items()),
    Opcode("mad.lo", ".INT d, a, b, c", "a * b + c", address="product"),
    Opcode("mad.hi", ".INT d, a, b, c", "high(a, b) + c", address="product"),
    Opcode(
        "mad.hi", ".sat.s32 d, a, b, c", "saturate(s64(high(a, b)) + s64(c))", address="product"
    ),
    Opcode(
        "mad.wide",
        ".u16|s16|u32|s32 d:wide, a, b, c:wide",
        "wide(a) * wide(b) + c",
        address="product",
    ),
    *(
        Opcode(f"mad.{half}", ".cc.u32|s32|u64|s64 d, a, b, c", text, address="product")
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
    Opcode("mad24.lo", ".u32|s32 d, a, b, c", f"result({_LOW}) + c", address="product"),
    Opcode(
        "mad24.hi",
        ".u32|s32 d, a, b, c\n.sat.s32 d, a, b, c",
        f"x = {_24['hi']}; d = saturate(x + wide(c)) if sat else result(x) + c",
        address="product",
    ),
    Opcode("div", ".INT d, a, b", "a / b", address="number"),
    Opcode("rem", ".INT d, a, b", "a % b", address="number"),
    *(
        Opcode(
            name,
            """
            .INT|u16x2|s16x2|u8x4|s8x4 d, a, b
            .relu.s32|s16x2|s8x4 d, a, b
            """,
            f"max({name}(a, b), 0) if relu else {name}(a, b)",
            address="either",
        )
        for name in ("min", "max")
    ),
    Opcode("abs", ".s16|s32|s64 d, a", "abs(a)"),
    Opcode("neg", ".s16|s32|s64|u16x2|s16x2|s8x4 d, a", "-a"),
    Opcode("sad", ".INT d, a, b, c", "(b - a if a < b else a - b) + c"),
    Opcode("and", ".BITS|pred d, a, b", "a & b", bits=LOGIC["and"], address="masked"),
    Opcode("or", ".BITS|pred d, a, b", "a | b", bits=LOGIC["or"], address="sum"),
    Opcode("xor", ".BITS|pred d, a, b", "a ^ b", bits=LOGIC["xor"], address="sum", cancels=True),
    Opcode("not", ".BITS|pred d, a", "~a", bits=LOGIC["not"]),
    Opcode("cnot", ".BITS d, a", "a == 0"),
    Opcode("shl", ".BITS d, a, b:u32", "a << b", bits=_SHIFT),
    Opcode("shr", ".BITS|INT d, a, b:u32", "a >> b", bits=_SHIFT, address="shifted"),
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
    Opcode("popc", ".b32|b64 d:u32, a", "popc(a)", address="number"),
    Opcode("clz", ".b32|b64 d:u32, a", "clz(a)", address="number"),
    Opcode("brev", ".b32|b64 d, a", "brev(a)", bits=Moves()),
    Opcode(
        "bfind",
        "{.shiftamt}.u32|s32|u64|s64 d:u32, a",
        """
        x = unsigned((~a if a < 0 else a) if signed(a) else a)
        d = 0xFFFFFFFF if x == 0 else clz(x) if shiftamt else width - 1 - clz(x)
        """,
        address="number",
    ),
    Opcode("fns", ".b32 d, a, b, c", "fns(a, b, c)", address="number"),
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
