"""Names of functions: what raises says so, and no name is a bare participle."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from itertools import takewhile

import pytest

from tests.rooms.test_sizes_and_names import sources

DEF = re.compile(r"( *)def \w+\(")
RAISES = re.compile(r"_?(check|require|expect|verify|fail|refuse)(_\w*)?")
# Functions that do nothing but raise, or hand an argument on, and are called otherwise.
OTHERWISE = {
    "fragir/cli/arguments.py: read": "a reader, made in a function: ValueError is its word for no",
    "fragir/emulator/tensor_cores/compiled.py: _run": "runs parts, for which memory may not do",
    "fragir/errors.py: pass_on": "raises what is a caller's",
    "fragir/ptx/build.py: INTEGER": "named after a terminal of the grammar",
    "fragir/reference/run.py: wait_for": "waits",
    "passes/writer/kernel.py: _write_elementwise": "writes",
}
# Participles and adjectives that leave open what a function gives.
BARE = "alike asked given found held known made named same said taken told whole wanted"


def functions(text: str) -> Iterator[ast.FunctionDef]:
    """The functions of a source that raise."""
    lines = text.split("\n")
    for first, line in enumerate(lines):
        if match := DEF.match(line):
            beyond = re.compile(rf" {{0,{len(match[1])}}}[^ )]")
            body = list(takewhile(lambda x, end=beyond: end.match(x) is None, lines[first + 1 :]))
            if "__" not in line and any(x.lstrip().startswith("raise ") for x in body):
                (node,) = ast.parse(textwrap.dedent("\n".join([line, *body]))).body
                assert isinstance(node, ast.FunctionDef)
                yield node


def own(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a function, but for functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield child
            yield from own(child)


def only_checks(node: ast.FunctionDef) -> bool:
    """Whether a function gives nothing but what it was given, and changes nothing, or raises."""
    body = node.body[bool(ast.get_docstring(node)) :]
    parts = [part for line in body for part in (line, *own(line))]
    if isinstance(body[-1], ast.Raise) or not any(isinstance(part, ast.Raise) for part in parts):
        return False
    if any(isinstance(part, ast.Expr | ast.With | ast.Try | ast.Yield) for part in parts):
        return False
    stored = [p for p in parts if isinstance(p, ast.Attribute | ast.Subscript)]
    if any(not isinstance(p.ctx, ast.Load) for p in stored):
        return False
    given = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
    results = [part.value for part in parts if isinstance(part, ast.Return)]
    return all(r is None or (isinstance(r, ast.Name) and r.id in given) for r in results)


def test_what_raises_says_so() -> None:
    found = {
        f"{file}: {node.name}"
        for file, text in sources().items()
        for node in functions(text)
        if RAISES.fullmatch(node.name) is None and only_checks(node)
    }
    assert found == set(OTHERWISE)


def test_no_function_is_a_bare_participle() -> None:
    bare = re.compile(rf"^def _?({'|'.join(BARE.split())})\(", re.MULTILINE)
    found = [(file, m[1]) for file, text in sources().items() for m in bare.finditer(text)]
    assert found == [("fragir/launchers/python_program.py", "given")]  # in the text that it writes


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ("def f(x):\n    if x < 0:\n        raise ValueError\n    return x\n", True),
        ("def f(x):\n    for y in x:\n        if y:\n            raise ValueError\n", True),
        ("def f(x):\n    if x < 0:\n        raise ValueError\n    return x + 1\n", False),
        ("def f(x):\n    if x < 0:\n        raise ValueError\n    x.y = 1\n", False),
        ("def f(x):\n    if x < 0:\n        raise ValueError\n    x.append(1)\n", False),
        ("def f(x):\n    raise ValueError\n", False),
    ],
)
def test_a_check_is_seen(text: str, checks: bool) -> None:
    (node,) = functions(text)
    assert only_checks(node) is checks
