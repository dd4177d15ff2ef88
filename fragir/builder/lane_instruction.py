"""Instructions of PTX as Python says them: an opcode and operands, or a whole statement."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from fragir.builder.checks import items, word
from fragir.builder.lane_values import LanePointer, LaneRegisters
from fragir.builder.places import fail
from fragir.builder.trace import Trace
from fragir.builder.types import bf16, condition, f16, f32, f64, s32, s64
from fragir.builder.values import Scalar
from fragir.dialects import ptx
from fragir.dialects.ptx.statement import read
from fragir.errors import FragirError
from fragir.ptx.spelling import float_literal

#: What an instruction gives, by the last word of its opcode that is a type.
_TYPES: dict[str, Attribute] = {
    **dict.fromkeys(("b32", "s32", "u32"), s32),
    **dict.fromkeys(("b64", "s64", "u64"), s64),
    **{"f16": f16, "bf16": bf16, "f32": f32, "f64": f64, "pred": condition},
}


def instruction_of(
    trace: Trace,
    text: object,
    operands: Sequence[object],
    results: object,
    where: Scalar | None,
) -> ptx.InstructionOp:
    """The operation; an error at the user's line where it cannot be said."""
    said = word(text, "an instruction")
    predicate = None if where is None else trace.scalar(where, condition, "`where`")
    if "$" in said:
        values = [_value(trace, operand) for operand in operands]
        types = _given(results) or []
        return ptx.InstructionOp(said, values, types, predicate=predicate)
    types = _given(results)
    if types is None:
        types = _result(said, operands)
    values: list[SSAValue] = []
    parts = [f"${number}" for number in range(len(types))]
    for operand in operands:
        if isinstance(operand, int) and not isinstance(operand, bool):
            parts.append(str(operand))
        elif isinstance(operand, float):
            parts.append(float_literal(operand, "f64" if said.endswith("f64") else "f32"))
        else:
            place = f"${len(types) + len(values)}"
            parts.append(f"[{place}]" if isinstance(operand, LanePointer) else place)
            values.append(_value(trace, operand))
    statement = f"{said} {', '.join(parts)}".rstrip()
    return ptx.InstructionOp(statement, values, types, predicate=predicate)


def _given(results: object) -> list[Attribute] | None:
    """Types; `bool` is a predicate's."""
    if results is None:
        return None
    several = items(results)
    found: list[Attribute] = []
    for one in [results] if several is None else several:
        if one is not bool and not isinstance(one, Attribute):
            fail(f"{one!r} is no type of a result", "write fragir.f32, or bool for a predicate")
        found.append(one if isinstance(one, Attribute) else condition)
    return found


def _value(trace: Trace, operand: object) -> SSAValue:
    if isinstance(operand, LaneRegisters | LanePointer):
        return operand.ssa
    if isinstance(operand, Scalar):
        return trace.use(operand)
    fail(f"{operand!r} is no operand of an instruction", "give scalars, registers and pointers")


def _result(opcode: str, operands: Sequence[object]) -> list[Attribute]:
    """What an opcode gives, as far as its words tell."""
    from fragir.ptx.opcodes.table import found

    places = ["[$0]" if isinstance(operand, LanePointer) else "$0" for operand in operands]
    try:
        asked = [
            found(read(f"{opcode} {', '.join(ps)}".rstrip()).instruction)
            for ps in (["$0", *places], places)
        ]
    except FragirError as error:
        fail(error.message, error.hint)
    row, without = asked
    if row.opcode is None and without.opcode is None:
        fail(row.problem or f"{opcode} is not known", row.hint)
    if row.opcode is None or not row.opcode.writes:
        return []
    first = next((x for x in operands if isinstance(x, Scalar)), None)
    for word_ in reversed(opcode.split(".")):
        if word_ in _TYPES:
            type_ = _TYPES[word_]
            # bits without a type stay what they are
            same = first is not None and word_.startswith("b") and word_ != "bf16"
            if same and first is not None and ptx.register_bits(first.type) == int(word_[1:]):
                return [first.type]
            return [type_]
    fail(f"what {opcode} gives is not told by its words", "write results=fragir.s32, ...")
