"""`frag-place`: gives every tile the layout that the instructions demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from fragir.diagnostics import fail
from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.instructions import WGMMA_K, operand_name, wgmma_n
from fragir.dialects.frag.selected import selected_tile
from fragir.dialects.frag.sparse import dense_name
from fragir.dialects.narrow import memref_type
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.targets import known
from fragir.layout import Axis, Layout, Mode
from fragir.passes.convert_frag_to_ptx import threads_of, warps_of


@dataclass(frozen=True)
class Demand:
    """A layout and who wants it."""

    layout: frag.LayoutAttr
    op: Operation
    role: str


class Classes:
    """Tiles that must have one layout, as a union-find forest over values."""

    def __init__(self) -> None:
        self._parent: dict[SSAValue, SSAValue] = {}

    def find(self, value: SSAValue) -> SSAValue:
        """The representative of a value's class."""
        self._parent.setdefault(value, value)
        root = value
        while self._parent[root] is not root:
            root = self._parent[root]
        while self._parent[value] is not root:
            self._parent[value], value = root, self._parent[value]
        return root

    def unite(self, values: Iterable[SSAValue]) -> None:
        """All tiles among the values belong together."""
        tiles = [v for v in values if isinstance(v.type, frag.TileType)]
        for value in tiles:
            self._parent[self.find(value)] = self.find(tiles[0])

    def members(self) -> dict[SSAValue, list[SSAValue]]:
        """Every class: representative -> its values."""
        result: dict[SSAValue, list[SSAValue]] = {}
        for value in self._parent:
            result.setdefault(self.find(value), []).append(value)
        return result


def _tiles(function: func.FuncOp) -> list[SSAValue]:
    """Every tile of a function, in order."""
    values: list[SSAValue] = []
    for op in function.walk():
        values += op.results
        for region in op.regions:
            for block in region.blocks:
                values += block.args
    return [v for v in values if isinstance(v.type, frag.TileType)]


def _unite(classes: Classes, op: Operation) -> None:
    """The tiles that an operation holds in one layout."""
    match op:
        case frag.MmaOp() | frag.MmaSparseOp():
            _, _, c, d = op.tile_types()
            if c.element_type == d.element_type:
                classes.unite((op.c, op.d))
        case frag.WgmmaOp():
            classes.unite((op.c, op.d))
        case frag.CastOp():
            classes.unite((op.source, op.result))
        case frag.MapOp():
            classes.unite((*op.tiles, op.result))
        case scf.ForOp():
            yielded = _yielded(op.body.block)
            for group in zip(
                op.iter_args, op.body.block.args[1:], yielded, op.results, strict=True
            ):
                classes.unite(group)
        case scf.IfOp():
            for region in op.regions:
                if region.blocks:
                    for group in zip(op.results, _yielded(region.block), strict=True):
                        classes.unite(group)
        case _:
            pass


def _yielded(block: Block) -> list[SSAValue]:
    return list(block.last_op.operands) if isinstance(block.last_op, scf.YieldOp) else []


def _demands(
    op: Operation, warps: tuple[int, int], groups: tuple[int, int], target: str
) -> Iterator[tuple[SSAValue, Demand]]:
    """(value, demand) for every tile whose layout an operation dictates."""
    for value in (*op.operands, *op.results):
        if isinstance(value.type, frag.TileType) and value.type.placement is not None:
            yield value, Demand(value.type.placement, op, "as written")
    if isinstance(op, frag.MmaOp):
        yield from _mma_demands(op, warps, target)
    elif isinstance(op, frag.MmaSparseOp):
        yield from _sparse_demands(op, warps, target)
    elif isinstance(op, frag.WgmmaOp):
        yield from _wgmma_demands(op, groups)


