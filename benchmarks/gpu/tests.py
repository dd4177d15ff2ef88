"""The tests that need a GPU: `pytest -m gpu`, from the kit's copy of the checkout."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.gpu.kit import Kit, Work
from fragir.errors import FragirError

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

ROOT = Path(__file__).parents[2]
_CLOSING = re.compile(r"(\d+) (passed|failed|skipped|error|deselected)")


def files() -> list[str]:
    """The files that have such tests."""
    found = [path for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    marked = [path for path in found if "pytest.mark.gpu" in path.read_text("utf-8")]
    return [path.relative_to(ROOT).as_posix() for path in marked]


def units(kit: Kit) -> list[str]:
    """A file of tests each."""
    return files()


def prepare(kit: Builder) -> None:
    """Nothing: what these tests launch they assemble there."""
    kit.leave_out("cubins of pytest -m gpu", "these tests assemble themselves, for the GPU there")


def run(work: Work) -> dict[str, Any]:
    """How many passed, failed and were skipped; the last lines where one failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-W", "default", work.unit],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines() or ["nothing was said"]
    counts = {word.rstrip("s"): int(number) for number, word in _CLOSING.findall(lines[-1])}
    if done.returncode not in (0, 1, 5) or not counts:
        last = (done.stderr.strip() or lines[-1])[-300:]
        raise FragirError(f"pytest ended with {done.returncode}: {last}")
    told = {"counts": counts}
    return told if done.returncode in (0, 5) else {**told, "last": lines[-40:], "wrong": lines[-1]}
