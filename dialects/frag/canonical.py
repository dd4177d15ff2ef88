"""What stock `canonicalize` does to tiles: fewer operations with the same values.

A conversion of a conversion is one; so is a transposition, a reshape, a part of one, and a cast of
a cast that was exact. What undoes another is neither: a tile that is split and joined again, parts
that are put together as they were. A tile of one value is that in any shape and layout.

The rows of `fragir.dialects.catalogue` name the functions: each gives what to put in the place of
an operation's results, values that there are or operations to be added, or None.

Nothing is done that needs to know what a layout costs. Operations that only count elements
otherwise are left once they are placed, where they say which layouts their tiles may have, and so
is a conversion that must be free.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from xdsl.ir import Operation, OpResult, SSAValue

from fragir.dialects.definition import Simpler
from fragir.dialects.elements import MULTIPLIED_ONLY, element_name
from fragir.dialects.frag.pointwise import CastOp, ConvertOp, FillOp
from fragir.dialects.frag.reductions import BroadcastOp
from fragir.dialects.frag.regrouped import STAGED
from fragir.dialects.frag.shapes import (
    ConcatenateOp,
    JoinOp,
    ReshapeOp,
    SliceTileOp,
    SplitOp,
    TransposeOp,
)
from fragir.dialects.frag.types import tile_of


def of(value: SSAValue, kind: type[Any]) -> Any:
    """The operation that makes a value, if it is of a kind; None otherwise."""
    return value.owner if isinstance(value, OpResult) and isinstance(value.op, kind) else None


def are_unplaced(*ops: Operation) -> bool:
    """Whether operations are not placed: no tile of theirs has a layout, and none is staged."""
    values = [value for op in ops for value in (*op.operands, *op.results)]
    return all(tile_of(value).placement is None for value in values) and not any(
        STAGED in op.attributes for op in ops
    )


# --- conversions and casts ------------------------------------------------------------------------


def convert(op: ConvertOp) -> Simpler | None:
    """Of a tile in that layout, of a conversion, of one value everywhere."""
    source, result = op.source, op.result.type
    if source.type == result and tile_of(source).placement is not None:
        return [source]
    inner = of(source, ConvertOp)
    if inner is not None and op.assert_free is None and inner.assert_free is None:
        if inner.source.type == result and tile_of(inner.source).placement is not None:
            return [inner.source]
        return [ConvertOp(inner.source, result)]
    filled = of(source, FillOp)
    return None if filled is None else [FillOp(filled.value, result)]


def cast(op: CastOp) -> Simpler | None:
    """To the type that it has, and of a cast that lost nothing."""
    if op.source.type == op.result.type:
        return [op.source]
    inner = of(op.source, CastOp)
    if inner is None:
        return None
    first, middle, last = (
        element_name(tile_of(tile).element_type) for tile in (inner.source, op.source, op.result)
    )
    if not is_exact(first, middle):
        return None
    if inner.source.type == op.result.type:
        return None if first in _SATURATED else [inner.source]
    if last in _INTEGERS and not is_exact(first, last):  # some wrap around, others clamp
        return None
    narrow = MULTIPLIED_ONLY | {"e4m3", "e5m2", "tf32"}
    return None if narrow & {first, last} else [CastOp(inner.source, op.result.type)]


class _Float(NamedTuple):
    precision: int
    """Bits of the significand with the leading one."""
    lowest: int
    """The exponent of the smallest normal number."""
    highest: int


# IEEE 754; bf16 and tf32 are f32 with fewer bits; OCP 8-bit floating point specification, table 1
_FLOATS = {
    "f16": _Float(11, -14, 15),
    "bf16": _Float(8, -126, 127),
    "tf32": _Float(11, -126, 127),
    "f32": _Float(24, -126, 127),
    "f64": _Float(53, -1022, 1023),
    "e4m3": _Float(4, -6, 8),
    "e5m2": _Float(3, -14, 15),
}
# A cast to them clamps, and infinity is one of their values.
_SATURATED = ("e5m2",)
# Bits of the magnitude, whether there is a sign.
_INTEGERS = {
    "pred": (1, False),
    "s8": (7, True),
    "u8": (8, False),
    "s16": (15, True),
    "s32": (31, True),
    "u32": (32, False),
    "s64": (63, True),
}


def is_exact(source: str, target: str) -> bool:
    """Whether every value of an element type is one of another; False where that is not known."""
    if source in _FLOATS and target in _FLOATS:
        a, b = _FLOATS[source], _FLOATS[target]
        smallest = a.lowest - a.precision >= b.lowest - b.precision
        return a.precision <= b.precision and smallest and a.highest <= b.highest
    if source in _INTEGERS:
        bits, signed = _INTEGERS[source]
        if target in _FLOATS:
            return bits <= min(_FLOATS[target].precision, _FLOATS[target].highest)
        more, with_sign = _INTEGERS.get(target, (0, False))
        return bits <= more and signed <= with_sign
    return False


# --- shapes ---------------------------------------------------------------------------------------


def _of_one_value(op: TransposeOp | ReshapeOp | SliceTileOp | BroadcastOp) -> Simpler | None:
    filled = of(op.source, FillOp)
    return None if filled is None else [FillOp(filled.value, op.result.type)]


def transpose(op: TransposeOp) -> Simpler | None:
    """In the order as it is, of a transposition, of one value everywhere."""
    if (filled := _of_one_value(op)) is not None:
        return filled
    if not are_unplaced(op):
        return None
    if op.order == tuple(range(len(op.order))):
        return [op.source]
    inner = of(op.source, TransposeOp)
    if inner is None or not are_unplaced(inner):
        return None
    return [TransposeOp(inner.source, [inner.order[dim] for dim in op.order])]


def reshape(op: ReshapeOp) -> Simpler | None:
    """To the shape that it has, of a reshape, of one value everywhere."""
    if (filled := _of_one_value(op)) is not None:
        return filled
    if not are_unplaced(op):
        return None
    if op.source.type == op.result.type:
        return [op.source]
    inner = of(op.source, ReshapeOp)
    if inner is None or not are_unplaced(inner):
        return None
    return [ReshapeOp(inner.source, op.result.type)]


def slice_(op: SliceTileOp) -> Simpler | None:
    """The whole, a part of a part, of one of two tiles behind each other, of one value."""
    if (filled := _of_one_value(op)) is not None:
        return filled
    if not are_unplaced(op):
        return None
    if op.source.type == op.result.type:
        return [op.source]
    offsets, strides = [cut.start for cut in op.cutouts], [cut.step for cut in op.cutouts]
    inner: SliceTileOp | None = of(op.source, SliceTileOp)
    if inner is not None and are_unplaced(inner):
        first = [cut.start + cut.step * at for cut, at in zip(inner.cutouts, offsets, strict=True)]
        steps = [cut.step * step for cut, step in zip(inner.cutouts, strides, strict=True)]
        return [SliceTileOp(inner.source, first, op.result.type, steps)]
    both: ConcatenateOp | None = of(op.source, ConcatenateOp)
    if both is None or not are_unplaced(both):
        return None
    dim, border = both.along, tile_of(both.first).shape[both.along]
    cut = op.cutouts[dim]
    if cut.start + cut.step * (cut.length - 1) < border:
        return [SliceTileOp(both.first, offsets, op.result.type, strides)]
    if cut.start >= border:
        offsets[dim] -= border
        return [SliceTileOp(both.second, offsets, op.result.type, strides)]
    return None


def concat(op: ConcatenateOp) -> Simpler | None:
    """Of parts that stand behind each other in one tile; of one value everywhere."""
    filled, same = of(op.first, FillOp), of(op.second, FillOp)
    if filled is not None and same is not None and filled.value is same.value:
        return [FillOp(filled.value, op.result.type)]
    first, second = of(op.first, SliceTileOp), of(op.second, SliceTileOp)
    if first is None or second is None or first.source is not second.source:
        return None
    if not are_unplaced(op, first, second):
        return None
    for dim, (one, other) in enumerate(zip(first.cutouts, second.cutouts, strict=True)):
        behind = one.start + one.step * one.length if dim == op.along else one.start
        if other.start != behind or one.step != other.step:
            return None
    offsets = [cut.start for cut in first.cutouts]
    strides = [cut.step for cut in first.cutouts]
    return [SliceTileOp(first.source, offsets, op.result.type, strides)]


def split(op: SplitOp) -> Simpler | None:
    """Of what has been joined."""
    joined = of(op.source, JoinOp)
    if joined is None or not are_unplaced(op, joined):
        return None
    return [joined.first, joined.second]


def join(op: JoinOp) -> Simpler | None:
    """Of the two that a tile has been split into."""
    parts = of(op.first, SplitOp)
    if parts is None or not are_unplaced(op, parts):
        return None
    if op.first is not parts.first or op.second is not parts.second:
        return None
    return [parts.source]


def broadcast(op: BroadcastOp) -> Simpler | None:
    """Of one value everywhere."""
    return _of_one_value(op)
