"""How far a kernel's result may be from the reference by rounding alone.

The reference is evaluated once more over `Rounded` values, which look like arrays: each has a value
and a bound on how far a computation of the same formula is from it, every operation of which rounds
once to the `working` format, in whatever direction or to the nearest, whose sums are added in any
order in a format of their own, and whose functions are the PTX ISA's approximations. (Running error
analysis: N. Higham, Accuracy and Stability of Numerical Algorithms, sections 3.3 and 4.2.) With
u = 2^(1 - precision) of the working format, and v of the sums':

| operation | bound of the result |
|---|---|
| a + b | ea + eb, and u times what the result may be |
| a b | \\|a\\| eb + \\|b\\| ea + ea eb, and the same |
| a / b | (ea + \\|a / b\\| eb) / (\\|b\\| - eb), and the same |
| sum, mean, matmul of n terms | theirs, n v times the sum of how large they may be, u times all |
| exp, log, sqrt, tanh, sin, cos | that of the ends of the interval, and of the approximation |
| max, min, abs, choices | the largest of those that are chosen from |

A comparison of which rounding could change the outcome has no bound: the formula is another one on
either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.reference.formats import FLOATS

Floats: TypeAlias = npt.NDArray[np.float64]
Array: TypeAlias = npt.NDArray[Any]
#: Of float64, in which all of this is computed, with a margin.
_OWN = 2.0**-50


class UnboundedError(TypeError):
    """The reference does what no bound is known of."""


@dataclass(frozen=True)
class Working:
    """The formats to which operations round, and to which sums do while they grow.

    `rounding`: "any", in whatever direction, or "nearest", where subnormal numbers are kept.
    """

    name: str
    sums: str = "f32"
    rounding: str = "any"

    @property
    def unit(self) -> float:
        """How far it rounds, at most, relative to the result: a whole unit, as some cut off."""
        return _unit(self.name)

    @property
    def least(self) -> float:
        """How far what is subnormal may be moved: to zero, or by half the smallest number."""
        form = FLOATS[self.name]
        return form.smallest / 2 if self.rounding == "nearest" else 2.0**form.lowest

    def units(self, of_function: float) -> float:
        """A function's own error, in units, and its rounding's: relative to the result."""
        return (of_function + (0.5 if self.rounding == "nearest" else 1.0)) * self.unit


def _unit(name: str) -> float:
    return 2.0 ** (1 - FLOATS[name].precision)


Operator: TypeAlias = "Callable[[Rounded, Any], Any]"


def _operators(name: str) -> tuple[Operator, Operator]:
    """An operator of Python's by numpy's function, and with its operands the other way round."""

    def apply(self: Rounded, other: Any) -> Any:
        return _BINARY[name](self, as_rounded(other, self.working))

    def turned(self: Rounded, other: Any) -> Any:
        return _BINARY[name](as_rounded(other, self.working), self)

    return apply, turned


def _calls(name: str) -> Callable[..., Any]:
    """A method that numpy has as a function too."""

    def apply(self: Rounded, *args: Any, **options: Any) -> Any:
        return _FUNCTIONS[name](self, *args, **options)

    return apply


def _moves(name: str) -> Callable[..., Rounded]:
    """A method of arrays that only moves elements."""

    def apply(self: Rounded, *args: Any, **options: Any) -> Rounded:
        def move(x: Floats) -> Any:
            return getattr(x, name)(*args, **options)

        return self._moved(move)  # pyright: ignore[reportPrivateUsage]

    return apply


@dataclass(frozen=True, eq=False)
class Rounded:
    """Values, bounds of one shape, and the format that operations round to."""

    value: Floats
    bound: Floats
    working: Working

    # numpy asks the values, not the arrays beside them
    __array_priority__ = 1000.0

    def __repr__(self) -> str:
        return f"<{'x'.join(map(str, self.shape)) or 'one'} values with bounds>"

    # -- an array's attributes ---------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def dtype(self) -> np.dtype[np.float64]:
        return self.value.dtype

    @property
    def T(self) -> Rounded:
        return self._moved(np.transpose)

    @property
    def reach(self) -> Floats:
        """How large a result may be."""
        return np.abs(self.value) + self.bound

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Rounded]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Rounded:
        return self._moved(lambda x: x[key])

    def __bool__(self) -> bool:
        raise UnboundedError("what it does depends on a value")

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        raise UnboundedError("values are made an array, without their bounds")

    # -- numpy's doors -----------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        given = [as_rounded(one, self.working) for one in inputs]
        if method == "__call__" and not options:
            if len(given) == 1 and (unary := _UNARY.get(ufunc.__name__)):
                return unary(*given)
            if len(given) == 2 and (binary := _BINARY.get(ufunc.__name__)):
                return binary(*given)
        if method == "reduce" and (found := _REDUCTIONS.get(ufunc.__name__)):
            axis = options.pop("axis", 0)
            keepdims = bool(options.pop("keepdims", False))
            if not {k for k, v in options.items() if v is not None}:
                return found(given[0], axis, keepdims)
        raise UnboundedError(f"no bound is known of numpy.{ufunc.__name__} ({method})")

    def __array_function__(
        self, function: Any, types: object, args: Sequence[Any], options: dict[str, Any]
    ) -> Any:
        found = _FUNCTIONS.get(function.__name__)
        if found is None:
            raise UnboundedError(f"no bound is known of numpy.{function.__name__}")
        return found(*args, **options)

    def _moved(self, move: Callable[[Floats], Any]) -> Rounded:
        """The same elements elsewhere."""
        return Rounded(move(self.value), move(self.bound), self.working)

    # -- an array's methods ------------------------------------------------------------------------

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("subtract")
    __mul__, __rmul__ = _operators("multiply")
    __truediv__, __rtruediv__ = _operators("divide")
    __matmul__, __rmatmul__ = _operators("matmul")
    __pow__, _ = _operators("power")
    __lt__, _ = _operators("less")
    __le__, _ = _operators("less_equal")
    __gt__, _ = _operators("greater")
    __ge__, _ = _operators("greater_equal")

    def __neg__(self) -> Rounded:
        return Rounded(-self.value, self.bound, self.working)

    def __pos__(self) -> Rounded:
        return self

    def __abs__(self) -> Rounded:
        return Rounded(np.abs(self.value), self.bound, self.working)

    sum, mean, var, std, max, min = map(_calls, ("sum", "mean", "var", "std", "max", "min"))
    clip, dot, cumsum = map(_calls, ("clip", "dot", "cumsum"))
    reshape, transpose, swapaxes = map(_moves, ("reshape", "transpose", "swapaxes"))
    ravel, flatten, squeeze, copy = map(_moves, ("ravel", "flatten", "squeeze", "copy"))
    repeat, take, diagonal = map(_moves, ("repeat", "take", "diagonal"))

    def astype(self, kind: Any, **_: Any) -> Rounded:
        """Rounded once to another type, where it is narrower than the working format."""
        name = {"float16": "f16", "float32": "f32", "float64": "f64"}.get(np.dtype(kind).name)
        if name is None:
            raise UnboundedError(f"no bound is known of a conversion to {kind}")
        narrow = Working(name, rounding=self.working.rounding)
        if narrow.unit <= self.working.unit:
            return self
        return _rounded(self.value, self.bound, narrow)._of(self.working)

    def _of(self, working: Working) -> Rounded:
        return Rounded(self.value, self.bound, working)


def as_rounded(given: Any, working: Working) -> Rounded:
    """Values as they are; numbers are exact."""
    if isinstance(given, Rounded):
        return given
    value = np.asarray(given)
    if value.dtype.kind not in "biuf":
        raise UnboundedError(f"{type(given).__name__} has no bound")
    return Rounded(value.astype(np.float64), np.zeros(value.shape), working)


def _rounded(value: Floats, bound: Floats, working: Working, errs: float = 0.0) -> Rounded:
    """A result with its rounding, and of so many units that it errs by before."""
    value, bound = np.broadcast_arrays(np.asarray(value), np.asarray(bound))
    reach = np.where(np.isfinite(value), np.abs(value), 0.0) + bound
    more = bound + (working.units(errs) + _OWN) * reach + np.where(reach > 0, working.least, 0.0)
    # what is infinite stays so, whatever is added to it
    more = np.where(np.isfinite(value) | ~np.isfinite(bound), more, 0.0)
    return Rounded(value, np.where(np.isnan(more), np.inf, more), working)


# -- elementwise -----------------------------------------------------------------------------------


def _linear(function: np.ufunc) -> Callable[[Rounded, Rounded], Rounded]:
    def apply(a: Rounded, b: Rounded) -> Rounded:
        return _rounded(function(a.value, b.value), a.bound + b.bound, a.working)

    return apply


def _product_bound(a: Rounded, b: Rounded, times: Callable[[Array, Array], Array]) -> Array:
    return times(np.abs(a.value), b.bound) + times(a.bound, b.reach)


def _multiply(a: Rounded, b: Rounded) -> Rounded:
    return _rounded(a.value * b.value, _product_bound(a, b, np.multiply), a.working)


def _divide(a: Rounded, b: Rounded) -> Rounded:
    value = a.value / b.value
    room = np.abs(b.value) - b.bound
    bound = np.where(room > 0, (a.bound + np.abs(value) * b.bound) / room, np.inf)
    bound = np.where((a.bound == 0) & (b.bound == 0), 0.0, bound)
    return _rounded(value, bound, a.working, 2)  # div.full: 2 ulp (PTX ISA 9.2, 9.7.3.8)


def _interval(
    function: Callable[[Floats], Floats], x: Rounded, error: Callable[[Floats], Floats]
) -> Rounded:
    """A monotone function, of which what computes it is `error` off, by the value."""
    value = function(x.value)
    low, high = function(x.value - x.bound), function(x.value + x.bound)
    bound = np.where(x.bound > 0, np.maximum(np.abs(high - value), np.abs(low - value)), 0.0)
    return _rounded(value, bound + error(np.abs(value) + bound), x.working)


def _exponential(
    function: Callable[[Floats], Floats], steps: float
) -> Callable[[Rounded], Rounded]:
    """2 ulp of ex2.approx (PTX ISA 9.2, 9.7.3.21), and the argument's own `steps` roundings."""

    def apply(x: Rounded) -> Rounded:
        unit = x.working.unit
        reach = np.where(np.isfinite(x.value), np.abs(x.value), 0.0) + x.bound
        return _interval(function, x, lambda v: v * unit * (3 + steps * reach))

    return apply


