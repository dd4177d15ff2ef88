"""Comments: taken out of the text before it is read, put back among the statements after."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from fragir.ptx import tree
from fragir.ptx.known import TERMINALS
from fragir.ptx.limits import Refused


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
