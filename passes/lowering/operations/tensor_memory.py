"""Products in tensor memory, and loads and stores of what lies there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import multiplied_as
from fragir.dialects.frag.tensor_memory import (
    MOST_COLUMNS,
    M,
    column_of,
    elements_of_column,
    elements_of_register,
)
from fragir.dialects.frag.tensor_scales import BLOCKS, ROWS, scale_place
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.descriptors import instruction_descriptor
from fragir.isa.tensor_products import check_target, depths
from fragir.isa.versions import has
from fragir.layout import Axis, Layout
from fragir.passes.lowering.arithmetic import Arithmetic, Value
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
    a = memref_type(op.a.type)
    left = None
    if not frag.holds_operand(a):
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
                if left is None:
                    at = i * column_of(a, k) + column_of(a, number * step)
                    first = ar.value(ar.add(state.memories[op.a].pointer, at))
                else:
                    first = left.descriptor(M * i, number * step)
                operands = (
                    ar.value(ar.add(start, i * n + j * each)),
                    first,
                    right.descriptor(each * j, number * step),
                    *scales,
                    *begins,
                )
                of_scales = ", [$3], [$4]" if scales else ""
                last = f"${len(operands) - 1}" if begins else "1"
                statement(
                    state,
                    f"{opcode} [$0], {'[$1]' if left is None else '$1'}, $2, {word}{of_scales}, "
                    f"{last}",
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
    chunks = op.chunks()
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


class RowAccess(NamedTuple):
    """How the threads of a role load or store some columns of tensor memory."""

    type_: MemRefType[Attribute]
    start: Value
    """Of the thread's warp, the address of its first row and column."""
    columns: int
    """That a thread loads or stores of each of its rows."""
    suffix: str
    """Of the opcode, where two sums of 16 bits, a column each, share a register."""

    def pieces(self, ar: Arithmetic) -> Iterator[tuple[int, SSAValue]]:
        """Of each instruction: registers, and where it begins."""
        rows, width = self.type_.get_shape()
        per = elements_of_register(self.type_)
        for block in range(-(-rows // M)):
            first = 0
            while first < self.columns:
                registers = min(128, 1 << ((self.columns - first) // per).bit_length() - 1)
                at = column_of(self.type_, width) * block + column_of(self.type_, first)
                yield registers, ar.value(ar.add(self.start, at))
                first += per * registers


def _access(lanes: Lanes, op: frag.TensorLoadOp | frag.TensorStoreOp, suffix: str) -> RowAccess:
    state, ar, type_ = lanes.state, lanes.state.ar, memref_type(op.memory.type)
    groups, rest = divmod(state.threads, 128)
    if rest:
        raise FragirError(
            f"{op.name} is run by {state.threads} threads",
            hint="tensor memory is loaded and stored by whole warpgroups: a role of `warpgroups "
            "[1, 1]`",
        )
    each = frag.tile_of(op.tile).shape[1] // groups
    warp = state.hardware.axis("warp")
    start = ar.add(state.memories[op.memory].pointer, ar.mul(ar.rem(warp, 4), 32 << LANE_BITS))
    start = ar.add(start, column_of(type_, op.first))
    if groups > 1:
        start = ar.add(start, ar.mul(ar.div(warp, 4), column_of(type_, each)))
    shared = elements_of_register(type_) != elements_of_column(type_)
    return RowAccess(type_, start, each, suffix if shared else "")


def load(lanes: Lanes, op: frag.TensorLoadOp) -> None:
    """The rows of the warp's lanes; of several warpgroups each loads its columns."""
    state, ar, access = lanes.state, lanes.state.ar, _access(lanes, op, ".pack::16b")
    element, per = op.tile.type.element_type, elements_of_register(access.type_)
    parts: list[SSAValue] = []
    for registers, place in access.pieces(ar):
        text = f"{_form('ld', registers, access)} {_vector(0, registers)}, [$1]"
        type_ = VectorType(element, [per * registers])
        parts += statement(state, text, (place,), (type_,)).results
    statement(state, "tcgen05.wait::ld.sync.aligned")
    state.tiles[op.tile] = split(ar, join(ar, parts), op.tile.type.chunk)


def store(lanes: Lanes, op: frag.TensorStoreOp) -> None:
    """The same the other way round. Who publishes the slot has waited for it."""
    state, ar, access = lanes.state, lanes.state.ar, _access(lanes, op, ".unpack::16b")
    per = elements_of_register(access.type_)
    whole, first = join(ar, state.tiles[op.tile]), 0
    total = ptx.length(whole.type)
    for registers, place in access.pieces(ar):
        count = per * registers
        part = whole
        if count < total:
            type_ = ptx.vector_type(ptx.scalar_type(whole.type), count)
            part = ar.insert(ptx.SliceOp(whole, first, type_)).result
        text = f"{_form('st', registers, access)} [$0], {_vector(1, registers)}"
        statement(state, text, (place, part))
        first += count
    statement(state, "tcgen05.wait::st.sync.aligned")


def _form(which: str, registers: int, access: RowAccess) -> str:
    return f"tcgen05.{which}.sync.aligned.32x32b.x{registers}{access.suffix}.b32"


def _vector(number: int, registers: int) -> str:
    """An operand of registers, in braces also where it is one."""
    return f"${number}" if registers > 1 else f"{{${number}}}"
