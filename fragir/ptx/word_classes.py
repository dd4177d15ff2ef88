"""Words, the glue between them, and the classes of both that make up a shape.

A class stands for all texts that may take each other's place without any difference to the
grammar: the class of a word says which of the grammar's terminals match it whole, the class of glue
is the glue without the blanks that do not matter.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fragir.ptx.rules import too_large

# -- known -----------------------------------------------------------------------------------------
# The grammar's terminals, and the shapes that most PTX has: `known.txt`, which `learn` writes.

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


# Words of operands: an identifier with its component is one, `%tid.x`, and so is a decimal float
# (and between operands a whole opcode, which nobody looks at).
OPERAND_WORDS = re.compile(r"([\w$%]+(?:(?:\.|::)\w+)*+)", re.ASCII)
# Words of directives: a word with a dot before it, such as `.reg`, belongs to the glue, but a type.
DIRECTIVE_WORDS = re.compile(
    rf'("[^"\n]*"|(?<![\w.$%])(?:[0-9]+\.[0-9]+(?![\w$.])|[\w$%]+|{TERMINALS["TYPE"]}))', re.ASCII
)

# The blanks of the grammar's WHITESPACE: `str.strip` alone, and `str.isspace`, know more.
BLANKS = " \t\r\n\f\v"

# Terminals whose text is free -> their class. The first that matches a word is its class: a word
# of fixed text may be a name as well, and a version's number a float.
CLASSES = {
    "FUNCTION_NAME": "F",
    "INLINED_AT": "I",
    "WARP_SIZE": "W",
    "GENERIC": "G",
    "NAME": "n",
    "SINK": "_",
    "INTEGER": "i",
    "VERSION_NUMBER": "v",
    "FLOAT": "f",
    "EXACT_FLOAT": "x",
    "STRING": "s",
    "TYPE": "T",
}
UNKNOWN = "?"

_fullmatch = re.compile(
    "|".join(f"(?P<{name}>{TERMINALS[name]})" for name in CLASSES), re.ASCII
).fullmatch
_field = re.compile(TERMINALS["FIELD"], re.ASCII).fullmatch


class Words(dict[str, str]):
    """Word -> its class, worked out once for each distinct word; "?" where no terminal fits."""

    def __init__(self) -> None:
        self._stems: set[str] = set()

    def __missing__(self, word: str) -> str:
        # most words are registers: a name with digits behind it is a name
        stem = word.rstrip("0123456789")
        if stem in self._stems:
            self[word] = "n"
            return "n"
        found = self[word] = word_class(word)
        if found == "n" and stem != word and word_class(stem) == "n":
            self._stems.add(stem)
        return found


def word_class(word: str) -> str:
    match = _fullmatch(word)
    if match is not None:
        found = CLASSES[match.lastgroup or ""]
        return UNKNOWN if found == "i" and too_large(word) else found
    head, dot, tail = word.partition(".")
    if dot and _field(dot + tail) and word_class(head) == "n":
        return "n." + tail
    return UNKNOWN


class Glue(dict[str, str]):
    """Glue -> its class."""

    def __missing__(self, glue: str) -> str:
        found = self[glue] = glue_class(glue)
        return found


class EndedGlue(dict[str, str]):
    """Glue -> the class of what is before its semicolon."""

    def __missing__(self, glue: str) -> str:
        found = self[glue] = glue_class(glue.partition(";")[0])
        return found


# A comma or a bracket is a token of its own whatever stands beside it; between two other
# characters, blanks may part tokens, and then it does not matter how many they are.
_SINGLE = frozenset(",;()[]{}")
_AROUND = re.compile(r" ?([][,(){};]) ?")
_RUN = re.compile(r"\s+", re.ASCII)


def glue_class(glue: str) -> str:
    bare = glue.strip(BLANKS)
    if bare in _SINGLE:
        return bare
    if not bare:
        return glue and " "
    return _AROUND.sub(r"\1", _RUN.sub(" ", glue))
