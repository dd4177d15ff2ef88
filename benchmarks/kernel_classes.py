"""Classes of kernels, out of the results of sweeps: `results/kernel_classes.json`.

    fragir sweep every-schedule --set launches=FOLDER -o foreign.jsonl
    fragir sweep judge-examples -o own.jsonl
    fragir sweep planted-faults -o cases.jsonl
    python -m benchmarks.kernel_classes foreign.jsonl own.jsonl cases.jsonl

The table of docs/judge.md is written from that file by `python -m tests.docs.agents`.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results/kernel_classes.json"
Row = dict[str, Any]


def lines_of(path: str) -> tuple[str, list[Row]]:
    """The sweep of a file of results, and its tasks' lines. SystemExit where one has failed."""
    head, *lines = map(json.loads, Path(path).read_text("utf-8").splitlines())
    if failed := [line["what"] for line in lines if line["failed"]]:
        raise SystemExit(f"{path}: failed: {failed}")
    return str(head["sweep"]), lines


def rows_of(sweep: str, lines: Sequence[Row]) -> Iterator[Row]:
    """A row a kernel that is as it was written."""
    for line in lines:
        what, found = line["what"], line["result"]
        if "every_schedule" not in found:
            continue
        by, name = "cases", found.get("kernel", "")
        if sweep == "every-schedule":
            by, name = _foreign(what[0])
        elif sweep == "judge-examples":
            by = "scripts" if what["program"].endswith(".py") else "programs"
            name = f"{what['program']}: {what['entry']}"
        yield {
            "by": by,
            "kernel": name,
            "verdict": found.get("verdict"),
            "every_schedule": found["every_schedule"],
            "every_value": found["every_value"],
            "equality": found.get("equality"),
            "open": found.get("open") or found.get("reasons") or [],
        }


def _foreign(launch: str) -> tuple[str, str]:
    """Who has compiled a launch that was kept, and its kernel."""
    text, entry, *_ = pickle.loads(Path(launch).read_bytes())
    target = re.search(r"^\.target (\w+)", text, re.MULTILINE)
    assert target is not None
    return "Triton" if "LLVM NVPTX" in text[:400] else "nvcc", f"{entry}, {target[1]}"


def mutants_of(lines: Sequence[Row]) -> Row:
    """What became of the mutants of `every-schedule`."""
    found = [line for line in lines if line["what"][1] >= 0]
    return {
        "mutants": len(found),
        "kernels": len({line["what"][0] for line in found}),
        "reported": sum(line["result"].get("reported", 0) for line in found),
        "every_schedule": sum(line["result"].get("passes", 0) for line in found),
        "refuted": sum(bool(line["result"]["findings"]) for line in found),
    }


def main() -> None:
    kernels: list[Row] = []
    document: Row = {"kernels": kernels}
    for path in sys.argv[1:]:
        sweep, lines = lines_of(path)
        kernels += rows_of(sweep, lines)
        if sweep == "every-schedule":
            document["mutants"] = mutants_of(lines)
    kernels.sort(key=lambda row: (row["by"], row["kernel"], row["every_value"]))
    RESULTS.write_text(json.dumps(document, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
