"""Words, the glue between them, and the classes of both that make up a shape.

A class stands for all texts that may take each other's place without any difference to the
grammar: the class of a word says which of the grammar's terminals match it whole, the class of glue
is the glue without the blanks that do not matter.
"""

from __future__ import annotations

import re

from fragir.ptx.known import TERMINALS
from fragir.ptx.limits import too_large

# Words of operands: an identifier with its component is one, `%tid.x`, and so is a decimal float.
OPERAND_WORDS = re.compile(r"([\w$%]+(?:\.\w+)?)", re.ASCII)
# Words of directives: a word with a dot before it, such as `.reg`, belongs to the glue, but a type.
DIRECTIVE_WORDS = re.compile(
    rf'("[^"\n]*"|(?<![\w.$%])(?:[0-9]+\.[0-9]+(?![\w$.])|[\w$%]+|{TERMINALS["TYPE"]}))', re.ASCII
)

# Terminals whose text is free -> their class. The first that matches a word is its class: a word
# of fixed text may be a name as well, and a version's number a float.
CLASSES = {
    "FUNCTION_NAME": "F",
    "INLINED_AT": "I",
    "NAME": "n",
    "SINK": "_",
    "INTEGER": "i",
    "VERSION_NUMBER": "v",
    "FLOAT": "f",
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

    def __missing__(self, word: str) -> str:
        match = _fullmatch(word)
        found = "" if match is None else CLASSES[match.lastgroup or ""]
        if found == "i" and too_large(word):
            found = ""
        if match is None and "." in word:
            head, _, tail = word.partition(".")
            if self[head] == "n" and _field("." + tail):
                found = "n." + tail
        self[word] = found = found or UNKNOWN
        return found


# A comma or a bracket is a token of its own whatever stands beside it; between two other
# characters, blanks may part tokens, and then it does not matter how many they are.
_AROUND = re.compile(r"\s*([][,(){};])\s*", re.ASCII)
_BLANKS = re.compile(r"\s+", re.ASCII)


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


def glue_class(glue: str) -> str:
    return _BLANKS.sub(" ", _AROUND.sub(r"\1", glue))
