"""A function of generics without a product as a loop over tiles.

Where something is reduced, a tile has whole rows of it, and what is reduced is a tile of one number
a row; so a softmax or a norm is one kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    i64,
)
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.elements import is_element
from fragir.dialects.frag.reductions import problem as combination_problem
from fragir.dialects.limits import LARGEST_INDEX
from fragir.dialects.memory_types import VIEWS, root_of
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.passes.scopes import WARPS, threads_of
from fragir.passes.structured.bodies import (
    KernelProblem,
    NoKernelError,
    RowCombining,
    combining_of,
    foreign_to_bodies,
    neutral,
    only_inside,
    repeat,
)
from fragir.passes.structured.loops import Axis, CommonLoops
from fragir.passes.structured.memory import (
    collapsed,
    erase_written,
    is_scalar,
    name_sizes,
    share_tiles,
    size_of,
)
from fragir.passes.structured.products import is_reduction

ELEMENTS = 2048
"""Of a tile: sixteen a lane of four warps."""
COLUMNS = 256
"""Of a tile with rows, at most."""


def rows_of(sizes: Sequence[int | SSAValue], threads: int) -> tuple[int, int]:
    """The shape of a tile of whole rows, of at least an element a thread."""
    length, rows = sizes[-1], sizes[-2]
    assert isinstance(length, int)
    columns = max(32, _power_of_two(length))
    most = max(1, min(16, 2 * ELEMENTS // columns))
    if isinstance(rows, int):
        most = min(most, _power_of_two(rows))
    return max(most, threads // columns), columns


SQUARE = 64
"""Rows and columns of a tile that memory holds transposed: two sectors of 16-bit elements each."""


def tile_of(sizes: Sequence[int | SSAValue], threads: int, turned: bool = False) -> tuple[int, ...]:
    """The shape of a tile: of one axis, or of the last two. It has at least an element a thread:
    of a smaller one several threads would have the same element, read it and write it.

    `turned`: some memory holds it transposed, so that both are to be long.
    """

    def fitting(size: int | SSAValue, most: int) -> int:
        return most if not isinstance(size, int) else min(most, _power_of_two(size))

    if len(sizes) == 1:
        return (max(threads, fitting(sizes[0], ELEMENTS)),)
    columns = fitting(sizes[-1], SQUARE if turned else COLUMNS)
    rows = fitting(sizes[-2], SQUARE if turned else max(1, ELEMENTS // columns))
    return max(rows, threads // columns), columns


def _power_of_two(size: int) -> int:
    """The next one."""
    return 1 << max(0, size - 1).bit_length()


LONGEST = 8192
"""Elements of a row that is held in registers."""


def check_operations(block: Block, work: Sequence[LinalgStructuredOperation]) -> None:
    """NoKernelError where something else stands there, or works on something else."""
    own = set(work)
    for op in block.ops:
        plain = memref.AllocOp | memref.DeallocOp | memref.DimOp | func.ReturnOp
        if not (isinstance(op, (plain, *VIEWS)) or is_scalar(op) or op in own):
            raise NoKernelError(op, f"{op.name} stands beside elementwise operations")
    for op in work:
        for inner in op.body.block.ops:
            if not isinstance(inner, ops.YieldOp) and not is_scalar(inner):
                raise foreign_to_bodies(op, inner)
        for value in op.operands:
            if not is_memref(value.type):
                continue
            type_ = memref_type(value.type)
            if not is_element(type_.element_type) or not isinstance(type_.memory_space, NoneAttr):
                raise NoKernelError(op, f"{op.name} works on {type_}")
            if not isinstance(root_of(value).owner, Block | memref.AllocOp):
                raise NoKernelError(op, f"{op.name} works on {type_}")
    check_views(work)


def check_views(work: Sequence[LinalgStructuredOperation]) -> None:
    """NoKernelError where blocks would see what others write: memory that is written is one value,
    of which no other view is used.
    """
    seen: dict[SSAValue, SSAValue] = {}
    writers: dict[SSAValue, Operation] = {}
    for op in work:
        writers.update({root_of(value): op for value in op.outputs})
    for op in work:
        for value in op.operands:
            if not is_memref(value.type):
                continue
            root = root_of(value)
            if isinstance(root.owner, memref.AllocOp) and root is not value:
                raise NoKernelError(op, f"{op.name} works on a view of the kernel's own memory")
            if root in writers and seen.setdefault(root, value) is not value:
                raise NoKernelError(
                    op, f"{op.name} takes another view of memory that the kernel writes"
                )


def require_combining(
    op: LinalgStructuredOperation, work: Sequence[LinalgStructuredOperation]
) -> RowCombining:
    """How a reduction among others combines; NoKernelError where no kernel does so."""
    found = combining_of(op)
    element = op.body.block.args[-1].type
    start = op.outputs[0]
    filled = any(
        isinstance(x, ops.FillOp) and x.outputs[0] is start for x in work[: work.index(op)]
    )
    if not filled:
        # several threads hold a row's number, and would change it
        words = "add to what memory holds; begin with a linalg.fill"
        raise NoKernelError(op, f"{op.name} reduces along rows, which cannot {words}")
    if found is None:
        words = "is no `output combined with a function of the inputs` of one output"
        raise NoKernelError(op, f"the body of {op.name} {words}, by add, mul, max, min, and, or")
    wrong = combination_problem(found.kind, element)
    if wrong is not None or neutral(found.kind, element) is None:
        raise NoKernelError(op, f"{op.name}: {wrong or f'{element} is not reduced'}")
    return found


def check_rows(
    loops: CommonLoops,
    axes: Sequence[Axis],
    reductions: Mapping[LinalgStructuredOperation, RowCombining],
) -> None:
    """What is reduced must be rows that registers hold."""
    op = next(iter(reductions))
    if len(axes[-1]) != len(loops.reduced):
        raise NoKernelError(op, f"{op.name} reduces loops that do not lie behind each other")
    if len(axes) < 2:
        raise NoKernelError(op, f"{op.name} reduces to one number, which no kernel does yet")
    sizes = [
        memref_type(memory.type).get_shape()[own.index(loop)]
        for loop in axes[-1]
        for memory, own in loops.of_operand.items()
        if loop in own
    ]
    if min(sizes) < 0 or prod(sizes[:: max(1, len(sizes) // len(axes[-1]))]) > LONGEST:
        raise NoKernelError(
            op, f"{op.name} reduces rows of more than {LONGEST} elements, or of unknown length"
        )


DEFAULT_WARPS = 4
MOST_AXES = 5
INDEX = IndexType()


class GenericKernel:
    """One function."""

    def __init__(self, function: func.FuncOp):
        self._function, self._block = function, function.body.block
        self._work = [x for x in self._block.ops if isinstance(x, LinalgStructuredOperation)]
        self._values: dict[SSAValue, SSAValue] = {}
        """What buffers hold by now: tiles, or numbers."""
        self._loaded: dict[tuple[SSAValue, bool], SSAValue] = {}
        """Tiles of what memory held at first, for operations of all loops and of rows."""
        self._last = {output: op for op in self._work for output in op.outputs}
        """Who writes a buffer last, which others see."""
        self._at: list[SSAValue] = []

    def write(self) -> KernelProblem | None:
        """Replaces the operations by a program of tiles; or says why there is none, and leaves
        them.
        """
        try:
            check_operations(self._block, self._work)
            loops = CommonLoops(self._work)
            external = [x for x in loops.of_operand if not isinstance(x.owner, memref.AllocOp)]
            self._combining = {
                op: require_combining(op, self._work) for op in self._work if is_reduction(op)
            }
            axes = self._axes(loops, external)
            self._own = {memory: self._axes_of(memory, loops, axes) for memory in external}
        except NoKernelError as error:
            return error.problem
        self._loops, self._axes_found = loops, axes
        name_sizes(self._function)
        self._write(external)
        erase_written(self._block, self._work)
        return None

    # --- what is there ------------------------------------------------------------------------

    def _axes(self, loops: CommonLoops, external: Sequence[SSAValue]) -> list[Axis]:
        """Loops taken together, those of sizes that only a launch knows by themselves."""
        axes = [part for axis in loops.axes(external) for part in self._countable(axis, loops)]
        last = self._work[-1]
        if len(axes) > MOST_AXES:
            raise NoKernelError(last, f"{last.name} has {len(axes)} loops, at most {MOST_AXES}")
        if loops.reduced:
            check_rows(loops, axes, self._combining)
        return axes

    def _countable(self, axis: Axis, loops: CommonLoops) -> list[Axis]:
        """An axis in parts whose places an index can count, the last ones as long as may be."""
        sizes: dict[int, int] = {}
        for memory, own in loops.of_operand.items():
            for loop, size in zip(own, memref_type(memory.type).get_shape(), strict=True):
                sizes[loop] = min(size, sizes.get(loop, size))
        if min(sizes[loop] for loop in axis) < 0:
            return [(loop,) for loop in axis]
        parts: list[Axis] = []
        for loop in reversed(axis):
            longer = (loop, *parts[0]) if parts else (loop,)
            if parts and prod(sizes[x] for x in longer) <= LARGEST_INDEX:
                parts[0] = longer
            else:
                parts.insert(0, (loop,))
        return parts

    def _axes_of(self, memory: SSAValue, loops: CommonLoops, axes: Sequence[Axis]) -> list[int]:
        """The axes of memory's dimensions, by their numbers, those taken together once."""
        own = loops.of_operand[memory]
        found = [at for loop in own for at, axis in enumerate(axes) if axis[0] == loop]
        tail = found[-2:] if len(axes) > 1 else found[-1:]
        last = {len(axes) - 1, len(axes) - 2} if len(axes) > 1 else {0}
        inside = [at for at in tail if at in last]
        if any(at in last for at in found[: len(found) - len(inside)]):
            raise NoKernelError(
                self._work[-1],
                f"{self._work[-1].name} takes memory whose rows lie across what is written",
            )
        return found

    # --- the program --------------------------------------------------------------------------

    def _write(self, external: Sequence[SSAValue]) -> None:
        axes, loops = self._axes_found, self._loops
        end = self._block.last_op
        assert end is not None
        self._builder = Builder(InsertPoint.before(end))
        self._builder.operation_insertion_handler = [self._place]
        self._memory = {memory: self._collapse(memory) for memory in external}
        sizes = [self._size(number) for number in range(len(axes))]
        if WARPS not in self._function.attributes:
            self._function.attributes[WARPS] = DenseArrayBase.from_list(i64, [DEFAULT_WARPS, 1])
        threads = threads_of(self._function)
        if loops.reduced:
            self._shape: tuple[int, ...] = rows_of(sizes, threads)
        else:
            self._shape = tile_of(sizes, threads, any(map(self._is_turned, external)))
        if loops.reduced and sizes[-1] == 0:
            sizes[-1] = 1  # rows of nothing have results, too
        extents = sizes if len(axes) > 1 else [1, *sizes]
        leading = len(extents) - len(self._shape) if len(axes) > 1 else 0
        by = [*[1] * leading, *(self._shape if len(axes) > 1 else (1, *self._shape))]
        self._masked = any(
            not isinstance(size, int) or size % tile
            for size, tile in zip(sizes[-len(self._shape) :], self._shape, strict=True)
        )
        body = Block(arg_types=[INDEX] * len(extents))
        self._at = list(body.args) if len(axes) > 1 else list(body.args[1:])
        outer, self._builder = self._builder, Builder(InsertPoint.at_end(body))
        self._builder.operation_insertion_handler = [self._place]
        for op in self._work:
            self._operation(op)
        self._builder = outer
        loop = frag.ForTilesOp(extents, by, Region(body))
        share_tiles(self._function, loop)
        self._builder.insert(loop)

    def _place(self, op: Operation) -> None:
        op.location = self._work[-1].location

    def _put(self, op: Operation, name: str | None = None) -> SSAValue:
        self._builder.insert(op)
        if name is not None:
            op.results[0].name_hint = name
        return op.results[0]

    def _collapse(self, memory: SSAValue) -> SSAValue:
        """Memory with one dimension for each axis that it has."""
        own = self._loops.of_operand[memory]
        groups: list[list[int]] = []
        for dim, loop in enumerate(own):
            if any(axis[0] == loop for axis in self._axes_found):
                groups.append([])
            groups[-1].append(dim)
        if len(groups) == len(own):
            return memory
        return self._put(collapsed(memory, groups), memory.name_hint)

    def _size(self, number: int) -> int | SSAValue:
        """How far an axis runs."""
        axis = self._axes_found[number]
        for memory, own in self._loops.of_operand.items():
            if memory not in self._memory or axis[0] not in own:
                continue
            shape = memref_type(memory.type).get_shape()
            sizes = [shape[own.index(loop)] for loop in axis]
            if min(sizes) >= 0:
                return prod(sizes)
        known = [m for m in self._memory if axis[0] in self._loops.of_operand[m]]
        memory = next((m for m in known if isinstance(m, BlockArgument)), known[0])
        size = size_of(memory, self._loops.of_operand[memory].index(axis[0]), self._put)
        if isinstance(size, SSAValue) and size.name_hint is None:
            size.name_hint = f"n{axis[0]}"
        return size

    # --- operations ---------------------------------------------------------------------------

    def _operation(self, op: LinalgStructuredOperation) -> None:
        """The tiles of an operation's outputs, stored where others see them."""
        seen = {output for output in op.outputs if self._last[output] is op}
        seen &= self._memory.keys()
        if isinstance(op, ops.FillOp) and not seen:
            self._values[op.outputs[0]] = op.inputs[0]
            return
        elements: dict[SSAValue, SSAValue] = {}
        whole = self._loops.whole[op]
        combining = self._combining.get(op)
        for argument, operand in zip(op.body.block.args, op.operands, strict=True):
            if argument.uses and not (combining and argument is op.body.block.args[-1]):
                elements[argument] = self._element(operand, whole)
        end = op.body.block.last_op
        assert end is not None
        if combining is not None:
            results = [self._reduce(op, combining, elements)]
        else:
            results = [self._map(op, elements, value, whole) for value in end.operands]
        for output, result in zip(op.outputs, results, strict=True):
            self._values[output] = result
            if output in seen:
                self._store(result, output)

    def _reduce(
        self,
        op: LinalgStructuredOperation,
        combining: RowCombining,
        elements: dict[SSAValue, SSAValue],
    ) -> SSAValue:
        """One number a row: the output's old one, combined with all of the row."""
        x = self._map(op, elements, combining.x, True, but=combining.op)
        element, (rows, columns) = combining.x.type, self._shape
        nothing = neutral(combining.kind, element)
        assert nothing is not None
        length = self._size(len(self._axes_found) - 1)
        if length != columns:  # what lies behind a row changes nothing
            i32 = frag.TileType(self._shape, IntegerType(32))
            place = self._put(frag.IotaOp(1, i32))
            assert isinstance(length, int)
            region = only_inside(length, element, cast("FloatAttr", nothing))
            tile = frag.TileType(self._shape, element)
            x = self._put(frag.MapOp([x, place], region, tile))
        found = self._put(frag.ReduceOp(combining.kind, 1, x), op.outputs[0].name_hint)
        old = self._element(op.outputs[0], False)
        if isinstance(old.owner, arith.ConstantOp) and old.owner.value == nothing:
            return found
        block = Block(arg_types=[element] * (2 if isinstance(old.type, frag.TileType) else 1))
        both = [block.args[0], block.args[1] if len(block.args) > 1 else old]
        combine = combining.op.create(
            operands=both, result_types=[element], properties=dict(combining.op.properties)
        )
        for inner in (combine, frag.YieldOp(combine.results[0])):
            inner.location = op.location
            block.add_op(inner)
        tiles = [found, *([old] if len(block.args) > 1 else [])]
        return self._put(frag.MapOp(tiles, Region(block), frag.TileType((rows,), element)))

    def _element(self, operand: SSAValue, whole: bool) -> SSAValue:
        """A tile of an operand, as large as the operation's, or a number."""
        if not is_memref(operand.type):
            return operand
        value = self._values.get(operand)
        if value is None:
            if (operand, whole) not in self._loaded:
                self._loaded[operand, whole] = self._load(operand, whole)
            return self._loaded[operand, whole]
        narrow = isinstance(value.type, frag.TileType) and len(value.type.shape) == 1
        if narrow and whole and len(self._shape) > 1:
            return self._put(frag.BroadcastOp(value, 1, self._shape[-1]), value.name_hint)
        return value

    @property
    def _row(self) -> int:
        """The axis of rows."""
        return len(self._axes_found) - 2

    def _is_turned(self, memory: SSAValue) -> bool:
        """Whether memory has the last two axes in the other order."""
        last = len(self._axes_found) - 1
        return last > 0 and self._own[memory][-2:] == [last, last - 1]

    def _indices(self, memory: SSAValue) -> list[SSAValue]:
        return [self._at[axis] for axis in self._own[memory]]

    def _load(self, memory: SSAValue, whole: bool) -> SSAValue:
        own, indices = self._own[memory], self._indices(memory)
        element = memref_type(memory.type).element_type
        if not whole:
            if self._row not in own:
                return self._put(memref.LoadOp.get(self._memory[memory], indices))
            tile = frag.TileType(self._shape[:1], element)
            load = frag.LoadOp(self._memory[memory], indices, tile, masked=self._masked)
            return self._put(load, memory.name_hint)
        tile, held = frag.TileType(self._shape, element), self._memory[memory]
        last, name = len(self._axes_found) - 1, memory.name_hint
        if len(self._shape) == 1:
            if own:
                return self._put(frag.LoadOp(held, indices, tile, masked=self._masked), name)
            return self._put(memref.LoadOp.get(held, []), name)
        tail = [axis for axis in own if axis >= last - 1]
        if not tail:
            return self._put(memref.LoadOp.get(held, indices), name)
        if len(tail) == 2:
            if not self._is_turned(memory):
                return self._put(frag.LoadOp(held, indices, tile, masked=self._masked), name)
            # elements change lanes on their way, so that these lie along memory
            lying = frag.TileType(self._shape[::-1], element)
            load = self._put(frag.LoadOp(held, indices, lying, masked=self._masked), name)
            return self._put(frag.TransposeOp(load, (1, 0)), name)
        by_row = tail == [last - 1]
        if not by_row and len(own) == 1:
            load = frag.LoadOp(held, indices, tile, masked=self._masked, broadcast=True)
            return self._put(load, name)
        zero = self._put(arith.ConstantOp(IntegerAttr(0, INDEX)))
        where = [*indices, zero] if by_row else [*indices[:-1], zero, indices[-1]]
        wide = self._expand(held, len(own) if by_row else len(own) - 1)
        load = frag.LoadOp(wide, where, tile, masked=self._masked, broadcast=True)
        return self._put(load, name)

    def _expand(self, memory: SSAValue, at: int) -> SSAValue:
        """Memory with one dimension more, of one element."""
        type_ = memref_type(memory.type)
        shape = list(type_.get_shape())
        sizes: list[SSAValue] = []
        for dim, size in enumerate(shape):
            if size < 0:
                constant = self._put(arith.ConstantOp(IntegerAttr(dim, INDEX)))
                sizes.append(self._put(memref.DimOp(memory, constant)))
        new = [*shape[:at], 1, *shape[at:]]
        groups = [[dim] if dim < at else [dim + 1] for dim in range(len(shape))]
        groups[min(at, len(shape) - 1)] = [min(at, len(shape) - 1), min(at, len(shape) - 1) + 1]
        made = memref.ExpandShapeOp.build(
            operands=[memory, sizes],
            properties={
                "reassociation": ArrayAttr(
                    [ArrayAttr([IntegerAttr(dim, i64) for dim in group]) for group in groups]
                ),
                "static_output_shape": DenseArrayBase.from_list(i64, new),
            },
            result_types=[MemRefType(type_.element_type, new)],
        )
        return self._put(made, memory.name_hint)

    def _map(
        self,
        op: LinalgStructuredOperation,
        elements: dict[SSAValue, SSAValue],
        result: SSAValue,
        whole: bool,
        but: Operation | None = None,
    ) -> SSAValue:
        """A tile of a value of a body, which is computed without one of its operations."""
        element = result.type
        tiles = {a: v for a, v in elements.items() if isinstance(v.type, frag.TileType)}
        block = Block(arg_types=[a.type for a in tiles])
        names: dict[SSAValue, SSAValue] = {a: v for a, v in elements.items() if a not in tiles}
        names.update(zip(tiles, block.args, strict=True))
        for argument, inner in zip(tiles, block.args, strict=True):
            inner.name_hint = argument.name_hint
        *body, _ = op.body.block.ops
        repeat((inner for inner in body if inner is not but), names, block.add_op)
        found = names.get(result, result)
        large = self._shape if whole or not self._loops.reduced else self._shape[:1]
        shape = frag.TileType(large, element)
        if but is not None and found in block.args:
            return next(v for a, v in zip(block.args, tiles.values(), strict=True) if a is found)
        if not tiles or (not isinstance(found.owner, Block) and found.owner.parent is not block):
            for inner in list(block.ops):
                inner.detach()
                self._builder.insert(inner)
            return self._put(frag.FillOp(found, shape))
        block.add_op(frag.YieldOp(found))
        for inner in reversed(list(block.ops)):
            if inner.results and not any(r.uses for r in inner.results):
                Rewriter.erase_op(inner)
        made = frag.MapOp(list(tiles.values()), Region(block), shape)
        made.location = op.location
        return self._put(made, result.name_hint)

    def _store(self, value: SSAValue, memory: SSAValue) -> None:
        if self._is_turned(memory):
            value = self._put(frag.TransposeOp(value, (1, 0)))
        if any((memory, whole) in self._loaded for whole in (True, False)):
            # numbers of rows are those of several threads
            self._builder.insert(frag.BarrierOp())
        store = frag.StoreOp(
            value, self._memory[memory], self._indices(memory), masked=self._masked
        )
        self._builder.insert(store)
