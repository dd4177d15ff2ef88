"""What loading and storing a tile costs, and the layouts in which it costs little.

The costs are those of `fragir.layout.planning.costs`: half cycles of an SM for the accesses of one
warp. Global memory is moved by sectors of 32 bytes, however little of one is wanted; shared memory
by passes over its 32 banks. They count what the lowering emits: as many bytes an access as lie side
by side in a lane's fragment and in memory, 16 at most, and 8x8 matrices where the layout has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.frag.attributes import SharedAttr
from fragir.dialects.frag.grid import promises_of, size_names
from fragir.dialects.frag.types import TileType
from fragir.dialects.shorthands import constant_of, memref_type
from fragir.errors import FragirError
from fragir.isa.registry import per_table
from fragir.isa.versions import has
from fragir.layout import Axis, Layout, Mode
from fragir.layout.distribution import handed_out
from fragir.layout.f2 import Subspace
from fragir.layout.modes import binary_digits
from fragir.layout.planning.costs import COSTS, Costs
from fragir.layout.shared import swizzled

SECTOR = 32
"""Bytes of global memory that are moved together."""
WIDEST = 16
"""Bytes of the widest access of a lane."""
LANE_BITS = 5
MATRIX = 4
"""Matrices of 8x8 that ldmatrix and stmatrix move at once."""


class TileMemory(NamedTuple):
    """Where a tile lies: which of its dimensions runs along memory, and how well it is aligned.

    `swizzle` is None in global memory; `shape` is that of the matrix in memory. `together` is how
    many elements side by side may be accessed at once.
    """

    along: int
    bits: int
    together: int
    shape: tuple[int, ...] = ()
    swizzle: int | None = None
    matrices: bool = False
    masked: bool = False


@lru_cache(maxsize=1024)
def access_cost(layout: Layout, chunk: int, memory: TileMemory, costs: Costs = COSTS) -> float:
    """Half cycles for a warp to load or store a tile in a layout."""
    steps = list(_digits(layout, "element"))
    elements = prod(size for size, _ in steps)
    if memory.swizzle is not None:
        return _shared_cost(layout, elements, chunk, memory, costs)
    width = _width(steps, chunk, memory)
    sectors = _sectors(layout, width, memory)
    # one that is tested for lying inside takes a comparison and its joining
    tests = 2 * costs.issue if memory.masked else 0.0
    return elements / width * (sectors * costs.sector + costs.request + costs.issue + tests)


@lru_cache(maxsize=1024)
def beside(layout: Layout, along: int) -> Layout:
    """The layout with a lane's elements in the order in which they lie along a dimension.

    Where an instruction's dimension is counted in another order, elements are accessed together
    that are no neighbours in its fragments.
    """
    if layout.exclusive:
        return layout

    def place(digit: tuple[int, tuple[int, ...]]) -> tuple[bool, int]:
        return digit[1][along] == 0, digit[1][along]

    digits = sorted(_digits(layout, "element"), key=place)
    element = Axis("element", tuple(Mode(size, step) for size, step in digits))
    axes = tuple(element if axis.name == "element" else axis for axis in layout.axes)
    return replace(layout, axes=axes)


@lru_cache(maxsize=1024)
def neighbours_first(layout: Layout, memory: TileMemory) -> Layout | None:
    """`beside`, where a lane's elements of one or two bytes are accessed together only so."""
    if memory.bits >= 32 or layout.exclusive or "element" not in layout.names:
        return None
    digits = list(_digits(layout, "element"))
    ahead = [step[memory.along] == 1 and sum(map(bool, step)) == 1 for _, step in digits]
    return beside(layout, memory.along) if any(ahead[1:]) else None


