"""Small faults in Python source: where they can be put, and a module or function that has one.

A mutant changes one spot: `<` to `<=`, `+` to `-`, `and` to `or`, a condition to its opposite, a
number to the next one, a call whose result nobody uses to nothing, what is returned to None. Spots
are those of functions, and those of tables and other values of modules and classes; not of
annotations, decorators, defaults, messages, assertions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one spot of a file, which is found again by its number in `ast.walk`'s order."""

    path: Path
    line: int  # of the spot
    statement: int  # the line where the spot's statement begins
    function: str  # a qualified name; empty for what runs with the import
    what: str
    node: int
    change: int

    def __str__(self) -> str:
        return f"line {self.line}, {self.function or 'the module'}: {self.what}"

    def tree(self) -> ast.Module:
        """The module's tree with the change."""
        module = ast.parse(self.path.read_text(), str(self.path))
        target = next(islice(ast.walk(module), self.node, None))
        _, change = next(islice(changes(target), self.change, None))
        return ast.fix_missing_locations(_Replace(target, change).visit(module))

    def code(self) -> CodeType | None:
        """The changed function's code; None where its name does not tell which function it is."""
        if not self.function:
            return None
        code = compile(self.tree(), str(self.path), "exec")
        for name in self.function.split("."):
            inner = [c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name]
            if len(inner) != 1:
                return None  # overloads, properties with setters, functions named `_`
            code = inner[0]
        return code


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its lines."""
    tree = ast.parse(path.read_text(), str(path))
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    found = [
        Mutant(path, getattr(spot, "lineno", line), line, function, what, numbers[id(spot)], index)
        for function, spot, line in _spots(tree.body)
        for index, (what, _) in enumerate(changes(spot))
    ]
    return iter(sorted(found, key=lambda m: (m.line, m.node, m.change)))


# Where -------------------------------------------------------------------------------------------


def _spots(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST, int]]:
    """Function, node and first line of the statement, of all that may be changed."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for spot, line in _within(node.body):
                yield prefix + node.name, spot, line
        elif isinstance(node, ast.ClassDef):
            yield from _spots(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If):
            if "TYPE_CHECKING" not in (test := ast.unparse(node.test)) and "__name__" not in test:
                yield from _spots(node.body, prefix)
                yield from _spots(node.orelse, prefix)
        elif isinstance(node, ast.Try | ast.With):
            yield from _spots(node.body, prefix)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.For):
            if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != "__all__":
                for spot, line in _within([node]):
                    yield "", spot, line


def _within(body: list[ast.stmt]) -> Iterator[tuple[ast.AST, int]]:
    waiting: list[tuple[ast.AST, int]] = [(node, node.lineno) for node in body]
    while waiting:
        node, line = waiting.pop()
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            continue
        if isinstance(node, ast.stmt):
            line = node.lineno
        yield node, line
        inner: list[ast.AST]
        if isinstance(node, ast.FunctionDef):
            inner = list(node.body)
        elif isinstance(node, ast.AnnAssign):
            inner = [node.value] if node.value is not None else []
        else:
            inner = list(ast.iter_child_nodes(node))
        waiting += [(each, line) for each in inner]


# What --------------------------------------------------------------------------------------------

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


class _Replace(ast.NodeTransformer):
    """Puts something else in the place of one node."""

    def __init__(self, target: ast.AST, change: Change) -> None:
        self.target, self.change = target, change

    def visit(self, node: ast.AST) -> Any:
        if node is self.target:
            return ast.copy_location(self.change(node), node)
        return self.generic_visit(node)
