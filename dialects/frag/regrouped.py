"""What operations that only count elements otherwise have in common: registers get other names.

Of two tiles, the elements of one are the other's, or some of them, in the same lane. Where lanes
do not hold what that takes, the operation asks for a layout near to the tile's in which they do,
and the tile is converted on the way. Where that is too much for a lane's registers, the operation
is `staged`: its tiles have any layouts, and it goes through shared memory.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.elements import element_bits
from fragir.dialects.frag.attributes import ExplicitLayoutAttr, LayoutAttr
from fragir.dialects.frag.types import tile_of
from fragir.dialects.interfaces import DimensionsInterface, LayoutInterface
from fragir.dialects.limits import check_registers
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout.modes import Point
from fragir.layout.regrouping import Ways, are_alike, follow, nearest

STAGED = "staged"


class Regrouped(NamedTuple):
    """Two tiles of an operation, and how the elements of each are those of the other."""

    first: SSAValue
    second: SSAValue
    there: Ways
    back: Ways


class RenamingOp(LayoutInterface, DimensionsInterface, abc.ABC):
    """An operation whose results are elements of its operands, in the same lanes unless it is
    `staged`."""

    @property
    def staged(self) -> bool:
        """Whether its elements go through shared memory: an attribute, which frag-place sets."""
        return STAGED in self.attributes

    @abc.abstractmethod
    def regrouped(self) -> Iterable[Regrouped]:
        """Which tiles are which others' elements; a layout of each must follow from the others'."""

    @abc.abstractmethod
    def source_of(self, result: int, point: Point) -> tuple[int, Point]:
        """The number of the operand that has an element of a result, and where it stands there."""

    def propagate(
        self, known: Mapping[SSAValue, Attribute]
    ) -> Iterator[tuple[SSAValue, Attribute]]:
        """What follows in both directions; where nothing can, a layout that the tile should have.

        Nothing of two tiles in whose layouts lanes hold the same elements, in whatever order.
        """
        if self.staged:
            return
        layouts = {value: _layout(value, attribute) for value, attribute in known.items()}
        for first, second, there, back in self.regrouped():
            source, target, ways = first, second, there
            if first not in layouts:
                source, target, ways = second, first, back
            have, other = layouts.get(source), layouts.get(target)
            if have is None:
                continue
            found = follow(have, ways)
            if found is None:
                yield source, ExplicitLayoutAttr(_nearest(have, ways, source))
            elif other is None or not are_alike(found, other):
                layouts.setdefault(target, found)
                yield target, ExplicitLayoutAttr(found)

    def repeats(self) -> bool:
        """Unless that takes memory."""
        return not self.staged

    def verify_layouts(self) -> None:
        """VerifyException where the layouts of placed tiles would have elements change lanes."""
        known = {
            value: tile_of(value).layout
            for value in (*self.operands, *self.results)
            if tile_of(value).placement is not None
        }
        if len(known) < 2:
            return
        try:
            follows = list(self.propagate(known))
        except FragirError as error:
            raise VerifyException(f"{self.name}: {error}") from error
        for value, layout in follows:
            if value in known:
                raise VerifyException(
                    f"{self.name}: no element changes its lane, so {tile_of(value)} must have the "
                    f"layout {layout} here; write frag.convert"
                )


def _nearest(have: Layout, ways: Ways, tile: SSAValue) -> Layout:
    """A layout near to a tile's that can be regrouped; FragirError where it takes too much."""
    found, type_ = nearest(have, ways), tile_of(tile)
    held = found.sizes.get("element", 1) * element_bits(type_.element_type)
    check_registers(-(-held // 32), f"{type_} in a layout that can be regrouped")
    return found


def by(shape: Iterable[int]) -> str:
    """The text of a shape, as in types."""
    return "x".join(map(str, shape))


def _layout(value: SSAValue, attribute: Attribute) -> Layout:
    assert isinstance(attribute, LayoutAttr)
    return attribute.layout(*tile_of(value).shape)
