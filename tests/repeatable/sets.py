"""Finds where source goes through a set in the set's own order, which differs from run to run.

What is a set is told by what is written: displays, comprehensions, `set(...)`, operators between
those and `keys()`, and names, attributes, parameters and functions that are annotated as sets or
assigned one in the same file. Going through one is `for`, a comprehension, `*`, `list`, `tuple`,
`join`, `next(iter(...))` and the like; not where the order cannot be seen: `sorted`, `any`, `len`,
another set. A line that ends with `# any order` says that its order changes nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

BLIND = {"set", "frozenset", "sorted", "any", "all", "sum", "len", "min", "max", "isinstance"}
BLIND_METHODS = {
    *("union", "update", "intersection", "difference", "symmetric_difference"),
    *("difference_update", "issubset", "issuperset", "isdisjoint"),
}
GOING = {"list", "tuple", "iter", "enumerate", "zip", "map", "filter", "dict", "reversed", "deque"}
GOING_METHODS = {"join", "extend", "fromkeys", "from_iterable", "fromiter", "product", "chain"}
REASON = "# any order"
SETS = {"set", "frozenset", "AbstractSet", "Set", "MutableSet"}


def set_walks(path: Path) -> Iterator[int]:
    """The lines of a file that go through a set in its own order."""
    text = path.read_text()
    lines = text.splitlines()
    for line in sorted(_Finder(ast.parse(text, str(path))).found):
        if REASON not in lines[line - 1]:
            yield line


def _annotates(node: ast.expr | None, types: set[str]) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Constant):  # in quotes
        return str(node.value).partition("[")[0] in types
    return node is not None and _name(node) in types


class _Finder(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.found: set[int] = set()
        self.unseen: set[int] = set()  # ids of nodes whose order cannot be seen
        self.names: set[str] = set()  # of the module and the functions around; `.name` of objects
        self.types = {  # other names of the type
            _name(node.targets[0])
            for node in tree.body
            if isinstance(node, ast.Assign) and _annotates(node.value, SETS)
        }
        self.types |= SETS
        self.functions = {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and _annotates(node.returns, self.types)
        }
        others: set[str] = set()  # fields of the same name that are something else
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for field in node.body:
                    if isinstance(field, ast.AnnAssign):
                        kind = self.names if _annotates(field.annotation, self.types) else others
                        kind.add(f".{_name(field.target)}")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self.names |= {name for name in self._assigned(node) if name[0] == "."}
        self.names -= others
        self._scope(tree.body)
        self.visit(tree)

    def _assigned(self, node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        annotated = isinstance(node, ast.AnnAssign) and _annotates(node.annotation, self.types)
        if annotated or (node.value is not None and self.is_set(node.value)):
            yield from filter(None, map(_qualified, targets))

    def _scope(self, body: list[ast.stmt]) -> None:
        """Notes the names that a module or function makes sets, functions within not included."""
        waiting: list[ast.AST] = list(body)
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
                continue
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self.names.update(self._assigned(node))
            waiting += ast.iter_child_nodes(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outside = set(self.names)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.names.discard(argument.arg)
            if _annotates(argument.annotation, self.types):
                self.names.add(argument.arg)
        self._scope(node.body)
        self.generic_visit(node)
        self.names = outside

    def is_set(self, node: ast.AST) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Subscript(value=made)):
                return _name(made) in SETS
            case ast.Call(func=ast.Name(id=name)):
                return name in SETS or name in self.functions
            case ast.Call(func=ast.Attribute(value=inner, attr=name)):
                return name in self.functions or (
                    name in ("union", "intersection", "difference", "copy") and self.is_set(inner)
                )
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.Sub() | ast.BitXor()):
                return any(self.is_set(each) or _keys(each) for each in (node.left, node.right))
            case ast.IfExp():
                return self.is_set(node.body) or self.is_set(node.orelse)
            case ast.Name() | ast.Attribute():
                return _qualified(node) in self.names
            case _:
                return False

    def _through(self, node: ast.expr) -> None:
        if self.is_set(node):
            self.found.add(node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        if name in BLIND | BLIND_METHODS and not (name in ("min", "max") and node.keywords):
            for argument in node.args:
                self.unseen.add(id(argument))
        elif name in GOING | GOING_METHODS or (name in ("min", "max") and node.keywords):
            for argument in node.args:
                self._through(argument)
        self.generic_visit(node)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> None:
        if id(node) not in self.unseen:
            for each in node.generators:
                self._through(each.iter)
        self.generic_visit(node)

    visit_ListComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def visit_For(self, node: ast.For) -> None:
        self._through(node.iter)
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        self.unseen.update(id(each) for each in node.elts)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        if id(node) not in self.unseen:
            self._through(node.value)
        self.generic_visit(node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        self._through(node.value)
        self.generic_visit(node)


def _keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in ("keys", "items")


def _qualified(node: ast.AST) -> str:
    return f".{node.attr}" if isinstance(node, ast.Attribute) else _name(node)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
