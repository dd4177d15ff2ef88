"""What a kernel computes with: scalars, tiles and memory.

A `Scalar` is known when the kernel runs, not while it is built: Python's `if`, `while` and `range`
cannot look at it. An operator on scalars is one operation of `arith` at once; operators on tiles
gather in an expression, which becomes one `frag.map` where the tile is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Generic, NoReturn, Protocol, Self, TypeAlias, TypeVar, Union, overload

from xdsl.dialects.builtin import DYNAMIC_INDEX, LocationAttr, MemRefType
from xdsl.ir import Attribute, SSAValue

from fragir.builder.places import fail
from fragir.builder.types import condition, type_name
from fragir.dialects import frag
from fragir.dialects.shorthands import memref_type

# -- operators -------------------------------------------------------------------------------------
# Python's operators on what a kernel computes with.

Other = TypeVar("Other")


class Operators(ABC, Generic[Other]):
    """Operators as functions by name; `Other` is what may stand on the other side of one."""

    __hash__ = object.__hash__  # by identity, as `==` is a comparison in the kernel

    @abstractmethod
    def _apply(self, function: str, *operands: object) -> Any:
        """The function's result, of the class that the operands ask for."""

    def __add__(self, other: Other) -> Self:
        return self._apply("+", self, other)

    def __radd__(self, other: Other) -> Self:
        return self._apply("+", other, self)

    def __sub__(self, other: Other) -> Self:
        return self._apply("-", self, other)

    def __rsub__(self, other: Other) -> Self:
        return self._apply("-", other, self)

    def __mul__(self, other: Other) -> Self:
        return self._apply("*", self, other)

    def __rmul__(self, other: Other) -> Self:
        return self._apply("*", other, self)

    def __truediv__(self, other: Other) -> Self:
        return self._apply("/", self, other)

    def __rtruediv__(self, other: Other) -> Self:
        return self._apply("/", other, self)

    def __floordiv__(self, other: Other) -> Self:
        return self._apply("//", self, other)

    def __rfloordiv__(self, other: Other) -> Self:
        return self._apply("//", other, self)

    def __mod__(self, other: Other) -> Self:
        return self._apply("%", self, other)

    def __rmod__(self, other: Other) -> Self:
        return self._apply("%", other, self)

    def __and__(self, other: Other) -> Self:
        return self._apply("&", self, other)

    def __rand__(self, other: Other) -> Self:
        return self._apply("&", other, self)

    def __or__(self, other: Other) -> Self:
        return self._apply("|", self, other)

    def __ror__(self, other: Other) -> Self:
        return self._apply("|", other, self)

    def __xor__(self, other: Other) -> Self:
        return self._apply("^", self, other)

    def __rxor__(self, other: Other) -> Self:
        return self._apply("^", other, self)

    def __lshift__(self, other: Other) -> Self:
        return self._apply("<<", self, other)

    def __rlshift__(self, other: Other) -> Self:
        return self._apply("<<", other, self)

    def __rshift__(self, other: Other) -> Self:
        return self._apply(">>", self, other)

    def __rrshift__(self, other: Other) -> Self:
        return self._apply(">>", other, self)

    def __neg__(self) -> Self:
        return self._apply("neg", self)

    def __abs__(self) -> Self:
        return self._apply("abs", self)

    def __invert__(self) -> Self:
        return self._apply("~", self)

    def __lt__(self, other: Other) -> Self:
        return self._apply("<", self, other)

    def __le__(self, other: Other) -> Self:
        return self._apply("<=", self, other)

    def __gt__(self, other: Other) -> Self:
        return self._apply(">", self, other)

    def __ge__(self, other: Other) -> Self:
        return self._apply(">=", self, other)

    def __eq__(  # pyright: ignore[reportIncompatibleMethodOverride]  # as numpy's arrays
        self, other: Other
    ) -> Self:
        return self._apply("==", self, other)

    def __ne__(  # pyright: ignore[reportIncompatibleMethodOverride]  # as numpy's arrays
        self, other: Other
    ) -> Self:
        return self._apply("!=", self, other)


# -- reductions ------------------------------------------------------------------------------------
# Methods of tiles that combine elements: sums, products, the largest and where it stands, and what
# all up to each element give.

TileT = TypeVar("TileT")
ScalarT = TypeVar("ScalarT")


