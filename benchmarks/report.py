"""What a benchmark prints: tables for a person, JSON for a program, Markdown for the docs."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.table import Table as RichTable

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """`key` in the rows; `format` as in f"{value:.1f}"; text stands left, numbers right."""

    key: str
    title: str
    format: str = ""

    def text(self, row: Row) -> str:
        value = row.get(self.key)
        return "" if value is None else format(value, self.format)


@dataclass
class Table:
    """Rows of values; what a column does not show is in the JSON all the same."""

    title: str
    columns: Sequence[Column]
    rows: list[Row] = field(default_factory=list[Row])
    note: str = ""

    def rich(self) -> RichTable:
        table = RichTable(title=self.title, caption=self.note or None, title_justify="left")
        for column in self.columns:
            table.add_column(
                column.title,
                justify="right" if column.format else "left",
                no_wrap=not column.format,
            )
        for cells in self.cells():
            table.add_row(*cells)
        return table

    def unmeasured(self, part: bool) -> list[str]:
        """The columns of numbers that have none; with `part` only where no other column has."""
        numbers = [column for column in self.columns if column.format]
        empty = [c.title for c in numbers if all(not c.text(row).strip() for row in self.rows)]
        return [] if part and len(empty) < len(numbers) else empty

    def cells(self) -> list[list[str]]:
        """The text of all rows; in the first column, what the row above says is left out."""
        rows = [[column.text(row) for column in self.columns] for row in self.rows]
        first = [row[0] for row in rows]
        for row, above in zip(rows[1:], first, strict=False):
            if row[0] == above:
                row[0] = ""
        return rows

    def markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return f"| {' | '.join(cells)} |"

        lines = [
            f"**{self.title}**",
            "",
            line([c.title for c in self.columns]),
            line(["---:" if c.format else "---" for c in self.columns]),
            *(line([cell.replace("|", "\\|") for cell in cells]) for cells in self.cells()),
        ]
        return "\n".join(lines + (["", self.note] if self.note else []))


TIME_COLUMNS = (
    Column("cpu_min", "CPU least", ".1f"),
    Column("cpu_median", "CPU median", ".1f"),
    Column("wall_min", "wall least", ".1f"),
    Column("wall_median", "wall median", ".1f"),
    Column("spread", "wall quartiles"),
)


def spread(summary: dict[str, float]) -> Row:
    """A summary of times with its quartiles as text."""
    return {**summary, "spread": f"{summary['wall_low']:.1f} to {summary['wall_high']:.1f}"}


@dataclass
class Report:
    """All the tables of one script, and where and when they were made."""

    name: str
    command: str
    machine: dict[str, str]
    tables: list[Table] = field(default_factory=list[Table])

    def unmeasured(self, alone: bool) -> list[str]:
        """What has not been measured; without neighbours (`alone`) their columns may be empty."""
        found = ((table.title, table.unmeasured(alone)) for table in self.tables)
        return [f"{title}: {', '.join(columns)}" for title, columns in found if columns]

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    def markdown(self) -> str:
        facts = "; ".join(f"{key} {value}" for key, value in self.machine.items())
        tables = "\n\n".join(table.markdown() for table in self.tables)
        return f"`{self.command}`\n\n{tables}\n\n{facts}"


def machine(packages: Sequence[str]) -> dict[str, str]:
    """Date, processor, load, Python and the versions of packages."""
    cpu = platform.processor() or platform.machine()
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
        cpu = found[1].strip() if found else cpu
    except OSError:
        pass
    facts = {
        "measured on": datetime.date.today().isoformat(),
        "processor": f"{cpu}, {os.cpu_count()} cores",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
    }
    for package in packages:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="least work, one run, no neighbours")
    parser.add_argument("--alone", action="store_true", help="leave the neighbours out")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often everything runs")
    parser.add_argument("--json", metavar="FILE", help="write JSON ('-': print it alone)")
    parser.add_argument("--markdown", metavar="FILE", help="write Markdown ('-': print it alone)")
    parser.add_argument(
        "--update", metavar="FILE", type=Path, help="rewrite this benchmark's part of a page"
    )
    return parser


def command(options: argparse.Namespace) -> str:
    """The command line that makes the same tables again, without what is only about output."""
    words = ["python", f"benchmarks/{Path(sys.argv[0]).name}"]
    for name, value in vars(options).items():
        given = f"--{name}" in sys.argv or any(w.startswith(f"--{name}=") for w in sys.argv)
        if given and name not in ("json", "markdown", "update"):
            each = cast("list[object]", value if isinstance(value, list) else [value])
            words += [f"--{name}"] * (value is True)
            words += [w for one in each if value is not True for w in (f"--{name}", str(one))]
    return " ".join(words)


def present(report: Report, options: argparse.Namespace) -> None:
    """Prints the report and writes what was asked for.

    SystemExit where something was not measured at all: then a page keeps what it has.
    """
    alone, missing = False, report.unmeasured(bool(getattr(options, "alone", False)))
    writers: tuple[tuple[str | None, Callable[[], str]], ...] = (
        (options.json, report.as_json),
        (options.markdown, report.markdown),
    )
    for destination, text in writers:
        if destination == "-":
            print(text())
            alone = True
        elif destination is not None:
            Path(destination).write_text(text() + "\n", "utf-8")
    if options.update is not None and not missing:
        update(options.update, report)
    if not alone:
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = 180
        for table in report.tables:
            console.print(table.rich())
            console.print()
    if missing:
        raise SystemExit(f"not measured: {'; '.join(missing)}")


def update(page: Path, report: Report) -> None:
    """Puts the report between `<!-- NAME -->` and `<!-- /NAME -->`; SystemExit without them."""
    text = page.read_text("utf-8")
    begin, end = f"<!-- {report.name} -->", f"<!-- /{report.name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} has no {begin} ... {end}")
    page.write_text(f"{before}{begin}\n{report.markdown()}\n{end}{after}", "utf-8")


def status(console: Console) -> Callable[[str], None]:
    """Says on stderr what is going on, on one line that is overwritten on a terminal."""

    def say(text: str) -> None:
        if console.is_terminal:
            console.print(f"  {text}", end="\r")

    return say
