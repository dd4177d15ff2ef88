"""Headings and links of Markdown, as a code host and mkdocs both understand them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,}).*?^ {0,3}\2[`~]*[ ]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"(?<=\]\()[^()\s]+(?=\)| \")|(?<=\bsrc=\")[^\"]+|(?<=\bhref=\")[^\"]+")
_HEADING = re.compile(r"^#{1,6} +(.*?)(?: +#+)?$", re.MULTILINE)
_ANCHOR = re.compile(r"\b(?:id|name)=\"([^\"]+)\"")


class Link(NamedTuple):
    """Where a link leads, as it is written, and the line it is on."""

    line: int
    target: str


def slug(text: str, separator: str = "-") -> str:
    """The anchor of a heading, as GitHub has it."""
    kept = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return kept.replace(" ", separator)


def _blanked(text: str, pattern: re.Pattern[str]) -> str:
    """The same text, of the same length and lines, with the matches blank."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _without_indented(text: str) -> str:
    """The same without what is code for its indent: four spaces, not in a list."""
    lines: list[str] = []
    inside, in_list, blank = False, False, True
    for line in text.split("\n"):
        if line.strip():
            indented = line.startswith("    ")
            inside = indented and (inside or blank) and not in_list
            if not line.startswith(" "):
                in_list = re.match(r"[-*+] |\d+[.)] ", line) is not None
        lines.append(" " * len(line) if inside else line)
        blank = not line.strip()
    return "\n".join(lines)


def prose(text: str) -> str:
    """The text with its code blanked."""
    return _blanked(_without_indented(_blanked(text, _FENCE)), _CODE)


def links(text: str) -> Iterator[Link]:
    """The links and pictures of a page, but for those in code."""
    shown = prose(text)
    for match in _LINK.finditer(shown):
        yield Link(shown.count("\n", 0, match.start()) + 1, match[0])


def rewritten(text: str, change: Callable[[str], str]) -> str:
    """The page with every link changed."""
    parts: list[str] = []
    done = 0
    for match in _LINK.finditer(prose(text)):
        parts += [text[done : match.start()], change(match[0])]
        done = match.end()
    return "".join([*parts, text[done:]])


def anchors(text: str) -> set[str]:
    """What a link to the page may have behind `#`."""
    found: set[str] = set(_ANCHOR.findall(prose(text)))
    for match in _HEADING.finditer(_blanked(text, _FENCE)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])  # of a link its text
        found.add(slug(re.sub(r"[`*]", "", words)))
    return found


def is_outside(target: str) -> bool:
    """Whether a link leaves the repository: a web address, a mail address."""
    return re.match(r"[a-z][a-z0-9+.-]*:", target) is not None


def resolved(page: str, target: str) -> tuple[str, str]:
    """(path, anchor) of a link of a page, both paths from the repository's root."""
    path, _, anchor = target.partition("#")
    if not path:
        return page, anchor
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)), anchor


def relative(page: str, path: str, anchor: str = "") -> str:
    """The link from one page to another."""
    to = posixpath.relpath(path, posixpath.dirname(page) or ".")
    return f"{to}#{anchor}" if anchor else to
