"""Small faults put into our own source, one at a time: which of them do the tests not see?

First the tests run once and note which lines each reaches. Then mutants (`mutants.py`) are drawn by
seed from the lines that tests reach, and each meets the tests that reach its line, the fastest
first, until one fails:

* a function's mutant is compiled and put into the function that is loaded (`__code__`), in a fork
  of a pytest process that has imported and collected already;
* a mutant that survives there, and one that a fork cannot show (values of modules, functions that
  run with the import, functions that share a name), is written into a copy of the tree, where a
  new process runs the tests; all of them where the line runs with the import.

What no test fails for is a survivor: a gap of the tests, or a change without effect.

    python benchmarks/mutation.py fragir/emulator/checks/conflicts.py --tests tests/emulator

prints the survivors. A test may use ten times the CPU time that it uses without the mutant, and ten
seconds (in a copy, all together three times theirs, and a minute); one that uses more has seen the
mutant. Needs fork (Linux, macOS) and `coverage`.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import gc
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypedDict

import pytest

if __package__:
    from benchmarks.mutants import Mutant, mutants
else:
    from mutants import Mutant, mutants

ROOT = Path.cwd()
TIMES, SECONDS = 10, 10  # CPU time of a test: so many times what it takes without mutants, and more
MEMORY = 8 << 30  # address space of a process with a mutant
PYTEST = ["-p", "no:cacheprovider", "-p", "no:xdist"]


class Verdict(TypedDict):
    """What became of a mutant. `seen` names the test that failed; None for a survivor."""

    module: str
    mutant: str
    seen: str | None
    seconds: float


@dataclass(frozen=True)
class Reach:
    """What tests reach, of one room.

    `lines` is module -> line -> numbers of `tests`, which are sorted by their CPU `seconds`;
    `imported` is module -> the lines that run before any test.
    """

    tests: list[str]
    seconds: list[float]
    lines: dict[str, dict[int, list[int]]]
    imported: dict[str, list[int]]

    @classmethod
    def read(cls, text: str) -> Reach:
        document = json.loads(text)
        lines = {m: {int(n): t for n, t in of.items()} for m, of in document.pop("lines").items()}
        return cls(lines=lines, **document)

    def by(self, mutant: Mutant) -> list[int]:
        """The tests that reach a mutant's line, or its statement where that is one expression."""
        lines = self.lines.get(relative(mutant.path), {})
        return lines.get(mutant.line) or lines.get(mutant.statement) or []

    def early(self, mutant: Mutant) -> bool:
        """Whether the mutant's line runs before any test."""
        lines = self.imported.get(relative(mutant.path), [])
        return mutant.line in lines or mutant.statement in lines

    def limit(self, test: int) -> float:
        return TIMES * self.seconds[test] + SECONDS


def relative(path: Path) -> str:
    return os.path.relpath(path, ROOT)


def module_name(path: Path) -> str:
    """`dialects/x.py` is imported as `fragir.dialects.x`."""
    parts = Path(relative(path)).with_suffix("").parts
    home = ("fragir",) if parts[0] in ("dialects", "passes") else ()
    return ".".join([*home, *parts]).removesuffix(".__init__")


# Which lines which test reaches ------------------------------------------------------------------


class Collector:
    """A pytest plugin that runs every test and notes what it reaches."""

    def __init__(self, paths: Sequence[Path]) -> None:
        import coverage

        self.paths, self.failed = paths, list[str]()
        self.reach: Reach | None = None
        self.coverage = coverage.Coverage(
            data_file=None, include=list(map(str, paths)), messages=False, config_file=False
        )
        self.coverage.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for path in self.paths:  # so that no test is the one that imports it
            import_module(module_name(path))
        spent: dict[str, float] = {}
        for item in session.items:
            start = time.process_time()
            self.coverage.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            self.coverage.switch_context("")
            spent[item.nodeid] = time.process_time() - start
        self.coverage.stop()
        tests = sorted(spent, key=spent.__getitem__)
        number = {test: index for index, test in enumerate(tests)}
        lines: dict[str, dict[int, list[int]]] = {}
        imported: dict[str, list[int]] = {}
        data = self.coverage.get_data()
        for path in self.paths:
            reached = data.contexts_by_lineno(str(path))
            lines[relative(path)] = {
                line: sorted(number[test] for test in contexts if test in number)
                for line, contexts in reached.items()
            }
            imported[relative(path)] = [line for line, names in reached.items() if "" in names]
        self.reach = Reach(tests, [round(spent[test], 4) for test in tests], lines, imported)
        return True


