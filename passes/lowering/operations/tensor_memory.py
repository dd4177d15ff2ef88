"""Products in tensor memory, and loads of what they have added up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.tensor_memory import MOST_COLUMNS, M
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.descriptors import instruction_descriptor
from fragir.isa.tensor_products import check_target, depths
from fragir.passes.lowering.descriptors import WgmmaOperand
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.tensor_copies import statement
from fragir.passes.lowering.tensor_memory import starter
from fragir.passes.lowering.tile_access import join, split

if TYPE_CHECKING:
    from fragir.isa.canonical import Major

LANE_BITS = 16
"""An address is lane << 16 | column."""


def mma(lanes: Lanes, op: frag.TensorMmaOp) -> None:
    """One instruction for each 128 rows, 256 columns and step along K."""
    state, ar = lanes.state, lanes.state.ar
    check_target(op.kind, state.target)
    start = state.memories[op.d].pointer
    _, n, k = op.shapes()
    (step, *_), each = depths(op.kind), min(n, MOST_COLUMNS)
    a_major: Major = "k" if op.a_transposed is None else "mn"
    b_major: Major = "k" if op.b_transposed is not None else "mn"
    a, b, d = op.elements()
    word = instruction_descriptor(
        op.kind,
        m=M,
        n=each,
        a=a,
        b=b,
        d=d,
        cta_group=1,
        ws=False,
        target=state.target,
        mn_major_a=int(a_major == "mn"),
        mn_major_b=int(b_major == "mn"),
    )
    left = WgmmaOperand(ar, state.memories[op.a], a_major, "a", 0, M, step, state.target)
    right = WgmmaOperand(ar, state.memories[op.b], b_major, "b", 0, each, step, state.target)
    later = () if op.later is None else (state.scalar(op.later),)
    blocks_m, blocks_n = op.blocks()
    for number in range(k // step):
        for j in range(blocks_n):
            for i in range(blocks_m):
                place = ar.value(ar.add(start, i * n + j * each))
                begins = later if number == 0 else ()
                statement(
                    state,
                    f"tcgen05.mma.cta_group::1.kind::{op.kind} [$0], $1, $2, {word}, "
                    + ("$3" if begins else "1"),
                    (
                        place,
                        left.descriptor(M * i, number * step),
                        right.descriptor(each * j, number * step),
                        *begins,
                    ),
                    predicate=starter(lanes),
                )


def load(lanes: Lanes, op: frag.TensorLoadOp) -> None:
    """The rows of the warp's lanes; of several warpgroups each loads its columns."""
    state, ar = lanes.state, lanes.state.ar
    rows, columns = op.tile.type.shape
    _, width = memref_type(op.memory.type).get_shape()
    groups, rest = divmod(state.threads, 128)
    if rest:
        raise FragirError(
            f"{op.name} is run by {state.threads} threads",
            hint="tensor memory is loaded by whole warpgroups: a role of `warpgroups [1, 1]`",
        )
    each = columns // groups
    warp = state.hardware.axis("warp")
    start = ar.add(state.memories[op.memory].pointer, ar.mul(ar.rem(warp, 4), 32 << LANE_BITS))
    if groups > 1:
        start = ar.add(start, ar.mul(ar.div(warp, 4), each))
    parts: list[SSAValue] = []
    for block in range(rows // M):
        first = 0
        while first < each:
            width = min(128, 1 << (each - first).bit_length() - 1)
            text = f"tcgen05.ld.sync.aligned.32x32b.x{width}.b32 $0, [$1]"
            place = ar.value(ar.add(start, block * width + op.first + first))
            type_ = VectorType(op.tile.type.element_type, [width])
            parts += statement(state, text, (place,), (type_,)).results
            first += width
    statement(state, "tcgen05.wait::ld.sync.aligned")
    state.tiles[op.tile] = split(ar, join(ar, parts), op.tile.type.chunk)