def _mma_demands(
    op: frag.MmaOp, warps: tuple[int, int], target: str
) -> Iterator[tuple[SSAValue, Demand]]:
    name = op.instruction_name(target)
    _, _, c, d = op.tile_types()
    for value, role, word, accumulator in (
        (op.a, "a", "a", ""),
        (op.b, "b", "b", ""),
        (op.c, "c", "c", c.element),
        (op.d, "c", "d", d.element),
    ):
        named = operand_name(name, role, accumulator)
        layout = frag.MmaLayoutAttr(frag.MmaFragment(named, role, warps))
        yield value, Demand(layout, op, f"operand {word}")
    if op.scales:
        yield from _scale_demands(op, op.instruction(target), warps)


def _sparse_demands(
    op: frag.MmaSparseOp, warps: tuple[int, int], target: str
) -> Iterator[tuple[SSAValue, Demand]]:
    instruction = op.instruction(target)
    name = dense_name(instruction, op.tile_types()[0].element)
    for value, role in ((op.a, "a"), (op.b, "b"), (op.c, "c"), (op.d, "c")):
        layout = frag.MmaLayoutAttr(frag.MmaFragment(name, role, warps))
        yield value, Demand(layout, op, f"operand {'d' if value is op.d else role}")
    yield _selected(op, instruction, "e", op.metadata, warps)
    yield from _scale_demands(op, instruction, warps)


def _scale_demands(
    op: frag.MmaOp | frag.MmaSparseOp, instruction: Instruction, warps: tuple[int, int]
) -> Iterator[tuple[SSAValue, Demand]]:
    for name, value in zip(("sfa", "sfb"), op.scales, strict=False):
        yield _selected(op, instruction, name, value, warps)


def _selected(
    op: Operation, instruction: Instruction, operand: str, value: SSAValue, warps: tuple[int, int]
) -> tuple[SSAValue, Demand]:
    tile = value.type
    assert isinstance(tile, frag.TileType)
    layout = selected_tile(instruction, operand, (tile.rows.data, tile.cols.data), warps)
    word = "metadata" if operand == "e" else operand
    return value, Demand(frag.ExplicitLayoutAttr(layout), op, f"operand {word}")


