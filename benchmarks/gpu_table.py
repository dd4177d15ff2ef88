"""README's table of products on a GPU, made from what stands under `results/` and nothing else.

python benchmarks/gpu_table.py [README.md]
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NONE = "*No product has been measured on a GPU yet: `make gpu` does it, and writes this table.*"
_PART = re.compile(r"(<!-- gpu -->\n).*?(<!-- /gpu -->)", re.DOTALL)
_NAMES = ("fragir", "fragir, tuned", "cuBLAS", "Triton")


def table(results: Path) -> str:
    """The table of each machine of which there are results."""
    parts: list[str] = []
    for path in sorted(results.glob("*/gemm.json")):
        rows: dict[str, Any] = json.loads(path.read_text())
        shown = [row for row in rows.values() if row["results"]]
        if shown:
            parts.append(_machine(shown))
    return "\n\n".join(parts) or NONE


def _machine(rows: list[dict[str, Any]]) -> str:
    """TFLOP/s with 95 % intervals of the rows that were taken with the newest driver and ptxas."""
    newest = max(rows, key=lambda row: row["date"])
    facts = newest["machine"]
    rows = [row for row in rows if row["machine"] == facts]
    names = [name for name in _NAMES if any(name in row["results"] for row in rows)]
    least = min(row["rounds"] for row in rows)
    lines = [
        f"**TFLOP/s on {facts['gpu']}** (driver {facts['driver']}, ptxas {facts['ptxas']},"
        f" {newest['date'][:10]}; median and 95 % interval of at least {least} rounds in turns,"
        " inputs of normal(0, 1), L2 flushed)",
        "",
        f"| product | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
    ]
    for row in rows:
        case = row["case"]
        cells = [_cell(row["results"].get(name)) for name in names]
        shape = f"{case['m']} x {case['n']} x {case['k']}"
        lines.append(f"| {case['type']}, {shape} | {' | '.join(cells)} |")
    ratios = [
        row["results"]["fragir"]["tflops"][0] / row["results"]["cuBLAS"]["tflops"][0]
        for row in rows
        if {"fragir", "cuBLAS"} <= row["results"].keys()
    ]
    if ratios:
        mean = statistics.geometric_mean(ratios)
        lines += ["", f"fragir beside cuBLAS, geometric mean of {len(ratios)}: {mean:.2f}."]
    return "\n".join(lines)


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    middle, low, high = result["tflops"]
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def update(page: Path, results: Path) -> None:
    """Writes the part of a page between `<!-- gpu -->` and `<!-- /gpu -->` anew."""
    text = page.read_text()
    made = _PART.sub(lambda match: f"{match[1]}{table(results)}\n{match[2]}", text)
    if made != text:
        page.write_text(made)


if __name__ == "__main__":
    update(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "README.md", ROOT / "results")
