"""`fragir.kernel`: writes a kernel's IR from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from io import StringIO
from math import lcm
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    LocationAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.printer import Printer

from fragir.builder.control import Branch, Carried, Loop, RoleOperations, While
from fragir.builder.grids import GridOperations
from fragir.builder.indexed import IndexedOperations
from fragir.builder.matrices import MatrixOperations
from fragir.builder.places import (
    Size,
    by,
    describe,
    error_at,
    fail,
    items,
    place,
    place_of,
    require_dimension,
    require_divisor,
    require_extent,
    require_name,
    require_pair,
    require_size,
    require_strides,
    require_word,
)
from fragir.builder.rings import TensorOperations
from fragir.builder.tiles import Placement, TileOperations
from fragir.builder.trace import Trace
from fragir.builder.types import condition as condition_type
from fragir.builder.types import f32, require_scalar_type, s32, s64, stored_element, type_name
from fragir.builder.values import IndexOperand, Memory, Scalar, Tile
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.isa.targets import require_target
from fragir.mlir import diagnostics
from fragir.ptx.machines import grid_problem

if TYPE_CHECKING:
    from fragir import compiler
    from fragir.compilation.pipeline import Given


# -- random ----------------------------------------------------------------------------------------
# Random tiles: the methods `random`, `uniform` and `normal` of a kernel.

#: What makes 31 bits a number below 1: a little less than 2**-31, as in Triton.
SCALE = 4.6566127342e-10


class RandomOperations(TileOperations):
    """Random numbers as functions of a seed and of offsets: Philox 4x32-10.

    Equal seeds and offsets give equal numbers, wherever they are asked for, so that a mask needs
    no memory: whoever wants it again computes it again. They are those of Triton's `tl.randint4x`,
    `tl.rand` and `tl.randn` (of its approximations of log, sin and cos, up to their errors).
    """

    def random(
        self, seed: Scalar | int, offsets: Tile | Sequence[Tile]
    ) -> tuple[Tile, Tile, Tile, Tile]:
        """Four tiles of random bits, s32.

        `seed` is s32, s64 or a number of Python's; `offsets` is a tile of s32, or up to four, the
        words of the counter, the lowest first. All four cost what one costs.
        """
        words = [offsets] if isinstance(offsets, Tile) else items(offsets)
        if not words or len(words) > 4:
            fail(f"offsets are {offsets!r}", "give a tile of s32, or up to four of one shape")
        counter = [self._word(word) for word in words]
        op = self.trace.insert(frag.RandomOp(self._seed(seed), counter))
        first, second, third, fourth = (self.trace.wrap(result) for result in op.results)
        return first, second, third, fourth

    def uniform(self, seed: Scalar | int, offsets: Tile | Sequence[Tile]) -> Tile:
        """Numbers from 0 to below 1, f32: of the first tile of `random`, 2**31 equally likely."""
        return self._uniform(self.random(seed, offsets)[0])

    def normal(self, seed: Scalar | int, offsets: Tile | Sequence[Tile]) -> Tile:
        """Normally distributed numbers of mean 0 and variance 1, f32, from the first two tiles of
        `random`, by Box and Muller: none is beyond 5.7."""
        first, second, _, _ = self.random(seed, offsets)
        radius = self.sqrt(-2.0 * self.log(self.max(self._uniform(first), 1.0e-7)))
        return radius * self.cos(6.283185307179586 * self._uniform(second))

    def _uniform(self, bits: Tile) -> Tile:
        return self.select(bits < 0, ~bits, bits).cast(f32) * SCALE

    def _seed(self, seed: object) -> SSAValue:
        given = self.trace.operand(seed)
        if isinstance(given, Scalar) and given.type in (s32, s64):
            return self.trace.use(given)
        if not isinstance(given, int):
            fail(f"the seed is {given!r}, it must be a number, s32 or s64", "use .cast(fragir.s64)")
        return self.trace.constant(given, s64)

    def _word(self, tile: object) -> SSAValue:
        if not isinstance(tile, Tile):
            fail(f"offsets are {tile!r}, they must be tiles of s32", "k.iota makes one")
        if tile.element != s32:
            fail(f"offsets are s32, not {type_name(tile.element)}", "use .cast(fragir.s32)")
        return self._tile(tile)


# -- joining ---------------------------------------------------------------------------------------
# Tiles made of several tiles: the methods `concatenate` and `join` of a kernel.


class JoiningOperations(TileOperations):
    """Tiles made of several tiles."""

    def concatenate(self, tiles: Sequence[Tile], axis: int = 0) -> Tile:
        """Tiles behind each other along a dimension; the other sizes and the types are alike."""
        given = items(tiles)
        if not given:
            fail(f"{tiles!r} are no tiles to concatenate", "write k.concatenate([a, b], 1)")
        sources = [self._tile(tile) for tile in given]
        first = frag.tile_of(sources[0])
        dim = require_dimension(axis, len(first.shape), f"a tile of {by(first.shape)}")
        for source in sources[1:]:
            other = frag.tile_of(source)
            _check_same_element(first, other)
            rest = [shape[:dim] + shape[dim + 1 :] for shape in (first.shape, other.shape)]
            if len(first.shape) != len(other.shape) or rest[0] != rest[1]:
                fail(f"{by(first.shape)} and {by(other.shape)} differ besides dimension {dim}")

        def behind(one: SSAValue, other: SSAValue) -> SSAValue:
            return self.trace.insert(frag.ConcatenateOp(one, other, dim)).result

        return self.trace.wrap(reduce(behind, sources))

    def join(self, first: Tile, second: Tile) -> Tile:
        """Two tiles with another dimension, of size 2, behind theirs; `tile.split()` undoes it.

        `k.join(x, y).reshape(-1)` of two rows is x0 y0 x1 y1 and so on.
        """
        one, other = self._tile(first), self._tile(second)
        _check_same_element(frag.tile_of(one), frag.tile_of(other))
        if first.shape != second.shape:
            fail(f"{first!r} and {second!r} differ in shape")
        return self.trace.wrap(self.trace.insert(frag.JoinOp(one, other)).result)


def _check_same_element(first: frag.TileType, second: frag.TileType) -> None:
    types = [type_name(tile.element_type) for tile in (first, second)]
    if types[0] != types[1]:
        fail(f"tiles of {types[0]} and {types[1]} have no elements in common", "use .cast(...)")


# -- lanes -----------------------------------------------------------------------------------------
# Lane-level code from Python: the method `lanes` of a kernel.

Result: TypeAlias = tuple[Sequence[int], Placement]


class LaneOperations(TileOperations):
    """Tiles as the registers of lanes."""

    def lanes(
        self,
        function: Callable[..., object],
        /,
        *tiles: Tile,
        layouts: Placement | Sequence[Placement | None] | None = None,
        results: Result | Sequence[Result] | None = None,
    ) -> Any:
        """Code that every lane runs on its elements of tiles: `k.lanes(function, x, y, ...)`.

            def rotated(lane, x):
                return lane.shuffle(x, (lane.lane + 1) % 32)

            y = k.lanes(rotated, x, layouts=fragir.fragment("m16n8k16.f16", "c"))

        The function is called once, with the `Lane` and the registers of each tile. It returns this
        lane's elements of the new tile, in the order of its layout: registers, or a list of
        scalars; a tuple of such for several tiles, None for none. `layouts` are those in which the
        tiles are held, one for all or one each (None: the one that the tile was made in). The new
        tiles have shape and layout of the first one, unless `results` says `(shape, layout)`, or
        several.
        """
        from fragir.builder.lane_code import lane_code  # few kernels need it

        return lane_code(self.trace, function, tiles, layouts, results)


# -- reporting -------------------------------------------------------------------------------------
# What a kernel says while it runs: the methods `print` and `assert_` of a kernel.


class ReportingOperations(TileOperations):
    """Lines that a kernel prints, and conditions that must hold."""

    def print(self, text: str, *values: Tile | Scalar) -> None:
        """Prints a line for each element of tiles of one shape: `x[3, 5] = 1.5 (block 0, 0, 0)`.

        Behind the text stand the element's place in the tile, the tiles' elements, the scalars, and
        the block. Without a tile it is a line a block. On the emulator the lines are
        `report.printed`, on a GPU the driver writes them to stdout.
        """
        self.trace.insert(frag.PrintOp(require_word(text, "the text"), self._values(values)))

    def assert_(self, condition: Tile | Scalar, text: str, *values: Tile | Scalar) -> None:
        """Ends the launch with an error unless a condition holds, of a tile for each element.

        It names the text and the line in this program; before it a line as of `print` says which
        elements fail, and what `values` have there.
        """
        holds = self._condition(condition)
        op = frag.AssertOp(holds, require_word(text, "the text"), self._values(values))
        self.trace.insert(op)

    def _condition(self, value: object) -> SSAValue:
        if isinstance(value, Tile | Scalar):
            type_ = value.element if isinstance(value, Tile) else value.type
            if type_ == condition_type:
                return self.trace.use(value)
        fail(f"assert_ takes a condition, not {value!r}", "compare: k.assert_(x < 3, ...)")

    def _values(self, values: tuple[object, ...]) -> list[SSAValue]:
        found: list[SSAValue] = []
        for value in values:
            if not isinstance(value, Tile | Scalar):
                fail(f"{value!r} is not printed", "print tiles and scalars of the kernel")
            found.append(self.trace.use(value))
        return found


class KernelBuilder(
    GridOperations,
    IndexedOperations,
    JoiningOperations,
    LaneOperations,
    MatrixOperations,
    RandomOperations,
    ReportingOperations,
    RoleOperations,
    TensorOperations,
):
    """A kernel under construction; `fragir.kernel` makes one.

    Operations are written inside its `with`, each with the place in the Python program that asked
    for it. Afterwards `module` is the verified program, `mlir` its text, and `compile` makes the
    kernel that runs.
    """

    def __init__(
        self,
        name: str,
        *,
        warps: tuple[int, int] | None = None,
        warpgroups: tuple[int, int] | None = None,
        target: str = "sm_80",
    ):
        super().__init__(Trace(require_name(name, "a kernel")))
        self.name, self.target = name, target
        try:
            require_target(target)
        except FragirError as error:
            fail(error.message, error.hint)
        self._warps = require_pair(warps, "warps")
        self._warpgroups = require_pair(warpgroups, "warpgroups")
        self._grid: tuple[tuple[frag.Extent, ...], LocationAttr] | None = None
        self._sizes: dict[str, tuple[Memory, int]] = {}
        self._arguments: dict[str, tuple[SSAValue, DictionaryAttr]] = {}
        self._promises: dict[str, int] = {}
        self._module: ModuleOp | None = None
        self._location = place()

    # --- the whole ----------------------------------------------------------------------------

    def __enter__(self) -> KernelBuilder:
        if self._module is not None or self.trace.scopes:
            fail(f"the kernel {self.name} has been built already")
        self.trace.open("kernel", Block())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.trace.scopes.clear()
            where = place_of(traceback)
            if isinstance(error, diagnostics.VerifyException) and where is not None:
                raise error_at(where, diagnostics.message_of(error)) from diagnostics.cause_of(
                    error
                )
            return
        self.trace.insert(func.ReturnOp(), location=self._location)
        entry = self.trace.block
        self.trace.close()
        self.trace.finish()
        self._module = self._finish(entry)

    def _finish(self, entry: Block) -> ModuleOp:
        function = func.FuncOp(self.name, ([a.type for a in entry.args], []), Region(entry))
        function.location = self._location
        if any(said.data for _, said in self._arguments.values()):
            function.arg_attrs = ArrayAttr(said for _, said in self._arguments.values())
        for name, counts in (("frag.warps", self._warps), ("frag.warpgroups", self._warpgroups)):
            if counts is not None:
                function.attributes[name] = DenseArrayBase.from_list(i64, list(counts))
        function.attributes.update(self.trace.attributes)
        if self._promises:
            promises = {name: IntegerAttr(by, i64) for name, by in self._promises.items()}
            function.attributes[frag.DIVISIBLE] = DictionaryAttr(promises)
        if self._grid is not None:
            extents, location = self._grid
            for extent in extents:
                if isinstance(extent.size, str) and extent.size not in self._sizes:
                    known = ", ".join(self._sizes) or "no names"
                    raise error_at(
                        location,
                        f"the grid needs the size {extent.size}; the arguments name {known}",
                        f'name a dimension so: k.memory("a", fragir.f16, ("{extent.size}", ...))',
                    )
            function.attributes["frag.grid"] = frag.GridAttr(extents)
        module = ModuleOp([function])
        try:
            diagnostics.verify(module)
        except FragirError as error:
            raise _with_source(error) from diagnostics.cause_of(error)
        return module

    def __repr__(self) -> str:
        state = "" if self._module is not None else ", not complete"
        return f"<kernel {self.name}({', '.join(self._arguments)}){state}>"

    @property
    def module(self) -> ModuleOp:
        """The program, verified; an error before the end of the `with`."""
        if self._module is None:
            fail(f"the kernel {self.name} is not complete", "ask after its `with`")
        return self._module

    @property
    def mlir(self) -> str:
        """The program's text."""
        text = StringIO()
        Printer(text).print_op(self.module)
        return text.getvalue() + "\n"

    def compile(
        self,
        target: str | None = None,
        *,
        comments: bool = False,
        lines: bool = False,
        alone: bool = False,
        passes: str | Sequence[Given] | None = None,
    ) -> compiler.Kernel:
        """The kernel that runs, for a target (default: the one given to `fragir.kernel`).

        `lines`: its PTX has `.loc` and `.file`, of the lines of Python. `alone` and `passes` are as
        of `fragir.compile`.
        """
        from fragir import compiler

        target = target or self.target
        try:
            return compiler.compile(
                self.module,
                target=target,
                comments=comments,
                lines=lines,
                alone=alone,
                passes=passes,
            )
        except FragirError as error:
            raise _with_source(error) from diagnostics.cause_of(error)

    # --- arguments ----------------------------------------------------------------------------

    def memory(
        self,
        name: str,
        element: Attribute | type[bool],
        shape: Sequence[Size],
        *,
        strides: Sequence[int | None] | None = None,
    ) -> Memory:
        """An array in global memory, the next argument; of `bool` its tiles are conditions.

        A size is a number, or a name for one that the array brings with it; equal names are equal
        sizes. `strides` (elements; None: what the array has) says how it lies in memory, row after
        row without it.
        """
        element, conditions = stored_element(element, f"the memory {name}")
        given = items(shape)
        if given is None:
            fail(f"{shape!r} is no shape of {name}", 'write a tuple as in ("m", 64)')
        sizes = [require_size(size, name) for size in given]
        static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
        layout: StridedLayoutAttr | NoneAttr = NoneAttr()
        if strides is not None:
            layout = StridedLayoutAttr(require_strides(strides, sizes, name))
        # one name a dimension up to the last that has one; numbers stand for themselves
        named_dims = [dim for dim, size in enumerate(sizes) if isinstance(size, str)]
        names = tuple(map(str, sizes[: named_dims[-1] + 1])) if named_dims else ()
        said = _argument_attributes(names, conditions)
        ssa = self._argument(name, MemRefType(element, static, layout), said)
        memory = Memory(self.trace, ssa, sizes, conditions=conditions)
        for dim, size in enumerate(sizes):
            if isinstance(size, str):
                self._sizes.setdefault(size, (memory, dim))
        return memory

    def scalar(self, name: str, type_: Attribute) -> Scalar:
        """A number, the next argument."""
        type_ = require_scalar_type(type_, f"the scalar {name}")
        return Scalar(self.trace, self._argument(name, type_, DictionaryAttr({})))

    def _argument(self, name: str, type_: Attribute, said: DictionaryAttr) -> SSAValue:
        require_name(name, "an argument")
        if name in self._arguments:
            fail(f"{self.name} has an argument {name} already")
        _ = self.trace.block
        if len(self.trace.scopes) > 1:
            fail("arguments belong to the whole kernel", "declare them outside loops and branches")
        ssa = self.trace.block.insert_arg(type_, len(self._arguments))
        ssa.name_hint = name
        self._arguments[name] = ssa, said
        return ssa

    def size(self, name: str) -> Scalar:
        """A size that an argument's shape names, as a scalar of type index."""
        return self.trace.dim(*self._size(name))

    def _size(self, name: str) -> tuple[Memory, int]:
        if require_word(name, "a size's name") not in self._sizes:
            fail(f"no argument has a size {name}", f"the names are {', '.join(self._sizes)}")
        return self._sizes[name]

    def divisible(self, **sizes: int) -> None:
        """Promises that sizes which arrays bring with them are multiples of something.

            k.divisible(n=16, k=16)

        The compiler then takes wider accesses and fewer tests; a launch that breaks the promise is
        an error.
        """
        for name, divisor in sizes.items():
            self._size(name)
            self._promises[name] = lcm(require_divisor(divisor, name), self._promises.get(name, 1))

    # --- the launch ---------------------------------------------------------------------------

    def grid(self, *extents: Size) -> None:
        """How many blocks a launch has along x, y and z.

        Each is a number, or text: `"n / 128"` is the size n divided by 128 and rounded up.
        """
        if not 1 <= len(extents) <= 3:
            fail(f"a grid has one to three dimensions, not {len(extents)}")
        if self._grid is not None:
            fail(f"the grid was given already at {describe(self._grid[1])}")
        made = tuple(require_extent(extent) for extent in extents)
        problem = grid_problem(frag.fixed_extents(made))
        if problem is not None:
            fail(*problem)
        self._grid = made, place()

    # --- control ------------------------------------------------------------------------------

    def loop(
        self, start: IndexOperand, stop: IndexOperand, step: IndexOperand = 1, **carried: Carried
    ) -> Loop:
        """A loop of the kernel; Python runs through its body once.

            with k.loop(0, depth, 32, acc=zero) as loop:
                loop.acc = k.mma(x, y, loop.acc)      # loop.index counts
            k.store(loop.acc, c, (row, col))

        `carried` names what one turn hands to the next, with its first value: read and assign it
        as an attribute of the loop. After the `with` the attribute is the last turn's value.
        """
        return Loop(self.trace, (start, stop, step), carried)

    def while_(self, condition: Callable[[Any], object], **carried: Carried) -> While:
        """A loop that goes on while a condition holds, the same for all threads of the block.

            with k.while_(lambda now: now.left > 0.5, left=first, turns=0) as loop:
                loop.left = loop.left * 0.9
                loop.turns = loop.turns + 1

        `condition` is called once, with what is carried at the beginning of a turn as attributes.
        `carried` works as in `loop`.
        """
        return While(self.trace, condition, carried)

    def if_(self, condition: Scalar, **carried: Carried) -> Branch:
        """What happens only where a condition holds, the same for all threads of the block.

            with k.if_(ahead < depth):
                k.copy(...)

        `carried` works as in `loop`; it keeps its value where the condition does not hold, or gets
        one in `with branch.else_():`.
        """
        return Branch(self.trace, condition, carried)


def kernel(
    name: str,
    *,
    warps: tuple[int, int] | None = None,
    warpgroups: tuple[int, int] | None = None,
    target: str = "sm_80",
) -> KernelBuilder:
    """Begins a kernel: `with fragir.kernel("gemm", warps=(2, 2)) as k:`.

    `warps` (rows, columns) says how the warps of a block divide the result of `mma`, `warpgroups`
    that of `wgmma`; a block has as many threads as they need. `target` is what `compile` compiles
    for by default.
    """
    return KernelBuilder(name, warps=warps, warpgroups=warpgroups, target=target)


def _argument_attributes(names: tuple[str, ...], conditions: bool) -> DictionaryAttr:
    """An argument's attributes: the names of its sizes, whether its bytes are conditions."""
    said: dict[str, Attribute] = {"frag.bool": UnitAttr()} if conditions else {}
    if names:
        said["frag.sizes"] = ArrayAttr(map(StringAttr, names))
    return DictionaryAttr(said)


def _with_source(error: FragirError) -> FragirError:
    """An error with the line of Python that it points at."""
    import linecache

    if error.source is None and error.file is not None and error.line is not None:
        error.source = linecache.getline(error.file, error.line).rstrip("\n") or None
    return error
