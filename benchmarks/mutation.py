"""Small faults put into our own source, one at a time: which of them do the tests not see?

A mutant changes one spot of one function: `<` to `<=`, `+` to `-`, `and` to `or`, a condition to
its opposite, a number to the next one, a call whose result nobody uses to nothing. It is compiled
and put into the function that is loaded (`__code__`), in a fork of a pytest process that has
imported and collected already; there run only the tests that reach the changed line, the fastest
first, until one fails. What no test fails for is a survivor: a gap of the tests, or a change
without effect.

    python benchmarks/mutation.py fragir/emulator/checks/conflicts.py --tests tests/emulator

prints the survivors. Functions that have run while modules were imported cannot be judged so; they
are counted. Needs fork (Linux, macOS) and `coverage`.
"""

from __future__ import annotations

import ast
import copy
import gc
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 60.0  # of a core, for the tests of one mutant; one that takes longer counts as seen


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one spot: the function it lies in, and that function's new code."""

    line: int
    function: str
    what: str
    code: CodeType

    def __str__(self) -> str:
        return f"line {self.line}, {self.function}: {self.what}"


@dataclass(slots=True)
class Result:
    """What became of the mutants of one module."""

    module: str
    judged: int = 0
    survivors: list[Mutant] = field(default_factory=list["Mutant"])
    unreached: list[Mutant] = field(default_factory=list["Mutant"])

    def document(self) -> dict[str, Any]:
        return {
            "module": self.module,
            "judged": self.judged,
            "survivors": list(map(str, self.survivors)),
            "unreached": list(map(str, self.unreached)),
        }

    def __str__(self) -> str:
        lines = [f"  survives: {m}" for m in self.survivors]
        lines += [f"  no test reaches: {m}" for m in self.unreached]
        head = (
            f"{self.module}: {self.judged} mutants, {len(self.survivors)} survive, "
            f"{len(self.unreached)} on lines that no test reaches"
        )
        return "\n".join([head, *lines])


# The changes -------------------------------------------------------------------------------------

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}

Change = Callable[[ast.AST], ast.AST]


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """What can be done to a node: in words, and as a function of a copy of it."""
    old = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else ""
    if isinstance(node, ast.Compare):
        for index, op in enumerate(node.ops):
            other = _COMPARE[type(op)]

            def compare(new: Any, index: int = index, other: type[ast.cmpop] = other) -> ast.AST:
                new.ops[index] = other()
                return new

            yield f"`{old}`: {type(op).__name__} to {other.__name__}", compare
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _BINARY:
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant | ast.JoinedStr):
            if isinstance(getattr(node.left, "value", ""), str):
                return  # words of a message
        other_op = _BINARY[type(node.op)]

        def binary(new: Any) -> ast.AST:
            new.op = other_op()
            return new

        yield f"`{old}`: {type(node.op).__name__} to {other_op.__name__}", binary
    elif isinstance(node, ast.BoolOp):

        def boolean(new: Any) -> ast.AST:
            new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
            return new

        yield f"`{old}`: and/or", boolean
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield f"`{old}`: without its {type(node.op).__name__}", lambda new: new.operand  # type: ignore[attr-defined]
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        test = ast.unparse(node.test)

        def opposite(new: Any) -> ast.AST:
            new.test = ast.UnaryOp(ast.Not(), new.test)
            return new

        yield f"`{type(node).__name__.lower()} {test}`: the opposite", opposite
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield f"{node.value}: {not node.value}", lambda _: ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield f"{node.value}: {node.value + 1}", lambda _: ast.Constant(node.value + 1)  # type: ignore[operator]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield f"`{old}`: left out", lambda _: ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None:
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            return
        yield f"`{old}`: returns None", lambda _: ast.Return(ast.Constant(None))


def functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a module, those within functions not counted."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from functions(node.body, prefix)