def _sqrt(x: Rounded) -> Rounded:
    """sqrt.approx: 2^-23 and less (PTX ISA 9.2, 9.7.3.10)."""
    return _interval(lambda v: np.sqrt(np.maximum(v, 0)), x, lambda v: 2 * x.working.unit * v)


def _log(function: Callable[[Floats], Floats]) -> Callable[[Rounded], Rounded]:
    """lg2.approx: 2^-22, absolute near 1 (PTX ISA 9.2, 9.7.3.20)."""

    def apply(x: Rounded) -> Rounded:
        if (x.value - x.bound <= 0).any():
            raise UnboundedError("a logarithm of what may be 0")
        return _interval(function, x, lambda v: 4 * x.working.unit * np.maximum(v, 1))

    return apply


def _tanh(x: Rounded) -> Rounded:
    """tanh.approx: 2^-11 of the value (PTX ISA 9.2, 9.7.3.22)."""
    return _interval(np.tanh, x, lambda v: np.maximum(2.0**-11, 4 * x.working.unit) * v)


def _angle(function: Callable[[Floats], Floats]) -> Callable[[Rounded], Rounded]:
    """sin.approx and cos.approx: 2^-20.5 within a turn, and the argument's rounding (9.7.3.18)."""

    def apply(x: Rounded) -> Rounded:
        unit = max(2.0**-20, 4 * x.working.unit)
        return _rounded(function(x.value), x.bound + unit * (1 + x.reach), x.working)

    return apply


