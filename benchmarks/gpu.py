"""All that a GPU is needed for, in one command that can be broken off and goes on: `make gpu`.

    python benchmarks/gpu.py [--minutes 28] [--results results] [--only STEP,...] [--again STEP,...]

Each step keeps its results in `results/GPU/` as it goes; `session.json` there says how far each is.
A step has a share of the time: what it leaves over is the others', and what it has not done, the
next call does. At the end README's table is made from the results. Without a GPU nothing runs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from gemm import LEFT, ROOT, machine, save, slug
from gpu_table import update

from fragir.toolchain import driver

Run = Callable[[Sequence[str], float], int]
"""Runs a command for so many seconds at most; its exit code, or LEFT where time was over."""


class Step(NamedTuple):
    """A command (`{folder}`: where its results go, `{minutes}`: what it has) and its share."""

    name: str
    share: float
    command: tuple[str, ...]
    what: str


_FRAGIR = ("-m", "fragir.cli.main")
_VALIDATE = (*_FRAGIR, "validate", "--on", "gpu", "--resume", "--report")
_KEPT = ("--results", "{results}", "--minutes", "{minutes}")
STEPS = (
    Step(
        *("smoke", 0.05),
        (*_FRAGIR, "run", "examples/gemm.mlir", "--on", "gpu", "--size", "m=250,n=130,k=77"),
        "one product, against its bound",
    ),
    Step(
        *("gemm-first", 0.15),
        ("benchmarks/gemm.py", "--only", "bf16 8192x8192x8192", *_KEPT),
        "the product that is asked for first",
    ),
    Step(
        *("tests", 0.2),
        ("-m", "pytest", "-q", "-m", "gpu", "--junitxml", "{folder}/tests.xml"),
        "the tests that need a GPU",
    ),
    Step(
        *("validate-wgmma", 0.15),
        (*_VALIDATE, "{folder}/validation-wgmma.json", "--only", "wgmma*"),
        "probes of wgmma, whose bits are compared with the emulator's",
    ),
    Step(*("tune", 0.25), ("benchmarks/tune.py", *_KEPT), "schedules of products"),
    Step(*("gemm", 0.5), ("benchmarks/gemm.py", *_KEPT), "products beside cuBLAS and Triton"),
    Step(
        *("validate", 1.0),
        (*_VALIDATE, "{folder}/validation.json"),
        "probes of every instruction",
    ),
)
"""In their order, as arguments of Python; a share is of the time that is left at a step's start."""


def run_command(command: Sequence[str], seconds: float) -> int:
    """Runs a command, which is asked to end when its time is over, and then made to."""
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # it keeps what it has
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return LEFT
    except BaseException:
        process.terminate()
        process.wait()
        raise


def commit() -> str:
    """The commit that is measured, with a mark where files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def session(
    folder: Path,
    minutes: float,
    *,
    only: Sequence[str] = (),
    again: Sequence[str] = (),
    run: Run = run_command,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Runs the steps that are not done for this machine and commit; the state of all of them."""
    facts = machine()
    own = folder / slug(facts)
    path = own / "session.json"
    key = {"machine": facts, "commit": commit()}
    state: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if {name: state.get(name) for name in key} != key:
        state = {**key, "steps": {}}  # results of cases stay: each says what it holds for
    end = time.monotonic() + 60 * minutes
    for step in STEPS:
        if only and step.name not in only:
            continue
        if state["steps"].get(step.name, {}).get("state") == "done" and step.name not in again:
            say(f"{step.name}: done before")
            continue
        seconds = (end - time.monotonic()) * step.share
        if seconds < 1:
            say(f"{step.name}: no time is left")
            continue
        own.mkdir(parents=True, exist_ok=True)
        say(f"{step.name}: {step.what} ({seconds / 60:.1f} minutes at most)")
        words = {"folder": str(own), "results": str(folder), "minutes": f"{seconds / 60:.2f}"}
        start = time.monotonic()
        entry: dict[str, Any] = {"state": "running", "at": _now()}
        state["steps"][step.name] = entry
        save(path, state)
        # benchmarks keep to their minutes by themselves, but for the case that they are at
        code = run([word.format(**words) for word in step.command], seconds + 30)
        named = {0: "done", LEFT: "left"}.get(code, "failed")
        entry |= {"state": named, "code": code, "seconds": round(time.monotonic() - start, 1)}
        save(path, state)
        say(f"{step.name}: {named}")
    return state


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=28, metavar="N")
    parser.add_argument("--results", type=Path, default=ROOT / "results", metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="STEP,...")
    parser.add_argument("--again", default="", metavar="STEP,...")
    options = parser.parse_args(argv)
    only, again = (
        [word for word in text.split(",") if word] for text in (options.only, options.again)
    )
    if unknown := {*only, *again} - {step.name for step in STEPS}:
        known = ", ".join(step.name for step in STEPS)
        parser.error(f"there is no step {', '.join(sorted(unknown))}; there are {known}")
    if (reason := driver.available()) is not None:
        print(f"nothing is run: {reason}", file=sys.stderr)
        return 1
    state = session(options.results.resolve(), options.minutes, only=only, again=again)
    update(ROOT / "README.md", options.results)
    steps = {name: entry["state"] for name, entry in state["steps"].items()}
    print(", ".join(f"{name}: {named}" for name, named in steps.items()))
    return 1 if "failed" in steps.values() else 0


if __name__ == "__main__":
    sys.exit(main())
