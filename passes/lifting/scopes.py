"""A function of PTX with one scope: every register, variable and label under a name of its own.

Blocks in braces have scopes (PTX ISA 9.2, section 4.3), which MLIR's functions have not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from fragir.dialects.ptx.statement import PLACE
from fragir.errors import FragirError
from fragir.ptx import tree
from fragir.ptx.visit import transform

_DIGITS = "0123456789"
_REGISTER_TYPE = re.compile(r"[a-z]+(\d+)(?:x(\d))?")
#: What stands in a function and is executed, or marks a place: in the order of the text.
Step = tree.Instruction | tree.Label | tree.Pragma

#: What has no place in the code; a label belongs to the prototype behind it.
Declared = tree.Declaration | tree.Label | tree.CallPrototype | tree.CallTargets


@dataclass
class Flat:
    """A function's body.

    `registers`: types by name, `ranges`: type and number of `%r<12>` by its first letters;
    `variables`: declarations of all others.
    """

    steps: list[Step] = field(default_factory=list[Step])
    registers: dict[str, str] = field(default_factory=dict[str, str])
    ranges: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    variables: list[Declared] = field(default_factory=list[Declared])

    def kind(self, name: str) -> str | None:
        """The type of a register; None where the name is no register's."""
        stem = name.rstrip(_DIGITS)
        if stem in self.ranges and name != stem:
            kind, count = self.ranges[stem]
            return kind if int(name[len(stem) :]) < count else None
        return self.registers.get(name)


def flat(function: tree.Function, module: tree.Module, outside: set[str]) -> Flat:
    """The body of a function; `outside` are names that it must not hide.

    FragirError, with its place, for what has no counterpart in MLIR.
    """
    for name in sorted(outside):
        if PLACE.fullmatch(name):
            text = f"{name} stands for a value in lane code, so nothing outside may be called so"
            raise refusal(module, function.at, text, "rename it")
    return _Flattening(module, outside).function(function)


def refusal(module: tree.Module, at: int, message: str, hint: str | None = None) -> FragirError:
    """An error at a place of the text."""
    source = module.source
    if source is None or at < 0:
        return FragirError(message, hint=hint)
    line, column = source.place(at)
    return FragirError(message, source.filename, line, column, source.line(line), hint)


@dataclass
class _Scope:
    above: _Scope | None
    names: dict[str, str] = field(default_factory=dict[str, str])
    ranges: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    vectors: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


