"""The operands of instructions, by their shapes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

from fragir.ptx import _lark
from fragir.ptx.generalise import Builder
from fragir.ptx.rules import check_elements
from fragir.ptx.shapes import MAX_WORDS, Key, Shapes, WordClasses
from fragir.ptx.tree import Vector
from fragir.ptx.word_classes import BLANKS, DIRECTIVE_WORDS, OPERAND_WORDS, EndedGlue, glue_class

# What makes a tuple of operands from parts, their offsets, and the index of the first part.
Lister = Callable[[Sequence[str], Sequence[int], int], tuple[object, ...]]

WINDOW = 1 << 16  # characters that are split into words at a time


class OperandReader:
    """Reads the operands of the statements of one text, front to back.

    The text is split a window at a time; the operands of a statement are a run of its parts.
    """

    def __init__(self, text: str, classes: WordClasses, operands: Operands):
        self.text = text
        self.words = classes
        self.operands = operands
        self.glue = EndedGlue()
        self.parts: list[str] = []
        self.classes: list[str] = []
        self.offsets: list[int] = []
        self.stop = 0  # where the window ends
        self.index = 0  # of the part at which the last statement ended

    def read(self, begin: int, end: int) -> tuple[Any, ...]:
        """The operands in text[begin:end], none if that is blank; text[end] is the semicolon."""
        if end >= self.stop:
            self.advance(begin, end)
        offsets = self.offsets
        first = bisect_left(offsets, begin, self.index)
        self.index = last = bisect_right(offsets, end, first) - 1
        lister = self.operands.lists.get(tuple(self.classes[first : last + 1]))
        if lister is not None and offsets[first] == begin:
            return lister(self.parts, offsets, first)
        if not self.text[begin:end].strip(BLANKS):
            return ()
        return self.operands.parse(self.text, begin, end, self.words)

    def advance(self, begin: int, end: int) -> None:
        """Move the window, so that it begins at `begin` and reaches beyond `end`."""
        self.stop = max(begin + WINDOW, end + 1)
        self.parts = parts = OPERAND_WORDS.split(self.text[begin : self.stop])
        self.offsets = list(accumulate(map(len, parts), initial=begin))
        self.classes = list(parts)
        self.classes[::2] = map(self.glue.__getitem__, parts[::2])
        self.classes[1::2] = map(self.words.words.__getitem__, parts[1::2])
        self.index = 0


class Span(NamedTuple):
    """From character `begin` of the glue parts[first] to before `end` of the glue parts[last]."""

    first: int
    begin: int
    last: int
    end: int


class Operands(Shapes):
    """The operands of an instruction; the shapes are those of single ones.

    The commas outside of brackets part operands, and those within the braces of a vector without
    other brackets its elements: either way what is parted is an operand by itself. What makes all
    operands of an instruction is remembered by the shape of the whole.
    """

    def __init__(self) -> None:
        self.lists: dict[Key, Lister] = {}
        super().__init__("operands", OPERAND_WORDS)

    def forget(self, shipped: bool = False) -> None:
        super().forget(shipped)
        self.lists.clear()

    def parse(self, text: str, begin: int, end: int, classes: WordClasses) -> tuple[Any, ...]:
        parts = self.split(text[begin:end], 2 * MAX_WORDS)
        offsets = list(accumulate(map(len, parts), initial=begin))
        key = classes.key(parts)
        lister = self.lists.get(key)
        if lister is not None:
            return lister(parts, offsets, 0)
        if len(parts) > 2 * MAX_WORDS:
            return _lark.parse(text, self.start, begin, end)
        whole = Span(0, 0, len(parts) - 1, len(parts[-1]))
        builders, lasting = self.builders(text, parts, offsets, whole, classes)
        if lasting and len({i for _, i in builders}) == len(builders):
            self.bound(len(key))
            lister = self.lists[key] = _lister(builders)
            return lister(parts, offsets, 0)
        return tuple([builder(parts, offsets, i) for builder, i in builders])

    def plain(self, text: str, begin: int, end: int) -> Any:
        (operand,) = _lark.parse(text, self.start, begin, end)
        return operand

    def builders(
        self, text: str, parts: list[str], offsets: list[int], span: Span, classes: WordClasses
    ) -> tuple[list[tuple[Builder, int]], bool]:
        """What makes the operands of a span, each with its first part; whether it may be kept."""
        found: list[tuple[Builder, int]] = []
        lasting = True
        for one in _comma_spans(parts, span):
            builder, known = self.single(text, parts, offsets, one, classes)
            found.append((builder, one.first))
            lasting = lasting and known
        return found, lasting

    def single(
        self, text: str, parts: list[str], offsets: list[int], span: Span, classes: WordClasses
    ) -> tuple[Builder, bool]:
        """What makes the operand of a span; whether it makes others of the same shape, too."""
        first, begin, last, end = span
        start, stop = offsets[first] + begin, offsets[last] + end
        if first == last:  # no word
            glue = parts[first]
            builder = self.find((glue_class(glue[begin:end].strip(BLANKS)),))
            if builder is not None and "(" not in glue[:begin]:  # `()`
                return builder, True
            made = self.plain(text, start, stop)
            return lambda p, o, i: made, False
        head, tail = parts[first][begin:].lstrip(BLANKS), parts[last][:end].rstrip(BLANKS)
        own = [head, *parts[first + 1 : last], tail]
        key = classes.key(own)
        builder = self.find(key)
        if builder is not None:
            return builder, True
        inside = "".join(own[2:-1:2])
        if key[0] == "{" and key[-1] == "}" and not _BRACKETS.intersection(inside):
            inner = Span(first, parts[first].rindex("{") + 1, last, parts[last].index("}"))
            elements, lasting = self.builders(text, parts, offsets, inner, classes)
            check_elements(build(parts, offsets, i) for build, i in elements)
            builder = _vector([(builder, i - first) for builder, i in elements])
        else:
            own_offsets = list(accumulate(map(len, own), initial=offsets[first + 1] - len(head)))
            builder = self.learn(key, text, start, stop, own, own_offsets)
            lasting = key in self.known
        if lasting and key not in self.known:
            self.bound(len(key))
            self.known[key] = builder
        return builder, lasting


_BRACKETS = frozenset("()[]{}")


def _comma_spans(parts: Sequence[str], span: Span) -> list[Span]:
    """The spans between the commas that are outside of brackets."""
    spans: list[Span] = []
    first, begin, last, end = span
    depth = 0
    for part in range(first, last + 1, 2):
        glue = parts[part]
        for at in range(begin if part == span.first else 0, end if part == last else len(glue)):
            char = glue[at]
            if char in "([{":
                depth += 1
            elif char in ")]}":
                depth -= 1
            elif char == "," and depth == 0:
                spans.append(Span(first, begin, part, at))
                first, begin = part, at + 1
    if depth:
        return [span]
    spans.append(Span(first, begin, last, end))
    return spans


def _lister(builders: list[tuple[Builder, int]]) -> Lister:
    """Calls each builder with its part."""
    if len(builders) == 1:
        ((f, a),) = builders
        return lambda p, o, i: (f(p, o, i + a),)
    if len(builders) == 2:
        (f, a), (g, b) = builders
        return lambda p, o, i: (f(p, o, i + a), g(p, o, i + b))
    if len(builders) == 3:
        (f, a), (g, b), (h, c) = builders
        return lambda p, o, i: (f(p, o, i + a), g(p, o, i + b), h(p, o, i + c))
    if len(builders) == 4:
        (f, a), (g, b), (h, c), (k, d) = builders
        return lambda p, o, i: (f(p, o, i + a), g(p, o, i + b), h(p, o, i + c), k(p, o, i + d))
    return lambda p, o, i: tuple([build(p, o, i + at) for build, at in builders])


def _vector(elements: list[tuple[Builder, int]]) -> Builder:
    def build(p: Sequence[str], o: Sequence[int], i: int) -> Vector:
        made = tuple([element(p, o, i + beyond) for element, beyond in elements])
        return Vector(made, o[i] + p[i].index("{"))

    return build


# -- shape cache -----------------------------------------------------------------------------------
# The shapes that this process knows: those that come with the package, and those of its texts.


class Learnt(NamedTuple):
    """The shapes, by start symbol of the grammar."""

    operands: Operands
    statement: Shapes
    linked_declaration: Shapes
    item: Shapes
    parameter: Shapes
    head_directives: Shapes


@cache
def learnt() -> Learnt:
    return Learnt(Operands(), *(Shapes(start, DIRECTIVE_WORDS) for start in Learnt._fields[1:]))


def forget(*, shipped: bool = False) -> None:
    """Forget what was learnt from texts; with `shipped`, what came with the package too."""
    for shapes in learnt():
        shapes.forget(shipped)
