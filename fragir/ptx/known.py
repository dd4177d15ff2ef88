"""The grammar's terminals, and the shapes that most PTX has: `known.txt`, which `learn` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("known.txt")

HEAD: Final = """\
# What follows from grammar.lark; written by `python -m fragir.ptx.learn`.
# [terminals]: name, regular expression (to be compiled with re.ASCII).
# [start symbol]: a piece of text, its shape, what makes the trees of this shape (generalise.py).
"""

TERMINALS: Final[dict[str, str]] = {}
"""Name -> regular expression, to be compiled with re.ASCII."""

SHAPES: Final[dict[str, dict[tuple[str, ...], str]]] = {}
"""Start symbol -> shape -> the expression that `fragir.ptx.generalise.builder_of` takes."""


def _load() -> None:
    sections = FILE.read_text("utf-8").split("\n\n")
    for section in sections[1:]:
        title, *rows = section.splitlines()
        cells = [row.split("\t") for row in rows]
        if title == "[terminals]":
            TERMINALS.update((name, regexp) for name, regexp in cells)
        else:
            SHAPES[title[1:-1]] = {tuple(key): code for _, *key, code in cells}


_load()
