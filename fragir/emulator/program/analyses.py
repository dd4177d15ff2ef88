"""What has been found out about a program, kept with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Analyses(dict[type, object]):
    """By its class."""

    def once(self, kind: type[T], make: Callable[[], T]) -> T:
        """That of a kind, made where there is none yet."""
        found = self.get(kind)
        if found is None:
            found = self[kind] = make()
        assert isinstance(found, kind)
        return found
