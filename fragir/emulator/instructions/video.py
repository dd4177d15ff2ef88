"""Video instructions, scalar and SIMD (PTX ISA 9.2, section 9.7.20), after the page's pseudocode.

Parts of the sources are widened to exact integers, combined, clamped if `.sat`, then combined with
c or put into a part of it; the low 32 bits are the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import Decode, Function, elementwise, of2
from fragir.emulator.machine.lanes import Step
from fragir.emulator.numbers.types import I64, Array, where, word_of
from fragir.emulator.report import EmulationError
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder

#: Selector -> (lowest bit, width).
_PARTS = {"": (0, 32), "h0": (0, 16), "h1": (16, 16), **{f"b{i}": (8 * i, 8) for i in range(4)}}
_TYPES = ("u32", "s32")


def _average(a: I64, b: I64) -> I64:
    total = a + b
    return total + (total >= 0) >> 1


_PRIMARY: dict[str, Function] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": of2(lambda a, b: np.abs(a - b)),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": _average,
}
_ORDERED: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_SECONDARY: dict[str, Function] = {"add": np.add, "min": np.minimum, "max": np.maximum}


def _field(value: Array, low: int, width: int, signed: bool) -> I64:
    """`width` bits from `low` up of a u32 or int64, as a number."""
    part = value.astype(np.int64) >> low & (1 << width) - 1
    half = 1 << (width - 1)
    return (part ^ half) - half if signed else part


def _clamp(value: I64, width: int, signed: bool) -> I64:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    return np.clip(value, low, high)


def _operand(d: Decoder, ins: tree.Instruction, index: int) -> tuple[tree.Operand, str, bool]:
    """(register, selector or "", whether a minus sign stands before it)."""
    node = d.operand(ins, index)
    negated = isinstance(node, tree.Unary) and node.operator == "-"
    if isinstance(node, tree.Unary) and negated:
        node = node.operand
    if isinstance(node, tree.Component):
        return node.base, node.component, negated
    return node, "", negated


def _part(d: Decoder, ins: tree.Instruction, text: str) -> tuple[int, int]:
    """(lowest bit, bits) of the part of a register that a selector names."""
    if text not in _PARTS:
        parts = ", ".join(f".{part}" for part in _PARTS if part)
        raise d.error(ins, f"{ins.mnemonic}: a part is one of {parts}, not .{text}")
    return _PARTS[text]


def _sources(d: Decoder, ins: tree.Instruction, count: int) -> tuple[list[tree.Operand], list[str]]:
    """Registers and selectors of the operands 1 to `count`."""
    found = [_operand(d, ins, i) for i in range(1, count + 1)]
    if any(negated for *_, negated in found):
        raise d.error(ins, f"{ins.mnemonic} has no negated operands")
    return [node for node, *_ in found], [part for _, part, _ in found]


def _types(ins: tree.Instruction, count: int) -> list[bool]:
    """Whether each of the opcode's types is signed."""
    found = [w == "s32" for w in ins.opcode if w in _TYPES]
    if len(found) != count:
        raise EmulationError(f"it has {count} types, not {len(found)}")
    return found


def _finish(d: Decoder, ins: tree.Instruction, signed: bool, saturates: bool) -> tuple[Any, Any]:
    """(destination row, function of the intermediate result and c or None)."""
    node, part, _ = _operand(d, ins, 0)
    low, width = _part(d, ins, part)
    secondary = next((w for w in ins.opcode[1:] if w in _SECONDARY), None)
    if (secondary is not None) + bool(part) != d.count(ins) - 3:
        text = "a third source that is neither combined (.add, .min, .max) nor merged into a part"
        raise d.error(ins, f"{ins.mnemonic} is not emulated: {text}")

    def function(value: I64, c: Array) -> Array:
        if saturates:
            value = _clamp(value, width, signed)
        if secondary is not None:
            value = _field(value, 0, 33, True)
            value = _SECONDARY[secondary](value, _field(c, 0, 32, signed))
        elif part:
            mask = (1 << width) - 1
            value = (value & mask) << low | c.astype(np.int64) & ~(mask << low)
        return value.astype(np.uint32)

    return d.target_of(ins, node, "u32"), function


def _scalar(d: Decoder, ins: tree.Instruction) -> Step:
    """vadd, vsub, vabsdiff, vmin, vmax, vset, vshl, vshr."""
    name, words = ins.opcode[0], ins.opcode
    if name == "vset":
        (a_signed, b_signed), d_signed = _types(ins, 2), False
        primary = _ORDERED[word_of(words, _ORDERED, "comparison")]
    else:
        d_signed, a_signed, b_signed = _types(ins, 3)
        primary = _shift(name, "wrap" in words) if name in ("vshl", "vshr") else _PRIMARY[name]
    nodes, (a_part, b_part) = _sources(d, ins, 2)
    a_field, b_field = _part(d, ins, a_part), _part(d, ins, b_part)
    out, finish = _finish(d, ins, d_signed, "sat" in words)

    def function(a: Array, b: Array, *c: Array) -> Array:
        left = _field(a, *a_field, a_signed)
        right = _field(b, *b_field, b_signed)
        return finish(primary(left, right).astype(np.int64), *(c or (None,)))

    rows = [d.row(ins, node, "u32") for node in nodes]
    rows += [d.source(ins, 3, "u32")] if d.count(ins) == 4 else []
    return elementwise(function, out, rows)


