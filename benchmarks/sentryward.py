"""SentryWard and `fragir check` on the same kernels: planted faults, and their mended twins.

SentryWard (PyPI, 0.1.1) is no part of this project's environment: name its command.

    python benchmarks/sentryward.py --sentryward PATH/bin/sentryward
    python benchmarks/sentryward.py --sentryward ... --update docs/comparison.md

A fault is found where the faulty kernel is refused and the mended one is not (SentryWard may have
no answer to that). Both are told the launch, SentryWard nothing of the size of the buffer: it has
no bounds to check.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # the tests' faults are no part of the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from fragir.emulator.report import PERFORMANCE
from fragir.judge import Judging, judge
from fragir.ptx import parse
from tests.emulator.faults import Fault, faults
from tests.judge import triton_cases
from tests.judge.triton_cases import LAUNCHES

#: SentryWard's words for what it has found, and for what it has shown to be well.
FOUND = {"not_wellsynced", "potential_race", "invalid_lifecycle"}
CLEAN = {"race_free", "verified"}
SECONDS = 120
SCHEMA = "spverify.kernel-input/v1"
MARKS = "<!-- neighbours -->", "<!-- /neighbours -->"


@dataclass(frozen=True)
class Pair:
    """What a tool says of a faulty kernel and of its mended twin, and the seconds of both."""

    faulty: str
    mended: str
    seconds: float

    @property
    def word(self) -> str:
        if self.faulty == "found":
            return "alarm at both" if self.mended == "found" else "found"
        return "missed" if self.faulty == "clean" else "no answer"


def launch_of(fault: Fault) -> dict[str, Any]:
    """SentryWard's description of the launch that a fault's comments give."""
    numbers = dict(re.findall(r"\b(block|grid|cluster) (\d+)", fault.text))
    launch = {
        "grid_dim": [int(numbers["grid"]), 1, 1],
        "block_dim": [int(numbers["block"]), 1, 1],
    }
    if int(numbers["cluster"]) > 1:
        launch["cluster_dim"] = [int(numbers["cluster"]), 1, 1]
    return {"schema": SCHEMA, "launch": launch, "arguments": []}


def by_sentryward(command: str, fault: Fault, folder: Path) -> tuple[Pair, list[str]]:
    """Its two answers; and its own words for them."""
    words, seconds = list[str](), 0.0
    for mended in (False, True):
        path = folder / "k.ptx"
        path.write_text(fault.ptx(mended=mended))
        word, _, taken = asked(command, path, launch_of(fault), folder)
        words.append(word)
        seconds += taken
    said = ["found" if w in FOUND else "clean" if w in CLEAN else "open" for w in words]
    return Pair(said[0], said[1], seconds), words


def by_fragir(fault: Fault) -> Pair:
    """Every check, one run, as `fragir check` begins; remarks on performance are none."""
    start, said = time.perf_counter(), list[str]()
    for mended in (False, True):
        found = [f for f in fault.findings(mended=mended) if f.severity != "remark"]
        said.append("found" if found else "clean")
    return Pair(said[0], said[1], time.perf_counter() - start)


# -- kernels of Triton -----------------------------------------------------------------------------

#: Without TMA, whose maps SentryWard asks for in a form of its own.
KERNELS = (
    *("softmax", "layer_norm", "attention", "gemm_int8", "gemm_fp8"),
    *("gemm_f16", "gemm_bf16", "gemm_tf32", "gemm_wgmma", "gemm_fp8_wgmma"),
)


def of_triton(command: str, name: str, folder: Path) -> str:
    """A line of the table of kernels: what each says of the first launch of a case."""
    case = next(iter(getattr(triton_cases, name)(np.random.default_rng(1))))
    call = case.calls
    title = next(t for t, made in LAUNCHES.items() if made["entry"] == call.entry and used(name, t))
    path = triton_cases.FOLDER / f"{title}.ptx"
    entry = parse(path.read_text("utf-8")).entries[call.entry]
    scalars: list[dict[str, Any]] = [
        {"parameter": one.variables[0].name.text, "type": one.type, "value": value}
        for one, value in zip(entry.parameters or (), call.arguments, strict=True)
        if isinstance(value, int | float)
    ]
    grid = [*call.grid, 1, 1][:3]
    launch = {"grid_dim": grid, "block_dim": [call.block, 1, 1]}
    document: dict[str, Any] = {"schema": SCHEMA, "launch": launch, "arguments": scalars}
    word, why, seconds = asked(command, path, document, folder)
    start = time.perf_counter()
    verdict = judge(path.read_text("utf-8"), f"{triton_cases.__file__}:{name}", Judging(seed=1))
    own = time.perf_counter() - start
    every = "every schedule" if verdict.schedules and verdict.schedules.every else "these schedules"
    ours = f"`{verdict.word}`, {verdict.equality}, {every}"
    return f"| {title} | {ours} | {own:.1f} | `{word}`{why} | {seconds:.1f} |"


def used(name: str, title: str) -> bool:
    """Whether a function of the cases launches that kernel."""
    return f'"{title}"' in inspect.getsource(getattr(triton_cases, name))


def asked(
    command: str, ptx: Path, document: Mapping[str, Any], folder: Path
) -> tuple[str, str, float]:
    """SentryWard's result, why there is none, and seconds."""
    (folder / "input.json").write_text(json.dumps(document))
    line = [command, str(ptx), "--input", str(folder / "input.json"), "--timeout", str(SECONDS)]
    start = time.perf_counter()
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return "tool_failure", "", seconds
    said: list[dict[str, Any]] = answer.get("diagnostics") or [{}]
    why = str(said[0].get("message") or "") if answer["result"] == "unsupported" else ""
    return str(answer["result"]), f" ({why})" if why else "", seconds


