"""What `fragir run` prints of a trial: its tables and its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fragir.cli.command import print_table
from fragir.cli.launch import FINDING_COLUMNS, finding_row
from fragir.cli.trial import Trial
from fragir.cli.trial_check import SEEDS

if TYPE_CHECKING:
    from fragir.reference.comparison import Comparison


def show(trial: Trial) -> None:
    """Two tables and the verdict on stdout."""
    sizes = " ".join(f"{name}={size}" for name, size in trial.sizes.items())
    print(f"{trial.kernel.name} for {trial.target} on the {trial.place}: {sizes}")
    print_table(["stage", "ms"], [(name, round(ms, 1)) for name, ms in trial.stages.items()])
    rows: list[tuple[str, str]] = [
        ("registers", _or_unknown(trial.registers)),
        ("spills", _or_unknown(trial.spills, " bytes")),
        ("shared memory", f"{trial.shared} bytes"),
        ("tensor-core instructions", trial.tensor_instructions or "unknown"),
    ]
    for name, found in trial.comparisons.items():
        rows += _rows(name, found, trial.unknown)
    print_table(["what", "value"], rows)
    if trial.findings:
        print_table(FINDING_COLUMNS, [finding_row(one) for one in trial.findings])
    elif trial.findings is not None:
        print(f"no findings in {SEEDS + 2} runs with every check on")
    print(trial.verdict)


def _rows(name: str, found: Comparison, unknown: Sequence[str]) -> Sequence[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if not math.isnan(found.max_error):
        limit = f"(bound {found.bound:.3g})"
        rows.append((f"largest error in {name}", f"{found.max_error:.3g} {limit}"))
    if found.worst is not None:
        place = ", ".join(map(str, found.worst))
        rows.append((f"mismatches in {name}", str(found.mismatches)))
        rows.append(
            (f"worst, {name}[{place}]", f"{found.found:.9g}, expected {found.expected:.9g}")
        )
    if found.nan:
        about = f"{found.nan} of {found.size} elements are NaN by the program, as any mistake would"
        about += " make them; give inputs of which it makes numbers (--inputs, --arg), or --expect"
        rows.append((f"unjudged in {name}", about))
    if open_ := found.unjudged - found.nan:
        share = f"{open_} of {found.size} elements"
        if unknown:
            share += f" may depend on {' and '.join(unknown)}; --expect gives an answer"
        else:
            share += " may overflow or be no number; --expect gives an answer"
        rows.append((f"unjudged in {name}", share))
    return rows


def _or_unknown(number: int | None, unit: str = "") -> str:
    return "unknown" if number is None else f"{number}{unit}"
