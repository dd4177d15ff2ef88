"""Floating-point arithmetic, comparisons and conversions as operations of straight-line runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragir.emulator.instructions.compare import COMPARISONS
from fragir.emulator.instructions.floating import KINDS
from fragir.emulator.instructions.straight_rows import (
    Encode,
    NoStraightCode,
    StraightDecoder,
    elements,
    given,
    modifiers,
    only,
)
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.native.straight import COMBINE, COMPARE, MODIFIERS, ROUNDINGS
from fragir.emulator.numbers.types import DTYPES, dtype_of, width_of

if TYPE_CHECKING:
    from fragir.ptx.tree import Instruction


def arithmetic(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    """add, sub, mul, fma, mad, div, rcp, sqrt, rsqrt of f32, f16, bf16 and their pairs."""
    name, kind = ins.opcode[0], ins.opcode[-1]
    form, register, packed = KINDS[kind]
    near = {"approx", "full"} & set(ins.opcode)
    only(ins, name, kind, *ROUNDINGS, "ftz", "sat", "relu", *sorted(near))
    stem = "fma" if name == "mad" else name
    how = modifiers(ins)
    if form != "f32":
        if how & 3 or near:
            raise NoStraightCode
        function = f"{stem}_{form}{'_by' if how else ''}"
    elif how & ~MODIFIERS["ftz"]:
        function = f"{stem}_f32_by"
    else:
        # The approximations are the quotient or root in f64 rounded to f32, and that is the
        # correctly rounded one; div.approx is apart, for large divisors.
        near_division = "_approx" if name == "div" and "approx" in near else ""
        function = f"{stem}{near_division}_f32{'_ftz' if how else ''}"
    operands = d.sources(ins, [register] * (d.count(ins) - 1))
    return elements(function, d.out(ins, 0, register), operands, how, 2 if packed else 1)


def extreme(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    name, kind = ins.opcode[0], ins.opcode[-1]
    form, register, packed = KINDS[kind]
    only(ins, name, kind, "ftz", "NaN")
    if d.count(ins) != 3:
        raise NoStraightCode
    how = modifiers(ins)
    function = f"{name}_{form}{'_by' if how else ''}"
    operands = d.sources(ins, [register] * 2)
    return elements(function, d.out(ins, 0, register), operands, how, 2 if packed else 1)


def sign(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    """neg and abs."""
    name, kind = ins.opcode[0], ins.opcode[-1]
    form, register, packed = KINDS[kind]
    only(ins, name, kind, "ftz")
    out, operands = d.out(ins, 0, register), d.sources(ins, [register])
    how = modifiers(ins)
    function = f"{name}_{form}{'_by' if form == 'f16' and how else ''}"
    return elements(function, out, operands, how, 2 if packed else 1)


_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compare(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    """setp, with both its results and a predicate that they are combined with."""
    kind = next(w for w in ins.opcode[1:] if w in DTYPES)
    word = next(w for w in ins.opcode if w in COMPARISONS)
    only(ins, "setp", word, kind, "ftz", *COMBINE)
    register = kind
    if kind in KINDS:
        form, register, packed = KINDS[kind]
        if packed:
            raise NoStraightCode
        function = f"{word}_{form}{'_ftz' if 'ftz' in ins.opcode else ''}"
    else:
        if word in _UNSIGNED or kind[0] == "b":
            register = kind = f"u{kind[1:]}"
        function = f"{_UNSIGNED.get(word, word)}_{kind}"
    first, second = d.pair(d.operand(ins, 0))
    p = d.out_of(ins, first, "pred")
    q = None if second is None else d.out_of(ins, second, "pred")
    combine = next((COMBINE[w] for w in ins.opcode if w in COMBINE), 0)
    operands = d.sources(ins, [register, register, *(["pred"] if combine else [])])
    if q is None and not combine:
        return elements(function, p, operands)
    return [
        StraightCode(
            function,
            operands,
            given(p),
            given(q),
            kind=COMPARE,
            combine=combine,
        )
    ]


# -- cvt -----------------------------------------------------------------------------------------

_SCALARS = ("f16", "bf16", "f32", "f64")
_WHOLE = {"rni": 0, "rzi": 1, "rmi": 2, "rpi": 3}


def _by(into: str, how: int) -> str:
    return "_by" if into.startswith("f16") and how else ""


def convert(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    kinds = [w for w in ins.opcode[1:] if w in DTYPES]
    if len(kinds) != 2:
        raise NoStraightCode
    into, kind = kinds
    if into in ("f16x2", "bf16x2") and kind == "f32":
        only(ins, "cvt", into, kind, "rn", "rz")
        out = d.wide_out(ins, d.operand(ins, 0), "u32")
        operands = d.sources(ins, ["u32"] * 2)
        how = modifiers(ins)
        return elements(f"cvt_{into}_f32{_by(into, how)}", out, operands, how)
    integer_in, integer_out = kind[0] in "us", into[0] in "us"
    if not (integer_in or kind in _SCALARS) or not (integer_out or into in _SCALARS):
        raise NoStraightCode
    row = d.source(ins, 1, kind if integer_in else f"u{width_of(kind)}", True)
    out = d.wide_target(ins, d.operand(ins, 0), into)
    if out is None:
        return []
    if integer_in and integer_out:
        only(ins, "cvt", into, kind)
        return _between_integers(d, ins, out, row, into, kind)
    if out.dtype.itemsize * 8 != width_of(into):
        raise NoStraightCode
    how = modifiers(ins)
    whole = next((w for w in ins.opcode if w in _WHOLE), None)
    if integer_in:
        only(ins, "cvt", into, kind, *ROUNDINGS, "ftz")
        how &= 3
        near = "rn_" if into == "f32" and not how and width_of(kind) >= 32 else ""
        function = f"cvt_{into}_{near}{kind}"
    elif integer_out:
        only(ins, "cvt", into, kind, *_WHOLE, "ftz", "sat")
        assert whole is not None
        how = how & MODIFIERS["ftz"] | _WHOLE[whole]
        function = f"cvt_{into}_{kind}"
    else:
        only(ins, "cvt", into, kind, *ROUNDINGS, *_WHOLE, "ftz")
        function = f"cvt_{into}_{kind}{_by(into, how) if kind == 'f32' else ''}"
        if whole is not None:
            if into != "f32" or kind != "f32":
                raise NoStraightCode
            how, function = how | _WHOLE[whole], "cvt_f32_whole"
    kind = kind if integer_in else f"u{width_of(kind)}"
    source = d.direct(d.operand(ins, 1), kind) or d.read(row)
    return elements(function, d.wide_out(ins, d.operand(ins, 0), into), [source], how)


def _between_integers(
    d: StraightDecoder, ins: Instruction, out: Any, row: Any, into: str, kind: str
) -> list[StraightCode]:
    """The low bits, or all and the sign; then extended to the register by the sign of `into`."""
    register, width, given = out.dtype.itemsize * 8, width_of(into), width_of(kind)
    if width < register:
        if width < given:
            if 0 in row.strides:
                raise NoStraightCode
            unit = dtype_of(into)
            row = row.view(unit)[:, :: given // width]
            kind = into
        elif width == given:
            kind = into
        elif kind[0] == "s" and into[0] == "u":
            raise NoStraightCode
    source = d.direct(d.operand(ins, 1), kind) or d.read(row)
    kind = "u64" if kind == "s64" else kind
    return elements(f"cvt_u{register}_{kind}", d.wide_out(ins, d.operand(ins, 0), into), [source])


ENCODERS: dict[str, Encode] = {
    **dict.fromkeys("add sub mul fma mad div rcp sqrt rsqrt".split(), arithmetic),
    "min": extreme,
    "max": extreme,
    "neg": sign,
    "abs": sign,
}
