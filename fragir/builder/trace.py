"""The IR of a kernel while it is built.

Where operations go, and which values may be used there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from fragir.builder import functions
from fragir.builder.places import describe, error_at, fail, place, require_number, target
from fragir.builder.types import (
    condition,
    index,
    require_scalar_type,
    require_tile_element,
    type_name,
)
from fragir.builder.values import Expression, Memory, Scalar, Tile, TileOperand, Value
from fragir.dialects import frag
from fragir.errors import FragirError, pass_on
from fragir.mlir.diagnostics import cause_of, message_of

# -- expression ------------------------------------------------------------------------------------
# The order in which expressions of tiles are computed once a tile is used.


def nodes(tile: Tile, is_leaf: set[Tile]) -> list[Tile]:
    """The tiles that a tile is computed from, and itself, each once, operands first.

    Tiles in `is_leaf` are not looked into.
    """
    order: list[Tile] = []
    seen: set[Tile] = set()
    # an expression may be thousands of terms deep: no recursion; True comes after the operands
    waiting = [(tile, False)]
    while waiting:
        at, ready = waiting.pop()
        if ready:
            order.append(at)
        elif at not in seen:
            seen.add(at)
            waiting.append((at, True))
            if at.expression is not None and at not in is_leaf:
                operands = [o for o in at.expression.operands if isinstance(o, Tile)]
                waiting += [(operand, False) for operand in reversed(operands)]
    return order


OpT = TypeVar("OpT", bound=Operation)
ELEMENTWISE = "elementwise function"


@dataclass
class OpenBlock:
    """A block that is being filled: the kernel's, a loop's, a branch's, an elementwise one."""

    kind: str
    block: Block
    location: LocationAttr
    known: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])


