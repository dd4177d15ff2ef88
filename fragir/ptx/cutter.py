"""The regular expressions that cut PTX without comments into functions, statements and pieces."""

from __future__ import annotations

import re
from functools import cache as cached
from typing import NamedTuple

from fragir.ptx.known import TERMINALS
from fragir.ptx.limits import MAX_DEPTH


class Cutter(NamedTuple):
    """Regular expressions that cut a text without comments into pieces.

    Every alternative ends in a group of its own, so that `lastindex` says which one it was.
    """

    statement: re.Pattern[str]
    item: re.Pattern[str]
    head: re.Pattern[str]
    directive: re.Pattern[str]


# groups of `statement`
AT, BANG, GUARD, OPCODE, OPERANDS, DIRECTIVE, SPACED, LABEL, OPEN, CLOSE = range(1, 11)
# groups of `item`
SPACE, DECLARATION, HEAD, LINE, SECTION_NAME, SECTION, LAST = range(1, 8)


# What begins no text that has none of these: patterns without it are compiled in half the time.
_DEBUG = (".loc", ".section", "@@DWARF")
_NEVER = r"(?!)"


def cutter_for(text: str) -> Cutter:
    """The expressions for a text; those for line numbers and sections only where it has any."""
    return cutter(any(word in text for word in _DEBUG))


@cached
def cutter(debug: bool) -> Cutter:
    """The expressions, with those for line numbers and sections or without."""
    terminals = TERMINALS
    name, opcode, string = terminals["NAME"], terminals["OPCODE"], terminals["STRING"]
    modifiers, section = terminals["MODIFIERS"], terminals["SECTION_BODY"]
    integer = terminals["INTEGER"]
    w = r"\s*+"  # with re.ASCII the grammar's WHITESPACE
    to_end = rf'[^;"]*+(?:{string}[^;"]*+)*+;'
    loc = _NEVER
    if debug:
        loc = (
            rf"\.loc(?![\w$])(?:{w}{integer}){{3}}"
            rf"(?:{w},{w}function_name{w}{name}(?:{w}\+{w}{integer})?+)?+"
            rf"(?:{w},{w}inlined_at(?:{w}{integer}){{3}})?+"
        )
    statement = (
        rf"{w}(?:(?:(@){w}(!)?+{w}({name}){w})?+({opcode}(?:{modifiers})?+)(?!{w}[:.])([^;\"]*+);"
        rf"|({loc}|\.(?!(?:loc|file|section)(?![\w$]))[a-z]{to_end})"
        rf"|((?:@{w}!?+{w}{name}{w})?+{opcode}(?:{modifiers})?+{w}\.[^;\"]*+;)"
        rf"|({name}|{opcode}){w}:|(\{{)|(\}})|(\Z)|(.))"
    )
    pragma = rf"\.pragma(?![\w$]){w}{string}(?:{w},{w}{string})*+{w};"
    value = rf"(?:{string}|[.@\w$%]++(?:{w}[-+]{w}[.\w$%]++)?+|-{w}\w++)"
    dwarf, sections = _NEVER, rf"{_NEVER}()()"
    if debug:
        dwarf = rf"@@DWARF(?![\w$]){w}\.\w++{w}{value}(?:{w},{w}{value})*+"
        sections = rf"\.section(?![\w$]){w}({terminals['SECTION_NAME']}){w}({section})"
    item = (
        rf"({w})(?:((?:{terminals['LINKAGE']}{w})?+"
        rf"(?:{terminals['SPACE']}{to_end}|\.(?:pragma|alias)(?![\w$]){to_end}))"
        rf"|((?:{terminals['LINKAGE']}{w})?+{terminals['KIND']}"
        rf'(?:[^;{{}}".]++|{pragma}|\.(?!pragma(?![\w$])))*+(?=[;{{]))'
        rf"|({dwarf}|\.(?:version|target|address_size|file)(?![\w$])(?:[^.{{}};\"]|{string}|\.(?=\d))*+)"
        rf"|{sections}"
        rf"|(\Z))"
    )
    parens = rf"\(([^()\"]*+)\){w}"
    head = (
        rf"((?:{terminals['LINKAGE']}{w})?+)({terminals['KIND']}){w}"
        rf"(?:{parens})?+({name}){w}(?:{parens})?+([^()]*+)"
    )
    directive = rf"{terminals['FUNCTION_DIRECTIVE']}|{terminals['PRAGMA']}"
    patterns = (statement, item, head, directive)
    return Cutter(*(re.compile(x, re.ASCII | re.DOTALL) for x in patterns))


@cached
def bodies() -> re.Pattern[str]:
    """A body from its brace to the one that closes it, as deep as the reader takes blocks.

    Braces and strings are all it looks at. It matches none whose braces or quotes do not match.
    """
    string, inner = TERMINALS["STRING"], r"\{[^{}\"]*+\}"
    for _ in range(MAX_DEPTH):
        inner = rf"\{{[^{{}}\"]*+(?:(?:{string}|{inner})[^{{}}\"]*+)*+\}}"
    return re.compile(inner, re.ASCII | re.DOTALL)


FLAT = re.compile(r'[^={}";]*+=[ \t\r\n\f\v]*+\{([^][(){}";]*+)\}[ \t\r\n\f\v]*+;')
RUN = re.compile(r"(?:[^,]*+,){63}[^,]*+")
