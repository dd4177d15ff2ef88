"""Random programs of all operations on tiles: the emulator agrees with the reference."""

from __future__ import annotations

import pytest

from benchmarks.sweeps import tile_programs
from benchmarks.sweeps.tile_programs import STEPS, TileProgram, check, kind_of, tile_program
from fragir.errors import FragirError
from fragir.sweeps import Plan, Task

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_program(seed: int) -> None:
    program = tile_program(seed)
    verdict = check(program, seed, assemble=seed % 4 == 0)
    assert verdict.findings == [], program.text


def test_the_programs_have_all_operations() -> None:
    """Of 80 programs, each kind of operation is in several, also inside of loops and branches."""
    texts = [tile_program(seed).text for seed in range(80)]
    operations = ("reduce", "broadcast", "iota", "transpose", "reshape", "slice", "concat", "join")
    operations += ("random", "split", "gather", "scatter", "atomic", "mma", "mma_batched", "map")
    operations += ("cast", "load", "fill", "scan", "convert", "copy", "barrier", "ring", "acquire")
    for name in operations:
        assert sum(f"frag.{name} " in text or f"frag.{name}\n" in text for text in texts) >= 2, name
    words = ("scf.for", "scf.if", "masked other", "frag.reduce argmax", "] transposed", "memref<?")
    words += ("memref.alloc", "swizzle", "frag.stages", "frag.copy async", "arith.shrsi", "xf64")
    words += ("xi64", "xi8", "xi4", "xf8E4M3FN", "role", "#frag.mma<")
    for text in words:
        assert any(text in each for each in texts), text
    assert all(weight > 0 for _, weight in STEPS.values())


def test_refusals_are_told_by_kind() -> None:
    one = FragirError(
        "frag.store: 16 rows of operand c are no multiple of 4 x 16, what "
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 covers"
    )
    other = FragirError(
        "frag.slice: 32 rows of operand c are no multiple of 8 x 16, what "
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 covers"
    )
    assert kind_of(one) == kind_of(other)
    assert (
        kind_of(one) == "N rows of operand c are no multiple of N x N, what an instruction covers"
    )


def test_what_does_not_end_or_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compilation over its limit, an internal error, text that is not taken back."""
    text = "func.func @k(%a: memref<4xf32>) {\n  func.return\n}"

    def endless(*_: object, **__: object) -> None:
        while True:
            pass

    def failing(*_: object, **__: object) -> None:
        raise KeyError("planted")

    for planted, words in ((endless, "ran for more than"), (failing, "KeyError: 'planted'")):
        with monkeypatch.context() as patch:
            patch.setattr(tile_programs.fragir, "compile", planted)
            patch.setattr(tile_programs, "COMPILATION", 0.01)
            (finding,) = check(TileProgram(text, "sm_80"), 0, assemble=False).findings
            assert words in finding


def test_a_task_counts_refusals_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    error = FragirError("frag.mma: 16 rows are too few")
    refusing = TileProgram("", "sm_80", {}, error)

    def refused(_seed: int, _steps: int) -> TileProgram:
        return refusing

    monkeypatch.setattr(tile_programs, "tile_program", refused)
    found = tile_programs.run(Task(0, None, 0, {"batch": 3, "steps": 8, "ptxas": False}))
    assert (found["programs"], found["refused"], found["refused: N rows are too few"]) == (3, 3, 3)
    assert len(tile_programs.SWEEP.all_tasks(Plan(0, 2, {}))) == 2
