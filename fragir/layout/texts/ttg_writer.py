"""A layout as an encoding of Triton's: the most telling one that means it.

Candidates are made from the layout's sizes and read back; the first that means the same layout is
the answer, so what is written is right by construction. Where no named encoding does, there are
`#ttg.linear` and `#ttg.shared_linear`, which say any layout that is linear over bits.

>>> from fragir.layout.layout import Layout
>>> c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)] warp [4:(16,0)]")
>>> print(to_ttg(c))
#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
>>> print(to_ttg(Layout.parse("row [8:^72] col [64:1] dims (index)")))
#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
>>> print(to_ttg(Layout.parse("lane [32:^3] element [2:1]")))
#ttg.linear<{register = [[1]], lane = [[3], [6], [12], [24], [48]], warp = [], block = []}>
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations, product

from fragir.layout.arguments import takes
from fragir.layout.layout import Layout
from fragir.layout.modes import LayoutError, Point
from fragir.layout.texts.bases import bases_of
from fragir.layout.texts.ttg import from_ttg

_MOST = 1024
"""Lanes or warps that a named encoding is looked for with."""
_AXES = {"element": "register", "lane": "lane", "warp": "warp", "block": "block"}


@takes(Layout)
def to_ttg(layout: Layout) -> str:
    """The encoding of this layout: of registers, or of memory where its dimension is `index`.

    Raises LayoutError for axes that Triton does not have, and where the layout is not linear over
    bits (an offset, a predicate, a size that is no power of two) and no encoding says it.
    """
    memory = layout.dims == ("index",) and not set(layout.names) & set(_AXES)
    known = ("index", "row", "col", "product", "outer", "inner") if memory else tuple(_AXES)
    wrong = next((name for name in layout.names if name not in known), None)
    if wrong is not None:
        raise LayoutError(f"Triton's encodings have no axis {wrong}; they have {', '.join(known)}.")
    shape = tuple(layout.sizes.values()) if memory else layout.shape
    for text in _memory(layout, shape) if memory else _registers(layout, shape):
        try:
            found = from_ttg(text, shape)
        except LayoutError:
            continue
        if isinstance(found, Layout) and found.equivalent(layout):
            return text
    if memory:
        return _shared_linear(layout)
    bases = dict(bases_of(layout))
    fields = (f"{name} = {_points(bases.get(axis, ()))}" for axis, name in _AXES.items())
    return f"#ttg.linear<{{{', '.join(fields)}}}>"


def _points(points: Iterable[Point]) -> str:
    return str([list(point) for point in points])


def _shared_linear(layout: Layout) -> str:
    """By the inverse: Triton's bases go from the place to the element."""
    from fragir.layout.f2 import inverse_columns

    bases = bases_of(layout)
    columns = [place[0] for _, places in bases for place in places]
    inverse = inverse_columns(columns)
    if inverse is None or 1 << len(columns) != layout.shape[0]:
        raise LayoutError(f"Not every place of memory holds one element in {layout}.")
    sizes = [len(places) for _, places in bases]
    points: list[Point] = []
    for packed in inverse:
        point: list[int] = []
        for size in sizes:
            point.append(packed & ((1 << size) - 1))
            packed >>= size
        points.append(tuple(point))
    return f"#ttg.shared_linear<{{offset = {_points(points)}}}, alignment = 16>"


# Registers


def _registers(layout: Layout, shape: Point) -> Iterator[str]:
    warps = layout.sizes.get("warp", 1)
    if "block" in layout.names and layout.size("block") > 1:
        return
    rank = layout.rank
    if rank == 2:
        parents = list(_mma(shape, warps))
        yield from parents
        yield from _operands(parents)
    yield from _blocked_texts(layout, shape, warps)
    if rank == 1:
        for dim in (0, 1):
            wide = shape[0]
            rows = (1, wide) if dim == 0 else (wide, 1)
            for parent in (*_mma(rows, warps), *_blocked_parents(layout, shape, warps, dim)):
                yield f"#ttg.slice<{{dim = {dim}, parent = {parent}}}>"


def _mma(shape: Point, warps: int) -> Iterator[str]:
    for rows in (16, 8):
        for split in _splits(warps, 2):
            yield _mma_text(2, split, (rows, 8))
    if warps % 4 == 0:
        for split in _splits(warps, 2):
            for cols in dict.fromkeys((shape[1], *(1 << n for n in range(3, 9)))):
                if not split[0] % 4 and cols % 8 == 0 and shape[1] % cols == 0:
                    yield _mma_text(3, split, (16, cols, 16))


