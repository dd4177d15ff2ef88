"""What the reader takes at most, and the two ways in which it says no to a piece of text."""

from __future__ import annotations

import sys

from fragir.ptx.tree import Integer

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
