"""Statement shapes: Lark parses one piece of text of a kind, the others fill its slots.

A *piece* of text (an operand, a directive) is split into words and the glue between them. Its
*shape* are the classes of these (`fragir.ptx.word_classes`). Two pieces of one shape give trees
that differ in the words alone: every terminal of the grammar ends at a boundary of words, so that
the lexer cuts both at the same places and gives both the same terminals. The first piece of a shape
is parsed by Lark; its tree becomes a Python function that builds the tree of the next piece from
its words (`fragir.ptx.generalise`). What cannot be generalised that way (a token that is not one
word) is left to Lark. Frequent shapes come with the package: `word_classes.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from fragir.ptx import _lark, word_classes
from fragir.ptx.generalise import Builder, NotRegular, builder_of, generalise
from fragir.ptx.word_classes import UNKNOWN, Glue, Words

MAX_WORDS = 400  # a longer piece (a table of numbers) is of a shape that does not come again
MAX_PARTS = 1 << 18  # words and glue in all the shapes of a kind; then the cache starts anew

Key = tuple[str, ...]


class WordClasses(NamedTuple):
    """The classes of the words and the glue of one text."""

    words: Words
    glue: Glue

    def key(self, parts: Sequence[str]) -> Key:
        found = list(parts)
        found[::2] = map(self.glue.__getitem__, parts[::2])
        found[1::2] = map(self.words.__getitem__, parts[1::2])
        return tuple(found)


class Shapes:
    """The shapes of one start symbol of the grammar; one is generalised on its second coming."""

    def __init__(self, start: str, words: re.Pattern[str]):
        self.start = start
        self.split = words.split
        self.known: dict[Key, Builder] = {}
        self.shipped: dict[Key, str] = {}  # what comes with the package; in `known` once it is met
        self.once: dict[Key, tuple[Any, list[str], list[int]]] = {}
        self.forget()

    def forget(self, shipped: bool = False) -> None:
        """Forget what was learnt; with `shipped`, what came with the package too."""
        self.known.clear()
        self.once.clear()
        self.size = 0
        self.shipped = {} if shipped else word_classes.SHAPES[self.start]

    def parse(self, text: str, begin: int, end: int, classes: WordClasses) -> Any:
        """The same as `_lark.parse(text, start, begin, end)`."""
        parts = self.split(text[begin:end], 2 * MAX_WORDS)
        if len(parts) > 2 * MAX_WORDS:
            return _lark.parse(text, self.start, begin, end)
        offsets = list(accumulate(map(len, parts), initial=begin))
        key = classes.key(parts)
        builder = self.find(key) or self.learn(key, text, begin, end, parts, offsets)
        return builder(parts, offsets, 0)

    def find(self, key: Key) -> Builder | None:
        """What makes the pieces of this shape, if it is known."""
        builder = self.known.get(key)
        if builder is None and key in self.shipped:
            builder = self.known[key] = builder_of(self.shipped[key])
        return builder

    def plain(self, text: str, begin: int, end: int) -> Any:
        return _lark.parse(text, self.start, begin, end)

    def learn(
        self, key: Key, text: str, begin: int, end: int, parts: list[str], offsets: list[int]
    ) -> Builder:
        """What makes this piece; known from now on if its shape was met before."""
        before = self.once.pop(key, None)
        if before is not None:
            try:
                builder = self.known[key] = builder_of(generalise(*before))
                return builder
            except NotRegular:
                pass
        made = self.plain(text, begin, end)
        if before is None and UNKNOWN not in key:
            self.bound(len(key))
            self.once[key] = made, parts, offsets
        return lambda p, o, i: made

    def bound(self, more: int) -> None:
        """Start anew rather than remember too much."""
        if self.size + more > MAX_PARTS:
            self.forget()
        self.size += more