def collected(paths: Sequence[Path], tests: Sequence[str]) -> Reach:
    """Runs the tests in a process of its own; an error where some fail without any mutant."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "reach.json")
        command = [sys.executable, __file__, *map(str, paths), "--collect", str(out), "--tests"]
        done = subprocess.run([*command, *tests], stdout=subprocess.DEVNULL, cwd=ROOT)
        if done.returncode:
            raise SystemExit(2)
        return Reach.read(out.read_text())


def remembered(paths: Sequence[Path], tests: Sequence[str], folder: Path) -> Reach:
    """The same, once for all processes that ask with the same sources and tests."""
    digest = hashlib.sha256(json.dumps([list(map(str, paths)), *tests]).encode())
    for name in sources():
        if name.endswith(".py"):
            digest.update((ROOT / name).read_bytes())
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{digest.hexdigest()[:16]}.json"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            reach = collected(paths, tests)
            part = file.with_suffix(".part")
            part.write_text(json.dumps(vars(reach)))
            part.replace(file)
    return Reach.read(file.read_text())


def sources() -> list[str]:
    """The files of the tree: those that git knows or does not ignore; all where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return sorted(relative(path) for path in ROOT.rglob("*") if path.is_file())
    names = sorted(set(filter(None, done.stdout.split("\0"))))
    return [name for name in names if os.path.lexists(ROOT / name)]


# In a fork ---------------------------------------------------------------------------------------


def loaded(module: ModuleType, name: str) -> FunctionType | None:
    """The function of that qualified name, out of its decorators."""
    file = os.path.realpath(module.__file__ or "")
    found: Any = module
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)
        if found is None:
            return None
    for _ in range(8):
        if isinstance(found, FunctionType) and not hasattr(found, "__wrapped__"):
            return found if os.path.realpath(found.__code__.co_filename) == file else None
        for attribute in ("__wrapped__", "__func__", "fget", "func", "callback"):
            inner: Any = getattr(found, attribute, None)
            if inner is not None:
                found = inner
                break
    return None


def forget() -> None:
    """Empties every cache of ours, so that changed functions run."""
    for thing in gc.get_objects():
        if type(thing).__name__ == "_lru_cache_wrapper":
            thing.cache_clear()


class Judge:
    """A pytest plugin that tries mutants on the collected tests."""

    def __init__(self, drawn: Sequence[Mutant], reach: Reach, copy: Copy) -> None:
        self.drawn, self.reach, self.copy = drawn, reach, copy
        self.verdicts: list[Verdict] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for mutant in self.drawn:
            start = time.perf_counter()
            tests = self.reach.by(mutant)
            early = self.reach.early(mutant) or not mutant.function
            seen = self._in_fork(mutant, [items[self.reach.tests[t]] for t in tests], tests)
            if seen is None:
                rest = [t for t in range(len(items)) if early and t not in set(tests)]
                seen = self.copy.run(mutant, self.reach, [*tests, *rest])
            seconds = round(time.perf_counter() - start, 1)
            self.verdicts.append(
                Verdict(
                    module=relative(mutant.path), mutant=str(mutant), seen=seen, seconds=seconds
                )
            )
            print(*self.verdicts[-1].values(), flush=True)
        return True

    def _in_fork(
        self, mutant: Mutant, tests: Sequence[pytest.Item], numbers: Sequence[int]
    ) -> str | None:
        """The test that sees the mutant; None where none does, or a fork cannot show it."""
        code = mutant.code()
        function = loaded(import_module(module_name(mutant.path)), mutant.function)
        if code is None or function is None or not tests:
            return None
        if function.__code__.co_freevars != code.co_freevars:
            return None
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            failed = 1
            try:
                os.setsid()
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, 1)
                os.dup2(nothing, 2)
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                forget()
                function.__code__ = code
                for test, number in zip(tests, numbers, strict=True):
                    os.write(writer, f"{test.nodeid}\n".encode())
                    limit = self.reach.limit(number)
                    signal.setitimer(signal.ITIMER_PROF, limit)
                    signal.alarm(int(6 * limit) + 60)  # where it waits for another process
                    test.config.hook.pytest_runtest_protocol(item=test, nextitem=None)
                    if test.session.testsfailed:
                        break
                else:
                    failed = 0
            finally:
                os._exit(failed)
        os.close(writer)
        with os.fdopen(reader) as lines:
            last = ""
            for line in lines:
                last = line.strip()
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # processes that it has left
        return last if status != 0 else None


# In a copy of the tree ---------------------------------------------------------------------------


