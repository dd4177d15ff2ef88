"""How PTX is cut into pieces.

Comments are taken out of the text, regular expressions cut what is left.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from functools import cache as cached
from typing import Any, NamedTuple

from fragir.ptx import tree
from fragir.ptx.rules import MAX_DEPTH, Refused
from fragir.ptx.word_classes import TERMINALS


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


# -- comments --------------------------------------------------------------------------------------
# Comments: taken out of the text before it is read, put back among the statements after.


@cache
def _comment() -> re.Pattern[str]:
    """A run of what is no comment, strings too, and then a comment or the end."""
    other = rf'[^"/#]*+(?:(?:{TERMINALS["STRING"]}|"|/(?![/*]))[^"/#]*+)*+'
    return re.compile(rf"{other}({TERMINALS['COMMENT']}|/\*|#|\Z)", re.ASCII)


_NOT_NEWLINE = re.compile(r"[^\n]")


def strip_comments(text: str) -> tuple[str, list[tuple[int, str]]]:
    """The text with every comment blanked, equally long and with its line ends; the comments."""
    if "//" not in text and "/*" not in text and "#" not in text:
        return text, []
    found: list[tuple[int, str]] = []
    parts: list[str] = []
    at = 0
    for m in _comment().finditer(text):
        comment, begin = m[1], m.start(1)
        if not comment:  # the end
            break
        if comment == "/*":
            raise Refused("a comment without an end", begin)
        if comment == "#":  # begins no comment: what no terminal takes, so that it stays a fault
            parts += (text[at:begin], "\0")
            at = m.end()
            continue
        found.append((begin, comment))
        blank = _NOT_NEWLINE.sub(" ", comment) if "\n" in comment else " " * len(comment)
        parts += (text[at:begin], blank)
        at = m.end()
    parts.append(text[at:])
    return "".join(parts), found


class Comments:
    """The comments of a text, handed out in order as the statements around them are met."""

    def __init__(self, text: str, found: list[tuple[int, str]]):
        self.text = text
        self.found = found
        self.index = 0

    def next(self) -> int:
        """Where the next comment is; beyond every text if there is none."""
        return self.found[self.index][0] if self.index < len(self.found) else sys.maxsize

    def before(self, at: int, items: list[Any], alone: bool = False) -> None:
        """Append the comments that start before `at`; `alone`: none of them trails."""
        while self.next() < at:
            begin, comment = self.found[self.index]
            self.index += 1
            trailing = not alone
            if trailing:
                line = self.text.rfind("\n", 0, begin) + 1
                trailing = bool(self.text[line:begin].strip())
            if items and trailing:  # nothing can follow `//` on its line
                last = items[-1]
                trailing = not (isinstance(last, tree.Comment) and last.text[:2] != "/*")
            items.append(tree.Comment(comment, trailing, begin))

    def skip(self, at: int) -> None:
        """Drop the comments that start before `at`: they are within the text of a section."""
        while self.next() < at:
            self.index += 1


def place_comments(items: Sequence[Any], comments: Comments) -> tuple[Any, ...]:
    """The items of a whole text with their comments among them."""
    placed = _place(items, comments)
    comments.before(len(comments.text), placed)
    return tuple(placed)


def _place(items: Sequence[Any], comments: Comments) -> list[Any]:
    placed: list[Any] = []
    for item in items:
        comments.before(item.at, placed)
        if isinstance(item, tree.Block):
            item = _place_block(item, comments)
        elif isinstance(item, tree.Function) and item.body is not None:
            comments.before(item.body.at, placed, alone=True)
            item = replace(item, body=_place_block(item.body, comments))
        placed.append(item)
    return placed


def _place_block(block: tree.Block, comments: Comments) -> tree.Block:
    inner = _place(block.items, comments)
    comments.before(block.end, inner)
    return tree.Block(tuple(inner), block.at, block.end)
