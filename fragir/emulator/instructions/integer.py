"""Integer and logic instructions (PTX ISA 9.2, sections 9.7.1, 9.7.2, 9.7.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import Decode, Function, elementwise, of1, of3
from fragir.emulator.instructions.integer_arithmetic import (
    divide,
    multiply24,
    multiply_high,
    packed,
    remainder,
    saturated,
    saturating_add,
    saturating_subtract,
)
from fragir.emulator.instructions.integer_bits import (
    PERMUTATIONS,
    bit_mask,
    dot,
    extend,
    extract,
    find_bit,
    find_nth,
    funnel,
    insert,
    leading_zeros,
    look_up,
    permute,
    population,
    reverse_bits,
    shift_left,
    shift_right,
)
from fragir.emulator.machine.lanes import Mask, Step, store
from fragir.emulator.numbers.types import dtype_of, where, width_of
from fragir.emulator.program.opcode import LOGIC, Constant, Logic, Moves, Opcode, by_bytes
from fragir.emulator.program.syntax import Words
from fragir.emulator.report import EmulationError

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

Array = Any

_WIDER = {8: 16, 16: 32, 32: 64}


def wide(kind: str) -> str:
    """The type twice as wide: u16 -> u32, s32 -> s64."""
    wider = _WIDER.get(width_of(kind))
    if wider is None:
        raise EmulationError(f".wide multiplies 16 and 32 bits, not .{kind}")
    return f"{kind[0]}{wider}"


def _kind(ins: Instruction) -> str:
    return ins.opcode[-1]


_SIMPLE: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "div": divide,
    "rem": remainder,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.bitwise_not,
    "neg": np.negative,
    "abs": np.abs,
    "popc": population,
    "clz": leading_zeros,
    "brev": reverse_bits,
}
_SATURATING: dict[str, Function] = {"add": saturating_add, "sub": saturating_subtract}
_RESULT_U32 = {"popc", "clz"}


def is_integer(kind: str) -> bool:
    """Whether this family computes on that type (packed integers too)."""
    return kind[0] in "us" or kind in ("b8", "b16", "b32", "b64", "pred")


def simple(d: Decoder, ins: Instruction) -> Step:
    """Two (or one) operands of one type."""
    name, kind = ins.opcode[0], _kind(ins)
    function = _SIMPLE[name]
    if name in ("min", "max") and d.count(ins) != 3:
        raise d.error(ins, f"{ins.mnemonic} takes 3 operands, not {d.count(ins)}")
    if "sat" in ins.opcode:
        function = _SATURATING[name]
    if kind == "pred" and name == "not":
        function = np.logical_not
    if "relu" in ins.opcode:
        inner = function

        def clamped(*operands: Array) -> Array:
            return np.maximum(inner(*operands), 0)

        function = clamped
    if kind.endswith(("x2", "x4")):
        function = packed(function, kind)
    out = d.target(ins, 0, "u32" if name in _RESULT_U32 else kind)
    return elementwise(function, out, [d.source(ins, i, kind) for i in range(1, d.count(ins))])


def multiply(d: Decoder, ins: Instruction) -> Step:
    """mul and mad, lo, hi and wide; mul24, mad24."""
    kind = _kind(ins)
    words = ins.opcode
    add = words[0].startswith("mad")
    result = wide(kind) if "wide" in words else kind
    a, b = d.source(ins, 1, kind), d.source(ins, 2, kind)
    out = d.target(ins, 0, result)
    if "wide" in words:
        dtype = dtype_of(result)

        def widened(a: Array, b: Array) -> Array:
            return np.multiply(a, b, dtype=dtype)

        product: Function = widened
    elif words[0].endswith("24"):
        product = multiply24("hi" in words)
    else:
        product = multiply_high if "hi" in words else np.multiply
    if not add:
        return elementwise(product, out, [a, b])
    c = d.source(ins, 3, result)
    if "sat" in words:
        return elementwise(of3(lambda a, b, c: saturating_add(product(a, b), c)), out, [a, b, c])
    return elementwise(of3(lambda a, b, c: product(a, b) + c), out, [a, b, c])


def carry(d: Decoder, ins: Instruction) -> Step:
    """add.cc, addc, sub.cc, subc, mad.cc, madc: the carry of each lane is one more register.

    It is the adder's own: a subtraction adds the complement, so that its carry is "no borrow"
    (SASS of ptxas 13.2; it shows only where an addition and a subtraction are chained).
    """
    kind = _kind(ins)
    words = ins.opcode
    name = words[0]
    u = "u" + kind[1:]
    flag = d.carry_row()
    sources = [d.source(ins, i, u) for i in range(1, d.count(ins))]
    signed = [d.source(ins, i, kind) for i in (1, 2)]
    out = d.target(ins, 0, u)
    writes = "cc" in words
    reads = name in ("addc", "subc", "madc")
    subtract = name.startswith("sub")
    # ptxas accepts .sat here too; addc and subc clamp, madc does not (SASS of ptxas 13.2).
    clamps = "sat" in words and not name.startswith("mad")

    def run(sel: Any, mask: Mask) -> None:
        values = [s[sel] for s in sources]
        if name.startswith("mad"):
            a, b = signed[0][sel], signed[1][sel]
            product = multiply_high(a, b) if "hi" in words else np.multiply(a, b)
            values = [product.view(values[0].dtype), values[2]]
        a, b = values
        c: Any = a.dtype.type(0)
        if reads:
            carried = flag[sel]
            c = (~carried if subtract else carried).astype(a.dtype)
        if subtract:
            result = a - b - c
            next_flag = (a > b) | ((a == b) & (c == 0))
        else:
            result = a + b
            next_flag = result < a
            result = result + c
            next_flag = next_flag | (result < c)
        if clamps:
            x, y = (v.view(np.int32).astype(np.int64) for v in (a, b))
            exact = x - y - c if subtract else x + y + c
            result = saturated(exact, np.dtype(np.int32)).view(np.uint32)
        if out is not None:
            store(out, sel, mask, result)
        if writes:
            store(flag, sel, mask, next_flag)

    return run


def shift(d: Decoder, ins: Instruction) -> Step:
    kind = _kind(ins)
    if kind[0] == "b" or ins.opcode[0] == "shl":
        kind = "u" + kind[1:]
    a, b, out = d.source(ins, 1, kind), d.source(ins, 2, "u32"), d.target(ins, 0, kind)
    constant = d.literal(ins, 2)
    if constant is not None and 0 <= constant < width_of(kind) and out is not None:
        amount = np.broadcast_to(np.array(constant, dtype_of(kind)), out.shape)
        return elementwise(
            np.left_shift if ins.opcode[0] == "shl" else np.right_shift, out, [a, amount]
        )
    function = shift_left if ins.opcode[0] == "shl" else shift_right
    return elementwise(function, out, [a, b])


def _generic(function: Function, kinds: list[str], result: str) -> Decode:
    def decode(d: Decoder, ins: Instruction) -> Step:
        return elementwise(
            function,
            d.target(ins, 0, result),
            [d.source(ins, i + 1, k) for i, k in enumerate(kinds)],
        )

    return decode


def _funnel(d: Decoder, ins: Instruction) -> Step:
    function = funnel("r" in ins.opcode, "wrap" in ins.opcode)
    return _generic(function, ["u32"] * 3, "u32")(d, ins)


def _find(d: Decoder, ins: Instruction) -> Step:
    kind = _kind(ins)
    return _generic(find_bit(kind, "shiftamt" in ins.opcode), [kind], "u32")(d, ins)


def _extract(d: Decoder, ins: Instruction) -> Step:
    kind = _kind(ins)
    return _generic(extract(kind), [kind, "u32", "u32"], kind)(d, ins)


def _insert(d: Decoder, ins: Instruction) -> Step:
    kind = "u" + _kind(ins)[1:]
    return _generic(insert, [kind, kind, "u32", "u32"], kind)(d, ins)


def _look_up(d: Decoder, ins: Instruction) -> Step:
    table = d.literal(ins, 4)
    combine = {"and": np.logical_and, "or": np.logical_or}.get(ins.opcode[1])
    if table is None or d.count(ins) != (5 if combine is None else 6):
        raise d.error(ins, "lop3 needs an immediate truth table as its fifth operand")
    function = look_up(table & 0xFF)
    if combine is None:
        return _generic(function, ["u32"] * 3, "u32")(d, ins)
    # d|p: p is whether any bit of d is set, combined with a predicate.
    first, second = d.pair(d.operand(ins, 0))
    out = d.target_of(ins, first, "u32")
    p = None if second is None else d.target_of(ins, second, "pred")
    rows, q = [d.source(ins, i, "u32") for i in (1, 2, 3)], d.source(ins, 5, "pred")

    def run(sel: Any, mask: Mask) -> None:
        result = function(*[row[sel] for row in rows])
        holds = combine(result != 0, q[sel])
        if out is not None:
            store(out, sel, mask, result)
        if p is not None:
            store(p, sel, mask, holds)

    return run


def _permute(d: Decoder, ins: Instruction) -> Step:
    mode = next((w for w in ins.opcode if w in PERMUTATIONS), None)
    return _generic(permute(mode), ["u32"] * 3, "u32")(d, ins)


def _dot(d: Decoder, ins: Instruction) -> Step:
    words = ins.opcode
    left, right = words[-2], words[-1]
    function = dot(left[0] == "s", right[0] == "s", 4 if words[0] == "dp4a" else 2, "hi" in words)
    result = "s32" if "s" in left[0] + right[0] else "u32"
    return _generic(function, ["u32", "u32", result], result)(d, ins)


def _absolute_difference(d: Decoder, ins: Instruction) -> Step:
    kind = _kind(ins)
    return _generic(of3(lambda a, b, c: where(a < b, b - a, a - b) + c), [kind] * 3, kind)(d, ins)


def _logical_zero(d: Decoder, ins: Instruction) -> Step:
    kind = "u" + _kind(ins)[1:]
    return _generic(of1(lambda a: (a == 0).astype(a.dtype)), [kind], kind)(d, ins)


def _bit_mask(d: Decoder, ins: Instruction) -> Step:
    return _generic(bit_mask("wrap" in ins.opcode), ["u32"] * 2, "u32")(d, ins)


def _extend(d: Decoder, ins: Instruction) -> Step:
    kind = _kind(ins)
    return _generic(extend(kind[0] == "s", "wrap" in ins.opcode), [kind, "u32"], kind)(d, ins)


def _picks(words: Words, constant: Constant) -> bool:
    """prmt keeps bytes whole unless it is known to spread a sign."""
    selector = constant(3)
    return len(words) == 2 and not (selector is not None and selector & 0x8888)


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
        simple,
        address="sum",
    ),
    Opcode(
        "sub",
        """
        .INT|u16x2|s16x2|u8x4|s8x4 d, a, b
        .sat.s32|u8x4|s8x4 d, a, b
        """,
        simple,
        **_DIFFERENCE,
    ),
    Opcode("add", ".cc.u32|s32|u64|s64 d, a, b", carry, address="sum"),
    Opcode("sub", ".cc.u32|s32|u64|s64 d, a, b", carry, **_DIFFERENCE),
    Opcode("addc", _WITH_CARRY, carry, address="sum"),
    Opcode("subc", _WITH_CARRY, carry, address="difference"),
    *(Opcode(f"mul.{half}", ".INT d, a, b", multiply) for half in ("lo", "hi")),
    Opcode("mul.wide", ".u16|s16|u32|s32 d:wide, a, b", multiply),
    *(Opcode(f"mul24.{half}", ".u32|s32 d, a, b", multiply) for half in ("lo", "hi")),
    Opcode("mad.lo", ".INT d, a, b, c", multiply, address="product"),
    Opcode("mad.hi", ".INT d, a, b, c", multiply, address="product"),
    Opcode("mad.hi", ".sat.s32 d, a, b, c", multiply, address="product"),
    Opcode("mad.wide", ".u16|s16|u32|s32 d:wide, a, b, c:wide", multiply, address="product"),
    *(
        Opcode(f"mad.{half}", ".cc.u32|s32|u64|s64 d, a, b, c", carry, address="product")
        for half in ("lo", "hi")
    ),
    Opcode(
        "madc.lo", "{.cc}.u32|s32|u64|s64 d, a, b, c\n.u16|s16 d, a, b, c", carry, address="product"
    ),
    Opcode(
        "madc.hi",
        """
        {.cc}.u32|s32|u64|s64 d, a, b, c
        .u16|s16 d, a, b, c
        .sat.s32 d, a, b, c
        """,
        carry,
        address="product",
    ),
    Opcode("mad24.lo", ".u32|s32 d, a, b, c", multiply, address="product"),
    Opcode("mad24.hi", ".u32|s32 d, a, b, c\n.sat.s32 d, a, b, c", multiply, address="product"),
    *(Opcode(name, ".INT d, a, b", simple, address="number") for name in ("div", "rem")),
    *(
        Opcode(
            name,
            """
            .INT|u16x2|s16x2|u8x4|s8x4 d, a, b
            .relu.s32|s16x2|s8x4 d, a, b
            """,
            simple,
            address="either",
        )
        for name in ("min", "max")
    ),
    Opcode("abs", ".s16|s32|s64 d, a", simple),
    Opcode("neg", ".s16|s32|s64|u16x2|s16x2|s8x4 d, a", simple),
    Opcode("sad", ".INT d, a, b, c", _absolute_difference),
    Opcode("and", ".BITS|pred d, a, b", simple, bits=LOGIC["and"], address="masked"),
    Opcode("or", ".BITS|pred d, a, b", simple, bits=LOGIC["or"], address="sum"),
    Opcode("xor", ".BITS|pred d, a, b", simple, bits=LOGIC["xor"], address="sum", cancels=True),
    Opcode("not", ".BITS|pred d, a", simple, bits=LOGIC["not"]),
    Opcode("cnot", ".BITS d, a", _logical_zero),
    Opcode("shl", ".BITS d, a, b:u32", shift, bits=_SHIFT),
    Opcode("shr", ".BITS|INT d, a, b:u32", shift, bits=_SHIFT, address="shifted"),
    *(
        Opcode(f"shf.{way}", ".clamp|wrap.b32 d, a, b, c", _funnel, bits=Moves((3,), by_bytes(3)))
        for way in "lr"
    ),
    Opcode("popc", ".b32|b64 d:u32, a", simple, address="number"),
    Opcode("clz", ".b32|b64 d:u32, a", simple, address="number"),
    Opcode("brev", ".b32|b64 d, a", simple, bits=Moves()),
    Opcode("bfind", "{.shiftamt}.u32|s32|u64|s64 d:u32, a", _find, address="number"),
    Opcode(
        "fns", ".b32 d, a, b, c", _generic(find_nth, ["u32", "u32", "s32"], "u32"), address="number"
    ),
    Opcode(
        "bfe",
        ".u32|s32|u64|s64 d, a, b:u32, c:u32",
        _extract,
        bits=Moves((2, 3), by_bytes(2, 3)),
        address="shifted",
    ),
    Opcode("bfi", ".b32|b64 d, a, b, c:u32, e:u32", _insert, bits=Moves((3, 4), by_bytes(3, 4))),
    Opcode("lop3", ".b32 d_, a, b, c, i:imm", _look_up, bits=Logic(None, 3)),
    Opcode("lop3", ".and|or.b32 d_|p, a, b, c, i:imm, q:pred", _look_up),
    Opcode(
        "prmt", "{.f4e|b4e|rc8|ecl|ecr|rc16}.b32 d, a, b, c", _permute, bits=Moves((3,), _picks)
    ),
    Opcode("dp4a", ".u32|s32.u32|s32 d, a, b, c", _dot),
    *(Opcode(f"dp2a.{half}", ".u32|s32.u32|s32 d, a, b, c", _dot) for half in ("lo", "hi")),
    Opcode("bmsk", ".clamp|wrap.b32 d, a, b", _bit_mask),
    Opcode("szext", ".clamp|wrap.u32|s32 d, a, b", _extend),
)
