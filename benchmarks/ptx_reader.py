"""MB/s of the PTX reader, cold and warm, beside plain Lark over the same grammar and pyptx.

    python benchmarks/ptx_reader.py [FILE.ptx ...] [--pyptx PYTHON]

Without files: what nvcc makes of tests/ptx/kernels, else tests/ptx/data. Cold: no statement shape
is known (for each file anew), the grammar is loaded. Warm: the file was read before. CPU time,
best of a few runs. `--pyptx` names a Python that has pyptx installed (an environment of its own).
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fragir.ptx import PtxSyntaxError, parse, shapes, write

ROOT = Path(__file__).parents[1]

PYPTX = """
import sys, time
from pyptx.parser import parse
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    best = 1e9
    try:
        for _ in range(3):
            start = time.process_time(); parse(text)
            best = min(best, time.process_time() - start)
        print(best)
    except Exception:
        print("refused")
"""


def seconds(function: Callable[[], object], runs: int) -> float:
    """The best CPU time of several runs."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def cold(text: str) -> None:
    shapes.forget()
    parse(text)


def corpus(folder: Path) -> list[Path]:
    if shutil.which("nvcc") is None:
        return sorted((ROOT / "tests/ptx/data").glob("*.ptx"))
    spec = importlib.util.spec_from_file_location("make_data", ROOT / "tests/ptx/make_data.py")
    assert spec is not None
    assert spec.loader is not None
    make_data = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_data)
    paths: list[Path] = []
    for name, target, options in make_data.MADE:
        paths.append(folder / f"{name}_{target}{''.join(options)}.ptx")
        paths[-1].write_text(make_data.compile_kernel(name, target, options), "utf-8")
    return paths


def by_pyptx(python: str, paths: list[Path]) -> list[float | None]:
    """Seconds for each file; None where pyptx refuses it."""
    command = [python, "-c", PYPTX, *map(str, paths)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return [None if line == "refused" else float(line) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--pyptx", metavar="PYTHON")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths: list[Path] = options.files or corpus(Path(folder))
        others = by_pyptx(options.pyptx, paths) if options.pyptx else [None] * len(paths)
        parse("")
        totals: dict[str, dict[str, tuple[float, float]]] = {}
        for path, other in zip(paths, others, strict=True):
            text = path.read_text("utf-8")
            try:
                module = parse(text, str(path))
            except PtxSyntaxError as error:
                sys.exit(str(error))
            times = {
                "cold": seconds(lambda text=text: cold(text), options.runs),
                "warm": seconds(lambda text=text: parse(text), options.runs),
                "plain Lark": seconds(lambda text=text: parse(text, cache=False), 2),
                "write": seconds(lambda module=module: write(module), options.runs),
            }
            if other is not None:
                times["pyptx"] = other
            kind = "with debug sections" if "\t.section" in text else "without debug sections"
            for way, spent in times.items():
                megabytes, total = totals.setdefault(kind, {}).get(way, (0.0, 0.0))
                totals[kind][way] = megabytes + len(text) / 1e6, total + spent
        print(f"{len(paths)} files")
        for kind, ways in totals.items():
            print(f"{kind}, MB/s:")
            for way, (megabytes, total) in ways.items():
                print(f"  {way:12} {megabytes / total:6.2f}   ({megabytes:.2f} MB)")


if __name__ == "__main__":
    main()
