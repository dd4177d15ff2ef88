"""numpy's functions over `Values`: which there are, by tables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fragir.algebra.values import (
    UnknownFunctionError,
    Values,
    as_values,
    join,
    numbers,
    where,
)


def _values(*given: Any) -> list[Values]:
    rounds = next(v.rounds for v in given if isinstance(v, Values))
    return [as_values(v, rounds) for v in given]


def _of_two(function: Callable[[Any, Any], Values]) -> Callable[..., Values]:
    """Of arrays of which one may be of numbers."""

    def of(a: Any, b: Any, **_: Any) -> Values:
        return function(*_values(a, b))

    return of


#: ufuncs of values.
_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": _of_two(operator.add),
    "subtract": _of_two(operator.sub),
    "multiply": _of_two(operator.mul),
    "divide": _of_two(Values.__truediv__),
    "matmul": _of_two(Values.__matmul__),
    "maximum": _of_two(Values.maximum),
    "minimum": _of_two(Values.minimum),
    "fmax": _of_two(Values.maximum),
    "fmin": _of_two(Values.minimum),
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": operator.abs,
    "fabs": operator.abs,
    "square": Values.square,
    "reciprocal": Values.inverse,
    "exp": Values.exp,
    "exp2": Values.exp2,
    "expm1": Values.expm1,
    "log": Values.log,
    "sqrt": Values.sqrt,
    "power": Values.__pow__,
    "float_power": Values.__pow__,
}
#: ufuncs of which only the name is known.
_NAMED = ("log2", "tanh", "sin", "cos", "tan", "arctan", "cbrt", "sinh", "cosh")
#: What asks for numbers: comparisons and the like.
_OF_NUMBERS = (
    *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "isinf"),
    *("isfinite", "signbit", "sign", "floor", "ceil", "rint", "trunc", "logical_not"),
    *("logical_and", "logical_or"),
)
#: Functions of one array that only move elements.
_MOVING = frozenset(
    (
        *("reshape", "ravel", "transpose", "swapaxes", "moveaxis", "rollaxis", "expand_dims"),
        *("squeeze", "broadcast_to", "repeat", "tile", "roll", "flip", "fliplr", "flipud", "rot90"),
        *("take", "take_along_axis", "diagonal", "atleast_1d", "atleast_2d", "atleast_3d"),
        *("copy", "permute_dims", "matrix_transpose"),
    )
)
#: Functions of a sequence of arrays that only move elements.
_JOINING = frozenset(("concatenate", "stack", "vstack", "hstack", "column_stack", "dstack"))
#: Methods under the same name.
_METHODS = ("sum", "mean", "var", "std", "prod", "max", "min", "cumsum")
#: Choices that are made by the numbers.
_CHOICES = frozenset(
    (
        *("argmax", "argmin", "argsort", "nonzero", "flatnonzero", "argwhere", "count_nonzero"),
        *("shape", "ndim", "size", "any", "all", "isclose", "allclose"),
    )
)


def _unknown(name: str) -> UnknownFunctionError:
    return UnknownFunctionError(
        f"np.{name} has no meaning over values",
        hint="write it with + - * / @, sums, max, where, exp, sqrt",
    )


def call_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """`ufunc.method(*inputs, **options)`."""
    name = ufunc.__name__
    if method == "reduce" and name in ("add", "maximum", "minimum", "multiply"):
        reduce = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod"}[name]
        options.setdefault("axis", 0)
        return getattr(inputs[0], reduce)(**options)
    if method != "__call__" or options.get("out") is not None:
        raise _unknown(f"{name}.{method}" if method != "__call__" else f"{name} with out=")
    if name in _UFUNCS:
        return _UFUNCS[name](*inputs)
    if name in _NAMED:
        return inputs[0].named(name, ufunc)
    if name in _OF_NUMBERS:
        return ufunc(*map(numbers, inputs))
    raise _unknown(name)


def call_function(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`function(*args, **options)`, one of those that are no ufuncs."""
    name = str(function.__name__)
    name = {"amax": "max", "amin": "min"}.get(name) or name
    if name in _METHODS:
        return getattr(as_values(args[0]), name)(*args[1:], **options)
    if name in _MOVING:
        moved: Values = args[0]
        return moved.take(function(moved.places(), *args[1:], **options))
    if name in _JOINING:
        return join(lambda xs: function(xs, *args[1:], **options), args[0])
    if name in _CHOICES:
        return function(*map(numbers, args), **options)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*args, **options)
    raise _unknown(name)


