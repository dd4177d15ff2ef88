"""Random programs of all operations on tiles: the emulator agrees with the reference."""

from __future__ import annotations

import pytest

from benchmarks.sweeps.tile_programs import STEPS, check, refused, tile_program
from fragir.errors import FragirError

SEEDS = range(24)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_program(seed: int) -> None:
    program = tile_program(seed)
    found: list[str] = []
    try:
        found, _ = check(program, seed, assemble=seed % 4 == 0)
    except FragirError as error:
        if not refused(error):
            raise
    assert found == [], program.text


def test_the_programs_have_all_operations() -> None:
    """Of 100 programs, each kind of operation is in several, also inside of loops and branches."""
    texts = [tile_program(seed).text for seed in range(100)]
    operations = ("reduce", "broadcast", "iota", "transpose", "reshape", "slice", "concat", "join")
    operations += (
        "random",
        "split",
        "gather",
        "atomic",
        "mma",
        "map",
        "cast",
        "load",
        "fill",
        "scan",
    )
    for name in operations:
        assert sum(f"frag.{name} " in text for text in texts) >= 3, name
    for text in ("scf.for", "scf.if", "masked other", "frag.reduce argmax"):
        assert sum(text in each for each in texts) >= 3, text
    assert all(weight > 0 for _, weight in STEPS.values())