class Copy:
    """A copy of the tree, where a mutant stands in the source and a new process runs the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def root(self) -> Path:
        tree = self.folder / "tree"
        for name in sources():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
        return tree

    def run(self, mutant: Mutant, reach: Reach, tests: Sequence[int]) -> str | None:
        """The test that sees the mutant, or None."""
        if not tests:
            return None
        file = self.root / relative(mutant.path)
        text = file.read_text()
        names = [reach.tests[test] for test in tests]
        limit = int(60 + 3 * sum(reach.seconds[test] for test in tests))
        try:
            self._write(file, ast.unparse(mutant.tree()))
            done = self._pytest(names, limit)
            if done.returncode == pytest.ExitCode.USAGE_ERROR:  # other parameters, other names
                done = self._pytest(dict.fromkeys(n.partition("::")[0] for n in names), limit)
        except subprocess.TimeoutExpired:
            return "too long"
        finally:
            self._write(file, text)
        if done.returncode == 0:
            return None
        failed = [x for x in done.stdout.splitlines() if x.startswith(("FAILED ", "ERROR "))]
        return failed[0].split(" - ")[0] if failed else done.stdout.strip()[-200:] or "killed"

    def _pytest(self, tests: Iterable[str], limit: int) -> subprocess.CompletedProcess[str]:
        """Runs tests, at most so many seconds of CPU time in one process."""
        chosen = self.folder / "tests.txt"
        chosen.write_text("".join(f"{test}\n" for test in tests))
        command = [sys.executable, "-m", "pytest", "-x", "-q", *PYTEST, f"@{chosen}"]
        return subprocess.run(
            ["sh", "-c", f'ulimit -t {limit}; exec "$@"', "sh", *command],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=6 * limit + 600,
            check=False,
        )

    @staticmethod
    def _write(file: Path, text: str) -> None:
        """Writes a source, and sees to it that no bytecode of the old one is taken for its."""
        file.write_text(text)
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()


# Drawing and reporting ---------------------------------------------------------------------------


def draw(paths: Sequence[Path], reach: Reach, most: int | None, seed: int) -> list[Mutant]:
    """Mutants on the lines that run in tests or with an import; `most` of them, drawn by seed."""
    every = [m for m in all_of(paths) if reach.by(m) or reach.early(m)]
    if most is None or most >= len(every):
        return every
    return random.Random(seed).sample(every, most)


def all_of(paths: Sequence[Path]) -> Iterator[Mutant]:
    for path in paths:
        yield from mutants(path)


def judged(
    paths: Sequence[Path], tests: Sequence[str], reach: Reach, drawn: Sequence[Mutant]
) -> list[Verdict]:
    """The verdicts on these mutants, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder  # what one mutant fails for is its own
        judge = Judge(drawn, reach, Copy(Path(folder)))
        if drawn:
            pytest.main([*PYTEST, "-p", "no:terminal", *tests], plugins=[judge])
    if len(judge.verdicts) != len(drawn):
        raise SystemExit("the tests cannot be collected")
    return judge.verdicts


def documents(
    paths: Sequence[Path], reach: Reach, verdicts: Sequence[Verdict]
) -> list[dict[str, Any]]:
    """A summary of each module."""
    unreached = [m for m in all_of(paths) if not reach.by(m) and not reach.early(m)]
    return [
        {
            "module": name,
            "judged": sum(v["module"] == name for v in verdicts),
            "survivors": [v["mutant"] for v in verdicts if v["module"] == name and not v["seen"]],
            "unreached": [str(m) for m in unreached if relative(m.path) == name],
            "verdicts": [v for v in verdicts if v["module"] == name],
        }
        for name in map(relative, paths)
    ]


def main(arguments: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="+", type=Path, help="as in fragir/layout/cute.py")
    parser.add_argument(
        "--tests", nargs=argparse.REMAINDER, required=True, help="all that follows is pytest's"
    )
    parser.add_argument("--most", type=int, help="so many mutants, drawn from all modules")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--part", default="1/1", help="I/N: every Nth mutant of the draw")
    parser.add_argument("--cache", type=Path, help="a folder that keeps what tests reach")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the results here too")
    parser.add_argument("--collect", metavar="FILE", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    paths: list[Path] = [path.resolve() for path in options.modules]
    if options.collect is not None:
        collector = Collector(paths)
        pytest.main([*PYTEST, "-p", "no:terminal", *options.tests], plugins=[collector])
        if collector.failed or collector.reach is None:
            print("tests fail without any mutant:", *collector.failed, sep="\n", file=sys.stderr)
            return 2
        options.collect.write_text(json.dumps(vars(collector.reach)))
        return 0
    if options.cache is not None:
        reach = remembered(paths, options.tests, options.cache)
    else:
        reach = collected(paths, options.tests)
    part, parts = map(int, options.part.split("/"))
    drawn = draw(paths, reach, options.most, options.seed)[part - 1 :: parts]
    verdicts = judged(paths, options.tests, reach, drawn)
    found = documents(paths, reach, verdicts)
    if options.json is not None:
        options.json.write_text(json.dumps(found))
    for each in found:
        print(f"{each['module']}: {each['judged']} mutants, {len(each['survivors'])} survive,")
        print(f"  {len(each['unreached'])} on lines that no test reaches")
        print(*(f"  survives: {mutant}\n" for mutant in each["survivors"]), sep="", end="")
    return 1 if any(each["survivors"] for each in found) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