@lru_cache(maxsize=1024)
def rows_beside(layout: Layout, memory: TileMemory) -> Layout | None:
    """The same elements in each warp, with as many bytes a lane as memory takes at once.

    Lanes lie side by side along memory as far as a warp's part goes, then along the others. None
    where a warp's part is no box of bits, or several lanes have the same elements.
    """
    if layout.exclusive:
        return None
    threads = list(_digits(layout, "lane"))
    digits = [*_digits(layout, "element"), *threads[:LANE_BITS]]
    if memory.swizzle is not None or any(sum(map(bool, step)) != 1 for _, step in digits):
        return None

    def place(digit: tuple[int, tuple[int, ...]]) -> tuple[bool, int, int]:
        dim = next(d for d, stride in enumerate(digit[1]) if stride)
        return dim != memory.along, -dim, digit[1][dim]

    digits.sort(key=place)
    element: list[Mode] = []
    lane: list[Mode] = []
    held = 1
    for size, step in digits:
        if size == 2 and step[memory.along] == held and held < memory.together:
            element.append(Mode(size, step))
            held *= 2
        elif size == 2 and len(lane) < LANE_BITS:
            lane.append(Mode(size, step))
        else:
            element.append(Mode(size, step))
    if len(lane) < LANE_BITS:
        return None
    lane += [Mode(size, step) for size, step in threads[LANE_BITS:]]  # those of warps
    axes = {"lane": lane, "element": element}
    found = Layout(
        tuple(
            Axis(axis.name, tuple(axes[axis.name])) if axis.name in axes else axis
            for axis in layout.axes
        ),
        layout.dims,
        layout.offset,
    )
    return found.simplified()


@lru_cache(maxsize=1024)
def rows_of_block(layout: Layout, chunk: int, memory: TileMemory) -> Layout | None:
    """The same elements in rows along memory, handed out to all threads of the block.

    None unless fewer sectors are moved than where every warp keeps the elements that it has: the
    parts of warps are narrow along memory, as of a tile that has been transposed.
    """
    sizes = layout.sizes
    threads = sizes.get("lane", 1) * sizes.get("warp", 1)
    if memory.swizzle is not None or sizes.get("lane") != 1 << LANE_BITS:
        return None
    if prod(layout.shape) != threads * sizes.get("element", 1):
        return None
    first = memory.along
    order = (first, *(dim for dim in range(layout.rank)[::-1] if dim != first))
    vector = tuple(memory.together if dim == first else 1 for dim in range(layout.rank))
    shares = {"element": vector, "lane": 1 << LANE_BITS, "warp": sizes.get("warp", 1)}
    try:
        found = handed_out(layout.shape, shares, order)
    except FragirError:
        return None
    if found.sizes.get("element", 1) != sizes.get("element", 1):
        return None
    beside = rows_beside(layout, memory)
    kept = min(access_cost(way, chunk, memory) for way in (layout, beside) if way is not None)
    return found if access_cost(found, memory.together, memory) < kept else None