class _Flattening:
    def __init__(self, module: tree.Module, outside: set[str]):
        self.module, self.taken, self.flat = module, set(outside), Flat()
        self.stems: set[str] = set()
        self.given: list[tuple[str, str, str]] = []

    def function(self, function: tree.Function) -> Flat:
        scope = _Scope(None)
        taken = self._passed_registers(function.parameters, scope)
        self.given = self._passed_registers(function.returns, scope)
        at = function.at
        self.flat.steps += [_move(inner, name, kind, at) for name, inner, kind in taken]
        assert function.body is not None
        self._block(function.body, scope)
        if self.given:  # the end of the body returns
            self._returns(tree.Instruction(None, ("ret",), (), function.body.end))
        return self.flat

    def _passed_registers(
        self, declarations: tuple[tree.Declaration, ...] | None, scope: _Scope
    ) -> list[tuple[str, str, str]]:
        """Registers that a function passes: each by its name, that of a register of its own, and
        its type. Others are variables, which statements name."""
        found: list[tuple[str, str, str]] = []
        for declaration in declarations or ():
            (variable,) = declaration.variables
            name = variable.name.text
            self.taken.add(name)
            if declaration.space != "reg":
                continue
            inner = self._fresh_name(name)
            scope.names[name] = inner
            self.flat.registers[inner] = declaration.type
            found.append((name, inner, declaration.type))
        return found

    def _returns(self, step: tree.Instruction) -> None:
        """A return: what it gives is put where the head says."""
        self.flat.steps += [_move(name, inner, kind, step.at) for name, inner, kind in self.given]
        self.flat.steps.append(step)

    def _block(self, block: tree.Block, scope: _Scope) -> None:
        for item in block.items:
            if isinstance(item, tree.Declaration):
                self._declare(item, scope)
            elif isinstance(item, tree.Label):
                self._check_once(item.name, scope)
                scope.names[item.name.text] = self._fresh_name(item.name.text)
        for item in block.items:
            match item:
                case tree.Instruction(opcode=("ret", *_)):
                    self._returns(transform(item, lambda node: _rename_node(node, scope)))
                case tree.Instruction():
                    self.flat.steps.append(transform(item, lambda node: _rename_node(node, scope)))
                case tree.Label():
                    name = tree.Name(scope.names[item.name.text], item.name.at)
                    self.flat.steps.append(replace(item, name=name))
                case tree.Pragma():
                    self.flat.steps.append(item)
                case tree.Block():
                    self._block(item, _Scope(scope))
                case tree.BranchTargets():
                    raise refusal(
                        self.module,
                        item.at,
                        "indirect branches are not lifted",
                        "a compiler writes a chain of branches where it has no jump tables",
                    )
                case tree.CallPrototype() | tree.CallTargets():
                    self._prototype(item)
                case _:
                    pass  # comments, places in other sources, declarations

    def _prototype(self, item: tree.CallPrototype | tree.CallTargets) -> None:
        """A prototype stands behind its label, which names it, and is no place in the code."""
        label = self.flat.steps.pop() if self.flat.steps else None
        if not isinstance(label, tree.Label):
            raise refusal(self.module, item.at, "it needs a label, which calls name")
        self.flat.variables += [label, item]

    def _declare(self, node: tree.Declaration, scope: _Scope) -> None:
        if node.space != "reg":
            variables: list[tree.Variable] = []
            for variable in node.variables:
                self._check_once(variable.name, scope)
                name = self._fresh_name(variable.name.text)
                scope.names[variable.name.text] = name
                variables.append(replace(variable, name=tree.Name(name, variable.name.at)))
            renamed = replace(node, variables=tuple(variables))
            self.flat.variables.append(transform(renamed, lambda n: _rename_node(n, scope)))
            return
        if node.vector is not None:
            self._declare_vectors(node, scope)
            return
        for variable in node.variables:
            self._check_once(variable.name, scope, ranges=variable.count is not None)
            name = self._fresh_name(variable.name.text)
            if variable.count is None:
                scope.names[variable.name.text] = name
                self.flat.registers[name] = node.type
            else:
                scope.ranges[variable.name.text] = (name, variable.count.value)
                self.flat.ranges[name] = node.type, variable.count.value

    def _check_once(self, name: tree.Name, scope: _Scope, ranges: bool = False) -> None:
        """Refuses a second declaration; `a` and the range `a<2>`, which is a0 and a1, are two."""
        if name.text in (scope.ranges if ranges else {**scope.names, **scope.vectors}):
            raise refusal(self.module, name.at, f"{name.text} is declared twice")

    def _declare_vectors(self, node: tree.Declaration, scope: _Scope) -> None:
        """A register for each component."""
        count = int(str(node.vector)[1:])
        for variable in node.variables:
            if variable.count is not None:
                raise refusal(self.module, node.at, "ranges of vector registers are not lifted")
            name = self._fresh_name(variable.name.text)
            parts = tuple(f"{name}.{part}" for part in "xyzw"[:count])
            scope.vectors[variable.name.text] = parts
            self.flat.registers.update(dict.fromkeys(parts, node.type))

    def _fresh_name(self, name: str) -> str:
        fresh, number = name, 0
        while self._is_taken(fresh):
            number += 1
            fresh = f"{name}_s{number}_"
        self.taken.add(fresh)
        self.stems.add(fresh.rstrip(_DIGITS))
        return fresh

    def _is_taken(self, name: str) -> bool:
        """Also where a range has such names, or would have one of those that there are."""
        if name in self.taken or PLACE.fullmatch(name):
            return True
        return name.rstrip(_DIGITS) in self.flat.ranges or name in self.stems


def _move(to: str, source: str, kind: str, at: int) -> tree.Instruction:
    """Between a register that is passed and one of the function's own."""
    word, found = kind, _REGISTER_TYPE.fullmatch(kind)
    if found is not None and kind not in ("f32", "f64"):
        word = f"b{int(found[1]) * int(found[2] or 1)}"
    return tree.Instruction(None, ("mov", word), (tree.Name(to), tree.Name(source)), at)


def _rename_node(node: tree.Node, scope: _Scope) -> tree.Node:
    if isinstance(node, tree.Component):
        base: tree.Operand = node.base
        if isinstance(base, tree.Vector):  # the vector register that stood there
            return base.elements["xyzwrgba".index(node.component) % 4]
    if not isinstance(node, tree.Name):
        return node
    at: _Scope | None = scope
    while at is not None:
        if node.text in at.vectors:
            parts = (tree.Name(part, node.at) for part in at.vectors[node.text])
            return tree.Vector(tuple(parts), node.at)
        if node.text in at.names:
            return tree.Name(at.names[node.text], node.at)
        stem = node.text.rstrip(_DIGITS)
        number = node.text[len(stem) :]
        if stem in at.ranges and number and int(number) < at.ranges[stem][1]:
            return tree.Name(at.ranges[stem][0] + number, node.at)
        at = at.above
    return node
