"""What is too large, of another rank, or without a condition, is said where it is asked for."""

from __future__ import annotations

import pytest

from fragir.layout import Layout, LayoutError, complement, subtile
from fragir.layout.parts import condition_for


def test_more_than_a_mebi_of_slots_are_not_looked_at() -> None:
    with pytest.raises(LayoutError, match=r"1048577 .*at most 1048576"):
        Layout.parse("x [1048577:1]").table()
    halves = Layout.parse("x [1024:1] y [1025:1024]")
    with pytest.raises(LayoutError, match="1049600 slots; at most 1048576"):
        halves.table()


@pytest.mark.parametrize("shape", [(4,), (4, 4, 4), "44"])
def test_points_of_another_rank(shape: object) -> None:
    value = Layout.parse("row [4:(1,0)] col [4:(0,1)]")
    with pytest.raises(LayoutError, match=r"the shape .* does not have 2 dimensions"):
        subtile(value, start=(0, 0), shape=shape)  # pyright: ignore[reportArgumentType]
    with pytest.raises(LayoutError, match=r"The shape .* does not have 2 dimensions"):
        complement(value, shape)  # pyright: ignore[reportArgumentType]


def test_conditions_of_all_coordinates_and_of_none() -> None:
    always = condition_for("lane", [True] * 6)
    assert always is not None
    assert all(always(x) for x in range(6))
    assert condition_for("lane", [False] * 6) is None