def _digits(layout: Layout, name: str) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The digits of an axis, bits where sizes are powers of two, each with its step."""
    if name not in layout.names:
        return
    for mode in layout.axis(name).modes:
        for digit in binary_digits(mode):
            yield digit.size, digit.step


def _width(steps: list[tuple[int, tuple[int, ...]]], chunk: int, memory: TileMemory) -> int:
    """Elements of one access: neighbours in the fragment that are neighbours in memory."""
    most = min(WIDEST * 8 // memory.bits, memory.together, chunk)
    width = 1
    for size, step in steps:
        ahead = tuple(width * (d == memory.along) for d in range(len(step)))
        if size != 2 or step != ahead or 2 * width > most:
            break
        width *= 2
    least = 32 if memory.swizzle is None else 16
    return width if width * memory.bits >= least else 1


def _sectors(layout: Layout, width: int, memory: TileMemory) -> int:
    """Sectors that one access of a warp touches, if rows begin at a sector."""
    rows, ends = 1, [0]
    for size, step in list(_digits(layout, "lane"))[:LANE_BITS]:
        if any(stride for d, stride in enumerate(step) if d != memory.along):
            rows *= size
        elif step[memory.along]:
            ends = [end + i * step[memory.along] for i, end in product(range(size), ends)]
    starts = {end * memory.bits // 8 for end in ends}
    return rows * len({start // SECTOR for start in starts})


# --- shared memory --------------------------------------------------------------------------------


def _shared_cost(
    layout: Layout, elements: int, chunk: int, memory: TileMemory, costs: Costs
) -> float:
    steps = list(_digits(layout, "element"))
    words = -(-elements * memory.bits // 32)
    if memory.matrices and _by_matrices(layout, steps, memory):
        rows = _rows_apart(layout, memory)
        return words * (rows * costs.wavefront + costs.issue / MATRIX)
    if memory.matrices and _by_byte_matrices(layout, steps, memory):
        return words * (costs.wavefront + costs.issue / MATRIX + costs.issue)  # and one prmt
    width = _width(steps, chunk, memory)
    accesses = elements / width
    return accesses * (_passes(layout, width, memory) * costs.wavefront + costs.issue)


def _by_matrices(
    layout: Layout, steps: list[tuple[int, tuple[int, ...]]], memory: TileMemory
) -> bool:
    """Whether the lanes have the words of 8x8 matrices: four of a row beside each other."""
    if memory.bits not in (8, 16, 32) or len(layout.dims) != 2:
        return False
    lane = [mode for mode in layout.axis("lane").modes if mode.size > 1]
    per = 32 // memory.bits
    rows = lane[1:] if prod(mode.size for mode in lane) == 32 else lane[1:2]
    if not lane or lane[0].size != 4 or prod(mode.size for mode in rows) != 8:
        return False
    along, across = memory.along, 1 - memory.along
    inside = 1
    for size, step in steps:
        if inside < per and size == 2 and step[along] == inside and not step[across]:
            inside *= 2
    plain = inside == per and lane[0].step[along] == per
    plain = plain and not any(mode.step[along] for mode in rows)
    turned = (
        memory.bits == 16
        and bool(steps)
        and steps[0] == (2, tuple(int(d == across) for d in range(2)))
        and lane[0].step[across] == 2
        and len(rows) == 1
        and rows[0].step[along] == 1
    )
    return plain or turned


def _by_byte_matrices(
    layout: Layout, steps: list[tuple[int, tuple[int, ...]]], memory: TileMemory
) -> bool:
    """Whether the lanes have four bytes across rows of memory, and columns two by two."""
    if memory.bits != 8 or len(layout.dims) != 2:
        return False
    lane = [(mode.size, mode.step) for mode in layout.axis("lane").modes if mode.size > 1]
    along, across = memory.along, 1 - memory.along

    def step(size: int, dim: int) -> tuple[int, ...]:
        return tuple(size * (d == dim) for d in range(2))

    first = [(2, step(1, across)), (2, step(2, across))]
    return (
        lane == [(4, step(4, across)), (8, step(2, along))]
        and steps[:2] == first
        and (2, step(1, along)) in steps
    )


def _rows_apart(layout: Layout, memory: TileMemory) -> int:
    """Passes over the banks that the rows of a matrix take, where rows in a row take one."""
    across = 1 - memory.along
    steps = [step[across] for size, step in list(_digits(layout, "lane"))[2:LANE_BITS] if size == 2]
    if sorted(steps) in ([], [0, 0, 0], [1, 2, 4]):
        return 1
    matrix = _matrix(memory)
    if matrix is None:
        return 1
    taken = [Subspace(), Subspace()]
    for space, rows in zip(taken, (steps, (1, 2, 4)), strict=True):
        for row in rows:
            space.add(_byte(matrix, row, 0) & 127 & ~(WIDEST - 1))
    return 1 << max(0, len(taken[1]) - len(taken[0]))


def _matrix(memory: TileMemory) -> Layout | None:
    assert memory.swizzle is not None
    try:
        return swizzled(memory.shape[-2:], max(8, memory.bits), memory.swizzle)
    except FragirError:
        return None


def _passes(layout: Layout, width: int, memory: TileMemory) -> int:
    """Passes over the banks that one access of a warp takes."""
    matrix = _matrix(memory)
    if matrix is None:
        return 1
    bytes_ = max(1, width * memory.bits // 8)
    served = 5 if bytes_ <= 4 else 4 if bytes_ == 8 else 3
    columns: list[int] = []
    for size, step in list(_digits(layout, "lane"))[:LANE_BITS]:
        if size != 2:
            return 1
        row, col = (0, *step)[-2:]
        if memory.along == len(step) - 2:  # transposed
            row, col = col, row
        columns.append(_byte(matrix, row, col))
    lines, everything = Subspace(), Subspace()
    for column in columns[:served]:
        lines.add(column & 127 & ~(bytes_ - 1) & ~3)
        everything.add(column & ~(bytes_ - 1) & ~3)
    extra = 1 << (len(everything) - len(lines))
    return extra << max(0, len(columns) - served)


def _byte(matrix: Layout, row: int, col: int) -> int:
    sizes = {axis.name: axis.size for axis in matrix.axes}
    if row >= sizes["row"] or col >= sizes["col"]:
        return 0
    point = matrix(row=row, col=col)
    return 0 if point is None else point[0]


def together(bits: int, multiples: Iterable[int]) -> int:
    """How many elements side by side may be accessed at once, for pitches and indices that are
    multiples of these numbers."""
    return gcd(max(1, WIDEST * 8 // bits), *multiples)


# --- the memory of a load or store ----------------------------------------------------------------


def memory_of(
    op: Operation,
    memory: SSAValue,
    indices: Sequence[int | SSAValue],
    tile: TileType,
    *,
    transposed: bool,
    masked: bool,
    target: str,
) -> TileMemory | None:
    """Where a tile lies that an operation loads or stores; None where that has no price.

    A dynamic index counts as aligned: tiles begin at multiples of their extents.
    """
    type_ = memref_type(memory.type)
    bits = ptx.bits(type_.element_type)
    if bits < 8 or not tile.shape:
        return None
    along = len(tile.shape) - (2 if transposed else 1)
    space = type_.memory_space
    if isinstance(space, SharedAttr):
        if len(type_.get_shape()) < 2:
            return None
        name = "stmatrix" if not op.results else "ldmatrix"
        matrices = not masked and _has_matrices(name, target)
        widest = WIDEST * 8 // bits
        swizzle = space.swizzle.data
        return TileMemory(along, bits, widest, type_.get_shape(), swizzle, matrices)
    pitches = _pitches(op, memory, type_)
    if pitches is None:
        return TileMemory(along, bits, 1, masked=masked)
    known = [index for index in map(_number, indices) if index is not None]
    edge = [pitches[-1]] if masked else []  # a row may end inside of an access
    rows = pitches if len(type_.get_shape()) > 1 else []
    steps = together(bits, (*rows, *known[-1:], *edge))
    return TileMemory(along, bits, steps, masked=masked)


@per_table
def _has_matrices(name: str, target: str) -> bool:
    return has(f"{name}.sync.aligned.m8n8.x1.shared.b16", target)


def _pitches(op: Operation, memory: SSAValue, type_: MemRefType[Attribute]) -> list[int] | None:
    """What divides the steps between rows, and the last extent; None where neighbours do not lie
    side by side."""
    promised = _promises(op, memory)
    sizes, strides = promised if promised is not None else (type_.get_shape(), None)
    extents = [1 if size == DYNAMIC_INDEX else size for size in sizes]
    if strides is None and not isinstance(type_.layout, StridedLayoutAttr):
        return extents[-1:]
    if strides is None or strides[-1] != 1:
        return None
    return [*strides[:-1], extents[-1]]


def _promises(op: Operation, memory: SSAValue) -> tuple[Sequence[int], Sequence[int] | None] | None:
    """What divides a function argument's extents and strides; None for other memory."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, func.FuncOp):
        parent = parent.parent_op()
    if parent is None or not isinstance(memory, BlockArgument):
        return None
    if memory.owner is not parent.body.block:
        return None
    promises = promises_of(parent)
    names, strides = size_names(parent, memory.index)
    found = [promises.get(n, 1) if isinstance(n, str) else n for n in names]
    if strides is None:
        return found, None
    return found, [promises.get(s, 1) if isinstance(s, str) else s for s in strides]


def _number(index: int | SSAValue) -> int | None:
    """An index that is a number."""
    return index if isinstance(index, int) else constant_of(index)
