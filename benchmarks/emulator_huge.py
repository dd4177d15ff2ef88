"""One product of 4096^3, bit-exact: its time, its memory, and parts of it by numpy alone."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from emulator_cases import Launch, by_hand
from emulator_kernels import TILE
from emulator_variants import CORES, Variant, variants
from report import Column, Table, status
from rich.console import Console

SIZE = 4096
EVERY = 0.2
"""Seconds between two looks at the memory."""


class Watched:
    """The memory of a process and of those that it forks, while a `with` lasts (Linux)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.highest: dict[int, int] = {}
        """VmHWM of each forked process, in bytes: with the pages that it shares with its parent."""
        self.together = 0
        """The largest sum of what they have (PSS: a shared page counts once), in bytes."""
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watched:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.over.wait(EVERY):
            forked = self._forked()
            for pid in forked:
                self.highest[pid] = max(self.highest.get(pid, 0), _field(pid, "status", "VmHWM"))
            total = sum(_field(pid, "smaps_rollup", "Pss") for pid in (self.pid, *forked))
            self.together = max(self.together, total)

    def _forked(self) -> list[int]:
        found: list[int] = []
        for task in Path(f"/proc/{self.pid}/task").glob("*/children"):
            try:
                found += [int(word) for word in task.read_text("ascii").split()]
            except OSError:
                pass  # a thread that has ended
        return found


def _field(pid: int, file: str, name: str) -> int:
    """A number of kB of /proc, in bytes; 0 where the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text("ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def part_of(launch: Launch, first: int) -> Launch:
    """The launch of those blocks only that give the rows from `first` on, as many as a tile has."""
    a, b, c = launch.arrays
    arrays = [a[first : first + TILE].copy(), b, c[:TILE].copy()]
    size = launch.parameters[-1]
    options = {**launch.options, "grid": (c.shape[1] // TILE, 1)}

    def expected(arrays: list[np.ndarray]) -> np.ndarray:
        return arrays[0].astype(np.float64) @ arrays[1].T.astype(np.float64)

    return Launch(launch.ptx, arrays, [*arrays, size, size], options, expected)


def huge(size: int = SIZE, cores: Sequence[str] = CORES) -> Table:
    """The whole by the first core there is with two jobs, its first and last rows by the last."""
    table = Table(
        f"f16 product by hand, {size}^3, no checks, once",
        (
            Column("what", "what"),
            Column("by", "by"),
            Column("wall", "wall s", ".1f"),
            Column("cpu", "CPU s", ".1f"),
            Column("mma", "mma", ",d"),
            Column("peak", "VmHWM, MB", ",.0f"),
            Column("forked", "VmHWM of forked processes, MB"),
            Column("together", "together, MB", ",.0f"),
            Column("equal", "equal"),
        ),
        note="CPU time and memory as of the process that runs the launch, its arrays included. The "
        "VmHWM of a forked process has the pages that it shares with its parent; together: the "
        f"largest sum of PSS, looked at every {EVERY} s. Equal: the rows to the bit.",
    )
    say = status(Console(stderr=True))
    choice = [(core, 2) for core in cores]
    with tempfile.TemporaryDirectory(prefix="fragir-bench-") as folder, variants(None, choice) as v:
        path = Path(folder, "launch")
        launch = by_hand(size)
        launch.write(path)
        ranges = [(0, TILE), (size - TILE, size)]
        say(f"{size}^3 by {v[0].title}")
        row, digests = once(v[0], path, "all", ranges)
        table.rows.append(row)
        for (first, end), digest in zip(ranges, digests, strict=True):
            say(f"rows {first} to {end - 1} by {v[-1].title}")
            part = Path(folder, f"rows-{first}")
            part_of(launch, first).write(part)
            row, (own,) = once(v[-1], part, f"rows {first} to {end - 1}", [(0, TILE)])
            row["equal"] = "yes" if own == digest else "no"
            table.rows.append(row)
    return table


def once(
    variant: Variant, path: Path, what: str, rows: list[tuple[int, int]]
) -> tuple[dict[str, object], list[str]]:
    """A row of the table, and the digests of those rows of the result."""
    with Watched(variant.worker.process.pid) as memory:
        answer = variant.ask(path, rows=rows, once=True)
    row: dict[str, object] = {
        "what": what,
        "by": variant.title,
        "wall": answer["wall"] / 1e3,
        "cpu": answer["cpu"] / 1e3,
        "mma": answer["statistics"]["mma"],
        "peak": answer["peak"] and answer["peak"] / 1e6,
        "forked": ", ".join(f"{each / 1e6:,.0f}" for each in memory.highest.values()),
        "together": memory.together / 1e6,
    }
    return row, answer["rows"]
