"""Tiles that must have one layout."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.interfaces import Tile, value_of


class Classes:
    """Tiles that must have one layout, as a union-find forest over values."""

    def __init__(self) -> None:
        self._parent: dict[SSAValue, SSAValue] = {}

    def find(self, value: SSAValue) -> SSAValue:
        """The representative of a value's class."""
        self._parent.setdefault(value, value)
        root = value
        while self._parent[root] is not root:
            root = self._parent[root]
        while self._parent[value] is not root:
            self._parent[value], value = root, self._parent[value]
        return root

    def unite(self, values: Iterable[Tile]) -> None:
        """All tiles among the values belong together."""
        found = [value_of(v) for v in values]
        tiles = [v for v in found if frag.held_tile(v.type) is not None]
        for value in tiles:
            self._parent[self.find(value)] = self.find(tiles[0])

    def members(self) -> dict[SSAValue, list[SSAValue]]:
        """Every class: representative -> its values."""
        result: dict[SSAValue, list[SSAValue]] = {}
        for value in self._parent:
            result.setdefault(self.find(value), []).append(value)
        return result
