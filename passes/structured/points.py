"""A function of generics as a kernel that computes each element of its results from its place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from xdsl.dialects import func, memref
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.elements import TILE_ELEMENTS, element_bits
from fragir.dialects.linalg.generic_text import maps_of
from fragir.dialects.memory_types import VIEWS, root_of
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.layout import Layout
from fragir.passes.structured.accesses import AxisPlaces, PlaceAccesses, write_assertions
from fragir.passes.structured.bodies import (
    BodyWriter,
    KernelProblem,
    NoKernelError,
    check_body,
    memories_in,
)
from fragir.passes.structured.loops import LoopExtents, TileLoops, require_output_loops, tile_loops
from fragir.passes.structured.memory import (
    NoPlaceError,
    erase_written,
    is_part,
    is_scalar,
    name_sizes,
    places_through,
    share_tiles,
)
from fragir.passes.structured.products import is_reduction
from fragir.passes.structured.staged import (
    PRODUCTS,
    ProductWriter,
    layout_beside,
    product_tiles,
    say_warps,
    warps_of,
)
from fragir.passes.structured.sums import (
    BLOCKS,
    DEEPEST,
    SumWay,
    can_be_deep,
    columns_of_windows,
    deep_loops,
    lies_across,
    piece_of,
    reduced_loops,
    shape_tiles,
    together,
    way_of,
)
from fragir.passes.structured.values import (
    COLUMNS,
    DEPTH,
    INDEX,
    ROWS,
    Axes,
    Place,
    Size,
    TileValue,
    ValueBuilder,
    part_of,
    place_of,
)

Structured = LinalgStructuredOperation


class ReadOrigin(NamedTuple):
    """Who wrote what an operation reads, and which view of the memory it wrote."""

    op: Structured
    written: SSAValue


BESIDE = frozenset((-1,))
"""Of a loop of one turn that sums do not have: tiles take it with the loop beside it."""


class OperandOrigins:
    """Of what each operation reads the one that wrote it last before; None of what memory held at
    first.

    Operations write whole views: what others of the same memory hold is known where the places of
    one tell those of the other.
    """

    def __init__(self, work: Sequence[Structured]):
        self._of: dict[tuple[Structured, SSAValue], ReadOrigin | None] = {}
        self.last: dict[SSAValue, Structured] = {}
        """Who wrote memory last, by the values that name it."""
        writers: dict[SSAValue, ReadOrigin] = {}
        for op in work:
            held = [value for value in op.operands if is_memref(value.type)]
            for value in (*held, *memories_in(op.body.block)):
                self._of[op, value] = writers.get(root_of(value))
            for value in op.outputs:
                writers[root_of(value)] = ReadOrigin(op, value)
                self.last[value] = op

    def of(self, op: Structured, value: SSAValue) -> ReadOrigin | None:
        """Who computed what an operation reads."""
        return self._of[op, value]


def _places_through(op: Structured, value: SSAValue, origin: ReadOrigin) -> list[AffineExpr]:
    """Where what an operation reads at (d0, d1, ...) lies in what was written."""
    try:
        return places_through(value, origin.written)
    except NoPlaceError:
        words = f"{op.name} reads a view of what {origin.op.name} writes"
        raise NoKernelError(op, words) from None


class PointKernel:
    """One function. Its last operation says what is computed; from it back, what is needed."""

    def __init__(self, function: func.FuncOp, target: str):
        self._function, self._block = function, function.body.block
        self._target = target
        self._work = [x for x in self._block.ops if isinstance(x, Structured)]
        self._stored: set[tuple[Structured, int]] = set()
        self._written: set[SSAValue] = set()
        self._seen: list[tuple[SSAValue, tuple[Place, ...]]] = []
        self._made: dict[object, list[TileValue]] = {}
        self._sure: bool = True
        """Whether places are inside as far as tiles are: not those that bodies compute."""
        self._in_part: bool = False
        """Whether what is computed is read as part of it."""
        self._regrouped: bool = False
        """Whether it is read in another shape."""
        self._sums_made: dict[Structured, tuple[dict[int, Place], list[TileValue]]] = {}
        self._viewed: dict[object, Place] = {}

    def write(self) -> KernelProblem | None:
        """Replaces the operations by a program of tiles; or says why there is none, and leaves
        them.
        """
        try:
            made = self._program()
        except NoKernelError as error:
            return error.problem
        end = self._block.last_op
        assert end is not None
        inner = list(made.ops)
        for op in inner:
            op.detach()
        Rewriter.insert_op(inner, InsertPoint.before(end))
        name_sizes(self._function)
        erase_written(self._block, self._work)
        say_warps(self._function, self._ways.values(), self.build.sizes)
        return None

    # --- checks -------------------------------------------------------------------------------

    def _check(self) -> None:
        for op in self._block.ops:
            plain = memref.AllocOp | memref.DeallocOp | memref.DimOp | func.ReturnOp
            if not (isinstance(op, (plain, *VIEWS)) or is_scalar(op) or op in self._work):
                raise NoKernelError(op, f"{op.name} stands beside operations of linalg")
        for op in self._work:
            check_body(op, op.body.block)
            held = [value for value in op.operands if is_memref(value.type)]
            for value in (*held, *memories_in(op.body.block)):
                self._check_memory(op, value)

    def _check_memory(self, op: Structured, memory: SSAValue) -> None:
        type_ = memref_type(memory.type)
        element, root = type_.element_type, root_of(memory)
        inner = isinstance(root.owner, memref.AllocOp)
        if not inner and (element not in TILE_ELEMENTS or element_bits(element) < 8):
            raise NoKernelError(op, f"{op.name} works on {type_}, of whose elements no tile is")
        if not (inner or isinstance(root, BlockArgument)):
            raise NoKernelError(op, f"{op.name} works on memory of {root.owner}")

    # --- the program --------------------------------------------------------------------------

    def _program(self) -> Block:
        self._check()
        self._origins = OperandOrigins(self._work)
        root = self._work[-1]
        loops, count = require_output_loops(root, 0), len(root.outputs)
        if any(set(require_output_loops(root, number)) != set(loops) for number in range(1, count)):
            raise NoKernelError(root, f"{root.name} has outputs along different loops")
        self.top = program = Block()
        self.build = build = ValueBuilder(program, root)
        self._extents = extents = LoopExtents(root)
        main = self._main()
        static = {loop: extents.static(loop) for loop in loops}
        found = {loop: self._inputs_along(root, loop) for loop in loops}
        for at, loop in enumerate(loops):
            if found[loop] == BESIDE:
                beside = (*loops[at + 1 :], *reversed(loops[:at]))
                known = (found[other] for other in beside if found[other] != BESIDE)
                found[loop] = next(known, frozenset[int]())
        reads = {loop: inputs for loop, inputs in found.items() if inputs is not None}
        beyond = [loop for loop in loops if loop not in reads]
        way = way_of(main, reads, self._target)
        if beyond and (not reads or way is not SumWay.DEEP):
            raise NoKernelError(root, f"{root.name} repeats what is summed; that is another kernel")
        self._ways = {op: self._way(op, main, way) for op in self._work}
        deep = way is SumWay.DEEP
        across = lies_across(main) if main is not None and deep else 0
        piece = (None if main is None else piece_of(main)) or ()
        if piece and main is not root:
            raise NoKernelError(root, f"{root.name} reads pieces of sums; that is another kernel")
        own = [loop for loop in reads if loop not in piece]
        windows = columns_of_windows(root) if main is root and way is SumWay.SERIAL else None
        most = windows or across or len(own)
        chosen = tile_loops(own, static, reads, columns_only=deep, most=most)
        chosen = chosen._replace(outer=(*piece[:1], *chosen.outer))
        sizes = {loop: extents.size(loop, build) for loop in loops}
        totals = {
            axis: build.product([sizes[loop] for loop in own])
            for axis, own in ((ROWS, chosen.rows), (COLUMNS, chosen.columns))
            if own or axis == COLUMNS
        }
        blocks = prod(static[loop] or BLOCKS for loop in chosen.outer)
        self.axes: Axes = tuple(axis for axis in (ROWS, COLUMNS) if axis in totals)
        if main is not None and way in PRODUCTS:
            way, shape, layout = product_tiles(
                way, main, self._function, self._target, totals, partial(self._depth, main), blocks
            )
            self._ways[main] = way
            self._lays(layout)
        else:
            shape = shape_tiles(way, main, totals, self._depth(main, way), across and blocks)
        build.sizes.update(shape)
        if windows == 0:  # what lanes read lies beside each other, too
            warps = warps_of(self._function, self._ways.values(), build.sizes)
            self._lays(layout_beside([build.sizes[axis] for axis in self.axes], prod(warps)))
        exact = {axis: _is_divisor(build.sizes[axis], total) for axis, total in totals.items()}
        self.accesses = PlaceAccesses(build, exact)
        self._sums = ProductWriter(self, bool(across))
        counts = [sizes[loop] for loop in chosen.outer] + [totals[axis] for axis in self.axes]
        by = [*[1] * len(chosen.outer), *(build.sizes[axis] for axis in self.axes)]
        if len(counts) == 1:
            counts, by = [1, *counts], [1, *by]
        body = Block(arg_types=[INDEX] * len(counts))
        with build.inside(body):
            places = self._places(chosen, sizes, body.args)
            self._root = {place for loop, place in places.items() if static[loop] != 1}
            self._body = body
            every: list[Place | None] = [
                places.get(loop) for loop in range(maps_of(root)[0].num_dims)
            ]
            if beyond:
                self._rows(root, every, beyond, [sizes[loop] for loop in beyond])
            else:
                self.outputs(root, every, self.axes)
        for op in self._work:
            for number, output in enumerate(op.outputs):
                last = self._origins.last[output] is op and self._is_seen(output)
                if last and (op, number) not in self._stored:
                    raise NoKernelError(
                        op,
                        f"{op.name} writes memory that {root.name}, which ends the kernel, "
                        "does not read at its own places",
                    )
        loop = frag.ForTilesOp(counts, by, Region(body))
        share_tiles(self._function, loop)
        build.add(loop)
        build.drop_unused()
        return program

    def _rows(
        self, root: Structured, loops: list[Place | None], along: list[int], sizes: list[Size]
    ) -> None:
        """What is computed of sums and all that they are the sums of, a part of rows at a time."""

        def turn(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            for loop, place in zip(along, places, strict=True):
                loops[loop] = place
            self.outputs(root, loops, self._sums.inside(self.axes))
            return []

        static = [self._extents.static(loop) for loop in along]
        self._sums.through(sizes, together(static, DEEPEST), [], turn)

    def _lays(self, layout: Layout | None) -> None:
        if layout is not None:
            self.build.layouts[self.axes] = frag.ExplicitLayoutAttr(layout)

    def _is_seen(self, memory: SSAValue) -> bool:
        """Whether others see what is written there."""
        return not isinstance(root_of(memory).owner, memref.AllocOp)

    def _way(self, op: Structured, main: Structured | None, way: SumWay) -> SumWay:
        """How an operation reduces where another one, for which tiles are made, does so."""
        if op is main:
            return way
        if not is_reduction(op):
            return SumWay.NONE
        return SumWay.DEEP if way is SumWay.DEEP and can_be_deep(op) else SumWay.SERIAL

    def _depth(self, main: Structured | None, way: SumWay) -> Size:
        """How much tiles of what is reduced lie along."""
        if main is None or way in (SumWay.NONE, SumWay.SERIAL):
            return 1
        extents, loops = LoopExtents(main), reduced_loops(main)
        own = loops[len(loops) - deep_loops(main, way) :]
        return self.build.product([extents.size(loop, self.build) for loop in own])

    def _main(self) -> Structured | None:
        # the last one if there are several
        return next((op for op in reversed(self._work) if is_reduction(op)), None)

    def _inputs_along(self, op: Structured, loop: int) -> frozenset[int] | None:
        """The inputs that depend on a loop, of the reduction on whose sums an operation depends.

        None of a loop that what is summed does not have.
        """
        if not is_reduction(op):
            for number, value in enumerate(op.operands):
                if not (is_memref(value.type) and op.body.block.args[number].uses):
                    continue
                origin = self._origins.of(op, value)
                if origin is None or not _has_sums_below(origin.op, self._origins):
                    continue
                at = [_position(e) for e in maps_of(op)[number].results]
                if value is origin.written:
                    dims = [i for i, position in enumerate(at) if position == loop]
                else:
                    own = {d for d, position in enumerate(at) if position == loop}
                    through = _places_through(op, value, origin)
                    dims = [i for i, e in enumerate(through) if own & e.used_dims()]
                    shape = memref_type(value.type).get_shape()
                    if not dims and any(shape[d] == 1 for d in own):
                        return BESIDE
                    if len(dims) > 1:
                        raise NoKernelError(op, f"{op.name} reads sums as other rows and columns")
                if not dims:
                    return None
                output = origin.op.outputs.index(origin.written)
                return self._inputs_along(
                    origin.op, require_output_loops(origin.op, output)[dims[0]]
                )
        maps = maps_of(op)
        return frozenset(
            number for number in range(len(op.inputs)) if loop in maps[number].used_dims()
        )

    def _places(
        self, chosen: TileLoops, sizes: dict[int, Size], first: Sequence[SSAValue]
    ) -> dict[int, Place]:
        """Where along each loop the elements of a tile are."""
        places: dict[int, Place] = {}
        for loop, at in zip(chosen.outer, first, strict=False):
            places[loop] = TileValue(at)
        tiled = [(ROWS, chosen.rows), (COLUMNS, chosen.columns)]
        at = len(first)
        for axis, own in reversed(tiled):
            if axis not in self.axes:
                continue
            at -= 1
            if own:
                linear = self.build.counting_place(axis, first[at])
                extents = tuple(sizes[loop] for loop in own)
                found = tuple(self.split(linear, extents))
                places.update(zip(own, found, strict=True))
                end = self.build.product(extents)
                self.accesses.axes[axis] = AxisPlaces(first[at], found, extents, linear, end)
        return places

    def split(self, linear: Place, sizes: Sequence[Size]) -> list[Place]:
        """Where along each of several loops a place is that counts them through."""
        found: list[Place] = []
        for at, size in enumerate(sizes):
            behind = self.build.product(sizes[at + 1 :])
            found.append(part_of(self.build, linear, behind, size if at else None))
        return found

    # --- operations ---------------------------------------------------------------------------

    def outputs(
        self, op: Structured, loops: Sequence[Place | None], order: Axes
    ) -> list[TileValue]:
        """What an operation computes at places along its loops, None for those that it reduces."""
        key = (op, tuple(loops), order, self.build.block, self._sure)
        if key in self._made:
            return self._made[key]
        if is_reduction(op):
            return self._reduce(op, loops)
        plain = [0 if loop is None else loop for loop in loops]
        body = self.body(op, plain, order)
        end = op.body.block.last_op
        assert end is not None
        names = [output.name_hint for output in op.outputs]
        found = [body.value(v, order, n) for v, n in zip(end.operands, names, strict=True)]
        self._made[key] = found
        write_assertions(self.build, self.accesses, op.body.block, body, order)
        for number, tile in enumerate(found):
            self._write(op, number, tile, loops, order)
        return found

    def _reduce(self, op: Structured, loops: Sequence[Place | None]) -> list[TileValue]:
        """What an operation reduces to, ahead of the loops that read it."""
        extents = LoopExtents(op)
        kept = {x: at for x, at in enumerate(loops) if at is not None and extents.static(x) != 1}
        alike = set(kept.values()) == self._root or (
            self._regrouped and all(map(self._is_outside, kept.values()))
        )
        places, found = self._sums_made.get(op, (kept, None))
        if not alike or places != kept:
            raise NoKernelError(op, f"sums of {op.name} are read at other places, too")
        if found is None:
            with self.build.inside(self._body), self.accesses.without_depth():
                found = self._sums.outputs(op, self._ways[op], loops, self.axes)
                self._sums_made[op] = kept, found
                for number, tile in enumerate(found):
                    self._write(op, number, tile, loops, self.axes)
        return found

    def _is_outside(self, place: Place) -> bool:
        """Whether a place is known ahead of the loops in a tile."""
        if isinstance(place, int):
            return True
        owner = place.value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        return block is self._body and DEPTH not in place.axes

    def body(
        self,
        op: Structured,
        loops: Sequence[Place],
        order: Axes,
        known: dict[SSAValue, TileValue] | None = None,
        accumulator: SSAValue | None = None,
    ) -> BodyWriter:
        """An operation's body at places along all of its loops."""
        values = dict(known or {})
        for number, argument in enumerate(op.body.block.args):
            if argument.uses and argument not in values:
                values[argument] = self.operand(op, number, loops, order)

        def read(memory: SSAValue, places: Sequence[Place]) -> TileValue:
            return self._element(op, memory, places, order, sure=False)

        return BodyWriter(self.build, op.body.block, values, loops, read, accumulator)

    def operand(
        self, op: Structured, number: int, loops: Sequence[Place], order: Axes
    ) -> TileValue:
        """The elements of an operand at places along loops."""
        value, map_ = op.operands[number], maps_of(op)[number]
        if not is_memref(value.type):
            return TileValue(value)
        places = [place_of(self.build, e, loops, order) for e in map_.results]
        origin = self._origins.of(op, value)
        if origin is not None and not is_reduction(origin.op):
            self._check_again(op, {_position(e) for e in map_.results} - {None}, origin.op)
        return self._element(op, value, places, order, sure=True)

    def _element(
        self,
        op: Structured,
        value: SSAValue,
        places: Sequence[Place],
        order: Axes,
        sure: bool,
    ) -> TileValue:
        """What an operation reads at places: computed there, or loaded. `sure`: as far as tiles are
        inside, so are places.
        """
        origin = self._origins.of(op, value)
        if origin is None:
            return self._read(op, value, places, order, sure and self._sure)
        before = self._sure, self._in_part, self._regrouped
        if value is not origin.written:
            through = _places_through(op, value, origin)
            places = [self._through(e, places, order) for e in through]
            self._in_part = self._in_part or is_part(value)
            self._regrouped = not self._in_part
        if not sure and not is_reduction(origin.op):
            self._check_again(op, set(), origin.op)
        output = origin.op.outputs.index(origin.written)
        along: list[Place | None] = [None] * maps_of(origin.op)[0].num_dims
        for loop, place in zip(require_output_loops(origin.op, output), places, strict=True):
            along[loop] = place
        self._sure = sure and self._sure
        try:
            return self.outputs(origin.op, along, order)[output]
        finally:
            self._sure, self._in_part, self._regrouped = before

    def _through(self, expression: AffineExpr, places: Sequence[Place], order: Axes) -> Place:
        """A place in another view, computed once, ahead of the loops in a tile if it can be."""
        used = [places[dim] for dim in sorted(expression.used_dims())]
        block = self._body if all(map(self._is_outside, used)) else self.build.block
        key = (expression, tuple(used), order, block)
        if key not in self._viewed:
            with self.build.inside(block):
                self._viewed[key] = place_of(self.build, expression, places, order)
        return self._viewed[key]

    def is_computed(self, op: Structured, number: int) -> bool:
        """Whether the kernel computes an operand."""
        value = op.operands[number]
        return is_memref(value.type) and self._origins.of(op, value) is not None

    def _check_again(self, op: Structured, known: set[int | None], origin: Structured) -> None:
        """NoKernelError where much would be computed for each of many readers, which read along
        these of their loops.
        """
        again = is_reduction(op) and len(known) < maps_of(op)[0].num_dims
        if again and _is_costly(origin, self._origins):
            raise NoKernelError(op, f"{op.name} reads many times what {origin.name} computes")

    # --- memory -------------------------------------------------------------------------------

    def _read(
        self,
        op: Structured,
        memory: SSAValue,
        places: Sequence[Place],
        order: Axes,
        sure: bool,
    ) -> TileValue:
        if isinstance(root_of(memory).owner, memref.AllocOp):
            raise NoKernelError(op, f"{op.name} reads memory that nothing has written")
        if root_of(memory) in self._written:
            raise NoKernelError(op, f"{op.name} reads memory that the kernel has changed")
        self._seen.append((memory, tuple(places)))
        return self.accesses.read(memory, places, order, sure)

    def _write(
        self,
        op: Structured,
        number: int,
        tile: TileValue,
        loops: Sequence[Place | None],
        order: Axes,
    ) -> None:
        """Stores what others see."""
        memory = op.outputs[number]
        last = self._origins.last[memory] is op
        if not last or not self._is_seen(memory) or (op, number) in self._stored:
            return
        places = [loops[loop] for loop in require_output_loops(op, number)]
        shape = memref_type(memory.type).get_shape()
        along = {
            place for place, size in zip(places, shape, strict=True) if (place, size) != (0, 1)
        }
        if self._in_part or set(self._root) - along:
            return
        if op is not self._work[-1] and (order != self.axes or along - set(self._root)):
            return  # of places that others depend on only some elements are computed
        self._stored.add((op, number))
        at = [place for place in places if place is not None]
        root = root_of(memory)
        meeting = [seen for seen in self._seen if root_of(seen[0]) is root]
        for seen, elsewhere in meeting:
            if seen is not memory or elsewhere != tuple(at):
                raise NoKernelError(
                    op, f"{op.name} writes memory that the kernel reads at other places"
                )
        if meeting:  # several threads may hold an element
            self.build.add(frag.BarrierOp())
        self._written.add(root)
        self.accesses.write(self.build.widen(tile, order), memory, at, once=bool(meeting))


def _position(expression: AffineExpr) -> int | None:
    return expression.position if isinstance(expression, AffineDimExpr) else None


def _has_sums_below(op: Structured, origins: OperandOrigins) -> bool:
    """Whether an operation reduces, or one that it reads from."""
    if is_reduction(op):
        return True
    arguments = zip(op.operands, op.body.block.args, strict=True)
    held = [value for value, x in arguments if is_memref(value.type) and x.uses]
    found = [origins.of(op, value) for value in (*held, *memories_in(op.body.block))]
    return any(origin is not None and _has_sums_below(origin.op, origins) for origin in found)


def _is_costly(op: Structured, origins: OperandOrigins) -> bool:
    """Whether an elementwise operation takes a function of math for an element, or one that it
    reads from.
    """
    if any(inner.name.startswith("math.") for inner in op.body.block.ops):
        return True
    held = [x for x in (*op.operands, *memories_in(op.body.block)) if is_memref(x.type)]
    found = [origins.of(op, value) for value in held]
    return any(x and not is_reduction(x.op) and _is_costly(x.op, origins) for x in found)


def _is_divisor(tile: int, total: Size) -> bool:
    return isinstance(total, int) and total % tile == 0
