"""From the grammar's rules to tree nodes: one method per rule of `grammar.lark`.

Lark calls a method with the list of the rule's children: tokens (which are strings with a
`start_pos`), what other methods made, and None for each optional part that is absent.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fragir.ptx import tree
from fragir.ptx.rules import (
    MAX_DEPTH,
    Refused,
    check_arguments,
    check_chain,
    check_constant,
    check_directives,
    check_elements,
    check_initial,
    check_signed,
    too_large,
)
from fragir.ptx.tree import Name, Operand, Sink
from fragir.ptx.visit import children as below
from fragir.ptx.writer import PRECEDENCE

Children = list[Any]


def check_depth(nodes: Sequence[Any]) -> None:
    """Refuse operands nested deeper than `MAX_DEPTH`: later stages recurse over trees."""
    level: list[Any] = [x for x in nodes if x is not None]
    for _ in range(MAX_DEPTH):
        level = [x for node in level for x in below(node)]
        if not level:
            return
    raise Refused(f"an operand nested deeper than {MAX_DEPTH}", level[0].at)


def _name(token: Any) -> Name:
    return Name(str(token), token.start_pos)


def _integer(token: Any) -> tree.Integer | None:
    return None if token is None else tree.Integer(str(token), token.start_pos)


class Build:
    # ------------------------------------------------------------------ terminals
    def INTEGER(self, token: Any) -> object:
        if too_large(token):
            raise Refused("an integer literal of more than 64 bits", token.start_pos)
        return token

    # ------------------------------------------------------------------ module
    def module(self, items: Children) -> tuple[tree.Item, ...]:
        return tuple(items)

    def version(self, c: Children) -> tree.Version:
        return tree.Version(str(c[1]), c[0].start_pos)

    def target(self, c: Children) -> tree.Target:
        return tree.Target(tuple(map(str, c[1:])), c[0].start_pos)

    def address_size(self, c: Children) -> tree.AddressSize:
        return tree.AddressSize(tree.Integer(str(c[1]), c[1].start_pos), c[0].start_pos)

    def file(self, c: Children) -> tree.File:
        index, path = tree.Integer(str(c[1]), c[1].start_pos), self.string(c[2:3])
        return tree.File(index, path, _integer(c[3]), _integer(c[4]), c[0].start_pos)

    def section(self, c: Children) -> tree.Section:
        return tree.Section(str(c[1]), c[2][1:-1], c[0].start_pos)

    def dwarf(self, c: Children) -> tree.Dwarf:
        check_depth(c[2:])
        return tree.Dwarf(c[1][1:], tuple(c[2:]), c[0].start_pos)

    def dwarf_flag(self, c: Children) -> tree.DwarfFlag:
        return tree.DwarfFlag(str(c[0]), c[0].start_pos)

    def alias(self, c: Children) -> tree.Alias:
        return tree.Alias(_name(c[1]), _name(c[2]), c[0].start_pos)

    def pragma(self, c: Children) -> tree.Pragma:
        return tree.Pragma(tuple(c[1:]), c[0].start_pos)

    def string(self, c: Children) -> tree.String:
        return tree.String(str(c[0]), c[0].start_pos)

    # ------------------------------------------------------------------ declarations
    def linkage(self, tokens: Children) -> Children:
        return tokens

    def linked_declaration(self, c: Children) -> tree.Declaration:
        return self._declaration(c[0], c[1])

    def declaration(self, c: Children) -> tree.Declaration:
        return self._declaration([], c[0])

    def declaration_body(self, c: Children) -> Children:
        return [c[0], None, c[1:]]

    def parameter(self, c: Children) -> tree.Declaration:
        return self._declaration([], [c[0], c[1], c[2:]])

    def _declaration(self, linkage: Children, body: Children) -> tree.Declaration:
        storage, pointer, variables = body
        space, bank, *qualifiers, vector, type = storage
        aligns = [x for x in qualifiers if isinstance(x, tree.Integer)]
        if len(aligns) > 1:
            raise Refused("a second .align", aligns[1].at)
        if bank and str(space) != ".const":
            raise Refused(f"{space} has no banks", bank.at)
        return tree.Declaration(
            tuple(x[1:] for x in linkage),
            space[1:],
            aligns[0] if aligns else None,
            vector and vector[1:],
            type[1:],
            tuple(variables),
            tuple(x for group in qualifiers if group not in aligns for x in group),
            pointer,
            bank,
            (linkage[0] if linkage else space).start_pos,
        )

    def storage(self, c: Children) -> Children:
        return c

    def align(self, c: Children) -> tree.Integer:
        return tree.Integer(str(c[1]), c[1].start_pos)

    def bank(self, c: Children) -> tree.Integer:
        return tree.Integer(str(c[0]), c[0].start_pos)

    def attributes(self, c: Children) -> Children:
        return [c[1], *(replace(x, joined=True) for x in c[2:])]

    def attribute(self, c: Children) -> tree.Attribute:
        return tree.Attribute(c[0][1:], tuple(c[1:]), False, c[0].start_pos)

    def pointer(self, c: Children) -> tree.Pointer:
        return tree.Pointer(c[1] and c[1][1:], c[2], c[0].start_pos)

    def variable(self, c: Children) -> tree.Variable:
        name, count, *dimensions, initializer = c
        check_depth((*(x for (x,) in dimensions), initializer))
        if initializer is not None:
            check_initial(initializer)
        return tree.Variable(
            _name(name),
            _integer(count),
            tuple(x for (x,) in dimensions),
            initializer,
            name.start_pos,
        )

    def parameter_variable(self, c: Children) -> tree.Variable:
        name, dimension = c
        return tree.Variable(
            _name(name), None, () if dimension is None else tuple(dimension), None, name.start_pos
        )

    def dimension(self, c: Children) -> Children:
        return c

    def setting(self, c: Children) -> tree.Setting:
        return tree.Setting(str(c[0]), str(c[1]), c[0].start_pos)

    # ------------------------------------------------------------------ functions
    def function(self, c: Children) -> tree.Function:
        return replace(c[0], body=c[1]) if len(c) > 1 else c[0]

    def function_head(self, c: Children) -> tree.Function:
        linkage, kind, *attributes, returns, name, parameters, directives = c
        return tree.Function(
            tuple(x[1:] for x in linkage),
            kind[1:],
            _name(name),
            returns,
            parameters,
            check_directives(kind, directives),
            None,
            tuple(x for group in attributes for x in group),
            (linkage[0] if linkage else kind).start_pos,
        )

    def head_directives(self, c: Children) -> tuple[tree.FunctionDirective | tree.Pragma, ...]:
        return tuple(c)

    def parameters(self, c: Children) -> tuple[tree.Declaration, ...]:
        return tuple(x for x in c if x is not None)

    def function_directive(self, c: Children) -> tree.FunctionDirective:
        values = tuple(x for x in c[1:] if x is not None)
        check_depth(values)
        return tree.FunctionDirective(c[0][1:], values, c[0].start_pos)

    def block(self, c: Children) -> tree.Block:
        return tree.Block(tuple(c[1:-1]), c[0].start_pos, c[-1].start_pos)

    # ------------------------------------------------------------------ statements
    def label(self, c: Children) -> tree.Label:
        return tree.Label(_name(c[0]), c[0].start_pos)

    def instruction(self, c: Children) -> tree.Instruction:
        guard, opcode, *modifiers, operands = c
        words = [str(opcode)]
        for token in modifiers:
            words += token[1:].split(".")
        at = opcode.start_pos if guard is None else guard.at
        return tree.Instruction(guard, tuple(words), operands or (), at)

    def guard(self, c: Children) -> tree.Guard:
        return tree.Guard(_name(c[2]), c[1] is not None, c[0].start_pos)

    def loc(self, c: Children) -> tree.Loc:
        _, file, line, column, _, function, _, offset, _, *inlined = c
        if function is not None and function[0] == ".":
            function = tree.SectionName(str(function), None, function.start_pos)
        elif function is not None:
            function = _name(function)
        return tree.Loc(
            tree.Integer(str(file), file.start_pos),
            tree.Integer(str(line), line.start_pos),
            tree.Integer(str(column), column.start_pos),
            function,
            _integer(offset),
            (
                tree.Integer(str(inlined[0]), inlined[0].start_pos),
                tree.Integer(str(inlined[1]), inlined[1].start_pos),
                tree.Integer(str(inlined[2]), inlined[2].start_pos),
            )
            if inlined[0] is not None
            else None,
            c[0].start_pos,
        )

    def branch_targets(self, c: Children) -> tree.BranchTargets:
        labels, counts = tuple(x for x, _ in c[1:]), tuple(x for _, x in c[1:])
        return tree.BranchTargets(labels, counts if any(counts) else (), c[0].start_pos)

    def branch_target(self, c: Children) -> tuple[Name, tree.Integer | None]:
        return _name(c[0]), _integer(c[1])

    def call_targets(self, c: Children) -> tree.CallTargets:
        return tree.CallTargets(tuple(map(_name, c[1:])), c[0].start_pos)

    def call_prototype(self, c: Children) -> tree.CallPrototype:
        at, returns, name, parameters, *directives = c
        check_directives(".func", directives)
        return tree.CallPrototype(
            returns, Sink(name.start_pos), parameters, tuple(directives), at.start_pos
        )

    # ------------------------------------------------------------------ operands
    def operands(self, c: Children) -> tuple[Operand, ...]:
        check_depth(c)
        return tuple(c)

    def initial_values(self, c: Children) -> tree.Vector:
        return tree.Vector(tuple(x for x in c[1:-1] if x is not None), c[0].start_pos)

    def vector(self, c: Children) -> tree.Vector:
        check_elements(c[1:-1])
        return tree.Vector(tuple(c[1:-1]), c[0].start_pos)

    def address(self, c: Children) -> tree.Address:
        bracket, base, _, offset, rest, unified = c
        if offset is not None:
            check_constant(offset)
        suffix = None if unified is None else unified[1:]
        return tree.Address(base, offset, rest or (), suffix, bracket.start_pos)

    def immediate_address(self, c: Children) -> tree.Address:
        check_constant(c[1])
        return tree.Address(c[1], None, (), None, c[0].start_pos)

    def coordinates(self, c: Children) -> tuple[Operand, ...]:
        return tuple(x for x in c if x is not None)

    def resident(self, c: Children) -> tree.Resident:
        return tree.Resident(c[0], c[1], c[0].at)

    # ------------------------------------------------------------------ constant expressions
    def conditional(self, c: Children) -> tree.Conditional:
        for part in c:
            check_constant(part)
        return tree.Conditional(c[0], c[1], c[2], c[0].at)

    def chain(self, c: Children) -> Operand:
        if len(c) == 3 and c[1] == "|":
            first, _, second = c
            if isinstance(first, Name | Sink) and isinstance(second, Name | Sink):
                if type(first) is type(second) is Sink:
                    raise Refused("`_|_` has no destination", first.at)
                return tree.Pair(first, second, first.at)
        check_chain(c[::2], c[1::2])
        if len(c) > 2 * MAX_DEPTH:
            raise Refused(f"more than {MAX_DEPTH} operators in one expression", c[0].at)
        operands, operators = [c[0]], list[str]()

        def reduce() -> None:
            right, left = operands.pop(), operands.pop()
            operands.append(tree.Binary(operators.pop(), left, right, left.at))

        for operator, term in zip(c[1::2], c[2::2], strict=True):
            while operators and PRECEDENCE[operators[-1]] >= PRECEDENCE[operator]:
                reduce()
            operators.append(str(operator))
            operands.append(term)
        while operators:
            reduce()
        return operands[0]

    def unary(self, c: Children) -> tree.Unary:
        check_signed(c[0], c[1])
        return tree.Unary(str(c[0]), c[1], c[0].start_pos)

    def cast(self, c: Children) -> tree.Cast:
        return tree.Cast(c[1][1:], c[2], c[0].start_pos)

    def name(self, c: Children) -> Name:
        return _name(c[0])

    def sink(self, c: Children) -> Sink:
        return Sink(c[0].start_pos)

    def integer(self, c: Children) -> tree.Integer:
        return tree.Integer(str(c[0]), c[0].start_pos)

    def float(self, c: Children) -> tree.Float:
        return tree.Float(str(c[0]), c[0].start_pos)

    def component(self, c: Children) -> tree.Component:
        return tree.Component(_name(c[0]), c[1][1:], c[0].start_pos)

    def parens(self, c: Children) -> tree.Parens:
        check_arguments(x for x in c[1:] if x is not None)
        return tree.Parens(tuple(x for x in c[1:] if x is not None), c[0].start_pos)

    def index(self, c: Children) -> tree.Index:
        return tree.Index(_name(c[0]), c[1], c[0].start_pos)

    def apply(self, c: Children) -> tree.Apply:
        token = c[0]
        function = (
            tree.Integer(str(token), token.start_pos) if token[:1].isdigit() else _name(token)
        )
        return tree.Apply(function, c[1], token.start_pos)

    # ------------------------------------------------------------------ sections
    def section_body(self, c: Children) -> tuple[tree.Label | tree.SectionData, ...]:
        return tuple(c)

    def section_label(self, c: Children) -> tree.Label:
        return self.label(c)

    def section_data(self, c: Children) -> tree.SectionData:
        check_depth(c[1:])
        return tree.SectionData(c[0][1:], tuple(c[1:]), c[0].start_pos)

    def section_sum(self, c: Children) -> tree.Binary:
        return tree.Binary(str(c[1]), c[0], c[2], c[0].at)

    def section_name(self, c: Children) -> tree.SectionName:
        return tree.SectionName(str(c[0]), _integer(c[2]), c[0].start_pos)


# -- lexed comments --------------------------------------------------------------------------------
# The comments that Lark's lexer meets, thread by thread.


class LexedComments(threading.local):
    """The comments that the lexer passed over during a parse of this thread."""

    found: list[tuple[int, str]]

    def __init__(self) -> None:
        self.found = []

    def add(self, token: Any) -> Any:
        self.found.append((int(token.start_pos), str(token)))
        return token
