"""What orders of tiles make a product read, held against a cache simulated chunk by chunk."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.scheduling.l2 import best_group, tile_order, traffic

CHUNKS = 24  # of a slab along K


def simulated(
    shape: tuple[int, int],
    slabs: tuple[int, int],
    running: int,
    capacity: int,
    order: str,
    group: int,
) -> tuple[int, int]:
    """Bytes from L2, and from memory: every chunk that a tile asks for, in order of time."""
    kept: OrderedDict[tuple[bool, int, int], int] = OrderedDict()
    places = list(tile_order(*shape, order, group))
    read = missed = 0
    for first in range(0, len(places), running):
        wave = places[first : first + running]
        for chunk in range(CHUNKS):
            for row, column in wave:
                for of_b, number in ((False, row), (True, column)):
                    size = slabs[of_b] // CHUNKS
                    read += size
                    key = of_b, number, chunk
                    if key in kept:
                        kept.move_to_end(key)
                        continue
                    missed += size
                    kept[key] = size
                    while sum(kept.values()) > capacity:
                        kept.popitem(last=False)
    return read, missed


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.sampled_from([(480, 480), (480, 960), (960, 240)]),
    st.integers(1, 12),
    st.integers(0, 14000),
    st.sampled_from(["rows", "columns", "linear", "grouped", "hilbert"]),
    st.integers(1, 4),
)
def test_the_formula_is_a_cache_that_forgets_the_least_recently_used(
    shape: tuple[int, int],
    slabs: tuple[int, int],
    running: int,
    capacity: int,
    order: str,
    group: int,
) -> None:
    found = traffic(*shape, slabs, running, capacity, order=order, group=group)
    # at one place of K the simulation reads tile after tile: so much that is touched meanwhile may
    # or may not have been touched before
    unsure = 2 * running * sum(slabs) // CHUNKS
    most = simulated(shape, slabs, running, max(0, capacity - unsure), order, group)
    least = simulated(shape, slabs, running, capacity + unsure, order, group)
    assert found.l2 == most[0]
    one = shape[0] * shape[1] * sum(slabs) // CHUNKS  # rounding to whole chunks
    assert least[1] - one <= found.dram <= most[1] + one


def test_without_a_cache_each_wave_reads_its_slabs_and_with_a_large_one_all_is_read_once() -> None:
    assert traffic(4, 6, (10, 100), 6, 0).dram == 4 * (10 + 6 * 100)
    assert traffic(4, 6, (10, 100), 6, 1e9).dram == 4 * 10 + 6 * 100
    assert traffic(4, 6, (10, 100), 6, 1e9, matrices=3).dram == 3 * (4 * 10 + 6 * 100)


def test_a_cluster_reads_b_once() -> None:
    plain, two = (traffic(8, 8, (10, 100), 8, 0, cluster=n) for n in (1, 2))
    assert plain.l2 == 64 * 110
    assert two.l2 == 64 * 10 + 32 * 100


@pytest.mark.parametrize(
    ("order", "group", "least", "most"),
    [("rows", 1, 32e9, 35e9), ("grouped", 8, 5e9, 6e9), ("grouped", 16, 3.5e9, 5.5e9)],
)
def test_a_wide_product_on_an_h100(order: str, group: int, least: float, most: float) -> None:
    """8192 x 32768 x 8192 in f16, tiles of 128 x 256: a row of tiles reads all of B."""
    slabs = 128 * 8192 * 2, 256 * 8192 * 2
    found = traffic(64, 128, slabs, 132, 0.7 * 50 * 2**20, order=order, group=group)
    assert least < found.dram < most


def test_the_best_group_reads_least_of_all_powers_of_two() -> None:
    for rows, columns, running in ((128, 256, 132), (128, 128, 108), (256, 64, 132), (64, 64, 1)):

        def read(group: int) -> int:
            return group * rows + -(-running // group) * columns

        best = best_group(rows, columns, running)
        assert all(read(best) <= read(1 << i) for i in range(9))
    assert best_group(128, 256, 132) == 16
