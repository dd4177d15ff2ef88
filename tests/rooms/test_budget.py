"""No room grows beyond what docs/design.md allows, unless a change says so there."""

from __future__ import annotations

from tests.rooms.budget import BEGIN, END, PAGE, Size, beyond, budgets, now, sizes, written

LINES = {
    "fragir/errors.py": 100,
    "fragir/layout/modes.py": 200,
    "fragir/layout/texts/cute.py": 49,
    "fragir/emulator/report.py": 30,
    "fragir/emulator/checks/races/races.py": 240,
    "fragir/passes/frag_tile.py": 9,
    "passes/frag_tile.py": 9,
    "setup.py": 7,
}
ROOMS = {
    "fragir/*.py": Size(100, 1),
    "fragir/emulator": Size(30, 1),
    "fragir/emulator/checks": Size(240, 1),
    "fragir/layout": Size(249, 2),
    "passes": Size(9, 1),
}


def test_no_room_is_beyond_its_budget() -> None:
    found = beyond(now(), budgets(PAGE.read_text("utf-8")))
    assert found == [], "fewer lines, or on purpose: python -m tests.rooms.budget --write"


def test_lines_are_those_of_a_room() -> None:
    """Links are no second files."""
    assert sizes(LINES) == ROOMS


def test_a_budget_is_written_and_read_and_held() -> None:
    page = written(f"before\n{BEGIN}old\n{END}\nbehind\n", ROOMS)
    assert page.startswith("before\n")
    assert page.endswith("\nbehind\n")
    allowed = budgets(page)
    assert allowed["fragir/layout"] == Size(250, 2)
    assert beyond(ROOMS, allowed) == []
    more = {**ROOMS, "fragir/layout": Size(251, 2), "fragir/attic": Size(1, 1)}
    assert beyond(more, allowed) == [
        "fragir/layout: 251 lines in 2 files, (250, 2) allowed",
        "fragir/attic has no budget",
    ]
