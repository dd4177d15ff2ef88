"""What the texts of opcodes mean for elements: rounding and conversion are nothing, the rest is
arithmetic. Choices are those of the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fragir.algebra.numpy_door import Values
from fragir.algebra.values import as_values, where
from fragir.emulator.numbers.types import Array, Bools
from fragir.emulator.values.language import BOOL, FLOATS, INTEGERS, REAL, Node, walk

#: What changes no more than the format.
_FORMATS = frozenset(("flush", "round", "approx", "cast"))
_ARITHMETIC: dict[str, Callable[..., Values]] = {
    "+": Values.__add__,
    "-": Values.__sub__,
    "*": Values.__mul__,
    "/": Values.__truediv__,
    "divide_approximately": Values.__truediv__,
    "neg": Values.__neg__,
    "abs": Values.__abs__,
    "sqrt": Values.sqrt,
    "exp2": Values.exp2,
}
#: Functions of which nothing is known.
_NAMED: dict[str, Callable[[Array], Array]] = {
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}
_COMPARISONS: dict[str, Callable[[Array, Array], Bools]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
#: Between 2^23 and 2^24 the floats of f32 are whole numbers: to add a constant of that size is to
#: round to one, as exponentials and conversions do.
_WHOLE = (2.0**23, 2.0**24)


class NoMeaningError(Exception):
    """A text that says nothing of elements: their bits are used for something else."""


def is_arithmetic(node: Node) -> bool:
    """Whether what comes out is a function of floats as numbers."""
    return (node.type in FLOATS or node.type == REAL) and all(
        n.type in FLOATS or n.type in (REAL, BOOL) or (n.type in INTEGERS and _is_plain(n))
        for n in walk(node)
    )


def _is_plain(node: Node) -> bool:
    return node.op in ("operand", "number", "immediate")


class Evaluator:
    """Of one instruction: `operands` by their names, values or predicates.

    `rounded`: where a whole number came out, whatever went in; `compared`: whether elements that
    depend on data were compared, or chosen among.
    """

    def __init__(self, operands: Mapping[str, Values | Bools], form: str) -> None:
        self.operands, self.form = operands, form
        self.rounded: Bools | None = None
        self.compared = False

    def value(self, node: Node) -> Values:
        if node.op in _FORMATS:
            return self.value(node.args[0])
        if node.op in _ARITHMETIC:
            args = [self.value(a) for a in node.args]
            if node.op in ("+", "-") and self.form == "f32":
                self._find_whole(*args)
            return _ARITHMETIC[node.op](*args)
        if node.op in _NAMED:
            return self.value(node.args[0]).named(node.op, _NAMED[node.op])
        match node.op:
            case "operand":
                found = self.operands[node.value]
                if not isinstance(found, Values):
                    raise NoMeaningError
                return found
            case "number":
                return Values.of(np.float64(node.value))
            case "min" | "max":
                return self._extreme(node)
            case "select":
                mask = self.truth(node.args[0])
                one, other = map(self.value, node.args[1:])
                shape = np.broadcast_shapes(mask.shape, one.shape, other.shape)
                one, other = (v.moved(lambda x: np.broadcast_to(x, shape)) for v in (one, other))
                return where(np.broadcast_to(mask, shape), one, other)
            case "copysign":
                sign, size = map(self.value, node.args)
                self._note(sign)
                positive = abs(size)
                return positive.where(~np.signbit(sign.real), -positive)
            case "relu":
                inner = self.value(node.args[0])
                self._note(inner)
                return inner.where(inner.real > 0, 0.0)
            case "sat":
                inner = self.value(node.args[0])
                self._note(inner)
                return inner.where(inner.real > 0, 0.0).where(~(inner.real > 1), 1.0)
            case "oob":
                inner = self.value(node.args[0])
                a, b = (self.operands[name] for name in ("a", "b"))
                assert isinstance(a, Values)
                assert isinstance(b, Values)
                return inner.where(~(np.isnan(a.real) | np.isnan(b.real)), 0.0)
            case "integral":
                inner = self.value(node.args[0])
                self._is_whole(np.ones(inner.shape, np.bool_), inner)
                return inner
            case "truth":
                return Values.of(np.where(self.truth(node.args[0]), 1.0, 0.0))
            case _:
                raise NoMeaningError

    def truth(self, node: Node) -> Bools:
        """A predicate, as the numbers say."""
        if node.op == "operand":
            found = self.operands[node.value]
            if isinstance(found, Values):
                raise NoMeaningError
            return found
        if node.op in _COMPARISONS:
            args = [self.value(a) for a in node.args]
            self._note(*args)
            with np.errstate(invalid="ignore"):
                return _COMPARISONS[node.op](*(a.real for a in args))
        if node.op == "not":
            return ~self.truth(node.args[0])
        if node.op in ("and", "or", "&", "|", "^"):
            one, other = map(self.truth, node.args)
            both = {"and": np.logical_and, "&": np.logical_and, "^": np.logical_xor}
            return both.get(node.op, np.logical_or)(one, other)
        raise NoMeaningError

    def _note(self, *chosen: Values) -> None:
        self.compared = self.compared or any(v.data.any() for v in chosen)

    def _extreme(self, node: Node) -> Values:
        args = [self.value(a) for a in node.args]
        self._note(*args)
        if "xorsign" in (node.value or ()):
            sizes = [abs(a) for a in args]
            found = _larger(sizes, node.op == "max")
            negative = np.logical_xor.reduce([np.signbit(a.real) for a in args])
            return found.where(~negative, -found)
        return _larger(args, node.op == "max")

    def _find_whole(self, *args: Values) -> None:
        for x in args:
            size = np.abs(x.real)
            magic = (size >= _WHOLE[0]) & (size <= _WHOLE[1]) & ~x.data
            if magic.any():
                self._is_whole(magic, *args)

    def _is_whole(self, which: Bools, *args: Values) -> None:
        data = np.logical_or.reduce(np.broadcast_arrays(which, *(a.data for a in args))[1:])
        found = which & data
        if found.any():
            self.rounded = found if self.rounded is None else self.rounded | found


def _larger(args: list[Values], largest: bool) -> Values:
    found = args[0]
    for other in args[1:]:
        other = as_values(other, found.rounds)
        found = found.maximum(other) if largest else found.minimum(other)
        # A number is preferred to a NaN, which the first is left as by `maximum`.
        found = found.where(~np.isnan(found.real), other)
    return found
