"""set and setp: comparisons with a boolean combination (PTX ISA 9.2, sections 9.7.6, 9.7.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import Function, elementwise, of2
from fragir.emulator.instructions.floating import KINDS
from fragir.emulator.instructions.floating_arithmetic import flush
from fragir.emulator.machine.lanes import Mask, Step, store
from fragir.emulator.numbers.formats import FORMATS
from fragir.emulator.numbers.rounding import decode, encode
from fragir.emulator.numbers.types import DTYPES, width_of, word_of
from fragir.emulator.program.opcode import Opcode

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

ORDERED: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMBINE: dict[str, Function] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
COMPARISONS = (*ORDERED, *_UNSIGNED, *(f"{w}u" for w in ORDERED), "num", "nan")


def comparison(word: str, floating: bool) -> Function:
    """The comparison on values (f64 or f32 for floating point)."""
    if word in _UNSIGNED:
        return ORDERED[_UNSIGNED[word]]
    if not floating:
        return ORDERED[word]
    if word == "num":
        return of2(lambda a, b: ~(np.isnan(a) | np.isnan(b)))
    if word == "nan":
        return of2(lambda a, b: np.isnan(a) | np.isnan(b))
    if word in ORDERED:
        if word == "ne":  # numpy's != holds for NaN, the ordered one does not
            return of2(lambda a, b: (a < b) | (a > b))
        return ORDERED[word]
    inner = ORDERED[word[:-1]]
    return of2(lambda a, b: inner(a, b) | np.isnan(a) | np.isnan(b))


def _operands(d: Decoder, ins: Instruction, kind: str) -> tuple[Function, list[Any], bool]:
    """(comparison on rows, rows of a and b, whether packed)."""
    word = word_of(ins.opcode, COMPARISONS, "comparison")
    if kind in KINDS:
        form, register, split = KINDS[kind]
        shape = FORMATS[form]
        compare = comparison(word, True)
        ftz = "ftz" in ins.opcode
        if form == "f32" and not ftz:
            return compare, [d.source(ins, i, "f32") for i in _ab(ins)], False
        if form == "f64":
            return compare, [d.source(ins, i, "f64") for i in _ab(ins)], False

        def on_bits(a: Any, b: Any) -> Any:
            if split:
                a, b = (np.ascontiguousarray(x).view(np.uint16) for x in (a, b))
            if ftz:
                a, b = flush(a, form), flush(b, form)
            return compare(decode(a, shape), decode(b, shape))

        return on_bits, [d.source(ins, i, register) for i in _ab(ins)], split
    if word in _UNSIGNED or kind[0] == "b":
        kind = "u" + kind[1:]
    return comparison(word, False), [d.source(ins, i, kind) for i in _ab(ins)], False


def _types(d: Decoder, ins: Instruction, count: int) -> list[str]:
    found = [w for w in ins.opcode[1:] if w in DTYPES]
    if len(found) != count:
        raise d.error(ins, f"{ins.mnemonic} has {count} types, not {len(found)}")
    return found


def _ab(ins: Instruction) -> tuple[int, int]:
    return 1, 2


def set_predicate(d: Decoder, ins: Instruction) -> Step:
    (kind,) = _types(d, ins, 1)
    compare, (a, b), split = _operands(d, ins, kind)
    first, second = d.pair(d.operand(ins, 0))
    p = d.target_of(ins, first, "pred")
    q = None if second is None else d.target_of(ins, second, "pred")
    combine = next((_COMBINE[w] for w in ins.opcode if w in _COMBINE), None)
    c = d.source(ins, 3, "pred") if combine else None
    if split:
        return _packed(compare, a, b, p, q, combine, c)
    if combine is None and q is None:
        return elementwise(compare, p, [a, b])

    def run(sel: Any, mask: Mask) -> None:
        result = compare(a[sel], b[sel])
        other = ~result
        if combine is not None and c is not None:
            with_c = c[sel]
            result, other = combine(result, with_c), combine(other, with_c)
        if p is not None:
            store(p, sel, mask, result)
        if q is not None:
            store(q, sel, mask, other)

    return run


def _packed(compare: Function, a: Any, b: Any, p: Any, q: Any, combine: Any, c: Any) -> Step:
    """f16x2: p from the low halves, q from the high ones."""

    def run(sel: Any, mask: Mask) -> None:
        both = compare(a[sel], b[sel])
        for at, out in enumerate((p, q)):
            result = both[:, at::2]
            if combine is not None:
                result = combine(result, c[sel])
            if out is not None:
                store(out, sel, mask, result)

    return run


def set_value(d: Decoder, ins: Instruction) -> Step:
    """set: all ones (integers) or 1.0 where the comparison holds."""
    into, kind = _types(d, ins, 2)
    compare, (a, b), split = _operands(d, ins, kind)
    if split != (kind in KINDS and width_of(into) == 32 and KINDS[kind][2]) or (
        into in KINDS and KINDS[into][2] != split
    ):
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    if into in KINDS:
        form, register, wide = KINDS[into]
        truth = int(encode(np.array([1.0]), FORMATS[form])[0])
        part = np.dtype(np.uint16) if wide or form in ("f16", "bf16") else np.dtype(np.uint32)
        if form == "f64":
            part = np.dtype(np.uint64)
    else:
        register = "u" + into[1:]
        wide = split
        part = np.dtype(np.uint16) if split else np.dtype(f"u{width_of(into) // 8}")
        truth = (1 << (8 * part.itemsize)) - 1
    combine = next((_COMBINE[w] for w in ins.opcode if w in _COMBINE), None)
    sources = [a, b] + ([d.source(ins, 3, "pred")] if combine else [])

    def function(a: Any, b: Any, *c: Any) -> Any:
        result = compare(a, b)
        if combine is not None:
            result = combine(result, np.repeat(c[0], 2, axis=-1) if split else c[0])
        value = np.where(result, part.type(truth), part.type(0))
        return np.ascontiguousarray(value).view(np.uint32) if wide else value

    return elementwise(function, d.target(ins, 0, register), sources)


OPCODES: tuple[Opcode, ...] = (
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
        set_predicate,
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
        set_value,
        address="number",
        apart=True,
    ),
)
