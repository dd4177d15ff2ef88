"""Random programs with copies by TMA: the emulator agrees with the reference, always."""

from __future__ import annotations

import re

import pytest

from benchmarks.sweeps.tensor_copies import check, copy_program

SEEDS = (48, 49)
"""Loops in which copies wait for copies, of blocks alone and in clusters; sums."""


@pytest.mark.parametrize("seed", SEEDS)
def test_any_program(seed: int) -> None:
    program = copy_program(seed)
    assert check(program, seed) == [], program.text


def test_the_programs_have_all_ways() -> None:
    """Of 30 programs, each way to copy is in several."""
    texts = [copy_program(seed).text for seed in range(30)]
    ways = {
        "in": r"frag\.copy tma %a\[",
        "from outside": r"frag\.copy tma %a\[.*-\d",
        "from batches": r"%a\[\S+, \S+, \S+\]",
        "columns side by side": r"col \[\d+:\d+\]",
        "in clusters": r"multicast",
        "out": r"frag\.copy tma %s",
        "sums": r"frag\.copy tma add",
        "read back": r"frag\.load %c",
        "in loops": r"scf\.for[^}]*scf\.for",
    }
    for name, pattern in ways.items():
        assert sum(re.search(pattern, text) is not None for text in texts) >= 2, name
