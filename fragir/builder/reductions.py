"""Methods of tiles that combine elements: sums, products, the largest and where it stands, and what
all up to each element give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar, overload

TileT = TypeVar("TileT")
ScalarT = TypeVar("ScalarT")


class Reductions(ABC, Generic[TileT, ScalarT]):
    """Reductions with numpy's names, along one dimension or, without `axis`, all of them.

    Along a dimension they give a tile of one dimension less, or with `keepdims` one of size 1
    there; of one dimension, and without `axis`, a scalar, the same in all threads.
    """

    @abstractmethod
    def _reduced(self, kind: str, axis: int | None, keepdims: bool) -> Any:
        """What `frag.reduce` gives; `keepdims` leaves a dimension of size 1."""

    @abstractmethod
    def _scanned(self, kind: str, axis: int, exclusive: bool, reverse: bool) -> TileT:
        """What `frag.scan` gives."""

    @overload
    def sum(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def sum(self, axis: None = None) -> ScalarT: ...
    def sum(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """The sum; of f16 and bf16 it is formed in f32 and rounded once."""
        return self._reduced("add", axis, keepdims)

    @overload
    def prod(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def prod(self, axis: None = None) -> ScalarT: ...
    def prod(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """The product; of f16 and bf16 it is formed in f32 and rounded once."""
        return self._reduced("mul", axis, keepdims)

    @overload
    def max(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def max(self, axis: None = None) -> ScalarT: ...
    def max(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """The largest element; NaN where one is NaN."""
        return self._reduced("max", axis, keepdims)

    @overload
    def min(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def min(self, axis: None = None) -> ScalarT: ...
    def min(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """The smallest element; NaN where one is NaN."""
        return self._reduced("min", axis, keepdims)

    @overload
    def all(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def all(self, axis: None = None) -> ScalarT: ...
    def all(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """Of conditions: whether all hold."""
        return self._reduced("and", axis, keepdims)

    @overload
    def any(self, axis: int, keepdims: bool = False) -> TileT: ...
    @overload
    def any(self, axis: None = None) -> ScalarT: ...
    def any(self, axis: int | None = None, keepdims: bool = False) -> TileT | ScalarT:
        """Of conditions: whether one holds."""
        return self._reduced("or", axis, keepdims)

    def argmax(self, axis: int, keepdims: bool = False) -> TileT:
        """The place of the largest element along a dimension, s32; of equals the first."""
        return self._reduced("argmax", axis, keepdims)

    def argmin(self, axis: int, keepdims: bool = False) -> TileT:
        """The place of the smallest element along a dimension, s32; of equals the first."""
        return self._reduced("argmin", axis, keepdims)

    def cumsum(self, axis: int, *, exclusive: bool = False, reverse: bool = False) -> TileT:
        """The sum of all elements up to each one along a dimension; f16 and bf16 are added in f32.

        `exclusive`: without the element itself, so that the first is 0. `reverse`: from the end of
        the dimension on. Other cumulative functions take them too.
        """
        return self._scanned("add", axis, exclusive, reverse)

    def cumprod(self, axis: int, *, exclusive: bool = False, reverse: bool = False) -> TileT:
        """The product of all up to each one; of f16 and bf16 it is formed in f32."""
        return self._scanned("mul", axis, exclusive, reverse)

    def cummax(self, axis: int, *, exclusive: bool = False, reverse: bool = False) -> TileT:
        """The largest of all up to each one; NaN from the first NaN on."""
        return self._scanned("max", axis, exclusive, reverse)

    def cummin(self, axis: int, *, exclusive: bool = False, reverse: bool = False) -> TileT:
        """The smallest of all up to each one; NaN from the first NaN on."""
        return self._scanned("min", axis, exclusive, reverse)
