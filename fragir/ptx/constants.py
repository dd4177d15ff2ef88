"""Where names may stand in expressions, read off what ptxas takes (PTX ISA 9.2, 4.5.5 and 6.4).

The grammar has one kind of expression; these checks are the rest of its syntax. A constant
expression has no name but WARP_SZ; `name + constant` is an operand and an initial value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fragir.ptx import tree
from fragir.ptx.limits import MAX_DEPTH, Refused
from fragir.ptx.tree import Name, Sink
from fragir.ptx.visit import children

WARP_SIZE = "WARP_SZ"  # a predefined constant (4.4)

_NO_CONSTANTS = (Name, Sink, tree.Component, tree.Index, tree.Pair, tree.Apply, tree.Resident)
# What is an initial value as it is: a Binary's names were looked at when it was made.
_INITIAL = (Name, tree.Integer, tree.Float, tree.Apply, tree.Binary, tree.Setting)


def check_constant(term: Any) -> None:
    """Refuse what is not a constant: a name or what has one within."""
    level = [term]
    for _ in range(MAX_DEPTH):
        for node in level:
            if isinstance(node, _NO_CONSTANTS) and getattr(node, "text", "") != WARP_SIZE:
                raise Refused("a name where a constant is expected", node.at)
        level: list[Any] = [x for node in level for x in children(node)]
        if not level:
            return
    # what is nested deeper is refused for that


def check_chain(terms: list[Any], operators: list[str]) -> None:
    """Of a chain of operators: constants, but for a name or `generic(name)` before the first +."""
    first = terms[0]
    if operators[0] != "+" or not (
        isinstance(first, Name)
        or (isinstance(first, tree.Apply) and isinstance(first.function, Name))
    ):
        check_constant(first)
    for term in terms[1:]:
        check_constant(term)


def check_signed(operator: str, operand: Any) -> None:
    """Of an operand behind a sign: `-a` and `!p` are operands, other signs go with constants."""
    if operator not in "-!" or not isinstance(operand, Name | tree.Component):
        check_constant(operand)


def check_elements(elements: Iterable[Any]) -> None:
    """Of a vector: registers, sinks and constants."""
    for element in elements:
        if not isinstance(element, Name | Sink | tree.Component):
            check_constant(element)


def check_arguments(arguments: Iterable[Any]) -> None:
    """Of round brackets: the parameters of a call, or one constant."""
    for argument in arguments:
        if not isinstance(argument, Name | Sink):
            check_constant(argument)


def check_initial(value: Any) -> None:
    """Of an initial value: a constant, an address with or without an offset, or a list of these."""
    level = [value]
    for _ in range(MAX_DEPTH):
        within: list[Any] = []
        for node in level:
            if isinstance(node, tree.Vector):
                within += node.elements
            elif not isinstance(node, _INITIAL):
                check_constant(node)
        if not within:
            return
        level = within
