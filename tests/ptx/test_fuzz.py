"""Mutations of real files, many at once: a tree or a clear error, no traceback, no hang, no bloat.

`fragir sweep ptx-fuzz` runs 50,000 of them; here are some.
"""

from __future__ import annotations

import random
import resource

import pytest

from benchmarks.sweeps import ptx_fuzz
from fragir.sweeps import Task


def test_mutations() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tasks = [Task(i, None, 1, ptx_fuzz.SWEEP.parameters) for i in range(3)]
    results = [ptx_fuzz.run(task) for task in tasks]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert [finding for result in results for finding in result["findings"]] == []
    total = {name: sum(r[name] for r in results) for name in results[0] if name != "findings"}
    # the test tests both readers and runs, what is right and what is wrong
    assert total["mutants"] // 10 < total["read"] < total["mutants"] * 9 // 10
    assert total["run"] // 20 < total["ended"] < total["run"] * 9 // 10
    assert grown < 300


def test_mutants_follow_from_seed_and_task() -> None:
    def made(seed: int, index: int) -> list[str]:
        rng = random.Random(f"{seed}/{index}")
        return [ptx_fuzz.fragment(rng, ptx_fuzz.texts()) for _ in range(20)]

    assert made(1, 2) == made(1, 2)
    assert made(1, 2) != made(2, 1)


def test_truncated_everywhere(texts: dict[str, str]) -> None:
    for text in texts.values():
        for end in range(0, len(text), max(1, len(text) // 60)):
            assert ptx_fuzz.read(text[:end]).finding is None


@pytest.mark.parametrize("kind", [KeyError, RecursionError, MemoryError])
def test_a_fault_of_the_reader_is_a_finding(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge judges: what is no error of the reader's is found."""

    def broken(*_: object) -> object:
        raise kind("planted")

    monkeypatch.setattr(ptx_fuzz, "parse", broken)
    found = ptx_fuzz.read(".version 8.0").finding
    assert found is not None
    assert found.startswith(f"{kind.__name__}: ")
