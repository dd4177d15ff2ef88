"""Footprints against sets of bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragir.emulator.machine.arena import Arena, Footprint, shared_bytes

SIZE = 512
Note = tuple[bool, int, int, int]  # whether it writes, the size, positions in units of it

#: An access of 1 to 32 bytes by some lanes at neighbouring positions.
NOTES = st.tuples(
    st.booleans(),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.integers(0, SIZE - 1),
    st.integers(1, 4),
)


def units(notes: list[Note], unit: int, writes: bool) -> set[int]:
    """The units that accesses of one kind touch."""
    found: set[int] = set()
    for wrote, size, start, count in notes:
        first = start // size * size
        for at in range(first, min(first + size * count, SIZE), size):
            if wrote == writes:
                found.update(range(at // unit, (at + size - 1) // unit + 1))
    return found


def footprint(notes: list[Note], unit: int) -> Footprint:
    made = Footprint(SIZE, unit)
    for wrote, size, start, count in notes:
        first = start // size * size
        at = np.arange(first, min(first + size * count, SIZE), size)
        (made.note_written if wrote else made.note_read)(at, size)
    return made


@given(st.lists(NOTES, max_size=6), st.lists(NOTES, max_size=6), st.sampled_from([1, 2, 4]))
def test_they_meet_where_sets_do(one: list[Note], other: list[Note], unit: int) -> None:
    a, b = footprint(one, unit), footprint(other, unit)
    read, written = (units(one, unit, writes) for writes in (False, True))
    read_too, written_too = (units(other, unit, writes) for writes in (False, True))
    meets = bool(written & (read_too | written_too) or written_too & read)
    assert a.meets(b) == b.meets(a) == meets
    a.add(b)
    assert set(np.flatnonzero(a.read).tolist()) == read | read_too
    assert set(np.flatnonzero(a.written).tolist()) == written | written_too


@pytest.mark.parametrize(("width", "count"), [(1, 1), (4, 1), (8, 1), (4, 4), (8, 4)])
def test_an_arena_notes_its_accesses(width: int, count: int) -> None:
    arena, size = Arena(SIZE), width * count
    arena.footprint = seen = Footprint(SIZE, 1)
    arena.gather(np.array([size]), width, count)
    arena.scatter(np.array([4 * size]), width, count, np.zeros(count, f"u{width}"))
    assert np.flatnonzero(seen.read).tolist() == list(range(size, 2 * size))
    assert np.flatnonzero(seen.written).tolist() == list(range(4 * size, 5 * size))


def test_shared_bytes_are_zeros_of_that_size() -> None:
    assert shared_bytes(100).tolist() == [0] * 100
    assert Arena(64, shared=True).shared
    assert len(shared_bytes(0)) == 0
