"""Tiles in other shapes: elements keep their lanes, registers get other names."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.dialects.frag.regrouped import RenamingOp
from fragir.errors import FragirError
from fragir.layout.regrouping import element_points
from fragir.passes.lowering.convert_narrow import Narrow
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.renaming import is_whole, per_register, renamed
from fragir.passes.lowering.state import LoweringState, fragments_of
from fragir.passes.lowering.words import fragments_from, words_of


def rename(lanes: Lanes, op: RenamingOp) -> None:
    if op.staged:
        from fragir.passes.lowering.staged import through_memory  # few programs need it

        through_memory(lanes, op)
        return
    state = lanes.state
    for number, result in enumerate(op.results):
        picked = elements_of(op, number)
        type_ = frag.tile_of(result)
        chunk, element = type_.chunk, type_.element_type
        sources = [list(state.tiles[operand]) for operand in op.operands]
        narrow = not is_predicate(element) and ptx.bits(element) < 8
        fragments = [fragment for source in sources for fragment in source]
        if narrow and _only_order(fragments, picked, chunk, ptx.bits(element)):
            state.tiles[result] = [_in_order(state, fragments[0], picked)]
        elif narrow and not _stays_whole(sources, picked, chunk, per_register(element)):
            state.tiles[result] = _by_bytes(state, op, sources, type_, picked)
        else:
            state.tiles[result] = renamed(state.ar, fragments, picked, chunk)


def elements_of(op: RenamingOp, number: int) -> list[int]:
    """For every element of a result in a lane its number among those of all operands.

    FragirError where a lane lacks one.
    """
    places: list[dict[tuple[int, ...], int]] = []
    count = 0
    for operand in op.operands:
        points = element_points(frag.tile_of(operand).resolve())
        places.append({point: count + at for at, point in reversed(list(enumerate(points)))})
        count += len(points)
    found: list[int] = []
    for point in element_points(frag.tile_of(op.results[number]).resolve()):
        operand, source = op.source_of(number, point)
        place = places[operand].get(source)
        if place is None:
            raise FragirError(
                f"lanes lack elements of {frag.tile_of(op.operands[operand])} for "
                f"{frag.tile_of(op.results[number])}",
                hint="run the pass frag-place first, or write frag.convert",
            )
        found.append(place)
    return found


def _only_order(
    fragments: Sequence[SSAValue], picked: Sequence[int], chunk: int, bits: int
) -> bool:
    """Whether elements of four bits are one vector that is in another order only, or had been."""
    if len(fragments) != 1 or chunk != len(picked) or bits != 4:
        return False
    owner = fragments[0].owner
    ordered = isinstance(owner, Operation) and owner.name == "ptx.nibbles"
    return ordered or list(picked) == list(range(ptx.length(fragments[0].type)))


def _in_order(state: LoweringState, fragment: SSAValue, picked: Sequence[int]) -> SSAValue:
    """A vector of elements of four bits in the order of `picked`."""
    if list(picked) == list(range(ptx.length(fragment.type))):
        return fragment
    owner = fragment.owner
    assert isinstance(owner, ptx.NibblesOp)
    order = owner.picked
    return state.ar.insert(ptx.NibblesOp(owner.source, [order[i] for i in picked])).result


def _stays_whole(
    sources: Sequence[Sequence[SSAValue]], picked: Sequence[int], chunk: int, per: int
) -> bool:
    lengths = [ptx.length(fragment.type) for source in sources for fragment in source]
    return not any(n % per for n in (chunk, *lengths)) and is_whole(picked, per)


def _by_bytes(
    state: LoweringState,
    op: RenamingOp,
    sources: Sequence[Sequence[SSAValue]],
    result: frag.TileType,
    picked: Sequence[int],
) -> list[SSAValue]:
    """Elements of less than a byte that part from their neighbours: with a byte for each."""
    ar, byte = state.ar, IntegerType(8)
    narrow = Narrow(ar, ptx.bits(result.element_type))
    apart: list[SSAValue] = []
    for operand, source in zip(op.operands, sources, strict=True):
        words = narrow.bytes_of(words_of(ar, source))
        size = frag.tile_of(operand).resolve().size("element")
        apart += fragments_from(ar, words, byte, size, 1)
    chunk = result.chunk
    moved = renamed(ar, apart, picked, chunk)
    words = narrow.words_of(words_of(ar, moved))
    return fragments_from(ar, words, result.element_type, chunk, fragments_of(result))
