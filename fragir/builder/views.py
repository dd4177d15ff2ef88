"""Methods of tiles that count elements otherwise, with numpy's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from fragir.builder.places import fail

TileT = TypeVar("TileT")
Key: TypeAlias = int | slice | EllipsisType | None


class Views(ABC, Generic[TileT]):
    """Other shapes, and parts; elements are not changed."""

    @abstractmethod
    def _viewed(self, function: str, *arguments: object) -> Any:
        """What a function of `fragir.builder.shapes` gives."""

    @property
    def T(self) -> TileT:
        """The transposed tile: its dimensions in the reverse order."""
        return self.transpose()

    def transpose(self, *axes: int) -> TileT:
        """The tile with its dimensions in this order, the reverse one where none is given."""
        return self._viewed("transpose", axes)

    def reshape(self, *shape: int | Sequence[int]) -> TileT:
        """The same elements, in the order of rows, in another shape; one size may be -1."""
        return self._viewed("reshape", shape)

    def split(self) -> tuple[TileT, TileT]:
        """Two tiles: what stands at 0 and at 1 along the last dimension, which is of size 2."""
        return self._viewed("split")

    def __getitem__(self, key: Key | tuple[Key, ...]) -> TileT:
        """A part, as of numpy's arrays: `t[:, 0:32]`, `t[::2]`, `t[3]`, `t[:, None]`.

        Places are numbers that Python knows.
        """
        return self._viewed("item", key)

    def __iter__(self) -> NoReturn:
        fail(f"{self!r} is no list", "tile[0] is its first row, tile.split() are two tiles")