def _spots(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes that may be changed: no annotations, decorators, defaults, docstrings, messages."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
            continue
        yield node
        if isinstance(node, ast.FunctionDef):
            waiting += node.body
        elif isinstance(node, ast.AnnAssign):
            waiting += [node.value] if node.value is not None else []
        else:
            waiting += ast.iter_child_nodes(node)


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a module, function by function."""
    tree = ast.parse(path.read_text(), str(path))
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    for name, function in functions(tree.body):
        for spot in _spots(function):
            for what, change in changes(spot):
                mutated = copy.deepcopy(tree)
                target = next(islice(ast.walk(mutated), numbers[id(spot)], None))
                _Replace(target, change).visit(mutated)
                module = compile(ast.fix_missing_locations(mutated), str(path), "exec")
                code = _code_of(module, name.split("."))
                if code is not None:
                    yield Mutant(getattr(spot, "lineno", function.lineno), name, what, code)


class _Replace(ast.NodeTransformer):
    """Puts something else in the place of one node."""

    def __init__(self, target: ast.AST, change: Change) -> None:
        self.target, self.change = target, change

    def visit(self, node: ast.AST) -> Any:
        if node is self.target:
            return ast.copy_location(self.change(node), node)
        return self.generic_visit(node)


def _code_of(module: CodeType, path: list[str]) -> CodeType | None:
    code = module
    for name in path:
        inner = [c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name]
        if len(inner) != 1:
            return None  # overloads, properties with setters
        code = inner[0]
    return code


# What is loaded -----------------------------------------------------------------------------------


def loaded(module: ModuleType, name: str) -> FunctionType | None:
    """The function of that qualified name, out of its decorators."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)
        if found is None:
            return None
    for _ in range(8):
        if isinstance(found, FunctionType) and not hasattr(found, "__wrapped__"):
            return found if found.__code__.co_filename == module.__file__ else None
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


# Running ------------------------------------------------------------------------------------------


class Judge:
    """A pytest plugin: runs all tests once and notes what they reach, then each mutant in a fork.

    Of each module `most` mutants are tried, chosen by `seed`.
    """

    def __init__(self, paths: list[Path], most: int | None, seed: int) -> None:
        self.paths, self.most, self.seed = [path.resolve() for path in paths], most, seed
        self.results: list[Result] = []
        self.failed: list[str] = []
        import coverage

        self.coverage = coverage.Coverage(
            data_file=None, include=list(map(str, self.paths)), messages=False, config_file=False
        )
        self.coverage.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        seconds: dict[str, float] = {}
        for item in session.items:
            start = time.perf_counter()
            self.coverage.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            self.coverage.switch_context("between")
            seconds[item.nodeid] = time.perf_counter() - start
        self.coverage.stop()
        if not self.failed:
            items = {item.nodeid: item for item in session.items}
            data = self.coverage.get_data()
            for path in self.paths:
                reached = data.contexts_by_lineno(str(path))
                tests = {
                    line: [
                        items[n] for n in sorted(set(names) & set(items), key=seconds.__getitem__)
                    ]
                    for line, names in reached.items()
                }
                self.results.append(self._judged(path, tests))
                print(self.results[-1], flush=True)
        return True

    def _judged(self, path: Path, tests: dict[int, list[pytest.Item]]) -> Result:
        module = next(
            (m for m in list(sys.modules.values()) if getattr(m, "__file__", "") == str(path)), None
        )
        every = list(mutants(path))
        if self.most is not None and len(every) > self.most:
            every = random.Random(self.seed).sample(every, self.most)
        result = Result(os.path.relpath(path, ROOT))
        for mutant in sorted(every, key=lambda m: m.line):
            function = loaded(module, mutant.function) if module is not None else None
            if not tests.get(mutant.line):
                result.unreached.append(mutant)
            elif function is not None and function.__code__.co_freevars == mutant.code.co_freevars:
                result.judged += 1
                if not self._seen(function, mutant, tests[mutant.line]):
                    result.survivors.append(mutant)
        return result

    @staticmethod
    def _seen(function: FunctionType, mutant: Mutant, tests: list[pytest.Item]) -> bool:
        """Whether a test fails, or takes too long, with this mutant."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, 1)
                os.dup2(nothing, 2)
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                forget()
                function.__code__ = mutant.code
                for test in tests:
                    session = test.session
                    test.config.hook.pytest_runtest_protocol(item=test, nextitem=None)
                    if session.testsfailed:
                        break
                else:
                    code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        return status != 0


def main(arguments: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="+", type=Path, help="as in fragir/layout/cute.py")
    parser.add_argument(
        "--tests", nargs=argparse.REMAINDER, required=True, help="all that follows is pytest's"
    )
    parser.add_argument("--most", type=int, help="a sample of so many mutants of each module")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the results here too")
    options = parser.parse_args(arguments)
    judge = Judge(options.modules, options.most, options.seed)
    plugins = ["-p", "no:cacheprovider", "-p", "no:terminal"]
    pytest.main([*plugins, *options.tests], plugins=[judge])
    if judge.failed:
        print("tests fail without any mutant:", *judge.failed, sep="\n", file=sys.stderr)
        return 2
    if options.json is not None:
        options.json.write_text(json.dumps([result.document() for result in judge.results]))
    return 1 if any(r.survivors or r.unreached for r in judge.results) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
