"""Tiles of elements smaller than a byte: loaded and stored as tiles of bytes.

Two s4 or eight b1 that lie side by side in memory, the first one lowest, are one byte. Where they
are also neighbours in the fragment, as in the operands of every mma along K, the fragment of bytes
is the same registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects.builtin import Float16Type, IntegerType, Signedness, VectorType
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.errors import FragirError
from fragir.layout import Layout, LayoutError
from fragir.layout.distribution import handed_out
from fragir.layout.modes import WARP, Axis
from fragir.passes.lowering.arithmetic import Arithmetic, Stride, Value
from fragir.passes.lowering.lane_coordinates import Hardware
from fragir.passes.lowering.memory import LaneMemory, divisor, low, quotient
from fragir.passes.lowering.tile_access import TileAccess

# What stands for so many bits of several elements; nothing is computed with them.
_NATURAL: tuple[int, ...] = ()  # the order in which memory has them
_UNITS = {8: IntegerType(8, Signedness.UNSIGNED), 16: Float16Type()}


class BytesApart(FragirError):
    """The elements of a byte are not side by side in a lane; they would be in `whole`."""

    def __init__(self, message: str, hint: str | None, whole: frag.TileType):
        super().__init__(message, hint=hint)
        self.whole = whole


class PackedAccess:
    """A tile of sub-byte elements in memory; like `TileAccess`."""

    def __init__(
        self,
        ar: Arithmetic,
        hardware: Hardware,
        tile: frag.TileType,
        memory: LaneMemory,
        indices: Sequence[Value],
        *,
        transposed: bool,
        masked: bool,
        target: str,
        broadcast: bool = False,
        other: SSAValue | None = None,
    ):
        assert other is None  # no scalar is smaller than a byte
        along = memory.contiguous()
        rank = len(memory.shape)
        leading = rank - len(tile.shape)
        if broadcast or along is None or leading > along:
            raise FragirError(
                f"a tile of {tile.element_type} is loaded from and stored to memory whose last "
                "dimensions are the tile's, one of them contiguous"
            )
        dim = along - leading  # of the tile
        if transposed:
            last = len(tile.shape) - 1
            dim = {last: last - 1, last - 1: last}.get(dim, dim)
        if tile.shape[dim] * memory.bits % 8:
            raise FragirError(
                f"{tile.shape[dim]} elements of {tile.element_type} in a row of the tile end "
                "within a byte",
                hint="take a tile that ends with a byte; `masked` where memory has no more",
            )
        held, self._order = _loaded_layout(tile, dim, 8 // memory.bits)
        bits = 16 if _by_halves(ar, memory, along, indices, tile, held, dim) else 8
        per = bits // memory.bits
        self._ar, self._element, self._per, self._unit = ar, tile.element_type, per, _UNITS[bits]
        self._tile, self._chunk = tile, tile.chunk
        self._whole = whole_bytes(tile, dim, per, hardware.threads)
        try:
            coarse = _coarse(held, dim, per, tile)
        except FragirError as error:
            raise BytesApart(error.message, error.hint, self._whole) from error
        units = in_units(ar, memory, along, bits)
        shape = tuple(n // per if d == dim else n for d, n in enumerate(tile.shape))
        self._inner = TileAccess(
            ar,
            hardware,
            frag.TileType(shape, self._unit, frag.ExplicitLayoutAttr(coarse)),
            units,
            divide_index(ar, tuple(indices), along, per, "an index"),
            transposed=transposed,
            masked=masked,
            target=target,
            chunk=self._chunk // per,
        )

    def load(self) -> list[SSAValue]:
        """The tile as one vector a chunk."""
        type_ = VectorType(self._element, [self._chunk])
        loaded = self._inner.load()
        parts: list[SSAValue] = [
            self._ar.insert(ptx.BitcastOp(part, type_)).result for part in loaded
        ]
        if not self._order:
            return parts
        (whole,) = parts
        return [self._ar.insert(ptx.NibblesOp(whole, self._order)).result]

    def store(self, fragments: Sequence[SSAValue]) -> None:
        """Writes the tile, one vector a chunk."""
        if self._order:
            raise BytesApart(
                f"the elements of {self._tile} that share a register do not share a byte in memory",
                "convert it to a layout that has them side by side (frag.convert)",
                self._whole,
            )
        type_ = VectorType(self._unit, [self._chunk // self._per])
        cast = [self._ar.insert(ptx.BitcastOp(part, type_)).result for part in fragments]
        self._inner.store(cast)


def whole_bytes(tile: frag.TileType, dim: int, per: int, threads: int) -> frag.TileType:
    """The tile with as many elements side by side along a dimension as there may be, `per` at
    least."""
    vector = 128 // ptx.bits(tile.element_type)
    while vector > per and (tile.shape[dim] % vector or prod(tile.shape) % (vector * threads)):
        vector //= 2
    order = (dim, *(d for d in reversed(range(len(tile.shape))) if d != dim))
    unit = tuple(vector if d == dim else 1 for d in range(len(tile.shape)))
    if tile.shape[dim] % vector:
        return tile
    shares = {"element": unit, "lane": WARP, "warp": max(1, threads // WARP)}
    return tile.with_layout(frag.ExplicitLayoutAttr(handed_out(tile.shape, shares, order)))


def _loaded_layout(tile: frag.TileType, dim: int, per: int) -> tuple[Layout, tuple[int, ...]]:
    """The layout in which the tile is loaded, and the order of its elements there."""
    layout = tile.resolve()
    count = layout.size("element")
    if per != 2 or tile.chunk != count or count % per or _starts_along(layout, dim, per):
        return layout, _NATURAL

    found = in_memory_order(layout, dim)
    if found is None or not _starts_along(found[0], dim, per):
        return layout, _NATURAL
    return found


def _starts_along(layout: Layout, dim: int, per: int) -> bool:
    """Whether so many elements in a row of the fragment are neighbours along a dimension."""
    first = next(iter(layout.simplified().axis("element").modes), None)
    unit = tuple(int(d == dim) for d in range(layout.rank))
    return not (first is None or first.xor or first.stride != unit or first.size % per)


def _coarse(layout: Layout, dim: int, per: int, tile: frag.TileType) -> Layout:
    """The layout of the bytes: `per` elements along `dim` of the tile are one."""
    if not _starts_along(layout, dim, per):
        raise FragirError(
            f"the elements of {tile} that share a register do not share a byte in memory",
            hint="let K run along the contiguous dimension (load B from a memref<NxK> with "
            "`transposed`, or give its memref strided<[1, K]>), or state a layout in which a lane "
            'has neighbours of memory, as #frag.mma<m16n8k16.f16, b, n = "8:4 4:1">',
        )
    if any(condition.axis == "element" for condition in layout.where):
        raise FragirError(f"not every element of {tile} in a lane is held")
    from fragir.layout import recast  # few programs need it

    try:
        coarse = recast(replace(layout.simplified(), where=()), 1, per, layout.dims[dim])
    except LayoutError as error:
        raise FragirError(
            f"the lanes' elements of {tile} do not begin at whole bytes: {error.message}"
        ) from error
    return replace(coarse, where=layout.where)


def _by_halves(
    ar: Arithmetic,
    memory: LaneMemory,
    along: int,
    indices: Sequence[Value],
    tile: frag.TileType,
    held: Layout,
    dim: int,
) -> bool:
    """Whether to read two bytes at a time: of metadata a lane has no more side by side."""
    per = 16 // memory.bits
    first = next(iter(held.simplified().axis("element").modes), None)
    if first is None or first.size != per:
        return False
    if memory.layout is not None and memory.run % per:
        return False
    numbers: list[Stride] = [memory.shape[along], indices[along]]
    numbers += [stride for d, stride in enumerate(memory.strides) if d != along]
    if any(divisor(ar, n) % per for n in numbers):
        return False
    try:
        _coarse(held, dim, per, tile)
    except FragirError:
        return False
    return True


def in_units(ar: Arithmetic, memory: LaneMemory, along: int, bits: int = 8) -> LaneMemory:
    """Memory of elements smaller than a byte, contiguous in dimension `along`, as bytes or as
    halves of registers."""
    per = bits // memory.bits
    layout = memory.layout
    shape = divide_index(ar, memory.shape, along, per, "the extent")
    if layout is not None:
        from fragir.layout import recast  # few programs need it

        try:
            layout = recast(layout.simplified(), memory.bits, bits)
        except LayoutError as error:
            raise FragirError(
                f"{per} elements of {memory.element} that share a byte do not lie side by side "
                f"in {memory.layout}"
            ) from error
    strides = tuple(
        stride if d == along else _require_whole_bytes(ar, stride, per, "a stride")
        for d, stride in enumerate(memory.strides)
    )
    return memory._replace(element=_UNITS[bits], shape=shape, strides=strides, layout=layout)


def divide_index(
    ar: Arithmetic, values: Sequence[Value], at: int, per: int, what: str
) -> tuple[Value, ...]:
    """Numbers of elements of which the one at position `at` becomes one of bytes."""
    found = list(values)
    found[at] = low(ar, _require_whole_bytes(ar, values[at], per, what))
    return tuple(found)


def _require_whole_bytes(ar: Arithmetic, value: Stride, per: int, what: str) -> Stride:
    """A number of elements as one of bytes; FragirError where it is not known to be whole."""
    if divisor(ar, value) % per:
        shown = f"{value} elements" if isinstance(value, int) else "known at run time only"
        raise FragirError(
            f"{what} along the bytes is {shown}",
            hint=f"elements smaller than a byte are read {per} at a time; make it a static "
            f"multiple of {per}, or promise that it is one (frag.divisible, k.divisible)",
        )
    return quotient(ar, value, per)


# -- nibble order ----------------------------------------------------------------------------------
# Elements of four bits that a lane holds in another order than memory: loaded as they lie there.
#
# Bytes hold neighbours of memory, so a load gives them in memory's order. Where the tile's layout
# counts them otherwise (B of a product whose memory runs along N; weights that were put in an order
# in which they are unpacked with fewer instructions), they are loaded as memory has them, and
# `ptx.nibbles` names the order. What they are cast to is made in that order at no cost.


def in_memory_order(layout: Layout, dim: int) -> tuple[Layout, tuple[int, ...]] | None:
    """The layout with the lane's elements counted along a dimension first, nearest ones lowest.

    And for each element of `layout` its number there. None where lanes' elements flip bits.
    """
    layout = layout.simplified()
    if layout.exclusive or any(condition.axis == "element" for condition in layout.where):
        return None
    modes = layout.axis("element").modes

    def far(number: int) -> tuple[int, int]:
        stride = modes[number].stride
        alone = stride[dim] > 0 and not any(x for d, x in enumerate(stride) if d != dim)
        return (stride[dim], number) if alone else (layout.shape[dim], number)

    ranked = sorted(range(len(modes)), key=far)
    places, place = [0] * len(modes), 1
    for number in ranked:
        places[number] = place
        place *= modes[number].size
    order: list[int] = []
    for element in range(place):
        rest, there = element, 0
        for mode, step in zip(modes, places, strict=True):
            there += rest % mode.size * step
            rest //= mode.size
        order.append(there)
    axes = tuple(
        Axis("element", tuple(modes[i] for i in ranked)) if axis.name == "element" else axis
        for axis in layout.axes
    )
    return replace(layout, axes=axes), tuple(order)