def _choose(function: np.ufunc) -> Callable[[Rounded, Rounded], Rounded]:
    def apply(a: Rounded, b: Rounded) -> Rounded:
        bound = np.maximum(*np.broadcast_arrays(a.bound, b.bound))
        return Rounded(function(a.value, b.value), bound, a.working)

    return apply


def _compare(function: np.ufunc) -> Callable[[Rounded, Rounded], Array]:
    def apply(a: Rounded, b: Rounded) -> Array:
        near = np.abs(a.value - b.value) <= a.bound + b.bound
        exact = (a.bound == 0) & (b.bound == 0)
        if (near & ~exact).any():
            raise UnboundedError("rounding may change the outcome of a comparison")
        return function(a.value, b.value)

    return apply


def _power(a: Rounded, b: Rounded) -> Rounded:
    exponent = b.value.ravel()
    if b.bound.any() or exponent.size != 1:
        raise UnboundedError("a power has one number as its exponent")
    (number,) = exponent.tolist()
    if number == 0.5:
        return _sqrt(a)
    if number == -0.5:
        return _divide(as_rounded(1.0, a.working), _sqrt(a))
    if number != int(number) or not 1 <= number <= 64:
        raise UnboundedError(f"no bound is known of a power of {number}")
    found = a
    for _ in range(int(number) - 1):
        found = _multiply(found, a)
    return found


