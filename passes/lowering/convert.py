"""`frag.convert`: a tile in another layout, as the cheapest plan says.

Where registers have other names only, nothing is written. Inside of a warp words are shuffled,
selected and permuted (`programs`); else they go through shared memory (`convert_shared`). Layouts
that no plan knows go there element by element (`convert_elements`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, i1, i32
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.isa.features import features_of
from fragir.layout.planning.planner import ConversionPlan, plan_conversion
from fragir.passes.lowering.access import split
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.convert_elements import by_elements
from fragir.passes.lowering.convert_narrow import Narrow
from fragir.passes.lowering.convert_shared import through_shared
from fragir.passes.lowering.elementwise import cast_op
from fragir.passes.lowering.programs import ProgramLowering
from fragir.passes.lowering.state import LoweringState, fragments_of
from fragir.passes.lowering.words import WORD, fragments_from, words_of


def convert(
    state: LoweringState,
    source: frag.TileType,
    target: frag.TileType,
    fragments: Sequence[SSAValue],
) -> list[SSAValue]:
    """The fragments of `target` from those of `source`.

    FragirError where the layouts do not belong to the same threads.
    """
    ar, bits = state.ar, ptx.bits(source.element_type)
    if is_predicate(source.element_type):
        return _predicates(state, source, target, fragments)
    plan = planned(source, target, bits, state.target)
    if plan.apart is not None or (bits < 8 and plan.rows is not None):
        return _by_bytes(state, source, target, fragments)
    renaming = _renaming(plan)
    if renaming is not None:
        return _renamed(ar, fragments, renaming, _chunk(target))
    words = _moved(state, plan, words_of(ar, fragments))
    if words is None:
        assert plan.rows is not None
        return by_elements(state, source, target, plan.rows, fragments)
    return fragments_from(ar, words, target.element_type, _chunk(target), fragments_of(target))


def _moved(
    state: LoweringState, plan: ConversionPlan, words: Sequence[SSAValue]
) -> Sequence[SSAValue] | None:
    """The words of the target; None where the plan says element by element."""
    if plan.program is not None:
        return ProgramLowering(state.ar, state.hardware).run(plan.program, words)
    return None if plan.through is None else through_shared(state, plan.through, words, plan.bits)


def _by_bytes(
    state: LoweringState,
    source: frag.TileType,
    target: frag.TileType,
    fragments: Sequence[SSAValue],
) -> list[SSAValue]:
    """Elements of less than a byte that part from their neighbours: with a byte for each."""
    ar, narrow = state.ar, Narrow(state.ar, ptx.bits(source.element_type))
    byte = IntegerType(8)
    apart = narrow.bytes_of(words_of(ar, fragments))
    bytes_ = fragments_from(ar, apart, byte, _chunk(source), fragments_of(source))
    moved = convert(state, source.with_element(byte), target.with_element(byte), bytes_)
    words = narrow.words_of(words_of(ar, moved))
    return fragments_from(ar, words, target.element_type, _chunk(target), fragments_of(target))


def planned(
    source: frag.TileType, target: frag.TileType, bits: int, machine: str
) -> ConversionPlan:
    """The plan of a conversion of elements of so many bits on a machine."""
    return plan_conversion(source.resolve(), target.resolve(), bits, features_of(machine))


def _predicates(
    state: LoweringState,
    source: frag.TileType,
    target: frag.TileType,
    fragments: Sequence[SSAValue],
) -> list[SSAValue]:
    """Words hold no predicates: where more than names change they go as numbers of a register."""
    ar = state.ar
    source, target = source.with_element(i32), target.with_element(i32)
    renaming = _renaming(planned(source, target, WORD, state.target))
    if renaming is not None:
        return _renamed(ar, fragments, renaming, _chunk(target))
    numbers = [cast_op(ar, fragment, i1, i32) for fragment in fragments]
    moved = convert(state, source, target, numbers)
    return [ar.insert(ptx.CompareOp("ne", part, ar.zero(part.type))).result for part in moved]


def _chunk(tile: frag.TileType) -> int:
    return tile.chunk


def _renaming(plan: ConversionPlan) -> Sequence[int] | None:
    """For every element of the target the source's in the same lane; None where data move."""
    if plan.permutation is not None:
        return plan.permutation
    if plan.program is None or plan.program.steps:
        return None
    outputs, bits = plan.program.outputs, plan.bits
    if bits > WORD:
        return [word // 2 for word in outputs[::2]]
    per = WORD // bits
    elements = [word * per + place for word in outputs for place in range(per)]
    return elements[: plan.target.size("element")]


def _renamed(
    ar: Arithmetic, fragments: Sequence[SSAValue], permutation: Sequence[int], chunk: int
) -> list[SSAValue]:
    """Elements picked in another order, which keeps whole registers."""
    element = ptx.scalar_type(fragments[0].type)
    width = 1 if is_predicate(element) else max(1, WORD // ptx.bits(element))
    if len(permutation) % width:  # the last register is not full
        words = words_of(ar, fragments)
        picked = [words[first // width] for first in permutation[::width]]
        return fragments_from(ar, picked, element, chunk, len(permutation) // chunk)
    parts = [part for fragment in fragments for part in split(ar, fragment, width)]
    picked = [parts[first // width] for first in permutation[::width]]
    size = chunk // width
    groups = [picked[i : i + size] for i in range(0, len(picked), size)]
    return [_join(ar, group, width) for group in groups]


def _join(ar: Arithmetic, parts: Sequence[SSAValue], width: int) -> SSAValue:
    if len(parts) == 1 and width > 1:
        return parts[0]
    return ar.insert(ptx.PackOp(parts) if width == 1 else ptx.ConcatOp(parts)).results[0]