def _shift(name: str, wrap: bool) -> Callable[[I64, I64], I64]:
    def shift(a: I64, b: I64) -> I64:
        n = b & 31 if wrap else np.clip(b & 0xFFFFFFFF, 0, 32)
        return a >> n if name == "vshr" else _shift_left(a, n)

    return shift


def _shift_left(a: I64, n: I64) -> I64:
    """a << n for |a| <= 2^32 and n <= 32; where 62 bits are too few, only the sign is right
    besides the low 32 bits."""
    shifted = a << n
    fits = shifted >> n == a
    beyond = where(a < 0, np.int64(-(1 << 62)), np.int64(1 << 62))
    return where(fits, shifted, beyond | shifted & 0xFFFFFFFF)


def _multiply_add(d: Decoder, ins: tree.Instruction) -> Step:
    """vmad: a*b + c in wide integers, shifted right, clamped."""
    words = ins.opcode
    _, a_signed, b_signed = _types(ins, 3)
    found = [_operand(d, ins, i) for i in (1, 2, 3)]
    rows = [d.row(ins, node, "u32") for node, *_ in found]
    (_, a_part, a_minus), (_, b_part, b_minus), (_, c_part, c_minus) = found
    if c_part or (a_minus != b_minus and c_minus):
        raise d.error(ins, f"{ins.mnemonic} does not take these signs or parts")
    a_field, b_field = _part(d, ins, a_part), _part(d, ins, b_part)
    one_more = "po" in words
    if one_more and (a_minus != b_minus or c_minus):
        raise d.error(ins, f"{ins.mnemonic} has no negated operands")
    signed = a_signed or b_signed or a_minus != b_minus or c_minus
    shift = 7 if "shr7" in words else 15 if "shr15" in words else 0

    def function(a: Array, b: Array, c: Array) -> Array:
        left, right = _field(a, *a_field, a_signed), _field(b, *b_field, b_signed)
        addend = _field(c, 0, 32, signed).astype(object)  # Python integers: products of 64 bits
        product = left.astype(object) * right.astype(object)
        product = -product if a_minus != b_minus else product
        result: Array = product + (-addend if c_minus else addend) + int(one_more)
        result = result >> shift & (1 << 64) - 1
        if signed:
            result = (result ^ 1 << 63) - (1 << 63)
        if "sat" in words:
            low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
            result = np.minimum(np.maximum(result, low), high)
        return (result & 0xFFFFFFFF).astype(np.uint32)

    return elementwise(function, d.target_of(ins, d.operand(ins, 0), "u32"), rows)


# -- SIMD ------------------------------------------------------------------------------------------


def _selected_parts(text: str, letter: str, default: str, many: int, most: int) -> list[int]:
    """`h32` as [2, 3]: which part of {b, a} each element takes, lowest element first."""
    text = text or default
    digits = [int(c) for c in reversed(text[1:]) if c.isdigit()]
    if text[0] != letter or len(digits) != len(text) - 1 or not 0 < len(digits) <= many:
        raise EmulationError(f".{text} is no selector here")
    if max(digits) > most:
        raise EmulationError(f".{text} names a part that is not there")
    return digits


def _simd(d: Decoder, ins: tree.Instruction) -> Step:
    """The 2- and 4-fold forms: elements of a and b, accumulated in c or merged into it."""
    name, words = ins.opcode[0][:-1], ins.opcode
    many = int(ins.opcode[0][-1])
    letter, width = ("h", 16) if many == 2 else ("b", 8)
    if name == "vset":
        (a_signed, b_signed), d_signed = _types(ins, 2), False
        primary = _ORDERED[word_of(words, _ORDERED, "comparison")]
    else:
        d_signed, a_signed, b_signed = _types(ins, 3)
        primary = _PRIMARY[name]
    nodes, (a_part, b_part) = _sources(d, ins, 2)
    rows = [d.row(ins, node, "u32") for node in nodes]
    own = "".join(str(i) for i in reversed(range(many)))
    other = "".join(str(i + many) for i in reversed(range(many)))
    a_from = _selected_parts(a_part, letter, letter + own, many, 2 * many - 1)
    b_from = _selected_parts(b_part, letter, letter + other, many, 2 * many - 1)
    if len(a_from) != many or len(b_from) != many:
        raise EmulationError(f"selectors name {many} parts")
    node, part, _ = _operand(d, ins, 0)
    mask = _selected_parts(part, letter, letter + own, many, many - 1)
    rows.append(d.source(ins, 3, "u32"))
    saturates, adds = "sat" in words, "add" in words

    def function(a: Array, b: Array, c: Array) -> Array:
        both = [_field(x, width * i, width, False) for x in (a, b) for i in range(many)]
        total = c.astype(np.int64) if adds else np.zeros(c.shape, np.int64)
        for i in range(many):
            left = _field(both[a_from[i]], 0, width, a_signed)
            right = _field(both[b_from[i]], 0, width, b_signed)
            value = primary(left, right).astype(np.int64)
            if saturates:
                value = _clamp(value, width, d_signed)
            if adds:
                total = total + value if i in mask else total
                continue
            kept = value if i in mask else _field(c, width * i, width, False)
            total = total | (kept & (1 << width) - 1) << width * i
        return total.astype(np.uint32)

    return elementwise(function, d.target_of(ins, node, "u32"), rows)


STEPS: dict[str, Decode] = {
    "video multiply-add": _multiply_add,
    "video": _scalar,
    "packed video": _simd,
}
