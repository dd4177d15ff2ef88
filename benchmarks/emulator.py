"""How fast the emulator is, to the bit: by core and jobs, with and without checks, and before.

    python benchmarks/emulator.py [--against REVISION] [--cases PATTERN] [--rounds N] [--huge]
                                  [--json FILE] [--update PAGE.md]

Each core that is there (compiled, numpy) runs with one job and with two, in processes of
their own that take turns; `--against` adds another revision of the repository, or a folder of one.
Products, a softmax, histograms, probes and loops (emulator_cases.py); times include reading and
decoding the PTX. `--huge` runs one product of 4096^3, and nothing else.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from emulator_cases import Case, Launch, cases
from emulator_huge import huge
from emulator_variants import BEFORE, Variant, checkout, variants
from measure import Times, take_turns
from report import Column, Report, Row, Table, arguments, command, machine, present, status
from rich.console import Console

LONG, ENOUGH = 2500, 3
"""Where a round takes so many ms or longer, so many rounds are enough, the first among them."""
QUICK = (("compiled", 2), ("numpy", 1))


class Measured:
    """What all variants gave for a case, with or without checks."""

    def __init__(self, times: dict[str, Times], answers: dict[str, list[dict[str, Any]]]) -> None:
        self.times, self.answers = times, answers

    def least(self, title: str) -> tuple[float, float]:
        """Wall and CPU time in ms."""
        return min(self.times[title].wall), min(self.times[title].cpu)

    def decoding(self, title: str) -> float:
        """The least share of wall time that reading and decoding took."""
        return min(answer["decoding"] for answer in self.answers[title])

    def differing(self) -> str:
        """What is not the same in all runs of all variants, else yes."""
        first, *others = (answer for answers in self.answers.values() for answer in answers)
        parts = ("results", "statistics", "findings")
        found = [part for part in parts if any(first[part] != other[part] for other in others)]
        return f"not {', '.join(found)}" if found else "yes"

    def findings(self) -> dict[str, list[str]]:
        """Of each variant's last run."""
        return {title: answers[-1]["findings"] for title, answers in self.answers.items()}


def measured(
    launch: Path, check: bool, there: Sequence[Variant], rounds: int, name: str
) -> Measured:
    """Runs of all variants in turns; the first round counts where rounds are long."""
    say = status(Console(stderr=True))
    runs = {variant.title: variant.run(launch, check) for variant in there}

    def progress(text: str) -> None:
        say(f"{name}{', every check' * check}: {text}".ljust(100))

    for variant in there:
        variant.answers.clear()
    found = take_turns(runs, 1, warm_up=0, progress=progress)
    if rounds > 1:
        long = sum(times.wall[0] for times in found.values()) > LONG
        more = min(rounds, ENOUGH) - 1 if long else rounds
        again = take_turns(runs, more, warm_up=0, progress=progress)
        for title, times in again.items():
            if long:
                times.add(found[title].wall[0], found[title].cpu[0])
        found = again
    return Measured(found, {variant.title: variant.answers.copy() for variant in there})


def text_of(milliseconds: float) -> str:
    """Three digits or more."""
    digits = 0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2
    return f"{milliseconds:,.{digits}f}"


def tables(titles: Sequence[str], base: str, best: str) -> tuple[Table, Table, Table, Table]:
    """Times, ratios, factors of checks and rates, without rows."""
    left = (Column("case", "case"), Column("checks", "checks"))
    each = [Column(title, title, ">") for title in titles]
    times = Table(
        "The emulator: least wall ms, and in brackets least CPU ms",
        (*left, *each, Column("equal", "equal")),
        note="Of a launch, from its PTX to its results. CPU time is that of a process with all its "
        "threads and of the processes that it forks. Equal: the bytes of all arrays, warp "
        "instructions by opcode, tensor-core instructions, bytes loaded and stored by space, "
        "and findings and remarks, of all runs.",
    )
    ratios = Table(
        f"How many times as fast as {base}: by wall time, and in brackets by CPU time",
        (*left, *(column for column in each if column.key != base)),
    )
    checks = Table(
        "How many times as long it takes with every check: CPU time",
        (left[0], *(Column(title, title, ".2f") for title in titles)),
    )
    rates = Table(
        f"Rates: {best}, without checks",
        (
            left[0],
            Column("instructions", "warp instr.", ",d"),
            Column("mma", "mma", ",d"),
            Column("mma_rate", "mma/s", ",.0f"),
            Column("lane_rate", "lane instr./s, M", ",.1f"),
            Column("microseconds", "us an instr.", ",.2f"),
            Column("decoding", "decoding", ".0%"),
            Column("error", "largest error", ".1e"),
        ),
        note="Of least CPU times. A lane instruction is one of one lane; mma: tensor-core "
        "instructions, wgmma as one of a warpgroup; us an instruction: of all warps of a loop "
        "together, decoding left out. Decoding is the least share of wall time spent on reading "
        "and decoding PTX. Errors are differences from results in f64 or in exact numbers.",
    )
    return times, ratios, checks, rates