def _mma_text(version: int, warps: Point, shape: Point) -> str:
    return (
        f"#ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, "
        f"warpsPerCTA = {list(warps)}, instrShape = {list(shape)}}}>"
    )


def _operands(parents: list[str]) -> Iterator[str]:
    for parent, operand, width in product(parents, (0, 1), (1, 2, 4, 8)):
        yield f"#ttg.dot_op<{{opIdx = {operand}, parent = {parent}, kWidth = {width}}}>"


def _splits(total: int, parts: int) -> Iterator[Point]:
    """All ways to write a power of two as a product of so many; none of any other number."""
    if total & (total - 1) or total > _MOST:
        return
    if parts == 1:
        yield (total,)
        return
    first = total
    while first:
        for rest in _splits(total // first, parts - 1):
            yield (first, *rest)
        first //= 2


def _blocked_texts(layout: Layout, shape: Point, warps: int) -> Iterator[str]:
    rank = layout.rank
    lanes = layout.sizes.get("lane", 1)
    if rank > 3:
        return
    sizes = _thread_sizes(layout, shape)
    for order in sorted(permutations(range(rank)), reverse=True):
        for threads, split in product(_splits(lanes, rank), _splits(warps, rank)):
            for size in product(*sizes):
                yield _blocked_text(size, threads, split, order)


def _blocked_text(sizes: Point, threads: Point, warps: Point, order: Point) -> str:
    return (
        f"#ttg.blocked<{{sizePerThread = {list(sizes)}, threadsPerWarp = {list(threads)}, "
        f"warpsPerCTA = {list(warps)}, order = {list(order)}}}>"
    )


def _thread_sizes(layout: Layout, shape: Point) -> list[Point]:
    """How many elements a thread may hold along each dimension: where the next thread begins."""
    sizes: list[Point] = []
    for dim, extent in enumerate(shape):
        steps = [
            mode.step[dim]
            for axis in layout.axes
            if axis.name in ("lane", "warp")
            for mode in axis.modes
            if mode.step[dim] and mode.size > 1
        ]
        if steps:
            sizes.append((min(steps),))
        else:
            sizes.append((extent, *(n for n in (1, 2, 4, 8, 16) if n < extent)))
    return sizes


def _blocked_parents(layout: Layout, shape: Point, warps: int, dim: int) -> Iterator[str]:
    """Two-dimensional encodings of which a row or column may be this layout."""
    lanes = layout.sizes.get("lane", 1)
    (sizes,) = _thread_sizes(layout, shape)
    for order in ((1, 0), (0, 1)):
        for threads, split in product(_splits(lanes, 2), _splits(warps, 2)):
            for size in sizes:
                both = (1, size) if dim == 0 else (size, 1)
                yield _blocked_text(both, threads, split, order)


# Memory


def _memory(layout: Layout, shape: Point) -> Iterator[str]:
    rank = len(shape)
    powers = [1 << n for n in range(7)]
    for order in sorted(permutations(range(rank)), reverse=True):
        yield _swizzled_text((1, 1, 1), order)
        if rank == 2:
            choices = product(powers[:5], powers[:4], powers[1:5])
            for vector, per_phase, phases in sorted(choices, key=lambda c: (-c[0], c[1:])):
                yield _swizzled_text((vector, per_phase, phases), order)
        padding = _padding(layout, shape, order)
        if padding is not None:
            interval, extra = padding
            yield (
                f"#ttg.padded_shared<[{interval}:+{extra}] "
                f"{{order = {list(order)}, shape = {list(shape)}}}>"
            )
    if rank == 2:
        for width, turned, bits in product((128, 64, 32), ("false", "true"), (16, 8, 32)):
            yield (
                f"#ttg.nvmma_shared<{{swizzlingByteWidth = {width}, transposed = {turned}, "
                f"elementBitWidth = {bits}}}>"
            )


def _swizzled_text(fields: Point, order: Point) -> str:
    vector, per_phase, phases = fields
    return (
        f"#ttg.swizzled_shared<{{vec = {vector}, perPhase = {per_phase}, maxPhase = {phases}, "
        f"order = {list(order)}}}>"
    )


def _padding(layout: Layout, shape: Point, order: Point) -> Point | None:
    """The first gap between elements that would follow each other: (after how many, how large)."""
    place = 1
    for dim in order:
        for bit in range(shape[dim].bit_length() - 1):
            found = layout(**{n: (1 << bit) * (d == dim) for d, n in enumerate(layout.names)})
            if found is not None and found[0] != place:
                return (place, found[0] - place) if found[0] > place else None
            place *= 2
    return None