class Reductions(ABC, Generic[TileT, ScalarT]):
    """Reductions with numpy's names, along one dimension or, without `axis`, all of them.

    Along a dimension they give a tile of one dimension less, or with `keepdims` one of size 1
    there; of one dimension, and without `axis`, a scalar, the same in all threads.
    """

    @abstractmethod
    def _reduce(self, kind: str, axis: int | None, keepdims: bool) -> Any:
        """What `frag.reduce` gives; `keepdims` leaves a dimension of size 1."""

    @abstractmethod
    def _scan(self, kind: str, axis: int, exclusive: bool, reverse: bool) -> TileT:
        """What `frag.scan` gives."""

    @overload
    def sum(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def sum(self, axis: None = None) -> ScalarT: ...
    def sum(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """The sum; of f16 and bf16 it is formed in f32 and rounded once."""
        return self._reduce("add", axis, keepdims)

    @overload
    def prod(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def prod(self, axis: None = None) -> ScalarT: ...
    def prod(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """The product; of f16 and bf16 it is formed in f32 and rounded once."""
        return self._reduce("mul", axis, keepdims)

    @overload
    def max(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def max(self, axis: None = None) -> ScalarT: ...
    def max(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """The largest element; NaN where one is NaN."""
        return self._reduce("max", axis, keepdims)

    @overload
    def min(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def min(self, axis: None = None) -> ScalarT: ...
    def min(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """The smallest element; NaN where one is NaN."""
        return self._reduce("min", axis, keepdims)

    @overload
    def all(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def all(self, axis: None = None) -> ScalarT: ...
    def all(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """Of conditions: whether all hold."""
        return self._reduce("and", axis, keepdims)

    @overload
    def any(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def any(self, axis: None = None) -> ScalarT: ...
    def any(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """Of conditions: whether one holds."""
        return self._reduce("or", axis, keepdims)

    def argmax(self, axis: int, keepdims: bool = False) -> TileT:
        """The place of the largest element along a dimension, s32; of equals the first."""
        return self._reduce("argmax", axis, keepdims)

    def argmin(self, axis: int, keepdims: bool = False) -> TileT:
        """The place of the smallest element along a dimension, s32; of equals the first."""
        return self._reduce("argmin", axis, keepdims)

    def cumsum(self, axis: int, *, exclusive: bool = False, reverse: bool = False) -> TileT:
        """The sum of all elements up to each one along a dimension; f16 and bf16 are added in f32.

        `exclusive`: without the element itself, so that the first is 0. `reverse`: from the end of
        the dimension on. Other cumulative functions take them too.
        """
        return self._scan("add", axis, exclusive, reverse)

    def cumprod(self, axis: int, *, exclusive: bool = False, reverse: bool = False) -> TileT:
        """The product of all up to each one; of f16 and bf16 it is formed in f32."""
        return self._scan("mul", axis, exclusive, reverse)

    def cummax(self, axis: int, *, exclusive: bool = False, reverse: bool = False) -> TileT:
        """The largest of all up to each one; NaN from the first NaN on."""
        return self._scan("max", axis, exclusive, reverse)

    def cummin(self, axis: int, *, exclusive: bool = False, reverse: bool = False) -> TileT:
        """The smallest of all up to each one; NaN from the first NaN on."""
        return self._scan("min", axis, exclusive, reverse)


# -- views -----------------------------------------------------------------------------------------
# Methods of tiles that count elements otherwise, with numpy's names.


Key: TypeAlias = int | slice | EllipsisType | None


class Views(ABC, Generic[TileT]):
    """Other shapes, and parts; elements are not changed."""

    @abstractmethod
    def _view(self, function: str, *arguments: object) -> Any:
        """What a function of `fragir.builder.shapes` gives."""

    @property
    def T(self) -> TileT:
        """The transposed tile: its dimensions in the reverse order."""
        return self.transpose()

    def transpose(self, *axes: int) -> TileT:
        """The tile with its dimensions in this order, the reverse one where none is given."""
        return self._view("transpose", axes)

    def reshape(self, *shape: int | Sequence[int]) -> TileT:
        """The same elements, in the order of rows, in another shape; one size may be -1."""
        return self._view("reshape", shape)

    def split(self) -> tuple[TileT, TileT]:
        """Two tiles: what stands at 0 and at 1 along the last dimension, which is of size 2."""
        return self._view("split")

    def __getitem__(self, key: Key | tuple[Key, ...]) -> TileT:
        """A part, as of numpy's arrays: `t[:, 0:32]`, `t[::2]`, `t[3]`, `t[:, None]`.

        Places are numbers that Python knows.
        """
        return self._view("item", key)

    def __iter__(self) -> NoReturn:
        fail(f"{self!r} is no list", "tile[0] is its first row, tile.split() are two tiles")


ScalarOperand: TypeAlias = Union["Scalar", int, float]
TileOperand: TypeAlias = Union["Tile", "Scalar", int, float]
IndexOperand: TypeAlias = Union["Scalar", int]


def require_value_name(name: object) -> str:
    """A name for a value of the IR."""
    if isinstance(name, str) and SSAValue.is_valid_name(name):
        return name
    fail(f"{name!r} is no name of a value", "write letters, digits and _")


class Recorder(Protocol):
    """What values ask of the kernel that they belong to: `fragir.builder.trace.Trace`."""

    name: str

    def apply(self, function: str, operands: Sequence[object]) -> Scalar | Tile:
        """A function of scalars, at once, or of tiles, as an expression."""
        ...

    def use(self, value: Scalar | Tile | Memory) -> SSAValue:
        """The value in the IR."""
        ...

    def dim(self, memory: Memory, dim: int) -> Scalar:
        """A size that is known when the kernel runs."""
        ...

    def cast_scalar(self, value: Scalar, type_: Attribute) -> Scalar:
        """A scalar in another type."""
        ...

    def cast_tile(self, tile: Tile, type_: Attribute) -> Tile:
        """A tile in another element type."""
        ...

    def derive(self, tile: Tile, function: str, arguments: Sequence[object]) -> Any:
        """What a method of a tile makes of it."""
        ...


class Value:
    """Something that exists in one kernel."""

    __array_ufunc__ = None  # numpy's scalars leave operators with us to us
    __hash__ = object.__hash__  # by identity, as `==` is a comparison in the kernel

    def __init__(self, trace: Recorder):
        self.trace = trace

    def __bool__(self) -> bool:
        fail(
            f"{self!r} is known when the kernel runs, not while it is built",
            "write k.if_(condition), k.select(condition, x, y), or x & y for `x and y`",
        )


class Computed(Value, Operators[Other], Generic[Other]):
    """A value with operators; a Scalar comes of scalars, a Tile where a tile is among them."""

    __hash__ = object.__hash__

    def _apply(self, function: str, *operands: object) -> Any:
        return self.trace.apply(function, operands)


class Scalar(Computed[ScalarOperand]):
    """One number: an index, an argument, or the element that an elementwise function is given.

    Comparisons give conditions, for `select` and `if_`. `//` and `%` are for indices, which are
    never negative.
    """

    def __init__(self, trace: Recorder, ssa: SSAValue):
        super().__init__(trace)
        self.ssa = ssa

    @property
    def type(self) -> Attribute:
        """The type, as in `fragir.f32` or `fragir.index`."""
        return self.ssa.type

    def __repr__(self) -> str:
        name = f" {self.ssa.name_hint}" if self.ssa.name_hint else ""
        return f"<{type_name(self.type)}{name}>"

    def __index__(self) -> NoReturn:
        fail(
            f"{self!r} is known when the kernel runs, not while it is built",
            "range(...) unrolls with Python's numbers; k.loop(...) is a loop of the kernel",
        )

    def _apply(self, function: str, *operands: object) -> Any:
        if any(isinstance(operand, Tile) for operand in operands):
            return NotImplemented
        return super()._apply(function, *operands)

    def named(self, name: str) -> Scalar:
        """The same scalar, called so in the IR and in the PTX."""
        self.ssa.name_hint = require_value_name(name)
        return self

    def cast(self, type_: Attribute) -> Scalar:
        """The number in another type: floats rounded to nearest even, integers toward zero."""
        return self.trace.cast_scalar(self, type_)


class Tile(Computed[TileOperand], Reductions["Tile", Scalar], Views["Tile"]):
    """Elements in one to four dimensions, in the registers of a block.

    `shape` is (rows, columns) of a matrix, `element` its type. Operators work on every element,
    with tiles of the same type, scalars of that type, and Python's numbers; shapes are broadcast
    as numpy does.
    """

    def __init__(
        self,
        trace: Recorder,
        ssa: SSAValue | None,
        shape: tuple[int, ...],
        element: Attribute,
        expression: Expression | None = None,
    ):
        super().__init__(trace)
        self.ssa = ssa  # None for an expression that nothing has used yet
        self.shape = shape
        self.element = element
        self.expression = expression

    def __repr__(self) -> str:
        return f"<tile {'x'.join(map(str, self.shape))} of {type_name(self.element)}>"

    def named(self, name: str) -> Tile:
        """The same tile, called so in the IR and in the PTX."""
        self.trace.use(self).name_hint = require_value_name(name)
        return self

    def cast(self, type_: Attribute) -> Tile:
        """The tile with elements of another type, rounded to nearest even."""
        return self.trace.cast_tile(self, type_)

    def broadcast(self, axis: int, size: int) -> Tile:
        """The tile repeated along a new dimension, `axis` of the result."""
        return self.trace.derive(self, "broadcast", (axis, size))

    def broadcast_to(self, shape: Sequence[int]) -> Tile:
        """The tile repeated along dimensions of size 1 and new first ones, as in numpy."""
        return self.trace.derive(self, "broadcast_to", (shape,))

    def _reduce(self, kind: str, axis: int | None, keepdims: bool) -> Any:
        return self.trace.derive(self, "reduce", (kind, axis, keepdims))

    def _scan(self, kind: str, axis: int, exclusive: bool, reverse: bool) -> Tile:
        return self.trace.derive(self, "scan", (kind, axis, exclusive, reverse))

    def _view(self, function: str, *arguments: object) -> Any:
        return self.trace.derive(self, function, arguments)


@dataclass(frozen=True, eq=False)
class Expression:
    """A function of tiles, scalars and numbers, element by element, and where it was written."""

    function: str
    operands: tuple[TileOperand, ...]
    location: LocationAttr
    name: str | None = None
    fastmath: tuple[str, ...] = ()


class Shape(Sequence[int | Scalar]):
    """The sizes of memory; one that is not a number is asked for in the kernel when it is used."""

    def __init__(self, memory: Memory):
        self._memory = memory
        self._sizes = memory.type.get_shape()

    def __len__(self) -> int:
        return len(self._sizes)

    @overload
    def __getitem__(self, index: int) -> int | Scalar: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int | Scalar, ...]: ...
    def __getitem__(self, index: int | slice) -> int | Scalar | tuple[int | Scalar, ...]:
        dims = range(len(self))[index]  # raises IndexError, which also ends an iteration
        return self._at(dims) if isinstance(dims, int) else tuple(map(self._at, dims))

    def _at(self, dim: int) -> int | Scalar:
        size = self._sizes[dim]
        return size if size != DYNAMIC_INDEX else self._memory.trace.dim(self._memory, dim)

    def __repr__(self) -> str:
        sizes = zip(self._sizes, self._memory.sizes, strict=True)
        names = (str((name or "?") if size == DYNAMIC_INDEX else size) for size, name in sizes)
        return f"({', '.join(names)})"


class Memory(Value):
    """An array in global memory, or matrices in shared or tensor memory."""

    def __init__(
        self,
        trace: Recorder,
        ssa: SSAValue,
        sizes: Sequence[int | str | None],
        *,
        conditions: bool = False,
    ):
        super().__init__(trace)
        self.ssa = ssa
        self.sizes = tuple(sizes)
        self.conditions = conditions
        """Whether its bytes are conditions: 0, else true."""

    @property
    def type(self) -> MemRefType[Attribute]:
        """The memref type."""
        return memref_type(self.ssa.type)

    @property
    def element(self) -> Attribute:
        """The type of the elements."""
        return condition if self.conditions else self.type.element_type

    @property
    def is_shared(self) -> bool:
        """Whether this is shared memory."""
        return frag.is_shared(self.ssa.type)

    @property
    def shape(self) -> Shape:
        """The sizes: numbers, and scalars of type index for those known when the kernel runs."""
        return Shape(self)

    def __repr__(self) -> str:
        shape = "x".join("?" if n == DYNAMIC_INDEX else str(n) for n in self.type.get_shape())
        where = "shared memory" if self.is_shared else "memory"
        if frag.is_tensor_memory(self.ssa.type):
            where = "tensor memory"
        name = f" {self.ssa.name_hint}" if self.ssa.name_hint else ""
        return f"<{where}{name} {shape} of {type_name(self.element)}>"