def _wgmma_demands(op: frag.WgmmaOp, groups: tuple[int, int]) -> Iterator[tuple[SSAValue, Demand]]:
    tile, a = op.d.type, op.a.type
    assert isinstance(tile, frag.TileType)
    in_registers = isinstance(a, frag.TileType)
    element = element_name(a.element_type if in_registers else memref_type(a).element_type)
    part = tile
    if tile.placement is None:
        # one warpgroup's share of the columns
        part = frag.TileType((tile.rows.data, tile.cols.data // groups[1]), tile.element_type)
    name = f"m64n{wgmma_n(part, element)}k{WGMMA_K[element]}.{element}"
    accumulator = frag.MmaLayoutAttr(frag.MmaFragment(name, "c", groups))
    yield op.d, Demand(accumulator, op, "operand d")
    if in_registers:
        fragment = frag.MmaLayoutAttr(frag.MmaFragment(name, "a", groups))
        yield op.a, Demand(fragment, op, "operand a")
    if op.metadata is not None:
        instruction = op.instruction(accumulator.data.mnk[1])
        yield _selected(op, instruction, "e", op.metadata, groups)


def default_layout(tile: frag.TileType, threads: int) -> Layout:
    """A layout for a tile that no instruction touches: rows in order, 16 bytes a lane.

    FragirError where the threads do not divide the tile.
    """
    rows, cols = tile.rows.data, tile.cols.data
    bits = ptx.bits(tile.element_type)
    vector = max(1, 128 // bits)
    while vector > 1 and (cols % vector or rows * cols % (vector * threads)):
        vector //= 2
    across = min(cols // vector, threads)
    while across > 1 and (cols % (vector * across) or threads % across):
        across -= 1
    down = threads // across
    if len(tile.shape) != 2 or rows % down or cols % (vector * across):
        raise FragirError(
            f"{threads} threads do not divide {tile} evenly and no instruction gives it a layout",
            hint='write its layout: #frag.layout<"warp [...] lane [...] element [...]">',
        )
    modes = [(across, (0, vector)), (down, (1, 0))]
    lane, warp = _split(modes)
    element = [
        (vector, (0, 1)),
        (cols // (vector * across), (0, vector * across)),
        (rows // down, (down, 0)),
    ]
    axes = (("warp", warp), ("lane", lane), ("element", element))
    return Layout(tuple(Axis(n, tuple(Mode(s, st) for s, st in m if s > 1)) for n, m in axes))


def _split(modes: list[tuple[int, tuple[int, int]]]):
    """Cuts thread modes at 32: what a lane and what a warp number contributes."""
    lane: list[tuple[int, tuple[int, int]]] = []
    warp: list[tuple[int, tuple[int, int]]] = []
    room = 32
    for size, stride in modes:
        inner = min(size, room)
        if room % inner or size % inner:
            raise FragirError("the threads of a warp do not divide the tile's rows")
        lane.append((inner, stride))
        room //= inner
        warp.append((size // inner, (stride[0] * inner, stride[1] * inner)))
    return lane, warp


@dataclass(frozen=True)
class FragPlacePass(ModulePass):
    """Infers layouts from what mma and wgmma demand and writes them into the tiles' types.

    A tile that two operations demand in different layouts is an error that names both: write
    `frag.convert` between them. A tile that no instruction touches gets rows in order.
    """

    name = "frag-place"
    target: str = "sm_80"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            known(self.target)
        except FragirError as error:
            raise PassFailedException(str(error)) from error
        for function in op.ops:
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                try:
                    place(function, self.target)
                except FragirError as error:
                    fail(function, str(error))


def place(function: func.FuncOp, target: str) -> None:
    """Places every tile of one function."""
    tiles = _tiles(function)
    if not tiles:
        return
    warps, groups = warps_of(function, "frag.warps"), warps_of(function, "frag.warpgroups")
    classes = Classes()
    for value in tiles:
        classes.find(value)
    for op in function.walk():
        _unite(classes, op)
    found: dict[SSAValue, Demand] = {}
    for op in function.walk():
        try:
            demands = list(_demands(op, warps, groups, target))
        except FragirError as error:
            fail(op, f"{op.name}: {error}")
        for value, demand in demands:
            other = found.setdefault(classes.find(value), demand)
            if not _same(other.layout, demand.layout, value):
                _conflict(value, other, demand)
    threads = threads_of(function)
    for root, values in classes.members().items():
        if root in found:
            layout = found[root].layout
        else:
            assert isinstance(root.type, frag.TileType)
            try:
                layout = frag.ExplicitLayoutAttr(default_layout(root.type, threads))
            except FragirError as error:
                fail(_owner(root), str(error))
        for value in values:
            tile = value.type
            assert isinstance(tile, frag.TileType)
            if tile.layout != layout:
                Rewriter.replace_value_with_new_type(value, _placed(value, tile, layout))


def _same(first: frag.LayoutAttr, second: frag.LayoutAttr, value: SSAValue) -> bool:
    """Whether two layouts put every element of a tile in the same place."""
    if first == second:
        return True
    tile = value.type
    assert isinstance(tile, frag.TileType)
    shape = tile.rows.data, tile.cols.data, tile.products.data
    return (
        first.chunk == second.chunk
        and first.layout(*shape).simplified() == second.layout(*shape).simplified()
    )


def _placed(value: SSAValue, tile: frag.TileType, layout: frag.LayoutAttr) -> frag.TileType:
    try:
        return tile.with_layout(layout)
    except VerifyException as error:
        fail(_owner(value), f"{tile} cannot have the layout {layout}: {error}")


def _owner(value: SSAValue) -> Operation:
    """The operation that makes a value, or whose region takes it."""
    owner = value.owner if isinstance(value, OpResult) else value.owner.parent_op()
    assert isinstance(owner, Operation)
    return owner


def _conflict(value: SSAValue, first: Demand, second: Demand) -> None:
    name = f"%{value.name_hint}" if value.name_hint else f"a tile {value.type}"
    fail(
        second.op,
        f"{name} must have two layouts: {first.layout} ({first.role} of {first.op.name}) and "
        f"{second.layout} ({second.role} of {second.op.name}); write frag.convert between them",
    )