def _inverse(a: Rounded) -> Rounded:
    return _divide(as_rounded(1.0, a.working), a)


def _matmul(a: Rounded, b: Rounded) -> Rounded:
    return _product(a, b, np.matmul)


_UNARY: dict[str, Callable[[Rounded], Rounded]] = {
    "negative": Rounded.__neg__,
    "absolute": Rounded.__abs__,
    "square": lambda a: _multiply(a, a),
    "reciprocal": _inverse,
    "exp": _exponential(np.exp, 3),
    "exp2": _exponential(np.exp2, 0),
    "log": _log(np.log),
    "log2": _log(np.log2),
    "log10": _log(np.log10),
    "sqrt": _sqrt,
    "tanh": _tanh,
    "sin": _angle(np.sin),
    "cos": _angle(np.cos),
}
_BINARY: dict[str, Callable[[Rounded, Rounded], Any]] = {
    "add": _linear(np.add),
    "subtract": _linear(np.subtract),
    "multiply": _multiply,
    "divide": _divide,
    "matmul": _matmul,
    "power": _power,
    **{f.__name__: _choose(f) for f in (np.maximum, np.minimum, np.fmax, np.fmin)},
    **{f.__name__: _compare(f) for f in (np.less, np.less_equal, np.equal)},
    **{f.__name__: _compare(f) for f in (np.greater, np.greater_equal, np.not_equal)},
}


# -- reductions ------------------------------------------------------------------------------------


def _terms(a: Rounded, axis: Any) -> int:
    axes: list[int] = list(range(a.ndim)) if axis is None else np.atleast_1d(axis).tolist()
    return int(np.prod([a.shape[i] for i in axes], dtype=np.int64))


def _sum(a: Rounded, axis: Any = None, keepdims: bool = False, **options: Any) -> Rounded:
    _check_no_more(options)
    parts = (a.value, a.bound, a.reach)
    total, bound, reach = (np.asarray(np.sum(x, axis, keepdims=keepdims)) for x in parts)
    return _rounded(total, _of_terms(bound, reach, _terms(a, axis), a.working), a.working)


def _of_terms(bound: Array, reach: Array, terms: int, working: Working) -> Array:
    """A sum in any order: each term is rounded with at most as many sums as there are."""
    return bound + terms * (_unit(working.sums) + _OWN) * reach


def _mean(a: Rounded, axis: Any = None, keepdims: bool = False, **options: Any) -> Rounded:
    _check_no_more(options)
    count = as_rounded(float(_terms(a, axis)), a.working)
    return _divide(_sum(a, axis, keepdims), count)


def _var(
    a: Rounded, axis: Any = None, ddof: int = 0, keepdims: bool = False, **options: Any
) -> Rounded:
    _check_no_more(options)
    apart = a - _mean(a, axis, True)
    count = as_rounded(float(_terms(a, axis) - ddof), a.working)
    return _divide(_sum(_multiply(apart, apart), axis, keepdims), count)


def _extreme(function: Callable[..., Any]) -> Callable[..., Rounded]:
    def apply(a: Rounded, axis: Any = None, keepdims: bool = False, **options: Any) -> Rounded:
        _check_no_more(options)
        bound = np.max(a.bound, axis, keepdims=keepdims)
        return Rounded(function(a.value, axis, keepdims=keepdims), bound, a.working)

    return apply


def _check_no_more(options: dict[str, Any]) -> None:
    if more := [name for name, value in options.items() if value is not None]:
        raise UnboundedError(f"no bound is known with {', '.join(more)}")


_REDUCTIONS: dict[str, Callable[..., Rounded]] = {
    "add": _sum,
    "maximum": _extreme(np.max),
    "minimum": _extreme(np.min),
}


# -- products of matrices --------------------------------------------------------------------------


def _product(a: Rounded, b: Rounded, times: Callable[[Array, Array], Array]) -> Rounded:
    """Sums of products, as `times` forms them; terms are counted by forming them of ones."""
    value = times(a.value, b.value)
    bound = _product_bound(a, b, times)
    counted = times(np.ones(a.shape), np.ones(b.shape))
    terms = int(np.max(counted, initial=0)) + 1  # each product is rounded too
    return _rounded(value, _of_terms(bound, times(a.reach, b.reach), terms, a.working), a.working)


def _working_of(given: Sequence[Any]) -> Working:
    return next(one.working for one in given if isinstance(one, Rounded))


