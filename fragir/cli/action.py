"""What the GitHub Action of this repository does once fragir is installed.

`python -m fragir.cli.action` reads the inputs of action.yml from the environment (`INPUT_...`),
judges, and writes outputs and a summary where GitHub asks for them. It uploads nothing.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fragir.errors import FragirError, printable
from fragir.judge.meanings import EXIT

#: Verdict of a summary, for those without.
_NONE = "no verdict"


def lines(inputs: Mapping[str, str]) -> list[dict[str, Any]]:
    """The kernels to judge, as lines of a batch.

    `INPUT_KERNELS`: a file or pattern a line; `INPUT_CASES`: a case for each of them, or one for
    all. FragirError where they do not fit, or a pattern names no file.
    """
    patterns = _listed(inputs.get("INPUT_KERNELS", ""))
    cases = _listed(inputs.get("INPUT_CASES", ""))
    if not patterns or len(cases) not in (1, len(patterns)):
        raise FragirError(
            f"{len(patterns)} lines of kernels and {len(cases)} of cases",
            hint="one case for all kernels, or one for each line",
        )
    more: dict[str, Any] = {"strict": True} if inputs.get("INPUT_STRICT") == "true" else {}
    seed = inputs.get("INPUT_SEED", "").strip()
    if seed:
        if not seed.isdecimal():
            raise FragirError(f"{seed!r} is no seed", hint="a whole number")
        more["seed"] = int(seed)
    found: list[dict[str, Any]] = []
    for pattern, case in zip(patterns, cases * (len(patterns) // len(cases)), strict=True):
        files = sorted(glob.glob(pattern, recursive=True))
        if not files:
            raise FragirError(f"no file is called {pattern}")
        found += [{"kernel": file, "case": case, **more} for file in files]
    return found


def _listed(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def judge_all(
    kernels: Sequence[Mapping[str, Any]], sarif: str, results: str, seconds: str
) -> list[dict[str, Any]]:
    """The results of a batch, a document a kernel; written to files, too."""
    with tempfile.TemporaryDirectory() as folder:
        batch = Path(folder) / "kernels.jsonl"
        batch.write_text("".join(json.dumps(line) + "\n" for line in kernels), "utf-8")
        command = [sys.executable, "-m", "fragir.cli.main", "judge", "--batch", str(batch)]
        command += ["-o", results, "--sarif", sarif, "--serial", "--seconds", seconds, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (*EXIT.values(), 2) or "error" in json.loads(done.stdout or "{}"):
        raise FragirError(f"the judge gave no verdicts: {(done.stdout or done.stderr)[:500]}")
    return [json.loads(line) for line in Path(results).read_text("utf-8").splitlines()]


def word_of(result: Mapping[str, Any]) -> str:
    return _NONE if result["verdict"] is None else str(result["verdict"]["verdict"])


def summary(results: Sequence[Mapping[str, Any]]) -> str:
    """A table of Markdown."""
    rows = [
        "| kernel | case | verdict | equality | schedules | data | first reason |",
        "|---" * 7 + "|",
    ]
    for one in results:
        verdict = one["verdict"]
        if verdict is None:
            cells = [_NONE, "", "", "", one["error"]]
        else:
            reasons = verdict["reasons"]
            first = f"{reasons[0]['kind']}: {reasons[0]['message']}" if reasons else ""
            ran, data = verdict["schedules"], verdict["data"]
            cells = [
                verdict["verdict"],
                verdict["equality"],
                ran if isinstance(ran, str) else "that ran" if ran else "",
                data if isinstance(data, str) else "these values" if data else "",
                first,
            ]
        rows.append("| " + " | ".join(map(_cell, [one["kernel"], one["case"], *cells])) + " |")
    return "\n".join(["### fragir judge", "", *rows, ""])


def _cell(text: object) -> str:
    """Text of others in a table: nothing in it is markup."""
    short = printable(" ".join(str(text).split()))[:300]
    for mark in "\\`|<>*_[]":
        short = short.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return short


def main(inputs: Mapping[str, str]) -> int:
    """The exit code: 0 where every verdict is `pass` or one of `INPUT_ACCEPT`."""
    accepted = {"pass", *inputs.get("INPUT_ACCEPT", "").split()}
    sarif = inputs.get("INPUT_SARIF", "").strip() or "fragir.sarif"
    results = f"{sarif}.jsonl"
    seconds = inputs.get("INPUT_SECONDS", "").strip() or "600"
    try:
        if unknown := accepted - {*EXIT, _NONE}:
            raise FragirError(
                f"there is no verdict {', '.join(sorted(unknown))}", hint=f"{', '.join(EXIT)}"
            )
        found = judge_all(lines(inputs), sarif, results, seconds)
    except FragirError as error:
        print(f"::error::{printable(error.sentence)}")
        return 2
    counts = {word: sum(word_of(one) == word for one in found) for word in (*EXIT, _NONE)}
    for one in found:
        print(f"{word_of(one)}: {printable(one['kernel'])} by {printable(one['case'])}")
    good = all(word_of(one) in accepted for one in found)
    outputs = {"sarif": sarif, "results": results, "verdict": "pass" if good else "fail"}
    outputs["verdicts"] = json.dumps(counts)
    _append(inputs, "GITHUB_OUTPUT", "".join(f"{k}={v}\n" for k, v in outputs.items()))
    _append(inputs, "GITHUB_STEP_SUMMARY", summary(found))
    return 0 if good else 1


def _append(inputs: Mapping[str, str], name: str, text: str) -> None:
    path = inputs.get(name)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main(os.environ))
