"""The tables of verdicts and findings in the pages, written from `fragir.judge.meanings`.

python -m tests.docs.agents        writes them anew, between their marks
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from fragir.emulator.report import KINDS, OF_SEVERAL_RUNS
from fragir.judge.meanings import REASONS, VERDICTS, meanings
from fragir.toolchain.verdicts import KINDS as OF_PTXAS

CLASSES = Path(__file__).resolve().parents[2] / "results/kernel_classes.json"
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / "judge.md", DOCS / "for-agents.md", DOCS / "json.md"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines).replace("|  |", "| |")


def _verdicts() -> str:
    rows = [(f"`{name}`", str(one.exit_code), one.means) for name, one in VERDICTS.items()]
    return _table(("verdict", "exit code", "what it says"), rows)


def _next() -> str:
    rows = [(f"`{name}`", str(one.exit_code), one.then) for name, one in VERDICTS.items()]
    return _table(("verdict", "exit code", "what to do"), rows)


def _findings(kinds: Iterable[str]) -> str:
    known = meanings()
    rows = [(f"`{k}`", known[k].means, known[k].why, known[k].mend) for k in kinds]
    return _table(("kind", "what it is", "why it is a fault", "the usual cure"), rows)


def _kinds() -> str:
    rows = [(f"`{kind}`", meanings()[kind].means) for kind in (*KINDS, *OF_SEVERAL_RUNS, *OF_PTXAS)]
    return _table(("kind", "meaning"), rows)


#: How the groups of `results/kernel_classes.json` are called, in their order.
GROUPS = {
    "Triton": "Triton's, of tests/foreign",
    "nvcc": "nvcc's, of tests/foreign",
    "cases": "of both, judged by a case",
    "programs": "programs of examples/",
    "scripts": "scripts of examples/",
}


def _classes() -> str:
    """Kernels by class: how many of each origin."""
    kernels = json.loads(CLASSES.read_text("utf-8"))["kernels"]
    rows: list[tuple[str, ...]] = []
    for by, words in GROUPS.items():
        group = [one for one in kernels if one["by"] == by]
        equalities = [str(one["equality"]) for one in group if one["equality"] is not None]
        exact, numbers, bounded = (
            str(sum(each.startswith(kind) for each in equalities)) if equalities else ""
            for kind in ("exact", "numbers", "bounded")
        )
        every = (str(sum(one[of] for one in group)) for of in ("every_schedule", "every_value"))
        rows.append((words, str(len(group)), *every, exact, numbers, bounded))
    head = ("kernels", "", "every schedule", "every value", "the same function", "the same numbers")
    return _table((*head, "within the bound"), rows)


def _choices() -> str:
    """Kernels of which a run does not speak for every schedule, and why, without the lines."""
    found: dict[str, set[str]] = {}
    for one in json.loads(CLASSES.read_text("utf-8"))["kernels"]:
        if not one["every_schedule"]:
            reasons = found.setdefault(one["kernel"].partition(",")[0], set())
            reasons |= {re.sub(r"^(line )?\d+: ", "", why) for why in one["open"]}
    rows = [(f"`{kernel}`", "; ".join(sorted(reasons))) for kernel, reasons in found.items()]
    return _table(("kernel", "what is open"), rows)


TABLES = {
    "classes": _classes,
    "choices": _choices,
    "verdicts": _verdicts,
    "next": _next,
    "reasons": lambda: _findings(REASONS),
    "findings": lambda: _findings([*KINDS, *OF_SEVERAL_RUNS]),
    "kinds": _kinds,
}
_MARKED = re.compile(r"(<!-- table (\w+) -->\n\n)(.*?)(\n<!-- /table -->)", re.DOTALL)


def filled(text: str) -> str:
    """A page with its tables as they should be. AssertionError where it has none."""
    assert _MARKED.search(text)
    return _MARKED.sub(lambda m: f"{m[1]}{TABLES[m[2]]()}{m[4]}", text)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text("utf-8")), "utf-8")
