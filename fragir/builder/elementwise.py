"""Functions of scalars and tiles: what `k.max`, `k.exp` and the like are."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from xdsl.ir import Attribute, Region, SSAValue

from fragir.builder.callbacks import call
from fragir.builder.places import fail, place, target
from fragir.builder.trace import Trace
from fragir.builder.values import Scalar, ScalarOperand, Tile, TileOperand

ValueT = TypeVar("ValueT", Scalar, Tile)


class ElementwiseFunctions:
    """Elementwise functions, the same for scalars and tiles."""

    def __init__(self, trace: Trace):
        self.trace = trace

    def _apply(self, function: str, *operands: object) -> Any:
        return self.trace.apply(function, operands)

    @contextmanager
    def fastmath(self, *flags: str) -> Generator[None]:
        """What is written inside may be less exact: `with k.fastmath("afn", "contract"): ...`

        afn: approximate functions and quotients, which take subnormal numbers for zero; arcp:
        quotients as products with an approximate reciprocal; contract: a product and the sum
        that it goes into are rounded once; fast: all of these. nnan, ninf, nsz and reassoc are
        kept for other tools. docs/accuracy.md has the errors.
        """
        known = ("afn", "arcp", "contract", "nnan", "ninf", "nsz", "reassoc")
        for flag in flags:
            if flag not in (*known, "fast"):
                fail(f"there is no fastmath flag {flag!r}", f"write {', '.join(known)} or fast")
        outside = self.trace.fastmath
        wanted = known if "fast" in flags else flags
        self.trace.fastmath = tuple(dict.fromkeys((*outside, *wanted)))
        try:
            yield
        finally:
            self.trace.fastmath = outside

    @overload
    def max(self, x: Tile, y: TileOperand) -> Tile: ...
    @overload
    def max(self, x: TileOperand, y: Tile) -> Tile: ...
    @overload
    def max(self, x: ScalarOperand, y: ScalarOperand) -> Scalar: ...
    def max(self, x: TileOperand, y: TileOperand) -> Scalar | Tile:
        """The larger one; NaN where one is NaN."""
        return self._apply("max", x, y)

    @overload
    def min(self, x: Tile, y: TileOperand) -> Tile: ...
    @overload
    def min(self, x: TileOperand, y: Tile) -> Tile: ...
    @overload
    def min(self, x: ScalarOperand, y: ScalarOperand) -> Scalar: ...
    def min(self, x: TileOperand, y: TileOperand) -> Scalar | Tile:
        """The smaller one; NaN where one is NaN."""
        return self._apply("min", x, y)

    @overload
    def select(self, condition: Tile, x: TileOperand, y: TileOperand) -> Tile: ...
    @overload
    def select(self, condition: Scalar, x: Tile, y: TileOperand) -> Tile: ...
    @overload
    def select(self, condition: Scalar, x: TileOperand, y: Tile) -> Tile: ...
    @overload
    def select(self, condition: Scalar, x: ScalarOperand, y: ScalarOperand) -> Scalar: ...
    def select(self, condition: Scalar | Tile, x: TileOperand, y: TileOperand) -> Scalar | Tile:
        """x where the condition holds, else y."""
        return self._apply("select", condition, x, y)

    def fma(self, x: ValueT, y: TileOperand, z: TileOperand) -> ValueT:
        """x y + z, rounded once."""
        return self._apply("fma", x, y, z)

    def exp(self, x: ValueT) -> ValueT:
        """e to the power of x (ex2.approx of x log2(e))."""
        return self._apply("exp", x)

    def exp2(self, x: ValueT) -> ValueT:
        """2 to the power of x (ex2.approx)."""
        return self._apply("exp2", x)

    def log(self, x: ValueT) -> ValueT:
        """The natural logarithm (lg2.approx times ln 2)."""
        return self._apply("log", x)

    def log2(self, x: ValueT) -> ValueT:
        """The logarithm to base 2 (lg2.approx)."""
        return self._apply("log2", x)

    def log10(self, x: ValueT) -> ValueT:
        """The logarithm to base 10 (lg2.approx times log10 2)."""
        return self._apply("log10", x)

    def log1p(self, x: ValueT) -> ValueT:
        """The natural logarithm of 1 + x, exact where x is small too."""
        return self._apply("log1p", x)

    def expm1(self, x: ValueT) -> ValueT:
        """e to the power of x, less 1, exact where x is small too."""
        return self._apply("expm1", x)

    def erf(self, x: ValueT) -> ValueT:
        """The error function."""
        return self._apply("erf", x)

    def cbrt(self, x: ValueT) -> ValueT:
        """The cube root."""
        return self._apply("cbrt", x)

    def sinh(self, x: ValueT) -> ValueT:
        """The hyperbolic sine."""
        return self._apply("sinh", x)

    def cosh(self, x: ValueT) -> ValueT:
        """The hyperbolic cosine."""
        return self._apply("cosh", x)

    def tan(self, x: ValueT) -> ValueT:
        """The tangent; up to 100,000."""
        return self._apply("tan", x)

    def asin(self, x: ValueT) -> ValueT:
        """The arc sine."""
        return self._apply("asin", x)

    def acos(self, x: ValueT) -> ValueT:
        """The arc cosine."""
        return self._apply("acos", x)

    def atan(self, x: ValueT) -> ValueT:
        """The arc tangent."""
        return self._apply("atan", x)

    def asinh(self, x: ValueT) -> ValueT:
        """The inverse of the hyperbolic sine."""
        return self._apply("asinh", x)

    def acosh(self, x: ValueT) -> ValueT:
        """The inverse of the hyperbolic cosine."""
        return self._apply("acosh", x)

    def atanh(self, x: ValueT) -> ValueT:
        """The inverse of the hyperbolic tangent."""
        return self._apply("atanh", x)

    def pow(self, x: ValueT, y: TileOperand) -> ValueT:
        """x to the power of y, as C has it for zeros, infinities and NaN; or of whole numbers."""
        return self._apply("pow", x, y)

    def atan2(self, y: ValueT, x: TileOperand) -> ValueT:
        """The angle of the point (y, x) in (-pi, pi]."""
        return self._apply("atan2", y, x)

    def copysign(self, x: ValueT, y: TileOperand) -> ValueT:
        """x with the sign of y."""
        return self._apply("copysign", x, y)

    def count_ones(self, x: ValueT) -> ValueT:
        """How many bits of a whole number are set."""
        return self._apply("count_ones", x)

    def leading_zeros(self, x: ValueT) -> ValueT:
        """How many of the upper bits are zero."""
        return self._apply("leading_zeros", x)

    def trailing_zeros(self, x: ValueT) -> ValueT:
        """How many of the lower bits are zero."""
        return self._apply("trailing_zeros", x)

    def sqrt(self, x: ValueT) -> ValueT:
        """The square root."""
        return self._apply("sqrt", x)

    def rsqrt(self, x: ValueT) -> ValueT:
        """1 over the square root (rsqrt.approx)."""
        return self._apply("rsqrt", x)

    def tanh(self, x: ValueT) -> ValueT:
        """The hyperbolic tangent (tanh.approx)."""
        return self._apply("tanh", x)

    def sin(self, x: ValueT) -> ValueT:
        """The sine (sin.approx)."""
        return self._apply("sin", x)

    def cos(self, x: ValueT) -> ValueT:
        """The cosine (cos.approx)."""
        return self._apply("cos", x)

    def floor(self, x: ValueT) -> ValueT:
        """The largest whole number that is not larger."""
        return self._apply("floor", x)

    def ceil(self, x: ValueT) -> ValueT:
        """The smallest whole number that is not smaller."""
        return self._apply("ceil", x)

    def round(self, x: ValueT) -> ValueT:
        """The nearest whole number, the even one of two."""
        return self._apply("round", x)

    def trunc(self, x: ValueT) -> ValueT:
        """The whole part."""
        return self._apply("trunc", x)

    @overload
    def map(self, function: Callable[[Scalar], Scalar], tile: Tile, /) -> Tile: ...
    @overload
    def map(self, function: Callable[[Scalar, Scalar], Scalar], x: Tile, y: Tile, /) -> Tile: ...
    @overload
    def map(
        self, function: Callable[[Scalar, Scalar, Scalar], Scalar], x: Tile, y: Tile, z: Tile, /
    ) -> Tile: ...
    @overload
    def map(self, function: Callable[..., Scalar], /, *tiles: Tile) -> Tile: ...
    def map(self, function: Callable[..., Scalar], /, *tiles: Tile) -> Tile:
        """Any function of scalars on every element: `k.map(lambda x, y: k.max(x, y), a, b)`.

        It is called once. Its result's type is that of the new tile's elements.
        """
        if not tiles:
            fail("map needs a tile")
        sources = [self._tile(tile) for tile in tiles]
        if any(tile.shape != tiles[0].shape for tile in tiles):
            sources = [self._tile(tile) for tile in self.trace.stretch(tiles)]

        def body(arguments: Sequence[SSAValue]) -> SSAValue:
            return self._call(function, arguments)

        return self.trace.wrap(self.trace.map(sources, body, place(), target()))

    def reduce(
        self, tiles: Sequence[Tile], axis: int, function: Callable[..., object]
    ) -> tuple[Any, ...]:
        """Tiles without a dimension, combined by a function of one's own: online sums, pairs.

        The function takes an element of each tile, or what elements have given so far, and another
        of each, and returns as many scalars; it must be associative and commutative. It is called
        once. Of tiles of one dimension scalars are left.

            largest, place = k.reduce([x, k.iota(1, x.shape)], 1, better)
        """
        from fragir.builder.region_reductions import reduce_by  # few kernels need it

        return reduce_by(self.trace, tiles, axis, function)

    def _elementwise(self, function: Callable[..., Scalar], types: list[Attribute]) -> Region:
        """A function as a region on scalars of these types."""
        return self.trace.elementwise(types, lambda a: [self._call(function, a)], place())

    def _call(self, function: Callable[..., object], arguments: Sequence[SSAValue]) -> SSAValue:
        result = call(self.trace, function, arguments)
        if not isinstance(result, Scalar):
            fail(f"the function returns {result!r}, it must return a scalar of the kernel")
        return self.trace.use(result)

    def _tile(self, value: object) -> SSAValue:
        return require_tile(self.trace, value)


def require_tile(trace: Trace, value: object) -> SSAValue:
    """A tile in the IR; an error at the user's line for anything else."""
    if not isinstance(value, Tile):
        fail(f"{value!r} is no tile", "k.load(...) and k.fill(...) make tiles")
    return trace.use(value)
