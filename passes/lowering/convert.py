"""`frag.convert`: a tile in another layout, by renaming registers where that is enough."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.layout.conversion import plan
from fragir.passes.lowering.access import TileAccess, split
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.elementwise import cast_op
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import stacked
from fragir.passes.lowering.shared import SharedMatrix


def convert(
    ar: Arithmetic,
    hardware: Hardware,
    source: frag.TileType,
    target: frag.TileType,
    fragments: Sequence[SSAValue],
    machine: str,
) -> list[SSAValue]:
    """The fragments of `target` from those of `source`.

    Within a lane registers are renamed; between lanes and warps the tile goes through shared
    memory. FragirError where the layouts do not belong to the same threads.
    """
    step = plan(source.resolve(), target.resolve())
    placement = target.placement
    assert placement is not None
    if step.permutation is not None:
        return _rename(ar, fragments, step.permutation, placement.chunk)
    if not is_predicate(source.element_type):
        return _through_shared(ar, hardware, source, target, fragments, machine)
    # memory holds no predicates: numbers of a register each
    numbers = [cast_op(ar, fragment, source.element_type, i32) for fragment in fragments]
    source, target = source.with_element(i32), target.with_element(i32)
    moved = _through_shared(ar, hardware, source, target, numbers, machine)
    return [ar.insert(ptx.CompareOp("ne", part, ar.zero(part.type))).result for part in moved]


def _rename(
    ar: Arithmetic, fragments: Sequence[SSAValue], permutation: Sequence[int], chunk: int
) -> list[SSAValue]:
    """Elements picked in another order; whole registers where the order keeps them whole."""
    element = ptx.scalar_type(fragments[0].type)
    per = 1 if is_predicate(element) else max(1, 32 // ptx.bits(element))
    firsts = permutation[::per]
    whole = len(permutation) % per == 0 and all(
        first % per == 0 and permutation[i * per + j] == first + j
        for i, first in enumerate(firsts)
        for j in range(per)
    )
    width = per if whole else 1
    parts = [part for fragment in fragments for part in split(ar, fragment, width)]
    picked = [parts[first // width] for first in permutation[::width]]
    size = chunk // width
    groups = [picked[i : i + size] for i in range(0, len(picked), size)]
    return [_join(ar, group, width) for group in groups]


def _join(ar: Arithmetic, parts: Sequence[SSAValue], width: int) -> SSAValue:
    if len(parts) == 1 and width > 1:
        return parts[0]
    return ar.insert(ptx.PackOp(parts) if width == 1 else ptx.ConcatOp(parts)).results[0]


def _through_shared(
    ar: Arithmetic,
    hardware: Hardware,
    source: frag.TileType,
    target: frag.TileType,
    fragments: Sequence[SSAValue],
    machine: str,
) -> list[SSAValue]:
    """Store, barrier, load: right for every pair of layouts."""
    *leading, rows, cols = (1, *source.shape) if len(source.shape) == 1 else source.shape
    bits = ptx.bits(source.element_type)
    # one chunk of padding a row keeps the lanes of a column apart in the banks
    pitch = cols + 128 // bits
    matrix = SharedMatrix(rows, pitch, bits, 0)
    pointer = ar.insert(ptx.SharedOp(prod(leading) * matrix.bytes), "scratch").pointer
    memory = stacked(ar, pointer, leading, matrix, source.element_type)

    def access(tile: frag.TileType) -> TileAccess:
        first = [0] * len(memory.shape)
        return TileAccess(
            ar, hardware, tile, memory, first, transposed=False, masked=False, target=machine
        )

    access(source).store(fragments)
    ar.insert(ptx.SyncOp("bar.sync", 0))
    result = access(target).load()
    # the scratch may be written again, in a loop
    ar.insert(ptx.SyncOp("bar.sync", 0))
    return result