# -- the page --------------------------------------------------------------------------------------

HEAD = ("fault", "kernels", "`fragir check`", "SentryWard", "called free of it", "no answer")


def table(told: Mapping[str, Sequence[Pair]], ours: Mapping[str, Sequence[Pair]]) -> str:
    """A line a kind of fault, of all kernels at the end."""

    def row(name: str, kinds: Sequence[str]) -> str:
        theirs = [pair for kind in kinds for pair in told[kind]]
        words = Counter(pair.word for pair in theirs)
        found = sum(pair.word == "found" for kind in kinds for pair in ours[kind])
        alarms = f" (and {words['alarm at both']} at both)" if words["alarm at both"] else ""
        cells = [name, len(theirs), found, f"{words['found']}{alarms}", words["missed"]]
        return "| " + " | ".join(map(str, [*cells, words["no answer"]])) + " |"

    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    lines += [row(f"`{kind}`", [kind]) for kind in sorted(told)]
    return "\n".join([*lines, row("all", sorted(told))])


def updated(page: str, text: str) -> str:
    """A page with the text between the marks."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentryward", required=True, help="its command")
    parser.add_argument("--all", action="store_true", help="a line a kernel, too")
    parser.add_argument("--update", metavar="PAGE.md", help="write the table there")
    options = parser.parse_args()
    theirs, ours = defaultdict[str, list[Pair]](list), defaultdict[str, list[Pair]](list)
    with tempfile.TemporaryDirectory() as name:
        for fault in faults():
            if fault.kind in PERFORMANCE:
                continue
            answer, words = by_sentryward(options.sentryward, fault, Path(name))
            theirs[fault.kind].append(answer)
            ours[fault.kind].append(by_fragir(fault))
            if options.all:
                print(fault.name, ours[fault.kind][-1].word, answer.word, *words, flush=True)
    seconds = [sum(p.seconds for of in told.values() for p in of) for told in (ours, theirs)]
    text = table(theirs, ours)
    text += f"\n\nSeconds for all, both twins: `fragir check` (one run) {seconds[0]:.0f}, "
    text += f"SentryWard {seconds[1]:.0f}."
    with tempfile.TemporaryDirectory() as name:
        lines = [of_triton(options.sentryward, one, Path(name)) for one in KERNELS]
    text += "\n\n| kernel of Triton 3.6.0 | `fragir judge`, all launches of its case | s |"
    text += " SentryWard, the first launch | s |\n|---|---|---|---|---|\n" + "\n".join(lines)
    print(text)
    if options.update:
        page = Path(options.update)
        page.write_text(updated(page.read_text("utf-8"), text), "utf-8")


if __name__ == "__main__":
    main()
