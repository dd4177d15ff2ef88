"""Triton's encodings of shared memory: at which place an element of a tensor stands.

Triton's own linear layout goes from the place to the element; the layouts here go the other way, as
everywhere in fragir: from row and col to the number of the element in memory (`index`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fragir.layout.chain import LayoutChain, chained
from fragir.layout.distribution import dims_of
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, Mode, Point
from fragir.layout.texts.bases import from_bases, inverse_bases
from fragir.layout.texts.encoding import Encoding

Columns = dict[int, list[int]]
"""For every dimension the places that its bits stand for."""

_INDEX = ("index",)
_BOX = 256
"""The most elements along a dimension that TMA copies at once."""


def shared_encoding_layout(encoding: Encoding, shape: Point) -> Layout | LayoutChain:
    """The layout of a tensor of this shape in memory. Raises LayoutError with the field's place."""
    _check_one_block(encoding)
    for extent in shape:
        if extent & (extent - 1):
            raise encoding.error(f"The shape's {extent} is no power of two.")
    match encoding.name:
        case "swizzled_shared":
            columns = _swizzled_columns(encoding, shape)
        case "nvmma_shared":
            columns = _mma(encoding, shape)
        case "shared_linear":
            return _linear(encoding, shape)
        case _:
            return _padded_layout(encoding, shape)
    return _layout(columns, shape)


def natural_shape(encoding: Encoding) -> Point | None:
    """The shape that the encoding itself says; None where it says none."""
    if encoding.name == "padded_shared" and encoding.has("shape"):
        return encoding.numbers("shape")
    points = encoding.bases("offset")
    if not points:
        return None
    return tuple(1 << max(x.bit_length() for x in along) for along in zip(*points, strict=True))


def _layout(columns: Columns, shape: Point) -> Layout:
    names = dims_of(len(shape))
    return from_bases(
        [(name, [(place,) for place in columns[dim]]) for dim, name in enumerate(names)], _INDEX
    )


def _check_one_block(encoding: Encoding) -> None:
    """Memory of a cluster is no one block's."""
    blocks = encoding.bases("CGALayout") or encoding.bases("block")
    if any(map(any, blocks)) or any(n != 1 for n in _given_numbers(encoding, "CTASplitNum")):
        raise encoding.error("The shared memory of several blocks is not read, only of one.")


def _linear(encoding: Encoding, shape: Point) -> Layout:
    place = encoding.places.get("offset", encoding.at)
    return inverse_bases(encoding.bases("offset"), shape, encoding.cursor, place)


def _given_numbers(encoding: Encoding, key: str) -> Point:
    return encoding.numbers(key) if encoding.has(key) else ()


def _bits(extent: int) -> range:
    return range(extent.bit_length() - 1)


def _in_order(shape: Point, order: Sequence[int]) -> Columns:
    """Rows behind each other, the dimensions in this order, the fastest first."""
    place = 1
    columns: Columns = {}
    for dim in order:
        columns[dim] = [place << bit for bit in _bits(shape[dim])]
        place *= shape[dim]
    return columns


def _swizzled_columns(encoding: Encoding, shape: Point) -> Columns:
    """Vectors of a row change places with each other, the row's phase says which."""
    order = encoding.order(len(shape))
    vector, per_phase, phases = (
        encoding.number(k, least=1) for k in ("vec", "perPhase", "maxPhase")
    )
    columns = _in_order(shape, order)
    if len(shape) > 1:
        length = shape[order[0]]
        rows = columns[order[1]]
        for bit, place in enumerate(rows):
            phase = (1 << bit) // per_phase % phases
            rows[bit] = place ^ vector * phase % length
    return columns


def _mma(encoding: Encoding, shape: Point) -> Columns:
    """As TMA writes it and wgmma reads it: panels as wide as the swizzle, boxes of 256 at most.

    The swizzle changes places among 16 bytes of a row by the row's number (PTX ISA 9.2, section
    5.5.7).
    """
    width, bits = encoding.number("swizzlingByteWidth"), encoding.number("elementBitWidth", least=1)
    if width not in (0, 32, 64, 128):
        raise encoding.error("swizzlingByteWidth is 0, 32, 64 or 128.", "swizzlingByteWidth")
    if bits not in (8, 16, 32, 64):
        raise encoding.error("elementBitWidth is 8, 16, 32 or 64.", "elementBitWidth")
    if encoding.flag("fp4Padded"):
        raise encoding.error("Padded fp4 elements are not read.", "fp4Padded")
    rank, turned = len(shape), encoding.flag("transposed")
    if rank < 2 or (turned and rank > 2):
        raise encoding.error(
            f"#ttg.nvmma_shared of {rank} dimensions is not read"
            + (" where it is transposed." if turned else ".")
        )
    # Without a swizzle Triton lays out row-major, transposed or not.
    fast = 0 if turned and width else rank - 1
    panel = width * 8 // bits if width else min(shape[fast], _BOX)
    slow = [dim for dim in range(rank - 1, -1, -1) if dim != fast]
    if shape[fast] < panel or (width and prod(shape[dim] for dim in slow) < 8):
        raise encoding.error(
            f"A tensor of {'x'.join(map(str, shape))} is smaller than a swizzled panel: "
            f"{panel} elements in each of 8 rows."
        )
    columns: Columns = {dim: [] for dim in range(rank)}
    places = iter(1 << bit for bit in range(prod(shape).bit_length()))

    def take(dim: int, until: int) -> None:
        while 1 << len(columns[dim]) < until:
            columns[dim].append(next(places))

    take(fast, panel)
    for dim in slow:
        take(dim, min(shape[dim], _BOX))
    _swizzle(columns, slow, panel, width, bits)
    for dim in [rank - 1, *range(rank - 2, -1, -1)] if not width else range(rank):
        take(dim, shape[dim])
    return columns


def _swizzle(columns: Columns, slow: Sequence[int], panel: int, width: int, bits: int) -> None:
    """The row's number into the chunk's by exclusive or, for rows of a panel of `width` bytes."""
    chunk = 128 // bits
    row = 1
    for dim in slow:
        for bit, place in enumerate(columns[dim]):
            phase = row * width // 128 % (width // 16) if width else 0
            columns[dim][bit] = place ^ chunk * phase % panel
            row *= 2


def _padded_layout(encoding: Encoding, shape: Point) -> Layout | LayoutChain:
    """After every so many elements some that hold nothing: `[64:+8]`."""
    if encoding.has("offset"):
        plain = _linear(encoding, shape)
    else:
        plain = _layout(_in_order(shape, encoding.order(len(shape))), shape)
    modes: list[Mode] = []
    for bit in _bits(prod(shape)):
        extra = 0
        for interval, padding in encoding.padding:
            if interval < 1 or interval & (interval - 1):
                raise encoding.error(f"The interval {interval} is no power of two.")
            extra += (1 << bit) // interval * padding
        modes.append(Mode(2, (extra + (1 << bit),)))
    padded = Layout((Axis("index", tuple(modes)),), _INDEX).simplified()
    return chained(padded, plain)
