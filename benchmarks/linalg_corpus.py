"""Functions of linalg as others print them: what mlir-opt says, and what fragir makes of them.

    python benchmarks/linalg_corpus.py [--mlir-opt PROGRAM] [--json FILE] [NAME ...]

Each file of `tests/linalg/corpus` is read by mlir-opt first; one that this version does not know
names the page on which MLIR defines the form. Then it is compiled for sm_80 and sm_90a, assembled,
run on the emulator with its checks, and compared with the reference and with numpy. The table has
kernels, temporaries, milliseconds of a second compilation (without ptxas), and the largest
difference from numpy in parts of the largest number. Debian has mlir-opt in mlir-19-tools.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console
from rich.progress import track
from rich.table import Table

import fragir
from fragir.cli.trial import Trial
from fragir.errors import FragirError
from fragir.host import Program
from tests.linalg.cases import FOLDER, Case, cases, differences, nearness, trial_of

TARGETS = ("sm_80", "sm_90a")


class Outcome(NamedTuple):
    """What became of a function on one machine."""

    name: str
    mlir: str
    """"accepted", or the page that defines what this mlir-opt does not know; "refused" without."""
    target: str
    verdict: str
    """"right", or what is wrong."""
    kernels: int = 0
    temporaries: int = 0
    milliseconds: float = 0.0
    difference: float = 0.0


def said_by(mlir_opt: str, case: Case) -> str:
    """What mlir-opt says of a file."""
    done = subprocess.run(
        [mlir_opt, str(FOLDER / f"{case.name}.mlir")], capture_output=True, check=False
    )
    return "accepted" if done.returncode == 0 else case.page or "refused"


def outcome(case: Case, mlir: str, target: str) -> Outcome:
    """Compiled, assembled, run and compared."""
    try:
        trial = trial_of(case, target)
        start = time.perf_counter()
        again = fragir.compile(case.text, target=target)
        spent = 1e3 * (time.perf_counter() - start)
        verdict, difference = judged(case, trial)
    except FragirError as error:
        return Outcome(case.name, mlir, target, str(error).splitlines()[0])
    plan = again.plan if isinstance(again, Program) else None
    kernels = len(plan.launches) if plan is not None else 1
    temporaries = len(plan.temporaries) if plan is not None else 0
    return Outcome(case.name, mlir, target, verdict, kernels, temporaries, spent, difference)


def judged(case: Case, trial: Trial) -> tuple[str, float]:
    """By ptxas, the emulator's checks, the reference, and numpy."""
    if trial.kernel.assembled.warnings:
        return "ptxas warns", 0.0
    trial.evaluate()
    copies = [x.copy() if hasattr(x, "copy") else x for x in trial.inputs]
    report = trial.kernel(*copies, on="emulator", check=True)
    if report.findings:
        return f"the emulator: {report.findings[0]}", 0.0
    trial.execute()
    trial.judge()
    difference = max(differences(case, trial))
    if not trial.has_passed:
        return "outside of the reference's bound", difference
    return "right" if difference <= nearness(trial) else "not what numpy says", difference


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="files, without .mlir; all of them without one")
    parser.add_argument("--mlir-opt", default="mlir-opt-19", help="which mlir-opt")
    parser.add_argument("--json", metavar="FILE", help="write the outcomes here")
    given = parser.parse_args()
    version = subprocess.run(
        [given.mlir_opt, "--version"], capture_output=True, text=True, check=True
    )
    line = next(x.strip() for x in version.stdout.splitlines() if "version" in x)
    chosen = [case for case in cases() if not given.names or case.name in given.names]
    outcomes = [
        outcome(case, said_by(given.mlir_opt, case), target)
        for case in track(chosen, "functions", console=Console(stderr=True), transient=True)
        for target in TARGETS
    ]
    table = Table("function", "mlir-opt", "for", "verdict", title=line)
    for words in ("kernels", "temporaries", "ms", "difference"):
        table.add_column(words, justify="right")
    for one in outcomes:
        mlir = "newer" if one.mlir.startswith("http") else one.mlir
        spent, difference = f"{one.milliseconds:.0f}", f"{one.difference:.1e}"
        row = (one.name, mlir, one.target, one.verdict, str(one.kernels), str(one.temporaries))
        table.add_row(*row, spent, difference)
    Console().print(table)
    if given.json:
        document = {"mlir_opt": line, "outcomes": [one._asdict() for one in outcomes]}
        Path(given.json).write_text(json.dumps(document, indent=1) + "\n")
    bad = [one for one in outcomes if one.verdict != "right" or one.mlir == "refused"]
    print(f"{len(outcomes) - len(bad)} of {len(outcomes)} right")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
