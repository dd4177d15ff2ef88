"""Python's operators on what a kernel computes with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, Self, TypeVar

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
