"""Conversions through shared memory: run lane by lane, passes counted, theory's least reached."""

from __future__ import annotations

import random

import pytest

from benchmarks.sweeps import shared_plans as sweep
from fragir.layout import LayoutError
from fragir.layout.f2 import rank
from fragir.layout.planning.banks import common_complement
from fragir.layout.planning.registers import Registers
from fragir.layout.planning.shared import shared_plan
from fragir.sweeps import Task


@pytest.mark.parametrize("seed", range(4))
def test_random_pairs(seed: int) -> None:
    """`fragir sweep shared-plans` runs many more."""
    result = sweep.run(Task(0, None, seed, {"batch": 40}))
    assert result["findings"] == []


@pytest.mark.parametrize("seed", range(50))
def test_two_spaces_have_a_common_complement(seed: int) -> None:
    rng = random.Random(seed)
    dims = rng.randint(1, 10)
    first, second = ([rng.getrandbits(dims) for _ in range(rng.randint(0, 8))] for _ in range(2))
    found = common_complement(first, second, dims)
    assert len(found) == rank(found) == dims - max(rank(first), rank(second))
    for space in (first, second):
        assert rank(space + found) == rank(space) + len(found)


def test_points_that_nobody_has() -> None:
    source = Registers((0,), (1, 2, 4, 8, 16))
    with pytest.raises(LayoutError, match="has points"):
        shared_plan(source, Registers((32,), source.lane), 32)
