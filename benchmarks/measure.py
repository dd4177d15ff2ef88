"""Time of runs that take turns: wall and CPU, least, median and spread.

What is compared runs in rounds, one after the other, so that a slow moment of the machine meets
all of them. On a machine that does other work too, CPU time and the least of many runs are what
to compare; the median and the quartiles say how much the rest disturbed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Times:
    """Runs of one thing, in ms."""

    wall: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])

    def add(self, wall: float, cpu: float) -> None:
        self.wall.append(wall)
        self.cpu.append(cpu)

    def summary(self) -> dict[str, float]:
        """Least and median of both, and the quartiles of wall time."""
        low, _, high = _quartiles(self.wall)
        return {
            "cpu_min": min(self.cpu),
            "cpu_median": statistics.median(self.cpu),
            "wall_min": min(self.wall),
            "wall_median": statistics.median(self.wall),
            "wall_low": low,
            "wall_high": high,
            "runs": len(self.wall),
        }


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


Run = Callable[[], tuple[float, float]]
"""One run; gives wall and CPU time in ms."""


def here(function: Callable[[], object]) -> Run:
    """Runs of a function in this process."""

    def run() -> tuple[float, float]:
        cpu, wall = time.process_time(), time.perf_counter()
        function()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return wall * 1e3, cpu * 1e3

    return run


def process(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Runs of a command, each a process of its own; CPU time with that of its children."""

    def run() -> tuple[float, float]:
        start = time.perf_counter()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment} if environment else None,
        )
        assert child.stderr is not None
        said = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stderr.close()
        if child.returncode:
            last = (said.decode(errors="replace").strip().splitlines() or [""])[-1]
            raise RuntimeError(f"{command[0]} ended with {child.returncode}: {last}")
        return wall * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3

    return run


def take_turns(
    runs: Mapping[str, Run],
    rounds: int,
    *,
    warm_up: int = 1,
    progress: Callable[[str], Any] | None = None,
) -> dict[str, Times]:
    """Every run once a round; the first `warm_up` rounds do not count."""
    result = {name: Times() for name in runs}
    for number in range(warm_up + rounds):
        if progress is not None:
            progress(f"round {number + 1} of {warm_up + rounds}")
        for name, run in runs.items():
            wall, cpu = run()
            if number >= warm_up:
                result[name].add(wall, cpu)
    return result


def python(*arguments: str) -> list[str]:
    """A command of this Python."""
    return [sys.executable, *arguments]