def time_row(case: str, check: bool, found: Measured) -> Row:
    row: Row = {"case": case, "checks": "every" if check else "", "equal": found.differing()}
    for title, times in found.times.items():
        wall, cpu = found.least(title)
        row[title] = f"{text_of(wall)} ({text_of(cpu)})"
        row[f"{title}_summary"] = times.summary()
    if "findings" in row["equal"]:
        row["findings"] = found.findings()
    return row


def ratio_row(case: str, check: bool, found: Measured, base: str) -> Row:
    row: Row = {"case": case, "checks": "every" if check else ""}
    of = found.least(base)
    for title in found.times:
        wall, cpu = (b / x for b, x in zip(of, found.least(title), strict=True))
        row[title] = f"{wall:.2f} ({cpu:.2f})"
        row[f"{title}_ratios"] = {"wall": wall, "cpu": cpu}
    return row


def check_row(case: str, plain: Measured, checked: Measured) -> Row:
    factors = {t: checked.least(t)[1] / plain.least(t)[1] for t in plain.times}
    return {"case": case, **factors}


def rate_row(case: str, launch: Launch, error: float, found: Measured, best: str) -> Row:
    """The rates of the variant `best`."""
    seconds, decoding = found.least(best)[1] / 1e3, found.decoding(best)
    statistics = found.answers[best][-1]["statistics"]
    instructions = sum(statistics["instructions"].values())
    row: Row = {
        "case": case,
        "instructions": instructions,
        "mma": statistics["mma"] or None,
        "mma_rate": statistics["mma"] / seconds or None,
        "lane_rate": statistics["lanes"] / seconds / 1e6,
        "decoding": decoding,
        "error": error,
    }
    if launch.warps:
        row["microseconds"] = seconds * (1 - decoding) / (instructions / launch.warps) * 1e6
    return row


def compared(chosen: Sequence[Case], there: Sequence[Variant], rounds: int) -> list[Table]:
    """All the tables."""
    titles = [variant.title for variant in there]
    alone = next((variant.title for variant in there if variant.jobs == 1), titles[-1])
    base = BEFORE if BEFORE in titles else _plainest(there)
    times, ratios, checks, rates = tables(titles, base, alone)
    with tempfile.TemporaryDirectory(prefix="fragir-bench-") as folder:
        for number, case in enumerate(chosen):
            path, results = Path(folder, f"{number}.launch"), Path(folder, "results.npz")
            launch = case.launch()
            launch.write(path)
            there[-1].ask(path, keep=str(results))
            with np.load(results) as kept:
                error = launch.error([kept[name] for name in kept.files])
            plain, checked = (
                measured(path, check, there, rounds, case.name) for check in (False, True)
            )
            for check, found in ((False, plain), (True, checked)):
                times.rows.append(time_row(case.name, check, found))
                ratios.rows.append(ratio_row(case.name, check, found, base))
            checks.rows.append(check_row(case.name, plain, checked))
            rates.rows.append(rate_row(case.name, launch, error, plain, alone))
            path.unlink()
    return [times, ratios, checks, rates]


def _plainest(there: Sequence[Variant]) -> str:
    """The slowest core there is, with one job: what others are compared with."""
    alone = [variant.title for variant in there if variant.jobs == 1]
    return (alone or [variant.title for variant in there])[-1]


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    """Those of the pattern; SystemExit where there are none."""
    found = cases()
    if options.quick:
        found = [case for case in found if case.quick]
    if options.cases is not None:
        try:
            pattern = re.compile(options.cases)
        except re.error as error:
            raise SystemExit(f"--cases {options.cases}: {error}") from None
        names = "\n  ".join(case.name for case in found)
        found = [case for case in found if pattern.search(case.name)]
        if not found:
            raise SystemExit(f"--cases {options.cases}: none of\n  {names}")
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--against", metavar="REVISION", help="that one too, or a folder with one")
    parser.add_argument("--cases", metavar="PATTERN", help="those whose names it is found in")
    parser.add_argument("--huge", action="store_true", help="4096^3 once, and nothing else")
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else 5)
    facts = machine(["fragir", "numpy"])
    if options.huge:
        found = [huge()]
    else:
        chosen = chosen_cases(options)
        with (
            checkout(options.against) as before,
            variants(before, QUICK if options.quick else None) as there,
        ):
            found = compared(chosen, there, rounds)
    name = "emulator-huge" if options.huge else "emulator"
    present(Report(name, command(options), facts, found), options)


if __name__ == "__main__":
    sys.exit(main())
