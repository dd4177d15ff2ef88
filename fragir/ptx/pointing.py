"""The error of a text that cannot be read, with its place and what could have stood there."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from fragir.errors import FragirError
from fragir.languages import PTX, foreign_text
from fragir.ptx.rules import Refused, Unexpected
from fragir.ptx.tree.module import Source

# -- expected --------------------------------------------------------------------------------------
# What the grammar's terminals are called in messages.

_NUMBERS = frozenset({"INTEGER", "FLOAT", "EXACT_FLOAT", "WARP_SIZE"})
_NAMES = frozenset({"NAME", "GENERIC", "SINK"})
_SIGNS = frozenset({"PLUS", "MINUS", "BANG", "TILDE"})

# Groups come first: where all of a group could stand, its words say so.
_GROUPS: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"OPCODE", "AT", "NAME", "LBRACE", "SPACE", "LOC", "PRAGMA", "BRANCH_TARGETS"})
        | {"CALL_TARGETS", "CALL_PROTOTYPE"},
        "a statement",
    ),
    (
        frozenset({"VERSION", "TARGET", "ADDRESS_SIZE", "FILE", "SECTION", "ALIAS", "PRAGMA"})
        | {"LINKAGE", "SPACE", "KIND", "DWARF"},
        "a directive",
    ),
    (_NUMBERS | _NAMES | _SIGNS | {"LPAR", "LBRACE", "LSQB"}, "an operand"),
    (_NUMBERS | _NAMES | _SIGNS | {"LPAR"}, "an expression"),
    (_NUMBERS | _NAMES | {"LPAR"}, "a name, a number"),
    (frozenset({"BINARY", "PLUS", "MINUS"}), "an operator"),
    (frozenset({"BINARY"}), "an operator"),
)

_WORDS = {
    "ADDRESS_SIZE": "'.address_size'",
    "ALIGN": "'.align'",
    "AT": "a guard",
    "ATTRIBUTE": "'.attribute'",
    "DATA_TYPE": "'.b8', '.b16', '.b32', '.b64'",
    "FIELD": "a component such as '.x'",
    "EXACT_FLOAT": "a floating-point number",
    "FLOAT": "a floating-point number",
    "FUNCTION_DIRECTIVE": "a performance directive",
    "FUNCTION_NAME": "'function_name'",
    "INLINED_AT": "'inlined_at'",
    "INTEGER": "an integer",
    "KIND": "'.entry', '.func'",
    "LINKAGE": "'.visible', '.extern', '.weak', '.common'",
    "MODIFIERS": "a modifier",
    "NAME": "a name",
    "OPCODE": "an instruction",
    "PRAGMA": "'.pragma'",
    "PTR": "'.ptr'",
    "SECTION_BODY": "'{ ... }'",
    "SECTION_NAME": "the name of a section",
    "SECTION_REFERENCE": "the name of a section",
    "SINK": "'_'",
    "SPACE": "a state space",
    "STRING": "a string",
    "TYPE": "a type",
    "VECTOR": "'.v2', '.v4'",
    "VERSION_NUMBER": "a version such as 8.7",
    "GENERIC": "'generic'",
    "WARP_SIZE": "WARP_SZ",
    "DWARF": "'@@DWARF'",
    "DWARF_DIRECTIVE": "'.section', '.byte', '.2byte', '.4byte', '.8byte', '.quad'",
    "DWARF_FLAG": "a flag such as @progbits",
    "POINTER_SPACE": "'.const', '.global', '.local', '.shared'",
    "$END": "the end of the text",
    # punctuation, by the names that Lark gives it
    "BANG": "'!'",
    "COLON": "':'",
    "COMMA": "','",
    "EQUAL": "'='",
    "LBRACE": "'{'",
    "LESSTHAN": "'<'",
    "LPAR": "'('",
    "LSQB": "'['",
    "MINUS": "'-'",
    "MORETHAN": "'>'",
    "PLUS": "'+'",
    "QMARK": "'?'",
    "RBRACE": "'}'",
    "RPAR": "')'",
    "RSQB": "']'",
    "SEMICOLON": "';'",
    "TILDE": "'~'",
}

_IGNORED = {"COMMENT", "WHITESPACE"}


def describe(terminals: frozenset[str]) -> tuple[str, ...]:
    """Words for a set of terminals: groups first, then the others in alphabetical order."""
    left = set(terminals - _IGNORED)
    words: list[str] = []
    for group, word in _GROUPS:
        if group <= left:
            left -= group
            words.append(word)
    words += sorted(_WORDS.get(name, f"'.{name.lower()}'".replace("_", "")) for name in left)
    return tuple(dict.fromkeys(words))


@dataclass
class PtxSyntaxError(FragirError):
    """PTX text that cannot be read; `expected` names what could have stood at the place."""

    expected: tuple[str, ...] = ()


@contextmanager
def pointing_into(source: Source) -> Generator[None]:
    """What the grammar refuses becomes a PtxSyntaxError with its place."""
    try:
        yield
    except Unexpected as error:
        _raise(source, error.at, error.expected)
    except Refused as error:
        raise _error(source, error.at, error.message) from None


def _error(source: Source, at: int, message: str, expected: tuple[str, ...] = ()) -> PtxSyntaxError:
    message = foreign_text(source.text, PTX) or message
    line, col = source.place(at)
    shown = source.line(line)
    if len(shown) > 200:  # a window of a very long line
        begin = max(0, col - 100)
        shown, col = shown[begin : begin + 200], col - begin
    shown = "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in shown)
    error = PtxSyntaxError(message, source.filename, line, col, shown, expected=expected)
    return error


def _raise(source: Source, at: int, terminals: frozenset[str]) -> NoReturn:
    expected = describe(terminals)
    text = source.text
    rest = text[at : at + 60]
    if not rest:
        found = "the end of the text"
    else:
        word = re.match(r"[\w$%.]+|.", rest, re.ASCII | re.DOTALL)
        found = repr(word.group()) if word else repr(rest[0])
    if rest.startswith("/*"):
        raise _error(source, at, "a comment without an end", ("'*/'",)) from None
    message = f"unexpected {found}"
    if expected:
        message += ", expected " + (
            expected[0] if len(expected) == 1 else f"{', '.join(expected[:-1])} or {expected[-1]}"
        )
    raise _error(source, at, message, expected) from None
