"""Random programs with products in flight: the emulator agrees with the reference, always."""

from __future__ import annotations

import re

import pytest

from benchmarks.sweeps.products_in_flight import check, flight_program

SEEDS = (0, 7, 16, 21, 64)
"""Loops and branches of all kinds: what they carry in flight stays in its registers."""


@pytest.mark.parametrize("seed", SEEDS)
def test_any_program(seed: int) -> None:
    program = flight_program(seed)
    assert check(program, seed) == [], program.text


def test_the_programs_have_all_ways() -> None:
    """Of 60 programs, each way to carry, start and end a tile in flight is in several."""
    texts = [flight_program(seed).text for seed in range(60)]
    carried = r"-> \(.*in_flight<!frag.tile<\w+>>.*\) \{"
    ways = {
        "a loop": rf"scf\.for .*{carried}",
        "a branch": rf"scf\.if .*{carried}",
        "a loop with a condition": r"scf\.while .*in_flight",
        "from registers": r"wgmma async %\w+, %b\d transposed, .*: !frag\.tile<\d+x16xf16>",
        "nothing before": r"frag\.undefined",
        "from a tile": r"frag\.in_flight %",
        "where it holds": r"wgmma async .* if %v",
        "one that waits": r"frag\.wgmma %",
    }
    for name, pattern in ways.items():
        assert sum(re.search(pattern, text) is not None for text in texts) >= 5, name
