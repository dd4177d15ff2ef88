"""Processes that benchmarks/emulator.py compares: another revision, and each core of this one."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from measure import Run, python
from neighbours import WORKERS, Worker
from programs import ROOT

CORES = ("compiled", "numpy")
"""The fastest first."""
JOBS = (1, 2)
BEFORE = "before"


class Variant:
    """A process of an emulator that runs launches.

    `core` and `jobs` are None for another revision: what it uses by itself. `title` names it in
    the tables.
    """

    def __init__(self, folder: Path, core: str | None = None, jobs: int | None = None) -> None:
        self.core, self.jobs = core, jobs
        if core is None:
            self.title = BEFORE
        else:
            self.title = core if jobs == 1 else f"{core}, {jobs} jobs"
        environment = {
            "PYTHONPATH": str(folder),
            "FRAGIR_CORE": core or "",
            "FRAGIR_JOBS": str(jobs or ""),
        }
        self.worker = Worker(python(str(WORKERS / "emulator_worker.py")), environment)
        self.answers: list[dict[str, Any]] = []
        """Since they were last cleared."""

    def problem(self, folder: Path) -> str | None:
        """Why it cannot run; SystemExit where it has not imported what is in the folder."""
        said = self.worker.answer()
        if "problem" in said:
            return said["problem"]
        if Path(said["fragir"]) != folder / "fragir":
            raise SystemExit(f"{said['fragir']} was imported, not what is in {folder}")
        return None

    def ask(self, launch: Path, check: bool = False, **more: object) -> dict[str, Any]:
        """The answer to a request, which is kept."""
        self.answers.append(self.worker.ask({"launch": str(launch), "check": check, **more}))
        return self.answers[-1]

    def run(self, launch: Path, check: bool) -> Run:
        """Runs whose time the process takes itself."""

        def run() -> tuple[float, float]:
            answer = self.ask(launch, check)
            return answer["wall"], answer["cpu"]

        return run


@contextmanager
def variants(
    before: Path | None, chosen: Sequence[tuple[str, int]] | None = None
) -> Generator[list[Variant]]:
    """All that there are, `before` first; those of the `chosen` (core, jobs) only."""
    wanted: list[tuple[Path, str | None, int | None]] = []
    if before is not None:
        wanted.append((before, None, None))
    for core in CORES:
        wanted += [(ROOT, core, n) for n in JOBS if chosen is None or (core, n) in chosen]
    started: list[Variant] = []
    try:
        started += [Variant(*each) for each in wanted]  # they begin side by side
        there: list[Variant] = []
        for variant, (folder, _, _) in zip(started, wanted, strict=True):
            if problem := variant.problem(folder):
                print(f"{variant.title} is left out: {problem}", file=sys.stderr)
            else:
                there.append(variant)
        yield there
    finally:
        for variant in started:
            variant.worker.close()


@contextmanager
def checkout(given: str | None) -> Generator[Path | None]:
    """The folder that is meant: that one, or the files of a revision of this repository."""
    if given is None or (Path(given) / "fragir").is_dir():
        yield Path(given).resolve() if given else None
        return
    command = ["git", "-C", str(ROOT), "archive", given, "fragir"]
    archive = subprocess.run(command, capture_output=True, check=False)
    if archive.returncode:
        said = archive.stderr.decode(errors="replace").strip().splitlines() or ["git failed"]
        raise SystemExit(f"--against {given}: no folder with a fragir in it, and {said[-1]}")
    with tempfile.TemporaryDirectory(prefix="fragir-before-") as folder:
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder).resolve()
