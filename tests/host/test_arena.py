"""Temporaries in one piece of memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fragir.host import Lifetime, first_fit

LIFETIMES = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 9), st.integers(0, 5)).map(
        lambda x: Lifetime(x[0], x[1], x[1] + x[2])
    ),
    max_size=12,
)


@given(LIFETIMES)
def test_what_is_in_use_together_lies_apart(lifetimes: list[Lifetime]) -> None:
    arena = first_fit(lifetimes)
    spans = [(at, at + one.size) for at, one in zip(arena.offsets, lifetimes, strict=True)]
    assert all(at % 256 == 0 for at in arena.offsets)
    assert all(end <= arena.size for _, end in spans)
    for i, (one, (start, end)) in enumerate(zip(lifetimes, spans, strict=True)):
        for other, (first, last) in list(zip(lifetimes, spans, strict=True))[:i]:
            if one.first <= other.last and other.first <= one.last:
                assert end <= first or last <= start


@given(LIFETIMES)
def test_no_more_than_all_of_them(lifetimes: list[Lifetime]) -> None:
    assert first_fit(lifetimes).size <= sum(-(-one.size // 256) * 256 for one in lifetimes)


def test_memory_is_used_again() -> None:
    chain = [Lifetime(1000, at, at + 1) for at in range(8)]
    arena = first_fit(chain)
    assert arena.size == 2048
    assert arena.offsets == (0, 1024) * 4