class Trace:
    """Inserts operations at the user's present place and checks what they use."""

    def __init__(self, name: str):
        self.name = name
        self.scopes: list[OpenBlock] = []
        self.fastmath: tuple[str, ...] = ()  # what operations written now allow
        self.attributes: dict[str, Attribute] = {}  # of the function
        self.renamings: list[Operation] = []  # reshapes, which go again where nothing uses them
        self._closed: dict[Block, OpenBlock] = {}

    # --- scopes -------------------------------------------------------------------------------

    def open(self, kind: str, block: Block) -> OpenBlock:
        """From here on operations go into this block."""
        scope = OpenBlock(kind, block, place())
        self.scopes.append(scope)
        return scope

    def close(self) -> None:
        """Operations go into the block around again."""
        scope = self.scopes.pop()
        self._closed[scope.block] = scope

    @property
    def block(self) -> Block:
        """Where operations go; an error outside the kernel's `with`."""
        if not self.scopes:
            fail(
                f"the kernel {self.name} is not being built here",
                f"use it inside `with fragir.kernel({self.name!r}) as k:`",
            )
        return self.scopes[-1].block

    def insert(self, op: OpT, name: str | None = None, location: LocationAttr | None = None) -> OpT:
        """Appends an operation, checked, at the user's line."""
        block = self.block
        if name is None and location is None and not isinstance(op, arith.ConstantOp):
            name = target()
        op.location = location or place()
        if self.scopes[-1].kind == ELEMENTWISE and op.name.partition(".")[0] not in (
            "arith",
            "math",
        ):
            if not isinstance(op, frag.YieldOp):
                op.erase(safe_erase=False)
                fail(
                    f"{op.name} in an elementwise function, which sees one element at a time",
                    "only arithmetic on scalars goes there",
                )
        if not op.has_trait(IsTerminator):
            try:
                op.verify(verify_nested_ops=False)
            except Exception as error:
                pass_on(error)
                location = op.location
                op.erase(safe_erase=False)
                raise error_at(location, message_of(error)) from cause_of(error)
        block.add_op(op)
        if name is not None and op.results:
            op.results[0].name_hint = name
        return op

    def once(self, key: object, make: Callable[[], SSAValue]) -> SSAValue:
        """A value that is made once for the present block and those within."""
        assert self.block is self.scopes[-1].block
        for scope in self.scopes:
            if key in scope.known:
                return scope.known[key]
        value = self.scopes[-1].known[key] = make()
        return value

    # --- values -------------------------------------------------------------------------------

    def check_own(self, value: Value) -> None:
        """An error unless a value belongs to this kernel."""
        if value.trace is not self:
            fail(
                f"{value!r} belongs to the kernel {value.trace.name}, not to {self.name}",
                "a kernel gets what it works on as arguments",
            )

    def use(self, value: Scalar | Tile | Memory) -> SSAValue:
        """The value in the IR, computed now where it is an expression of tiles."""
        self.check_own(value)
        _ = self.block
        ssa = value.ssa
        if ssa is not None and self.sees(ssa):
            return ssa
        if isinstance(value, Tile) and value.expression is not None:
            value.ssa = self._compute(value)
            return value.ssa
        assert ssa is not None
        scope = self._closed.get(_block(ssa))
        where = (
            "elsewhere" if scope is None else f"in the {scope.kind} at {describe(scope.location)}"
        )
        fail(
            f"{value!r} was made {where}, which is over",
            "carry it out: name it in k.loop(..., name=first) or k.if_(..., name=otherwise)",
        )

    def sees(self, ssa: SSAValue) -> bool:
        """Whether a value may be used in the present block."""
        block = _block(ssa)
        return any(scope.block is block for scope in self.scopes)

    def operand(self, value: object) -> TileOperand:
        """What may stand beside an operator; an error for anything else."""
        if isinstance(value, Scalar | Tile):
            self.check_own(value)
            return value
        if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
            value = getattr(value, "item")()  # numpy's scalars
        if isinstance(value, int | float):
            return int(value) if isinstance(value, bool) else value
        fail(f"{value!r} cannot be computed with", "write scalars, tiles and Python's numbers")

    def constant(self, number: float, type_: Attribute) -> SSAValue:
        """A number as a value."""
        attribute = functions.attribute(number, type_)
        return self.once(attribute, lambda: self.insert(arith.ConstantOp(attribute)).results[0])

    def scalar(self, value: object, type_: Attribute, what: str) -> SSAValue:
        """A scalar of this type, given as such or as a number."""
        operand = self.operand(value)
        if isinstance(operand, int | float):
            return self.constant(operand, type_)
        if isinstance(operand, Tile) or operand.type != type_:
            fail(f"{what} is {operand!r}; it must be {type_name(type_)}", "use .cast(...)")
        return self.use(operand)

    def index(self, value: object, what: str) -> int | SSAValue:
        """An index: a number, or a scalar of type index."""
        operand = self.operand(value)
        if isinstance(operand, float):
            fail(f"{what} is {operand}; it must be a whole number", "write //, not /")
        return (
            require_number(operand, what)
            if isinstance(operand, int)
            else self.scalar(operand, index, what)
        )

    def dim(self, memory: Memory, dim: int) -> Scalar:
        """A size that is known when the kernel runs."""
        name = memory.sizes[dim]
        source = self.use(memory)

        def make() -> SSAValue:
            op = memref.DimOp(source, self.constant(dim, index))
            return self.insert(op, name if isinstance(name, str) else None).results[0]

        return Scalar(self, self.once(("dim", source, dim), make))

    # --- arithmetic ---------------------------------------------------------------------------

    def apply(self, function: str, operands: Sequence[object]) -> Scalar | Tile:
        """A function of scalars, at once, or of tiles, as an expression."""
        given = [self.operand(operand) for operand in operands]
        type_ = self._common(function, given)
        if functions.has_no_modulo(function, type_):
            x, y = given
            return self.apply("-", (x, self.apply("*", (self.apply("//", given), y))))
        functions.check(function, type_)
        if function in functions.REWRITTEN and not functions.is_float(type_):
            function, number, first = functions.REWRITTEN[function]
            given = [number, *given] if first else [*given, number]
            functions.check(function, type_)
        tiles = [operand for operand in given if isinstance(operand, Tile)]
        if not tiles:
            return Scalar(self, self._emit(function, given, type_, {}, None))
        _ = self.block
        if any(tile.shape != tiles[0].shape for tile in tiles):
            tiles = self.stretch(tiles)
            of = iter(tiles)
            given = [next(of) if isinstance(operand, Tile) else operand for operand in given]
        element = functions.result_type(function, type_)
        expression = Expression(function, tuple(given), place(), target(), self.fastmath)
        return Tile(self, None, tiles[0].shape, element, expression)

    def stretch(self, tiles: Sequence[Tile]) -> list[Tile]:
        """Tiles repeated to a common shape by numpy's rules."""
        from fragir.builder.broadcasting import stretch_all  # few kernels need it

        return stretch_all(self, tiles)

    def _common(self, function: str, operands: list[TileOperand]) -> Attribute:
        """The type of the operands; numbers take that of the others."""
        if function == "select":
            if _type(operands[0]) != condition:
                fail(
                    f"select's first operand is {operands[0]!r}, it must be a condition",
                    "compare it; memory of bool, a byte each, holds conditions",
                )
            operands = operands[1:]
        typed = [(_type(o), o) for o in operands]
        known = [(type_, operand) for type_, operand in typed if type_ is not None]
        if not known:
            fail(
                f"{function} of numbers alone is no operation of the kernel",
                "give one of them a type: k.constant(1.0, fragir.f32)",
            )
        first, of = known[0]
        for type_, operand in known:
            if type_ != first:
                fail(f"{function} of {of!r} and {operand!r}: the types differ", "use .cast(...)")
        return first

    def _emit(
        self,
        function: str,
        operands: Sequence[TileOperand],
        type_: Attribute,
        elements: dict[Tile, SSAValue],
        written: Expression | None,
    ) -> SSAValue:
        """A function of scalars; `elements` has one element of every tile."""
        values: list[SSAValue] = []
        for operand in operands:
            if isinstance(operand, Tile):
                values.append(elements[operand])
            elif isinstance(operand, Scalar):
                values.append(self.use(operand))
            else:
                values.append(self.constant(operand, type_))
        allowed = self.fastmath if written is None else written.fastmath
        op = functions.build(function, values, allowed)
        if written is None:
            return self.insert(op).results[0]
        return self.insert(op, written.name, written.location).results[0]

    def cast_scalar(self, value: Scalar, type_: Attribute) -> Scalar:
        """A scalar in another type."""

        def insert(op: Operation) -> SSAValue:
            return self.insert(op).results[0]

        wanted = require_scalar_type(type_, "a scalar")
        return Scalar(self, functions.cast(self.use(value), wanted, insert))

    def cast_tile(self, tile: Tile, type_: Attribute) -> Tile:
        """A tile in another element type."""
        element = require_tile_element(type_, "a tile")
        source = self.use(tile)
        if element == tile.element:
            return tile
        assert isinstance(source.type, frag.TileType)
        result = self.insert(frag.CastOp(source, source.type.with_element(element))).results[0]
        return self.wrap(result)

    def finish(self) -> None:
        """Removes reshapes that nothing uses: of `t[:, None]` only what is broadcast is left."""
        for op in reversed(self.renamings):
            if not any(result.uses for result in op.results):
                op.detach()
                op.erase()

    def derive(self, tile: Tile, function: str, arguments: Sequence[object]) -> Any:
        """What a method of a tile makes of it: `fragir.builder.derived`."""
        from fragir.builder.derived import DERIVED  # few kernels need it

        return DERIVED[function](self, tile, *arguments)

    def wrap(self, ssa: SSAValue) -> Tile:
        """A tile of the IR as a value of the builder."""
        assert isinstance(ssa.type, frag.TileType)
        return Tile(self, ssa, ssa.type.shape, ssa.type.element_type)

    # --- elementwise functions ----------------------------------------------------------------

    def _compute(self, tile: Tile) -> SSAValue:
        """An expression as one `frag.map`."""
        done = {t for t in nodes(tile, set()) if t.ssa is not None and self.sees(t.ssa)}
        order = nodes(tile, done)
        leaves = [t for t in order if t in done or t.expression is None]
        sources = [self.use(leaf) for leaf in leaves]

        def body(arguments: Sequence[SSAValue]) -> SSAValue:
            elements = dict(zip(leaves, arguments, strict=True))
            for node in order:
                expression = node.expression
                if node in elements or expression is None:
                    continue
                type_ = self._common(expression.function, list(expression.operands))
                elements[node] = self._emit(
                    expression.function, expression.operands, type_, elements, expression
                )
            return elements[tile]

        assert tile.expression is not None
        return self.map(sources, body, tile.expression.location, tile.expression.name)

    def map(
        self,
        sources: Sequence[SSAValue],
        body: Callable[[Sequence[SSAValue]], SSAValue],
        location: LocationAttr,
        name: str | None,
    ) -> SSAValue:
        """A `frag.map` of tiles; `body` gets one element of each and makes one of the result.

        Where a layout was given for some of them, the others are had in it too.
        """
        sources = self._in_one_layout(sources, location)
        types = [source.type for source in sources]
        tiles = [type_ for type_ in types if isinstance(type_, frag.TileType)]
        region = self.elementwise([t.element_type for t in tiles], lambda a: [body(a)], location)
        for argument, source in zip(region.block.args, sources, strict=True):
            argument.name_hint = source.name_hint
        result = region.block.last_op
        assert isinstance(result, frag.YieldOp)
        op = frag.MapOp(sources, region, tiles[0].with_element(result.operands[0].type))
        return self.insert(op, name, location).results[0]

    def _in_one_layout(
        self, sources: Sequence[SSAValue], location: LocationAttr
    ) -> Sequence[SSAValue]:
        tiles = [frag.tile_of(source) for source in sources]
        given = next((tile.placement for tile in tiles if tile.placement is not None), None)
        if given is None:
            return sources
        return [
            source
            if tile.placement is not None
            else self.insert(frag.ConvertOp(source, tile.with_layout(given)), None, location).result
            for source, tile in zip(sources, tiles, strict=True)
        ]

    def elementwise(
        self,
        types: Sequence[Attribute],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
        location: LocationAttr,
    ) -> Region:
        """A region on scalars of these types that ends in `frag.yield` of what the body gives."""
        block = Block(arg_types=types)
        self.open(ELEMENTWISE, block)
        try:
            results = body(block.args)
            self.insert(frag.YieldOp(*results), location=location)
        finally:
            self.close()
        return Region(block)


def _block(ssa: SSAValue) -> Block:
    if isinstance(ssa, BlockArgument):
        return ssa.block
    owner = ssa.owner
    assert isinstance(owner, Operation)
    assert owner.parent is not None
    return owner.parent


def _type(operand: TileOperand) -> Attribute | None:
    if isinstance(operand, Scalar):
        return operand.type
    return operand.element if isinstance(operand, Tile) else None


__all__ = ["FragirError", "OpenBlock", "Trace"]
