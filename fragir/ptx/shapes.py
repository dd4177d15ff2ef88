"""Statement shapes: Lark parses one statement of a kind, the others fill its slots.

A *piece* of text (the operands of an instruction, a directive) is split into words and the glue
between them. Its *shape* is the glue together with the class of every word: which of the
grammar's own terminals match it whole. Two pieces of one shape give trees that differ in the
words alone: every terminal of the grammar ends at a boundary of words, so that the lexer cuts
both at the same places and gives both the same terminals. The first piece of a shape is parsed
by Lark; its tree becomes a Python expression that builds the tree of the next piece from its
words. What cannot be generalised that way (a token that is not one word) is left to Lark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from itertools import accumulate
from typing import Any, cast

from fragir.ptx import _lark, tree
from fragir.ptx.build import too_large
from fragir.ptx.visit import NODE_FIELDS

# Words of operands: an identifier with its component is one, `%tid.x`, and so is a decimal float.
OPERAND_WORDS = re.compile(r"([\w$%]+(?:\.\w+)?)", re.ASCII)
# Words of directives: those with a dot before them, such as `.reg`, belong to the glue.
DIRECTIVE_WORDS = re.compile(r'("[^"\n]*"|(?<![\w.$%])[\w$%]+)', re.ASCII)

MAX_WORDS = 400  # a longer piece (a table of numbers) is of a shape that does not come again
MAX_SHAPES = 20_000  # in one process; then the cache starts anew

Builder = Callable[[list[str], list[int]], Any]

# Terminals whose text is free (their class is one letter), and those that are a fixed word.
_FREE = {"NAME": "n", "SINK": "_", "INTEGER": "i", "FLOAT": "f", "STRING": "s"}
_FIXED = {"FUNCTION_NAME": "F", "INLINED_AT": "I"}
_LEAVES = (tree.Name, tree.Integer, tree.Float, tree.String)


class Classes(dict[str, str]):
    """Word -> its class, worked out once for each distinct word; "?" where no terminal fits."""

    def __init__(self) -> None:
        terminals = _lark.grammar().terminals
        # a word of fixed text may be a name too, but it is a class of its own
        letters = _FIXED | _FREE
        either = "|".join(f"(?P<{name}>{terminals[name]})" for name in letters)
        self._letters = letters
        self._full = re.compile(either, re.ASCII).fullmatch
        self._field = re.compile(terminals["FIELD"], re.ASCII).fullmatch

    def __missing__(self, word: str) -> str:
        match = self._full(word)
        found = "" if match is None else self._letters[match.lastgroup or ""]
        if found == "i" and too_large(word):
            found = ""
        if match is None and "." in word:
            head, _, tail = word.partition(".")
            if self[head] == "n" and self._field("." + tail):
                found = "n." + tail
        self[word] = found = found or "?"
        return found


class NotRegular(Exception):
    """The tree of this piece is no function of its words."""


class Shapes:
    """The shapes of one start symbol of the grammar.

    A shape is generalised when it comes a second time. The operands of an instruction are read
    one by one where their shape as a whole is new: the commas outside of brackets part them.
    """

    def __init__(self, start: str, words: re.Pattern[str]):
        self.start = start
        self.split = words.split
        self.known: dict[tuple[str, ...], Builder] = {}
        self.once: dict[tuple[str, ...], tuple[Any, list[str], list[int]]] = {}

    def parse(self, text: str, begin: int, end: int, classes: Classes) -> Any:
        """The same as `_lark.parse(text, start, begin, end)`."""
        parts = self.split(text[begin:end], 2 * MAX_WORDS)
        if len(parts) > 2 * MAX_WORDS:
            return _lark.parse(text, self.start, begin, end)
        offsets = list(accumulate(map(len, parts), initial=begin))
        key = (" ".join(map(classes.__getitem__, parts[1::2])), *parts[::2])
        builder = self.known.get(key)
        if builder is not None:
            return builder(parts, offsets)
        before = self.once.pop(key, None)
        if before is not None:
            try:
                builder = generalise(*before)
            except NotRegular:
                return _lark.parse(text, self.start, begin, end)
            if len(self.known) >= MAX_SHAPES:
                self.known.clear()
            self.known[key] = builder
            return builder(parts, offsets)
        if self.start == "operands" and (commas := _outer_commas(parts, offsets)):
            operands: list[Any] = []
            for comma in [*commas, end]:
                operands += self.parse(text, begin, comma, classes)
                begin = comma + 1
            made = tuple(operands)
        else:
            made = _lark.parse(text, self.start, begin, end)
        if "?" not in key[0]:
            if len(self.once) >= MAX_SHAPES:
                self.once.clear()
            self.once[key] = made, parts, offsets
        return made


def _outer_commas(parts: list[str], offsets: list[int]) -> list[int]:
    """Where the commas between operands are; none if the brackets do not match."""
    commas: list[int] = []
    depth = 0
    for part in range(0, len(parts), 2):
        for at, char in enumerate(parts[part], offsets[part]):
            if char in "([{":
                depth += 1
            elif char in ")]}":
                depth -= 1
            elif char == "," and depth == 0:
                commas.append(at)
    return [] if depth else commas


@cache
def shapes() -> dict[str, Shapes]:
    """The shapes that this process has learnt, by start symbol."""
    return {
        "operands": Shapes("operands", OPERAND_WORDS),
        "statement": Shapes("statement", DIRECTIVE_WORDS),
        "linked_declaration": Shapes("linked_declaration", DIRECTIVE_WORDS),
        "item": Shapes("item", DIRECTIVE_WORDS),
        "parameter": Shapes("parameter", DIRECTIVE_WORDS),
        "head_directives": Shapes("head_directives", DIRECTIVE_WORDS),
    }


def forget() -> None:
    """Forget all shapes (for measurements)."""
    shapes.cache_clear()


_ENVIRONMENT = {cls.__name__: cls for cls in NODE_FIELDS}
_FIELDS = {cls: tuple(f.name for f in fields(cls)) for cls in NODE_FIELDS}


def generalise(made: Any, parts: list[str], offsets: list[int]) -> Builder:
    """A function from words and offsets to the tree that `made` is for these."""
    words = {offsets[k]: k for k in range(1, len(parts), 2)}
    claimed: set[int] = set()
    starts = offsets[: len(parts)]

    def position(at: int) -> str:
        part = len(starts) - 1
        while starts[part] > at or (part and starts[part] == at and not parts[part]):
            part -= 1
        beyond = at - starts[part]
        return f"o[{part}]+{beyond}" if beyond else f"o[{part}]"

    def leaf(node: Any) -> str:
        part = words.get(node.at)
        if part is None:
            raise NotRegular
        claimed.add(part)
        rest = len(parts[part]) - len(node.text)
        text = f"w[{part}]"
        if rest:  # a name before its component
            if not parts[part].startswith(node.text + "."):
                raise NotRegular
            text += f"[:-{rest}]"
        elif parts[part] != node.text:
            raise NotRegular
        return f"{type(node).__name__}({text},o[{part}])"

    def expression(value: Any) -> str:
        if isinstance(value, _LEAVES):
            return leaf(value)
        if isinstance(value, tuple):
            return f"({''.join(expression(x) + ',' for x in cast(tuple[Any, ...], value))})"
        names = _FIELDS.get(value.__class__)
        if names is None:
            return repr(value)
        if isinstance(value, tree.Sink):
            if value.at not in words:
                raise NotRegular
            claimed.add(words[value.at])
        inner = ",".join(
            position(value.at) if name == "at" else expression(getattr(value, name))
            for name in names
        )
        return f"{type(value).__name__}({inner})"

    code = expression(made)
    for part in range(1, len(parts), 2):
        if part not in claimed and parts[part] not in ("function_name", "inlined_at"):
            raise NotRegular
    return eval(f"lambda w,o:{code}", _ENVIRONMENT)
