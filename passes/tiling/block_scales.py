"""Scales of blocks, which tensor cores multiply in, in the program of tiles of a `frag.matmul`."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.matmul_sums import Scaling
from fragir.dialects.frag.tensor_scales import BLOCKS, CHUNK_SHAPE, ROWS, chunked
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.versions import has, requirement
from fragir.passes.tiling.tile_writer import TileWriter


def load_scales(
    writer: TileWriter, each: Scaling, row: SSAValue, column: SSAValue, k: SSAValue
) -> SSAValue:
    """The scales of a turn's tile of A or B, as `frag.mma` takes them."""
    tm, tn, tk = writer.schedule.tile
    size, extent, start = (0, tm, row) if each.name == "A" else (1, tn, column)
    depth = each.depth
    assert depth is not None
    element = memref_type(each.scale.type).element_type
    masked = writer.is_masked(size, extent) or writer.is_masked(2, tk)
    if each.chunked:
        across, along = chunked(extent, tk // depth)
        places = [_block(writer, start, ROWS), _block(writer, k, BLOCKS * depth), 0, 0]
        tile = frag.TileType((across, along, *CHUNK_SHAPE), element)
        # the last rows of a chunk are beyond those of the tile, or of the matrix
        load = frag.LoadOp(each.scale, places, tile, masked=True)
        return writer.insert(load, each.scale.name_hint)
    group = _block(writer, k, depth)
    turned = (each.name == "B") != each.k_first
    shape = (extent, tk // depth) if each.name == "A" else (tk // depth, extent)
    places = [group, start] if each.k_first else [start, group]
    leading = writer.leading([name is None for name in each.leads])
    tile = frag.TileType(shape, element)
    load = frag.LoadOp(each.scale, [*leading, *places], tile, transposed=turned, masked=masked)
    return writer.insert(load, each.scale.name_hint)


def _block(writer: TileWriter, start: SSAValue, extent: int) -> SSAValue:
    """The number of the block that an element is in."""
    return writer.insert(arith.DivUIOp(start, writer.constant(extent)))


_BY_WARPS = (
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
    ".f32.e4m3.e4m3.f32.ue8m0"
)


def check_block_scales(product: frag.MatmulOp, target: str, why: str | None) -> None:
    """FragirError where mma.sync does not multiply the scales of a product in; `why` tensor memory
    does not, on a target that has it."""
    scales = product.block_scales()
    if scales is None:
        return
    if why is not None:
        raise FragirError(
            f"scales of blocks are multiplied in tensor memory on {target}, but {why}"
        )
    if not has(_BY_WARPS, target):
        raise FragirError(
            f"the tensor cores of {target} multiply no scales of blocks in",
            hint=f"those of {', '.join(requirement(_BY_WARPS).targets)} do, and in tensor memory "
            f"{', '.join(requirement('tcgen05.mma.kind::mxf8f6f4').targets)}",
        )
    if any(each.chunked for each in scales):
        raise FragirError(
            f"scales in chunks are for tensor memory, which {target} has not",
            hint="give it a matrix of rows by blocks of K",
        )
