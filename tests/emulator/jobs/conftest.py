"""Launches that are divided at once, and what became of that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from fragir.emulator.launch import division
from fragir.emulator.machine import watch


@dataclass
class Divided:
    """`pids`: processes that were forked; `again`: launches that were run again."""

    pids: list[int] = field(default_factory=list[int])
    again: int = 0

    def clear(self) -> None:
        self.pids, self.again = [], 0


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Divided:
    """Every launch that may is divided after a few instructions, however small it is."""
    if not division.can_fork():
        pytest.skip("processes are forked on Linux alone")
    seen = Divided()
    monkeypatch.setattr(division, "AFTER", 0.0)
    monkeypatch.setattr(watch, "QUANTUM", 16)
    monkeypatch.setattr(division, "LEAST_WARPS", 2)
    fork, run = (getattr(division.Division, name) for name in ("_fork", "run"))

    def forks(self: division.Division, number: int, footprint: object) -> Any:
        child = fork(self, number, footprint)
        if child is not None:
            seen.pids.append(child.pid)
        return child

    def runs(self: division.Division, progress: object) -> None:
        try:
            run(self, progress)
        except division.Again:
            seen.again += 1
            raise

    monkeypatch.setattr(division.Division, "_fork", forks)
    monkeypatch.setattr(division.Division, "run", runs)
    return seen