# -- functions with rules of their own -------------------------------------------------------------


def _where(mask: Any, one: Any = None, other: Any = None) -> Any:
    if one is None:
        return np.where(numbers(mask))
    chosen = np.asarray(numbers(mask))
    a, b = (
        _values(one, other)
        if isinstance(one, Values) or isinstance(other, Values)
        else (Values.of(one), Values.of(other))
    )
    shape = np.broadcast_shapes(chosen.shape, a.shape, b.shape)
    a, b = (v.moved(lambda x: np.broadcast_to(x, shape)) for v in (a, b))
    return where(np.broadcast_to(chosen, shape), a, b)


def _clip(x: Values, low: Any = None, high: Any = None, **options: Any) -> Values:
    low, high = options.get("min", low), options.get("max", high)
    x = x if low is None else x.maximum(low)
    return x if high is None else x.minimum(high)


def _triangle(function: Callable[..., Any]) -> Callable[..., Values]:
    def part(x: Values, k: int = 0) -> Values:
        return x.where(function(np.ones(x.shape, np.bool_), k), 0.0)

    return part


def _zeros(x: Values, *_: Any, **__: Any) -> Values:
    return Values.of(np.zeros(x.shape), x.rounds)


def _full(x: Values, value: Any = 1.0, *_: Any, **__: Any) -> Values:
    return as_values(value, x.rounds).moved(lambda y: np.broadcast_to(y, x.shape))


def _pad(
    x: Values, width: Any, mode: str = "constant", constant_values: Any = 0, **_: Any
) -> Values:
    if mode != "constant":
        return x.moved(lambda y: np.pad(y, width, mode))  # type: ignore[call-overload]
    whole = join(lambda xs: np.pad(xs[0], width, constant_values=x.size), [x, [constant_values]])
    return whole


def _split(x: Values, *args: Any, **options: Any) -> list[Values]:
    return [x.take(part) for part in np.split(x.places(), *args, **options)]


def _einsum(text: Any, *arrays: Any, **_: Any) -> Values:
    """One of two arrays or one, without repeated letters in an array."""
    if not isinstance(text, str) or "..." in text or len(arrays) > 2:
        raise _unknown("einsum of that form")
    inputs, arrow, result = text.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:
        letters = "".join(terms)
        result = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if any(len(set(t)) < len(t) for t in terms):
        raise _unknown("einsum with a letter twice")
    given = _values(*arrays)
    sizes = {
        c: n
        for term, v in zip(terms, given, strict=True)
        for c, n in zip(term, v.shape, strict=True)
    }
    gone = [c for c in sizes if c not in result]
    if len(given) == 1:
        order = [terms[0].index(c) for c in (*result, *gone)]
        whole = given[0].transpose(order)
        return whole.sum(tuple(range(len(result), whole.ndim))) if gone else whole
    both = [c for c in result if c in terms[0] and c in terms[1]]
    left = [c for c in result if c not in terms[1]]
    right = [c for c in result if c not in terms[0]]
    summed = [c for c in gone if c in terms[0] and c in terms[1]]
    if len(summed) < len(gone):
        raise _unknown("einsum that sums a letter of one array")

    def arranged(v: Values, term: str, *parts: list[str]) -> Values:
        order = [term.index(c) for part in parts for c in part]
        shape = [int(np.prod([sizes[c] for c in part])) for part in parts]
        return v.transpose(order).reshape(shape)

    a = arranged(given[0], terms[0], both, left, summed)
    b = arranged(given[1], terms[1], both, summed, right)
    found = (a @ b).reshape([sizes[c] for c in (*both, *left, *right)])
    return found.transpose([(*both, *left, *right).index(c) for c in result])


def _vdot(a: Values, b: Values) -> Values:
    return (a.ravel() * b.ravel()).sum()


def _outer(a: Values, b: Values) -> Values:
    return a.ravel()[:, None] * b.ravel()[None]


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "where": _where,
    "clip": _clip,
    "dot": _of_two(Values.__matmul__),
    "vdot": _of_two(_vdot),
    "outer": _of_two(_outer),
    "einsum": _einsum,
    "tril": _triangle(np.tril),
    "triu": _triangle(np.triu),
    "zeros_like": _zeros,
    "empty_like": _zeros,
    "ones_like": _full,
    "full_like": _full,
    "pad": _pad,
    "split": _split,
    "array_split": _split,
}


Values.call_ufunc = staticmethod(call_ufunc)
Values.call_function = staticmethod(call_function)
