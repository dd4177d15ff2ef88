"""Arrays whose elements are functions of inputs, evaluated in two fields and in the reals.

`Values` behave as numpy arrays do, so that a reference written for arrays runs over them unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.algebra import fields
from fragir.algebra.fields import P, Q
from fragir.errors import FragirError

U64: TypeAlias = npt.NDArray[np.uint64]
F64: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Array: TypeAlias = npt.NDArray[Any]

#: Evaluations side by side, each with random inputs of its own.
ROUNDS = 3
#: In place of an element of Z/Q: there is none. What comes of a power of two, a root or a hash has
#: an element of Z/P only, and is no exponent of another power of two.
NONE = np.uint64(Q)
_P, _Q = np.uint64(P), np.uint64(Q)

#: log2 e as f32, by which compilers multiply before a power of two: 0x3FB8AA3B, which Triton and
#: XLA use as it is, and the sum with 0x32A57060 of CUDA's expf.
_LOG2E = (
    float(np.uint32(0x3FB8AA3B).view(np.float32)),
    float(np.uint32(0x32A57060).view(np.float32)),
)
#: Ways to say exp and log by the functions of base 2; numbers are the terms of a constant.
SPELLINGS: dict[str, tuple[float, ...]] = {
    "log2e = 0x3FB8AA3B": _LOG2E[:1],
    "log2e = 0x3FB8AA3B + 0x32A57060": _LOG2E,
    "log2e of f64": (float(np.log2(np.e)),),
}
_SPELLING: ContextVar[str] = ContextVar("spelling", default=next(iter(SPELLINGS)))


class UnknownFunctionError(FragirError):
    """A function of numpy that has no meaning over `Values`."""


@contextmanager
def spelling(name: str) -> Generator[None]:
    """Inside, exp and log are those of base 2 with the constant of that name (`SPELLINGS`)."""
    token = _SPELLING.set(name)
    try:
        yield
    finally:
        _SPELLING.reset(token)


_NAMED: ContextVar[set[str] | None] = ContextVar("named", default=None)


@contextmanager
def named_functions() -> Generator[set[str]]:
    """The names of functions of which nothing else is known, as far as they are used inside."""
    names: set[str] = set()
    token = _NAMED.set(names)
    try:
        yield names
    finally:
        _NAMED.reset(token)


def each_round(flags: Array) -> Array:
    """Of elements, with a last dimension that broadcasts over rounds."""
    return flags[..., None]


class Values:
    """Elements of any shape.

    `p`, `q`: u64 `[..., rounds]`, in Z/P and in Z/Q (or `NONE`); `real`: f64 `[...]`, what the
    numbers are; `doubt`: bool `[..., rounds]`, where a root of what is no square went in, which the
    laws of roots do not hold for: a difference says nothing there; `data`: bool `[...]`, whether
    they depend on inputs.
    """

    #: The arrays that it is made of, in the order in which it is given them.
    PARTS = ("p", "q", "real", "doubt", "data")

    __array_priority__ = 100
    __slots__ = ("data", "doubt", "p", "q", "real")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, p: U64, q: U64, real: F64, doubt: Bools, data: Bools) -> None:
        self.p, self.q, self.real, self.doubt, self.data = p, q, real, doubt, data

    @classmethod
    def of(cls, real: npt.ArrayLike, rounds: int = ROUNDS) -> Values:
        """Constants: numbers are dyadic fractions, infinities and NaN are 0 in the fields."""
        real = np.asarray(real)
        if real.dtype.kind == "V":
            raise UnknownFunctionError(f"an array of {real.dtype} has no numbers")
        real = real.astype(np.float64)
        shape = (*real.shape, rounds)
        p = np.broadcast_to(each_round(fields.elements(real, P)), shape)
        q = np.broadcast_to(each_round(fields.elements(real, Q)), shape)
        return cls(p, q, real, np.zeros(shape, np.bool_), np.zeros(real.shape, np.bool_))

    @classmethod
    def random(cls, real: npt.ArrayLike, rng: np.random.Generator, rounds: int = ROUNDS) -> Values:
        """Inputs: random elements, whatever the numbers are."""
        real = np.asarray(real).astype(np.float64)
        shape = (*real.shape, rounds)
        p = rng.integers(1, P, shape).astype(np.uint64)
        q = rng.integers(1, Q, shape).astype(np.uint64)
        return cls(p, q, real, np.zeros(shape, np.bool_), np.ones(real.shape, np.bool_))

    # -- arrays ------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.real.shape

    @property
    def ndim(self) -> int:
        return self.real.ndim

    @property
    def size(self) -> int:
        return self.real.size

    @property
    def rounds(self) -> int:
        return self.p.shape[-1]

    @property
    def dtype(self) -> np.dtype[np.float64]:
        return self.real.dtype

    @property
    def T(self) -> Values:
        return self.transpose()

    def __len__(self) -> int:
        return len(self.real)

    def __iter__(self) -> Iterator[Values]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<values of shape {self.shape} in {self.rounds} rounds>"

    def __bool__(self) -> bool:
        return bool(self.real)

    def __float__(self) -> float:
        raise UnknownFunctionError(
            "a value is no float: write the reference with functions of arrays, without float()"
        )

    def __array__(self, *_: object, **__: object) -> Array:
        raise UnknownFunctionError(
            "values were to become an array of numbers, which loses what they are",
            hint="write the reference with functions of arrays that return new ones; "
            "np.zeros_like(x) makes values that can be assigned to",
        )

    def take(self, places: Array) -> Values:
        """The elements at places, as numpy numbers them along all dimensions."""
        flat = [getattr(self, name).reshape(self.size, self.rounds) for name in ("p", "q", "doubt")]
        p, q, doubt = (x[places] for x in flat)
        return Values(p, q, self.real.reshape(-1)[places], doubt, self.data.reshape(-1)[places])

    def filled(self, which: Bools, real: Array) -> Values:
        """The same, but for some elements, which are constants."""
        found = self.copy()
        constants = Values.of(real[which], self.rounds)
        for name in Values.PARTS:
            getattr(found, name)[which] = getattr(constants, name)
        return found

    def places(self) -> Array:
        return np.arange(self.size).reshape(self.shape)

    def moved(self, function: Callable[[Array], Array]) -> Values:
        """What a function makes of an array that only moves its elements."""
        return self.take(function(self.places()))

    def __getitem__(self, index: Any) -> Values:
        return self.moved(lambda x: x[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        given = as_values(value, self.rounds)
        at = self.places()[index]
        whole = given.moved(lambda x: np.broadcast_to(x, at.shape))
        for name in ("p", "q", "doubt"):
            array = getattr(self, name).reshape(self.size, self.rounds).copy()
            array[at] = getattr(whole, name)
            setattr(self, name, array.reshape(*self.shape, self.rounds))
        for name in ("real", "data"):
            array = getattr(self, name).reshape(-1).copy()
            array[at] = getattr(whole, name)
            setattr(self, name, array.reshape(self.shape))

    def reshape(self, *shape: Any) -> Values:
        return self.moved(lambda x: x.reshape(*shape))

    def transpose(self, *axes: Any) -> Values:
        return self.moved(lambda x: x.transpose(*axes))

    def swapaxes(self, one: int, other: int) -> Values:
        return self.moved(lambda x: x.swapaxes(one, other))

    def ravel(self) -> Values:
        return self.moved(np.ravel)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> Values:
        return self.moved(lambda x: x.squeeze(axis))

    def repeat(self, repeats: Any, axis: int | None = None) -> Values:
        return self.moved(lambda x: x.repeat(repeats, axis))

    def copy(self) -> Values:
        return Values(*(getattr(self, name).copy() for name in Values.PARTS))

    def astype(self, dtype: npt.DTypeLike, **_: Any) -> Any:
        """The same functions, in numbers of another type; integers are no functions any more."""
        kind = np.dtype(dtype)
        if kind.kind != "f":
            return self.real.astype(kind)
        real = self.real.astype(kind).astype(np.float64)
        return Values(self.p, self.q, real, self.doubt, self.data)

    # -- arithmetic --------------------------------------------------------------------------------

    def _with(
        self, other: Any, operation: Callable[[Any, Any, Any], Any], real: np.ufunc
    ) -> Values:
        b = as_values(other, self.rounds)
        none = (self.q == NONE) | (b.q == NONE)
        zero = np.uint64(0)
        mine, theirs = np.where(self.q == NONE, zero, self.q), np.where(b.q == NONE, zero, b.q)
        q = np.where(none, NONE, operation(mine, theirs, _Q))
        with np.errstate(all="ignore"):
            number = np.asarray(real(self.real, b.real), np.float64)
        p = operation(self.p, b.p, _P)
        return Values(p, q, number, self.doubt | b.doubt, self.data | b.data)

    def __add__(self, other: Any) -> Values:
        return self._with(other, lambda a, b, m: (a + b) % m, np.add)

    def __sub__(self, other: Any) -> Values:
        return self._with(other, lambda a, b, m: (a + m - b) % m, np.subtract)

    def __mul__(self, other: Any) -> Values:
        return self._with(other, lambda a, b, m: a * b % m, np.multiply)

    def __truediv__(self, other: Any) -> Values:
        b = as_values(other, self.rounds)
        found = self * b.inverse()
        with np.errstate(all="ignore"):
            found.real = np.asarray(self.real / b.real)
        return found

    def __rtruediv__(self, other: Any) -> Values:
        return as_values(other, self.rounds) / self

    def __rsub__(self, other: Any) -> Values:
        return as_values(other, self.rounds) - self

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Values:
        q = np.where(self.q == NONE, NONE, fields.negative(self.q, Q))
        return Values(fields.negative(self.p, P), q, -self.real, self.doubt, self.data)

    def __pos__(self) -> Values:
        return self

    def __abs__(self) -> Values:
        return self.where(self.real >= 0, -self)

    def __pow__(self, exponent: Any) -> Values:
        number = float(np.asarray(exponent))
        if number == 0.5:
            return self.sqrt()
        if number == -0.5:
            return self.sqrt().inverse()
        if number != int(number):
            raise UnknownFunctionError(f"x ** {number:g} has no meaning over values")
        whole = int(number)
        base = self if whole >= 0 else self.inverse()
        q = np.where(
            base.q == NONE,
            NONE,
            fields.power(np.where(base.q == NONE, 0, base.q).astype(np.uint64), abs(whole), Q),
        )
        with np.errstate(all="ignore"):
            return Values(
                fields.power(base.p, abs(whole), P), q, self.real**whole, base.doubt, base.data
            )

    def __matmul__(self, other: Any) -> Values:
        return matmul(self, as_values(other, self.rounds))

    def __rmatmul__(self, other: Any) -> Values:
        return matmul(as_values(other, self.rounds), self)

    def inverse(self) -> Values:
        plain = np.where(self.q == NONE, np.uint64(1), self.q)
        q = np.where(self.q == NONE, NONE, fields.inverse(plain, Q))
        with np.errstate(all="ignore"):
            real = 1 / self.real
        return Values(fields.inverse(self.p, P), q, np.asarray(real), self.doubt, self.data)

    def exp2(self) -> Values:
        """2 ** x; of what has no element of Z/Q a hash. Of minus infinity it is 0."""
        none = self.q == NONE
        p = fields.power_of_two(np.where(none, np.uint64(0), self.q))
        if none.any():
            p = np.where(none, fields.hashed("exp2", self.p), p)
        gone = each_round(np.isneginf(self.real))
        with np.errstate(all="ignore"):
            real = np.exp2(self.real)
        zero = np.uint64(0)
        q = np.where(gone, zero, np.full(self.p.shape, NONE))
        return Values(np.where(gone, zero, p), q, real, self.doubt, self.data)

    def sqrt(self) -> Values:
        p, square = fields.root(self.p)
        with np.errstate(all="ignore"):
            real = np.sqrt(self.real)
        return Values(p, np.full(p.shape, NONE), real, self.doubt | ~square, self.data)

    def named(self, name: str, real: Callable[[F64], Array]) -> Values:
        """A function of which nothing is known but that it is one."""
        if (names := _NAMED.get()) is not None:
            names.add(name)
        p = fields.hashed(name, self.p)
        with np.errstate(all="ignore"):
            number = np.asarray(real(self.real), np.float64)
        return Values(p, np.full(p.shape, NONE), number, self.doubt, self.data)

    def square(self) -> Values:
        return self * self

    def expm1(self) -> Values:
        return self.exp() - 1.0

    def exp(self) -> Values:
        found = (self * self._constant(SPELLINGS[_SPELLING.get()])).exp2()
        with np.errstate(all="ignore"):
            found.real = np.exp(self.real)
        return found

    def log(self) -> Values:
        found = self.named("log2", np.log2) * float(np.float32(np.log(2)))
        with np.errstate(all="ignore"):
            found.real = np.log(self.real)
        return found

    def _constant(self, terms: Sequence[float]) -> Values:
        total = as_values(terms[0], self.rounds)
        for term in terms[1:]:
            total = total + term
        return total

    def where(self, mask: npt.ArrayLike, other: Any) -> Values:
        """These where the mask holds, others elsewhere."""
        return where(np.asarray(mask), self, as_values(other, self.rounds))

    def maximum(self, other: Any) -> Values:
        """The larger number of each pair, as the real ones are."""
        b = as_values(other, self.rounds)
        return self.where((self.real >= b.real) | np.isnan(self.real), b)

    def minimum(self, other: Any) -> Values:
        b = as_values(other, self.rounds)
        return self.where((self.real <= b.real) | np.isnan(self.real), b)

    # -- reductions --------------------------------------------------------------------------------

    def _rows(self, axis: Any) -> tuple[Values, tuple[int, ...]]:
        """With the reduced dimensions as one, the last; and which they are."""
        axes = range(self.ndim) if axis is None else np.atleast_1d(axis).tolist()
        gone = tuple(sorted(int(a) % self.ndim for a in axes))
        kept = [a for a in range(self.ndim) if a not in gone]
        order = (*kept, *gone)
        rows = self.moved(lambda x: x.transpose(order).reshape(*[self.shape[a] for a in kept], -1))
        return rows, gone

    def _result(self, found: Values, gone: tuple[int, ...], keepdims: bool) -> Values:
        if not keepdims:
            return found
        shape = tuple(1 if a in gone else n for a, n in enumerate(self.shape))
        return found.moved(lambda x: x.reshape(shape))

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False, **_: Any) -> Values:
        if self.ndim == 0:
            return self
        rows, gone = self._rows(axis)
        none = (rows.q == NONE).any(-2)
        q = np.where(rows.q == NONE, np.uint64(0), rows.q).sum(-2, dtype=np.uint64) % _Q
        found = Values(
            rows.p.sum(-2, dtype=np.uint64) % _P,
            np.where(none, NONE, q),
            np.asarray(rows.real.sum(-1)),
            any_of(rows.doubt, -2),
            np.asarray(rows.data.any(-1)),
        )
        return self._result(found, gone, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False, **_: Any) -> Values:
        total = self.sum(axis, keepdims=keepdims)
        return total / (self.size // max(total.size, 1))

    def var(
        self, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False, **_: Any
    ) -> Values:
        away = self - self.mean(axis, keepdims=True)
        total = (away * away).sum(axis, keepdims=keepdims)
        return total / (self.size // max(total.size, 1) - ddof)

    def std(
        self, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False, **_: Any
    ) -> Values:
        return self.var(axis, ddof=ddof, keepdims=keepdims).sqrt()

    def prod(self, axis: Any = None, dtype: Any = None, keepdims: bool = False, **_: Any) -> Values:
        rows, gone = self._rows(axis)
        found = rows[..., 0]
        for i in range(1, rows.shape[-1]):
            found = found * rows[..., i]
        return self._result(found, gone, keepdims)

    def _extreme(self, axis: Any, keepdims: bool, place: Callable[..., Array]) -> Values:
        rows, gone = self._rows(axis)
        at = np.expand_dims(place(rows.real, -1), -1)
        found = rows.moved(lambda x: np.take_along_axis(x, at, -1)[..., 0])
        return self._result(found, gone, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Values:
        return self._extreme(axis, keepdims, np.argmax)

    def min(self, axis: Any = None, keepdims: bool = False, **_: Any) -> Values:
        return self._extreme(axis, keepdims, np.argmin)

    def cumsum(self, axis: int | None = None, **_: Any) -> Values:
        flat = self.ravel() if axis is None else self
        along = 0 if axis is None else axis % self.ndim
        parts = [flat.moved(lambda x, i=i: x.take([i], along)) for i in range(flat.shape[along])]
        for i in range(1, len(parts)):
            parts[i] = parts[i - 1] + parts[i]
        return join(lambda xs: np.concatenate(xs, along), parts)

    # -- comparisons: as the numbers are -----------------------------------------------------------

    def __lt__(self, other: Any) -> Bools:
        return self.real < numbers(other)

    def __le__(self, other: Any) -> Bools:
        return self.real <= numbers(other)

    def __gt__(self, other: Any) -> Bools:
        return self.real > numbers(other)

    def __ge__(self, other: Any) -> Bools:
        return self.real >= numbers(other)

    def __eq__(self, other: object) -> Bools:  # type: ignore[override]
        return self.real == numbers(other)

    def __ne__(self, other: object) -> Bools:  # type: ignore[override]
        return self.real != numbers(other)

    # -- numpy's own functions ---------------------------------------------------------------------

    #: What `numpy_door` does with a ufunc and with any other function.
    call_ufunc: ClassVar[Callable[..., Any]]
    call_function: ClassVar[Callable[..., Any]]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return Values.call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return Values.call_function(function, args, options)


# -- functions of several --------------------------------------------------------------------------


def as_values(value: Any, rounds: int = ROUNDS) -> Values:
    return value if isinstance(value, Values) else Values.of(value, rounds)


def any_of(flags: Bools, axis: int) -> Bools:
    """Where any along a dimension is set."""
    return np.asarray(np.logical_or.reduce(flags, axis))


def numbers(value: Any) -> Any:
    """What comparisons and choices look at."""
    return value.real if isinstance(value, Values) else value


def where(mask: Array, one: Values, other: Values) -> Values:
    chosen = each_round(mask)
    return Values(
        np.where(chosen, one.p, other.p),
        np.where(chosen, one.q, other.q),
        np.where(mask, one.real, other.real),
        np.where(chosen, one.doubt, other.doubt),
        np.where(mask, one.data, other.data),
    )


def join(function: Callable[[list[Array]], Array], parts: Sequence[Any]) -> Values:
    """What a function makes of several arrays that only moves their elements."""
    rounds = next((p.rounds for p in parts if isinstance(p, Values)), ROUNDS)
    given = [as_values(part, rounds) for part in parts]
    places: list[Array] = []
    start = 0
    for one in given:
        places.append(one.places() + start)
        start += one.size
    flat = [one.ravel() for one in given]
    whole = Values(*(np.concatenate([getattr(v, name) for v in flat]) for name in Values.PARTS))
    return whole.take(function(places))


#: Terms of products that are added up before a remainder is taken: each is below 2^62.
_AT_ONCE = 4


def products(a: U64, b: U64, modulus: int) -> U64:
    """Sums of products along the first dimension, which broadcast otherwise."""
    m = np.uint64(modulus)
    total: U64 | None = None
    for start in range(0, len(a), _AT_ONCE):
        part = a[start] * b[start]
        for k in range(start + 1, min(start + _AT_ONCE, len(a))):
            part = part + a[k] * b[k]
        part %= m
        total = part if total is None else total + part
    return (
        np.zeros(np.broadcast_shapes(a.shape[1:], b.shape[1:]), np.uint64)
        if total is None
        else total % m
    )


def matmul(a: Values, b: Values) -> Values:
    """a @ b, as numpy's."""
    if a.ndim == 1 or b.ndim == 1:
        left = a[None] if a.ndim == 1 else a
        right = b[..., None] if b.ndim == 1 else b
        found = matmul(left, right)
        found = found[..., 0, :] if a.ndim == 1 else found
        return found[..., 0] if b.ndim == 1 else found
    zero = np.uint64(0)

    def along(x: Array, y: Array, modulus: int) -> U64:  # [..., m, k, R], [..., k, n, R]
        return products(
            np.moveaxis(x, -2, 0)[..., None, :], np.moveaxis(y, -3, 0)[..., None, :, :], modulus
        )

    none = (a.q == NONE).any(-2)[..., None, :] | (b.q == NONE).any(-3)[..., None, :, :]
    q = along(np.where(a.q == NONE, zero, a.q), np.where(b.q == NONE, zero, b.q), Q)
    with np.errstate(all="ignore"):
        real = a.real @ b.real
    return Values(
        along(a.p, b.p, P),
        np.where(none, NONE, q),
        real,
        any_of(a.doubt, -2)[..., None, :] | any_of(b.doubt, -3)[..., None, :, :],
        any_of(a.data, -1)[..., None] | any_of(b.data, -2)[..., None, :],
    )