def _pairwise(times: Callable[[Array, Array], Array]) -> Callable[[Any, Any], Rounded]:
    def apply(a: Any, b: Any, **options: Any) -> Rounded:
        _check_no_more(options)
        working = _working_of((a, b))
        return _product(as_rounded(a, working), as_rounded(b, working), times)

    return apply


def _einsum(pattern: str, *operands: Any, **options: Any) -> Rounded:
    options.pop("optimize", None)
    _check_no_more(options)
    working = _working_of(operands)
    given = [as_rounded(one, working) for one in operands]
    if len(given) == 1:
        counted = np.einsum(pattern, np.ones(given[0].shape))
        value, bound, reach = (
            np.einsum(pattern, part) for part in (given[0].value, given[0].bound, given[0].reach)
        )
        terms = int(np.max(counted, initial=0))
        return _rounded(value, _of_terms(bound, reach, terms, working), working)
    if len(given) != 2:
        raise UnboundedError("einsum takes one or two arrays here")
    return _product(given[0], given[1], lambda x, y: np.einsum(pattern, x, y))


_dot = _pairwise(np.dot)


# -- other functions of numpy ----------------------------------------------------------------------


def _where(condition: Any, a: Any, b: Any) -> Rounded:
    if isinstance(condition, Rounded):
        raise UnboundedError("what it does depends on a value")
    working = _working_of((a, b))
    one, other = as_rounded(a, working), as_rounded(b, working)
    value = np.where(condition, one.value, other.value)
    return Rounded(value, np.where(condition, one.bound, other.bound), working)


def _clip(a: Any, low: Any = None, high: Any = None, **options: Any) -> Rounded:
    _check_no_more(options)
    for bound, function in ((low, np.maximum), (high, np.minimum)):
        a = a if bound is None else function(a, bound)
    return a


def _joined(function: Callable[..., Array]) -> Callable[..., Rounded]:
    def apply(parts: Sequence[Any], *args: Any, **options: Any) -> Rounded:
        working = _working_of(parts)
        given = [as_rounded(one, working) for one in parts]
        return Rounded(
            function([one.value for one in given], *args, **options),
            function([one.bound for one in given], *args, **options),
            working,
        )

    return apply


def _moving(function: Callable[..., Any]) -> Callable[..., Rounded]:
    def apply(a: Rounded, *args: Any, **options: Any) -> Rounded:
        def move(x: Floats) -> Any:
            return function(x, *args, **options)

        return a._moved(move)  # pyright: ignore[reportPrivateUsage]

    return apply


def _cumsum(a: Rounded, axis: Any = None, **options: Any) -> Rounded:
    _check_no_more(options)
    value, bound, reach = (np.cumsum(part, axis) for part in (a.value, a.bound, a.reach))
    bound = _of_terms(bound, reach, _terms(a, axis), a.working)
    return _rounded(value, bound, a.working)


def _std(a: Rounded, *args: Any, **options: Any) -> Rounded:
    return _sqrt(_var(a, *args, **options))


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Rounded:
    return _pairwise(lambda x, y: np.tensordot(x, y, axes))(a, b)


def _like(fill: float) -> Callable[..., Array]:
    def apply(a: Rounded, *_: object, **__: object) -> Array:
        return np.full(a.shape, fill)

    return apply


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"sum": _sum, "mean": _mean, "var": _var, "std": _std},
    **dict.fromkeys(("max", "amax"), _extreme(np.max)),
    **dict.fromkeys(("min", "amin"), _extreme(np.min)),
    "where": _where,
    "clip": _clip,
    "cumsum": _cumsum,
    "dot": _dot,
    "inner": _pairwise(np.inner),
    "outer": _pairwise(np.outer),
    "tensordot": _tensordot,
    "einsum": _einsum,
    **{name: attrgetter(name) for name in ("shape", "ndim", "size")},
    **{"zeros_like": _like(0.0), "ones_like": _like(1.0)},
    **{f.__name__: _joined(f) for f in (np.concatenate, np.stack, np.vstack, np.hstack)},
    **{
        f.__name__: _moving(f)
        for f in (
            *(np.broadcast_to, np.expand_dims, np.flip, np.moveaxis, np.ravel, np.repeat),
            *(np.reshape, np.roll, np.rollaxis, np.squeeze, np.swapaxes, np.tile, np.transpose),
            *(np.tril, np.triu, np.take, np.diagonal, np.copy, np.atleast_2d, np.rot90, np.pad),
        )
    },
}
