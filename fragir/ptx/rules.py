"""What the reader holds a text to.

Limits, names in expressions, directives of a function's head.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from fragir.ptx import tree
from fragir.ptx.tree import FunctionDirective, Integer, Name, Pragma, Sink
from fragir.ptx.visit import children

# -- limits ----------------------------------------------------------------------------------------
# What the reader takes at most, and the two ways in which it says no to a piece of text.

MAX_DEPTH = 64  # of blocks in blocks, and of an operand's parts in each other

# The start symbols of the grammar, and how many characters of text each takes at most: what Lark
# reads takes memory of some hundred times its text.
LIMITS = {
    "module": sys.maxsize,
    "item": 1 << 16,
    "statement": 1 << 20,
    "operands": 1 << 16,
    "function_head": 1 << 20,
    "parameter": 1 << 16,
    "head_directives": 1 << 16,
    "linked_declaration": 1 << 23,
    "section_body": 1 << 26,
}


class Unexpected(Exception):
    """The text departs from the grammar at offset `at`; `expected` are names of terminals."""

    def __init__(self, at: int, expected: frozenset[str]):
        super().__init__(at, expected)
        self.at = at
        self.expected = expected


class Refused(Exception):
    """The text fits the grammar but breaks a limit of the reader."""

    def __init__(self, message: str, at: int):
        super().__init__(message)
        self.message = message
        self.at = at


def too_large(text: str) -> bool:
    """Whether an integer literal exceeds 64 bits, which no type of PTX holds (section 4.5.1)."""
    if len(text) <= 16:  # less than 2^54, whatever its base
        return False
    if text[0] != "0" and len(text) > 21:
        return True
    return Integer(text).value >> 64 != 0


# -- constants -------------------------------------------------------------------------------------
# Where names may stand in expressions, read off what ptxas takes (PTX ISA 9.2, 4.5.5 and 6.4).
#
# The grammar has one kind of expression; these checks are the rest of its syntax. A constant
# expression has no name but WARP_SZ; `name + constant` is an operand and an initial value.

WARP_SIZE = "WARP_SZ"  # a predefined constant (4.4)

_NO_CONSTANTS = (Name, Sink, tree.Component, tree.Index, tree.Pair, tree.Apply, tree.Resident)
# What is an initial value as it is: a Binary's names were looked at when it was made.
_INITIAL = (Name, tree.Integer, tree.Float, tree.Apply, tree.Binary, tree.Setting)


def check_constant(term: object) -> None:
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


def check_elements(elements: Iterable[object]) -> None:
    """Of a vector: registers, sinks and constants."""
    for element in elements:
        if not isinstance(element, Name | Sink | tree.Component):
            check_constant(element)


def check_arguments(arguments: Iterable[object]) -> None:
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


# -- directives ------------------------------------------------------------------------------------
# Which directives the head of a function takes, by its kind (PTX ISA 9.2, section 11.4).

# Directive of a function's head -> the kinds of functions that have it, and how many values it has.
DIRECTIVES: dict[str, tuple[tuple[str, ...], int, int]] = {
    **dict.fromkeys(("maxntid", "reqntid", "reqnctapercluster"), ((".entry",), 1, 3)),
    **dict.fromkeys(("minnctapersm", "maxnctapersm", "maxnreg"), ((".entry",), 1, 1)),
    **dict.fromkeys(("maxclusterrank", "local_maxnreg"), ((".entry",), 1, 1)),
    **dict.fromkeys(("explicitcluster", "blocksareclusters"), ((".entry",), 0, 0)),
    "noreturn": ((".func",), 0, 0),
    **dict.fromkeys(("abi_preserve", "abi_preserve_control"), ((".func",), 1, 1)),
}


D = TypeVar("D", bound=Sequence[FunctionDirective | Pragma])


def check_directives(kind: str, directives: D) -> D:
    """The directives, refused where this kind of function or their number of values has none."""
    for directive in directives:
        if isinstance(directive, Pragma):
            if kind != ".entry":
                raise Refused("a .pragma in the head of a .func", directive.at)
            continue
        kinds, least, most = DIRECTIVES[directive.name]
        if kind not in kinds:
            raise Refused(f".{directive.name} in the head of a {kind}", directive.at)
        if not least <= len(directive.values) <= most:
            wanted = f"{least} to {most}" if least < most else least or "no"
            message = f".{directive.name} takes {wanted} values, not {len(directive.values)}"
            raise Refused(message, directive.at)
    return directives
