"""What hardware has said: `make gpu-report DIR`, or

    python -m benchmarks.gpu.report [DIR ...]

The results of a run (`run.sh ... DIR`) go to `results/GPU/`; README's table and the page
docs/hardware.md are made from what stands under `results/` and nothing else. Without DIR they are
only made anew.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.gpu.steps import STEPS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
NONE = (
    "*No product has been measured on a GPU yet: `make gpu` does it, and writes this table"
    " ([how](docs/how-to/validate-on-a-gpu.md)).*"
)
NOTHING = """No run on a GPU is recorded in this repository so far. What the emulator does follows
published measurements ([arithmetic](arithmetic.md)); nothing here claims more.
[Validate on a GPU](how-to/validate-on-a-gpu.md) says how such a run is made.
"""
HEAD = """# What hardware says

Made by `make gpu-report` from the results under `results/`, not written by hand.

"""
_PART = re.compile(r"(<!-- gpu -->\n).*?(<!-- /gpu -->)", re.DOTALL)
METRICS = {"tflops": "TFLOP/s", "gbs": "GB/s", "cycles": "cycles", "us": "us", "ms": "ms"}
"""What a contender's result may say, as [median, low, high], and its unit; the first counts."""
Line = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """The results of a run: its head, and a line for each unit."""

    head: dict[str, Any]
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, folder: Path) -> Run:
        """The run in a folder, whole or broken off; SystemExit where there is none."""
        state, results = folder / "session.json", folder / "results.jsonl"
        if not state.exists():
            raise SystemExit(f"{folder} has no session.json: name the folder that run.sh wrote")
        text = results.read_bytes() if results.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        lines = [json.loads(line) for line in whole.splitlines()]
        # each call asks for the machine again
        last = {(line["step"], line["unit"]): line for line in lines}
        return cls(json.loads(state.read_text("utf-8")), tuple(last.values()))

    def of_step(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Units of a step and their results."""
        for line in self.lines:
            if line["step"] == name and line.get("result"):
                yield line["unit"], line["result"]

    @cached_property
    def disagreements(self) -> list[tuple[str, str, str]]:
        """(step, what, words) of all that is otherwise than expected: other bits, other answers,
        kernels that trap, never end or are wrong. Of probes each by its name."""
        found: list[tuple[str, str, str]] = []
        for line in self.lines:
            step, unit = line["step"], line["unit"]
            result: dict[str, Any] = line.get("result") or {}
            if line.get("failed"):
                found.append((step, line.get("title", unit), line["failed"]))
            for probe in result.get("probes", ()):
                if probe["differ"]:
                    kinds = [f"{len(cases)} {kind}" for kind, cases in probe["differ"].items()]
                    found.append((step, probe["name"], f"other bits in {', '.join(kinds)}"))
            if "wrong" in result and "probes" not in result:
                found.append((step, unit, result["wrong"]))
        return found

    @property
    def name(self) -> str:
        """How its folder is called: `nvidia-h100-80gb-hbm3`."""
        machine = self.head["machine"] or {"gpu": "none"}
        return re.sub(r"[^a-z0-9]+", "-", str(machine["gpu"]).lower()).strip("-")


# README's table ----------------------------------------------------------------------------------


def runs(results: Path) -> list[Run]:
    """The runs that are kept, by the names of their GPUs."""
    return [Run.of(path.parent) for path in sorted(results.glob("*/session.json"))]


def grouped(results: Mapping[str, Any]) -> dict[str, tuple[str, list[float]]]:
    """The best contender of each kind (`Triton 128x256` is of `Triton`): its name and numbers.

    Where the one that is called like its kind, fragir's own choice, is another: both.
    """
    best = _best(results)
    found: dict[str, tuple[str, list[float]]] = {}
    for kind, one in best.items():
        if kind in results and one[0] != kind:
            found |= _best({kind: results[kind]}) | {f"{kind}, best": one}
        else:
            found[kind] = one
    return found


def _best(results: Mapping[str, Any]) -> dict[str, tuple[str, list[float]]]:
    found: dict[str, tuple[str, list[float]]] = {}
    for name, one in results.items():
        metric = next(key for key in METRICS if key in one)
        kind, value = name.split()[0].rstrip(","), one[metric]
        better = metric in ("tflops", "gbs")
        if kind not in found or (value[0] > found[kind][1][0]) == better:
            found[kind] = name, value
    return found


def contest_table(units: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    """A table of the best contender of each kind, a row a unit."""
    found = [(unit, result["results"]) for unit, result in units if result.get("results")]
    rows = [(unit, grouped(results)) for unit, results in found]
    kinds = list(dict.fromkeys(kind for _, best in rows for kind in best))
    if not rows:
        return []
    keys = {key for _, results in found for one in results.values() for key in one}
    what = METRICS[next(key for key in METRICS if key in keys)]
    lines = [f"| {what} | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}"]
    for unit, best in rows:
        cells = [_cell(*best[kind]) if kind in best else "" for kind in kinds]
        lines.append(f"| {unit} | {' | '.join(cells)} |")
    return lines


def _cell(name: str, value: Sequence[float]) -> str:
    """Median and interval, and which of its kind it was."""
    middle, low, high = value
    digits = 0 if middle >= 100 else 1 if middle >= 10 else 2
    which = name.partition(" ")[2]
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})" + f" {which}" * bool(
        which
    )


def table(results: Path) -> str:
    """README's table: products of each machine."""
    parts = [part for part in map(_products, runs(results)) if part]
    return "\n\n".join(parts) or NONE


def _products(run: Run) -> str:
    lines = contest_table(run.of_step("gemm"))
    if not lines:
        return ""
    facts = run.head["machine"]
    rounds = min(result["rounds"] for _, result in run.of_step("gemm"))
    head = (
        f"**TFLOP/s on {facts['gpu']}** (driver {facts['driver']}, ptxas"
        f" {run.head['kit']['ptxas']}, {run.head['started'][:10]}; the best of each; median and"
        f" 95 % interval of {rounds} rounds in turns, inputs of normal(0, 1), L2 flushed)"
    )
    ratios = [
        found["fragir"][1][0] / found["cuBLASLt"][1][0]
        for _, result in run.of_step("gemm")
        if {"fragir", "cuBLASLt"} <= (found := grouped(result["results"])).keys()
    ]
    tail: list[str] = []
    if ratios:
        mean = statistics.geometric_mean(ratios)
        tail = ["", f"fragir beside cuBLASLt's best, geometric mean of {len(ratios)}: {mean:.2f}."]
    return "\n".join([head, "", *lines, *tail])


# The page ----------------------------------------------------------------------------------------


def page(results: Path) -> str:
    """docs/hardware.md."""
    found = runs(results)
    if not found:
        return HEAD + NOTHING
    return HEAD + "\n".join(page_of(run) for run in found)


def page_of(run: Run) -> str:
    """The section of a run."""
    return "\n".join(_section(run))


def _section(run: Run) -> Iterator[str]:
    kit: dict[str, Any] = run.head["kit"]
    machine: dict[str, Any] = run.head["machine"] or {}
    yield f"## {machine.get('gpu', 'no GPU was found')}\n"
    cubins: dict[str, Any] = run.head.get("cubins") or {}
    made = f"ptxas {kit['ptxas']}"
    if not cubins.get("taken", True):
        made = f"ptxas {machine.get('ptxas_there')}, since the driver said: {cubins['words']}"
    yield (
        f"{run.head['started'][:10]}, driver {machine.get('driver')} (CUDA {machine.get('cuda')}),"
        f" cubins by {made}, commit `{kit['commit'][:12]}`. `results/{run.name}/` has everything:"
        " inputs and both results of what disagrees, the hash of each cubin.\n"
    )
    yield from _confirmed(run)
    yield from _otherwise(run)
    yield from _missing(run)
    for step in STEPS:
        units = list(run.of_step(step.name))
        lines = contest_table(units) or _rows(units)
        if lines:
            yield f"### {step.name}: {step.what}\n"
            yield "\n".join(lines) + "\n"


def _confirmed(run: Run) -> Iterator[str]:
    """What agrees, in numbers."""
    found = [probe for _, result in run.of_step("probes") for probe in result["probes"]]
    same = [probe for probe in found if not probe["differ"]]
    cases = sum(sum(probe["cases"].values()) for probe in same)
    answers = [x for _, result in run.of_step("arithmetic") for x in result["answers"]]
    facts = [result for _, result in run.of_step("facts")]
    yield "### What it confirms\n"
    names = {probe["name"].split()[0] for probe in same}
    yield (
        f"* {len(same)} of {len(found)} kernels of instructions ({len(names)} instructions) give"
        f" the emulator's bits in all of {cases} cases: one-hot, small integers, random bits."
    )
    yield (
        f"* {sum(x['agree'] for x in answers)} of {len(answers)} open questions of"
        " [arithmetic](arithmetic.md) are answered as the emulator assumes."
    )
    agreed = sum("wrong" not in fact for fact in facts)
    yield f"* {agreed} of {len(facts)} facts of the machine are as assumed."
    counts = [result["counts"] for _, result in run.of_step("tests")]
    passed = sum(count.get("passed", 0) for count in counts)
    failed = sum(count.get("failed", 0) for count in counts)
    yield f"* Tests: {passed} passed, {failed} failed.\n"


def _otherwise(run: Run) -> Iterator[str]:
    """Where it decides otherwise: there hardware is right."""
    yield "### Where it decides otherwise\n"
    if not run.disagreements:
        yield "Nowhere.\n"
        return
    yield "| step | what | |\n|---|---|---|"
    for step, what, words in run.disagreements:
        yield f"| {step} | {what} | {words.replace('|', '/')} |"
    yield ""


def _missing(run: Run) -> Iterator[str]:
    """What was not reached, or left out of the kit."""
    yield "### What was not reached\n"
    steps: dict[str, Any] = run.head["steps"]
    left = [
        f"{name}: {entry['left']} of {entry['units']} units"
        for name, entry in steps.items()
        if entry["state"] != "done"
    ]
    left += [f"{name}: all" for name in run.head["kit"]["steps"] if name not in steps]
    reasons: dict[tuple[str, str], list[str]] = {}
    for step in STEPS:
        for unit, result in run.of_step(step.name):
            for name, why in result.get("absent", {}).items():
                reasons.setdefault((name, why), []).append(unit)
    absent = [f"{name}, {why}: {', '.join(units)}" for (name, why), units in reasons.items()]
    outside = [f"{one['what']}: {one['why']}" for one in run.head["kit"]["left_out"]]
    for words in [*left, *absent, *outside] or ["Nothing."]:
        yield f"* {words}"
    yield ""


def _rows(units: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """A table of results that are rows of measurements."""
    rows = [(unit, row) for unit, result in units for row in result.get("rows", ())]
    if not rows:
        return []
    lines = ["| group | what | median | from | to | unit |", "|---|---|---:|---:|---:|---|"]
    for unit, row in rows:
        value = next((row[key] for key in ("value", *METRICS) if key in row), None)
        if value is not None:
            middle, low, high = value
            lines.append(
                f"| {unit} | {row['name']} | {middle:.4g} | {low:.4g} | {high:.4g}"
                f" | {row.get('unit', '')} |"
            )
    return lines


def update(results: Path = RESULTS, root: Path = ROOT) -> None:
    """Makes README's table and the page anew."""
    readme, hardware = root / "README.md", root / "docs/hardware.md"
    text = readme.read_text("utf-8")
    made = _PART.sub(lambda match: f"{match[1]}{table(results)}\n{match[2]}", text)
    for path, new in ((readme, made), (hardware, page(results))):
        if not path.exists() or path.read_text("utf-8") != new:
            path.write_text(new, "utf-8")


def take(folder: Path, results: Path = RESULTS) -> Path:
    """Copies the results of a run to those that are kept, in place of its GPU's earlier ones."""
    run = Run.of(folder)
    if run.head["machine"] is None:
        raise SystemExit(f"{folder}: the run found no GPU, so there is nothing to keep")
    if run.head["kit"]["small"]:
        raise SystemExit(f"{folder} is a rehearsal's: no hardware has said this")
    to = results / run.name
    to.mkdir(parents=True, exist_ok=True)
    for name in ("session.json", "results.jsonl"):
        if (folder / name).exists():
            shutil.copyfile(folder / name, to / name)
    return to


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", type=Path, nargs="*", metavar="DIR")
    for folder in parser.parse_args(argv).folders:
        run, to = Run.of(folder), take(folder)
        print(f"{to.relative_to(ROOT)}: {len(run.lines)} units")
        for step, what, words in run.disagreements:
            print(f"  {step}: {what}: {words}")
    update()
    return 0


if __name__ == "__main__":
    sys.exit(main())
