"""From the tree of one piece of text to a function that makes the trees of all alike.

The function gets the parts of a piece (glue, word, glue, ..., glue), their offsets, and the index
of the first. It is written as a Python expression: nodes of the tree become calls, words of the
piece take the place of the texts of its leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, cast

from fragir.ptx import tree
from fragir.ptx.visit import NODE_FIELDS

Builder = Callable[[Sequence[str], Sequence[int], int], Any]

_LEAVES = (tree.Name, tree.Integer, tree.Float, tree.String)
# Strings in nodes whose word is a part of its own, and what that word has before them.
_TEXTS: dict[tuple[type, str], str] = {
    (tree.Version, "text"): "",
    (tree.Target, "words"): "",
    (tree.Declaration, "type"): ".",
    (tree.Cast, "type"): ".",
}
_FIELDS = {cls: tuple(f.name for f in fields(cls)) for cls in NODE_FIELDS}
# Words of fixed text that leave no trace in the tree.
_SILENT = ("function_name", "inlined_at")


class NotRegular(Exception):
    """The tree of this piece is no function of its words."""


def nth(text: str, char: str, count: int) -> int:
    """Where `char` is in `text` with `count` of it before."""
    at = -1
    for _ in range(count + 1):
        at = text.index(char, at + 1)
    return at


ENVIRONMENT: dict[str, Any] = {cls.__name__: cls for cls in NODE_FIELDS} | {"nth": nth}


@cache
def builder_of(code: str) -> Builder:
    """The function whose expression `generalise` wrote."""
    return cast(Builder, eval(f"lambda p, o, i: {code}", ENVIRONMENT))


def generalise(made: Any, parts: Sequence[str], offsets: Sequence[int]) -> str:
    """The expression, in `p`, `o` and `i`, whose value is `made` for these parts and offsets."""
    return _Piece(parts, offsets).expression_of(made)


class _Piece:
    def __init__(self, parts: Sequence[str], offsets: Sequence[int]):
        self.parts = parts
        self.offsets = offsets
        self.words = {offsets[k]: k for k in range(1, len(parts), 2)}
        self.claimed: set[int] = set()
        self.text = 1  # the next word to be claimed by a text

    def expression_of(self, made: object) -> str:
        code = self.expression(made)
        for part in range(1, len(self.parts), 2):
            if part not in self.claimed and self.parts[part] not in _SILENT:
                raise NotRegular
        return code

    def expression(self, value: Any) -> str:
        if isinstance(value, _LEAVES):
            return self.leaf(value)
        if isinstance(value, tuple):
            inner = [self.expression(x) for x in cast(tuple[Any, ...], value)]
            return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
        cls: Any = value.__class__
        names = _FIELDS.get(cls)
        if names is None:
            return repr(value)
        if cls is tree.Sink:
            if value.at not in self.words:
                raise NotRegular
            self.claimed.add(self.words[value.at])
        inner = [self.field(cls, name, getattr(value, name)) for name in names]
        return f"{cls.__name__}({', '.join(inner)})"

    def field(self, cls: type, name: str, value: Any) -> str:
        if name in ("at", "end"):
            return self.position(value)
        dot = _TEXTS.get((cls, name))
        if dot is None:
            return self.expression(value)
        if isinstance(value, tuple):
            return f"({', '.join([self.word(dot, x) for x in cast(tuple[str, ...], value)])},)"
        return self.word(dot, value)

    def word(self, dot: str, text: str) -> str:
        """A text of a node, which is that of the next word that is one: they come in order."""
        for part in range(self.text, len(self.parts), 2):
            if self.parts[part] == dot + text:
                self.text = part + 2
                self.claimed.add(part)
                return f"p[i+{part}]" + ("[1:]" if dot else "")
        raise NotRegular

    def leaf(self, node: Any) -> str:
        part = self.words.get(node.at)
        if part is None:
            raise NotRegular
        self.claimed.add(part)
        rest = len(self.parts[part]) - len(node.text)
        text = f"p[i+{part}]"
        if rest:  # a name before its component
            if not self.parts[part].startswith(node.text + "."):
                raise NotRegular
            text += f"[:-{rest}]"
        elif self.parts[part] != node.text:
            raise NotRegular
        return f"{type(node).__name__}({text}, o[i+{part}])"

    def position(self, at: int) -> str:
        """That of a word, or of a character in glue, wherever blanks put it."""
        if at in self.words:
            return f"o[i+{self.words[at]}]"
        for part in range(0, len(self.parts), 2):
            glue, beyond = self.parts[part], at - self.offsets[part]
            if 0 <= beyond < len(glue):
                char = glue[beyond]
                before = glue.count(char, 0, beyond)
                within = f"nth(p[i+{part}], {char!r}, {before})"
                if before == 0:
                    within = f"p[i+{part}].index({char!r})"
                return f"o[i+{part}]+{within}"
        raise NotRegular
