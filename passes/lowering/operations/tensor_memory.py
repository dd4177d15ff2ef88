"""Products in tensor memory, and loads of what they have added up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import multiplied_as
from fragir.dialects.frag.tensor_memory import MOST_COLUMNS, M
from fragir.dialects.frag.tensor_scales import BLOCKS, ROWS, chunks_of, scale_place
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.descriptors import instruction_descriptor
from fragir.isa.tensor_products import check_target, depths
from fragir.isa.versions import has
from fragir.layout import Axis, Layout
from fragir.passes.lowering.descriptors import DescribedOperand
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.tensor_copies import statement
from fragir.passes.lowering.tensor_memory import starter
from fragir.passes.lowering.tile_access import join, split

if TYPE_CHECKING:
    from fragir.isa.canonical import Major

COPY = "tcgen05.cp.cta_group::1.32x128b.warpx4"
_CHUNK_ROWS, _ROW_BYTES = 32, 16
"""Of what one copy of scales reads."""
LANE_BITS = 16
"""An address is lane << 16 | column."""


def mma(lanes: Lanes, op: frag.TensorMmaOp) -> None:
    """One instruction for each 128 rows, 256 columns and step along K."""
    state, ar = lanes.state, lanes.state.ar
    check_target(op.kind, state.target)
    start = state.memories[op.d].pointer
    _, n, k = op.shapes()
    (step, *_), each = depths(op.kind), min(n, MOST_COLUMNS)
    group = op.group
    a_major: Major = "k" if op.a_transposed is None else "mn"
    b_major: Major = "k" if op.b_transposed is not None else "mn"
    left = DescribedOperand(ar, state.memories[op.a], a_major, "a", 0, M, step, state.target)
    right = DescribedOperand(
        ar, state.memories[op.b], b_major, "b", 0, each // group, step, state.target
    )
    later = () if op.later is None else (state.scalar(op.later),)
    _, block = op.scaling()
    count = step // block if block else 0
    opcode = f"tcgen05.mma.cta_group::{group}.kind::{op.kind}"
    if count:
        opcode += _scale_vector(op.kind, count, block, state.target)
    blocks_m, blocks_n = op.blocks()
    for number in range(k // step):
        word = _instruction_word(op, each, number * count % BLOCKS, state.target)
        for j in range(blocks_n):
            for i in range(blocks_m):
                scales = [
                    _scale_address(lanes, value, row, number * count)
                    for value, row in zip(op.scales, (M * i, each * j), strict=False)
                ]
                begins = later if number == 0 else ()
                operands = (
                    ar.value(ar.add(start, i * n + j * each)),
                    left.descriptor(M * i, number * step),
                    right.descriptor(each * j, number * step),
                    *scales,
                    *begins,
                )
                of_scales = ", [$3], [$4]" if scales else ""
                last = f"${len(operands) - 1}" if begins else "1"
                statement(
                    state,
                    f"{opcode} [$0], $1, $2, {word}{of_scales}, {last}",
                    operands,
                    predicate=starter(lanes),
                )


def _instruction_word(op: frag.TensorMmaOp, n: int, scale: int, target: str) -> int:
    """The instruction descriptor of products of `n` columns, whose scales begin at a byte."""
    a, b, d = op.elements()
    name, _ = op.scaling()
    flags = {
        "mn_major_a": op.a_transposed is not None,
        "mn_major_b": op.b_transposed is None,
        "sfa_id": scale,
        "sfb_id": scale,
    }
    return instruction_descriptor(
        op.kind,
        m=op.group * M,
        n=n,
        a=multiplied_as(a),
        b=multiplied_as(b),
        d=d,
        scale=name,
        cta_group=op.group,
        ws=False,
        target=target,
        **{name: int(flag) for name, flag in flags.items() if flag},
    )


def _scale_vector(kind: str, count: int, block: int, target: str) -> str:
    """How an opcode says that so many scales are for `block` of K each."""
    old = f".block_scale.scale_vec::{count}X"
    family = has(f"tcgen05.mma.cta_group::1.kind::{kind}{old}", target)
    return old if family else f".block_scale.block{block}"


def _scale_address(lanes: Lanes, scales: SSAValue, row: int, block: int) -> SSAValue:
    """The column from which a product takes the scales of a row and a block on."""
    ar = lanes.state.ar
    rows, _ = memref_type(scales.type).get_shape()
    column, _ = scale_place(rows, row, block)
    return ar.value(ar.add(lanes.state.memories[scales].pointer, column))


def copy(lanes: Lanes, op: frag.TensorCopyOp) -> None:
    """One instruction for the scales of 128 rows by four blocks."""
    state, ar = lanes.state, lanes.state.ar
    if not has(COPY, state.target):
        raise FragirError(f"{state.target} has no tensor memory")
    chunks = chunks_of(memref_type(op.source.type))
    rows, _ = memref_type(op.target.type).get_shape()
    across, along = chunks.sizes["row"], chunks.sizes["col"]
    within = Layout.parse(f"row [{_CHUNK_ROWS}:{_ROW_BYTES}] col [{_ROW_BYTES}:1]")
    modes = (*within.axis("row").modes, *chunks.axis("row").modes, *chunks.axis("col").modes)
    lines = Layout((Axis("row", modes), within.axis("col")), within.dims, chunks.offset)
    memory = state.memories[op.source]._replace(
        layout=lines, shape=(_CHUNK_ROWS * across * along, _ROW_BYTES)
    )
    side = DescribedOperand(ar, memory, "k", "scales", 0, _CHUNK_ROWS, _ROW_BYTES, state.target)
    for j in range(along):
        for i in range(across):
            column, _ = scale_place(rows, i * ROWS, j * BLOCKS)
            place = ar.value(ar.add(state.memories[op.target].pointer, column))
            descriptor = side.descriptor(_CHUNK_ROWS * (i + across * j), 0)
            text = f"{COPY} [$0], $1"
            statement(state, text, (place, descriptor), predicate=starter(lanes))


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
    element = op.tile.type.element_type
    # an f16 has a column of its own, and half a register
    per, pack = (2, ".pack::16b") if ptx.bits(element) == 16 else (1, "")
    parts: list[SSAValue] = []
    for block in range(rows // M):
        first = 0
        while first < each:
            registers = min(128, 1 << ((each - first) // per).bit_length() - 1)
            written = "$0" if registers > 1 else "{$0}"
            text = f"tcgen05.ld.sync.aligned.32x32b.x{registers}{pack}.b32 {written}, [$1]"
            place = ar.value(ar.add(start, block * width + op.first + first))
            type_ = VectorType(element, [per * registers])
            parts += statement(state, text, (place,), (type_,)).results
            first += per * registers
    statement(state, "tcgen05.wait::ld.sync.aligned")
    state.tiles[op.tile] = split(ar, join(ar, parts), op.tile.type.chunk)
