"""Reading PTX text into a syntax tree.

`parse` cuts the text into statements with one regular expression and reads each through the cache
of statement shapes (`fragir.ptx.shapes`). `cache=False` gives the whole text to Lark; both ways
give the same trees and refuse the same texts, the second some five times slower.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, cast

from fragir.errors import kind_of
from fragir.ptx import _lark, tree
from fragir.ptx.cutter import (
    AT,
    BANG,
    CLOSE,
    DECLARATION,
    DIRECTIVE,
    FLAT,
    GUARD,
    HEAD,
    LABEL,
    LAST,
    OPCODE,
    OPEN,
    OPERANDS,
    RUN,
    SECTION,
    SECTION_NAME,
    SPACE,
    SPACED,
    Comments,
    bodies,
    cutter_for,
    place_comments,
    strip_comments,
)
from fragir.ptx.operands import OperandReader, learnt
from fragir.ptx.pointing import PtxSyntaxError as PtxSyntaxError
from fragir.ptx.pointing import pointing_into
from fragir.ptx.rules import LIMITS, MAX_DEPTH, Refused, Unexpected, check_directives, check_initial
from fragir.ptx.shapes import WordClasses
from fragir.ptx.tree import Module, Source
from fragir.ptx.visit import transform
from fragir.ptx.word_classes import BLANKS, Glue, Words

MAX_TEXT = 1 << 26  # characters: trees take some 30 times the space of their text


def parse(text: str, filename: str = "<ptx>", *, cache: bool = True, lazy: bool = False) -> Module:
    """The syntax tree of a PTX text. Raises PtxSyntaxError, and nothing else, if it has none.

    `lazy`: the bodies of functions are read when they are looked at, and what is wrong in one is
    raised there and then; `characters_read` says how much has been.
    """
    if not isinstance(cast("object", text), str):
        raise PtxSyntaxError(f"PTX is a str, not {kind_of(text)}")
    text = text.rstrip("\0")  # the end of a C string, which NVRTC's texts are
    source = Source(text, filename)
    if len(text) > MAX_TEXT:
        raise PtxSyntaxError(
            f"the text has {len(text)} characters, the reader takes at most {MAX_TEXT}",
            filename,
            hint="set fragir.ptx.reader.MAX_TEXT to take more",
        )
    with pointing_into(source):
        if not cache:
            return _parse_plainly(text, source)
        clean, comments = strip_comments(text)
        if lazy:  # what is wrong is told as it is where all is read: the first of it
            with suppress(Unexpected, Refused, _Narrow):
                return Module(_Reader(source, clean, comments, lazy=True).module(), source)
        try:
            return Module(_Reader(source, clean, comments).module(), source)
        except _Narrow:
            return _parse_plainly(text, source)


def characters_read(module: Module) -> int:
    """Those of the bodies that have been read."""
    bodies = (f.body for f in module.functions if f.body is not None)
    return sum(b.end - b.at for b in bodies if type(b) is not tree.UnreadBlock)


def expand_section(section: tree.Section) -> tree.Section:
    """The section with its body read: labels, data and comments in place of text.

    Positions within count from the start of the section's body.
    """
    body = section.body
    if not isinstance(body, str):
        return section
    source = Source(body, f"<section {section.name}>")
    with pointing_into(source):
        clean, comments = strip_comments(body)
        lines = _lark.parse(clean, "section_body")
    return replace(section, body=place_comments(lines, Comments(body, comments)))


def _parse_plainly(text: str, source: Source) -> Module:
    """Lark over the whole text: the twin that tests hold the quick way against."""
    comments = _lark.grammar().comments
    comments.found = []
    try:
        items = _lark.parse(text, "module")
        found = comments.found
    finally:
        comments.found = []
    for item in items:
        if isinstance(item, tree.Function) and item.body is not None:
            _check_blocks(item.body)
    return Module(place_comments(items, Comments(text, found)), source)


def _check_blocks(body: tree.Block) -> None:
    level = [body]
    for _ in range(MAX_DEPTH):
        level = [x for block in level for x in block.items if isinstance(x, tree.Block)]
        if not level:
            return
    raise _too_deep(level[0].at)


def _too_deep(at: int) -> Refused:
    return Refused(f"blocks nested deeper than {MAX_DEPTH}", at)


# ------------------------------------------------------------------ the quick way


class _Narrow(Exception):
    """The cutter refuses what the grammar takes."""


class _Reader:
    """One text being read. `clean` is the text with equally long blanks for comments."""

    def __init__(
        self, source: Source, clean: str, comments: list[tuple[int, str]], lazy: bool = False
    ):
        self.source = source
        self.text = text = source.text
        self.clean = clean
        self.lazy = lazy
        self.comments = Comments(text, comments)
        self.cutter = cutter_for(clean)
        self.classes = WordClasses(Words(), Glue())
        self.shapes = learnt()
        self.operands = OperandReader(clean, self.classes, self.shapes.operands)
        self.opcodes: dict[str, tuple[str, ...]] = {}

    def fail(self, start: str, at: int) -> NoReturn:
        """Raise what Lark says of the text from `at` on, which the cutter takes for no `start`."""
        end = min(len(self.clean), at + min(LIMITS[start], 1 << 22))
        try:
            _lark.parse(self.clean, start, at, end)
        except Unexpected as error:
            if "$END" not in error.expected:
                raise
        raise _Narrow

    def module(self) -> tuple[tree.Item, ...]:
        clean, comments = self.clean, self.comments
        match = self.cutter.item.match
        items: list[Any] = []
        at = 0
        while True:
            m = match(clean, at)
            if m is None:
                self.fail("module", at)
            kind = m.lastindex
            assert kind is not None
            at, end = m.span(kind)
            comments.before(m.end(SPACE), items)
            if kind == DECLARATION:
                other = clean.startswith((".pragma", ".alias"), at)
                if not other and clean.find("{", at, end) >= 0:
                    items.append(self.table(at, end))
                else:
                    parse = (self.shapes.item if other else self.shapes.linked_declaration).parse
                    items.append(parse(clean, at, end, self.classes))
            elif kind == HEAD:
                head = self.head(at, end)
                body = None
                if clean[end] == "{":
                    comments.before(end, items, alone=True)
                    body = self.body(end)
                    end = body.end
                items.append(replace(head, body=body))
                end += 1
            elif kind == SECTION:
                name, begin = m[SECTION_NAME], m.start(SECTION)
                items.append(tree.Section(name, self.text[begin + 1 : end - 1], m.end(SPACE)))
                comments.skip(end)
            elif kind == LAST:
                comments.before(len(clean), items)
                return tuple(items)
            else:
                items.append(self.shapes.item.parse(clean, *self.bare(at, end), self.classes))
            at = end

    def table(self, at: int, end: int) -> tree.Declaration:
        """A declaration with an initialiser in braces, which is read in runs of one shape."""
        clean, declaration = self.clean, self.shapes.linked_declaration.parse
        m = FLAT.fullmatch(clean, at, end)
        if m is None or not m[1].strip(BLANKS):
            return declaration(clean, at, end, self.classes)
        here, stop = m.span(1)
        parse = self.shapes.operands.parse
        elements: list[tree.Operand] = []
        try:
            empty = clean[at:here] + clean[stop:end]
            bare = declaration(empty, 0, len(empty), self.classes)
            while here < stop:
                run = RUN.match(clean, here, stop)
                comma = run.end() if run else stop
                elements += parse(clean, here, comma, self.classes)
                here = comma + 1
                if here == stop:  # a comma with nothing behind it
                    raise Unexpected(stop, frozenset())
        except (Unexpected, Refused):
            return _lark.parse(clean, "linked_declaration", at, end)  # for its error
        bare = transform(bare, lambda node: replace(node, at=cast(Any, node).at + at))
        *others, variable = bare.variables
        vector = replace(variable.initializer, elements=tuple(elements))
        check_initial(vector)
        return replace(bare, variables=(*others, replace(variable, initializer=vector)))

    def head(self, begin: int, end: int) -> tree.Function:
        """The function without its body whose head is text[begin:end]."""
        m = self.cutter.head.fullmatch(self.clean, begin, end)
        if m is None:
            return _lark.parse(self.clean, "function_head", begin, end)
        linkage, kind, returns, name, parameters, directives = range(1, 7)
        try:
            return tree.Function(
                tuple(x.strip(BLANKS) for x in m[linkage].split(".")[1:]),
                m[kind][1:],
                tree.Name(m[name], m.start(name)),
                self.parameters(m, returns),
                self.parameters(m, parameters),
                check_directives(m[kind], self.directives(*m.span(directives))),
                None,
                (),
                begin,
            )
        except Unexpected:
            return _lark.parse(self.clean, "function_head", begin, end)  # for its error

    def parameters(self, m: re.Match[str], group: int) -> tuple[tree.Declaration, ...] | None:
        if m[group] is None:
            return None
        if not m[group].strip(BLANKS):
            return ()
        parse, at = self.shapes.parameter.parse, m.start(group)
        made: list[tree.Declaration] = []
        for piece in m[group].split(","):
            made.append(parse(self.clean, *self.bare(at, at + len(piece)), self.classes))
            at += len(piece) + 1
        return tuple(made)

    def directives(self, begin: int, end: int) -> tuple[Any, ...]:
        """Those of a head, each by itself."""
        if not self.clean[begin:end].strip(BLANKS):
            return ()
        parse = self.shapes.head_directives.parse
        starts = [m.start() for m in self.cutter.directive.finditer(self.clean, begin, end)]
        if not starts or self.clean[begin : starts[0]].strip(BLANKS):
            starts = [begin]
        made: list[Any] = []
        for start, stop in zip(starts, [*starts[1:], end], strict=True):
            made += parse(self.clean, *self.bare(start, stop), self.classes)
        return tuple(made)

    def bare(self, begin: int, end: int) -> tuple[int, int]:
        """The part of text[begin:end] without the blanks around it."""
        piece = self.clean[begin:end].lstrip(BLANKS)
        begin = end - len(piece)
        return begin, begin + len(piece.rstrip(BLANKS))

    def body(self, brace: int) -> tree.Block:
        """The body that opens at `brace`, to be read later where that is wanted and it has an end.

        What is wrong with braces and strings is an error at once: there is no saying where the next
        function begins.
        """
        m = bodies().match(self.clean, brace) if self.lazy else None
        if m is None:
            return self.block(brace)
        self.comments.skip(m.end())
        return tree.UnreadBlock(partial(self.read_later, brace), brace, m.end() - 1)

    def read_later(self, brace: int) -> tuple[tree.Statement, ...]:
        """The statements of a body that was passed over."""
        found = self.comments.found
        with pointing_into(self.source):
            reader = _Reader(self.source, self.clean, found)
            reader.comments.index = bisect_left(found, (brace, ""))
            try:
                return reader.block(brace).items
            except _Narrow:
                whole = _parse_plainly(self.text, self.source)
        return next(f.body.items for f in whole.functions if f.body and f.body.at == brace)

    def block(self, brace: int) -> tree.Block:
        """The block that opens at `brace`."""
        clean, comments, classes, opcodes = self.clean, self.comments, self.classes, self.opcodes
        operands_of = self.operands.read
        directive_of = self.shapes.statement.parse
        outer: list[tuple[int, list[Any]]] = []
        items: list[Any] = []
        append = items.append
        start = brace
        upcoming = comments.next()
        # the last alternative takes any character, so that the pieces cover the text
        for m in self.cutter.statement.finditer(clean, brace + 1):
            kind = m.lastindex
            if kind == OPERANDS:
                guard = None
                if m[AT]:
                    at = m.start(AT)
                    guard = tree.Guard(tree.Name(m[GUARD], m.start(GUARD)), m[BANG] is not None, at)
                else:
                    at = m.start(OPCODE)
                if at > upcoming:
                    comments.before(at, items)
                    upcoming = comments.next()
                begin, end = m.span(OPERANDS)
                opcode = m[OPCODE]
                try:
                    operands = operands_of(begin, end) if begin < end else ()
                except Unexpected:
                    _lark.parse(clean, "statement", at, end + 1)  # for its error
                    raise
                words = opcodes.get(opcode)
                if words is None:
                    words = opcodes[opcode] = tuple(opcode.split("."))
                append(tree.Instruction(guard, words, operands, at))
                continue
            at, end = m.span(kind or 0)
            if at > upcoming:
                comments.before(at, items)
                upcoming = comments.next()
            if kind == LABEL:
                append(tree.Label(tree.Name(m[LABEL], at), at))
            elif kind == DIRECTIVE:
                append(directive_of(clean, at, end, classes))
            elif kind == SPACED:  # `add .u32`
                append(_lark.parse(clean, "statement", at, end))
            elif kind == OPEN:
                outer.append((start, items))
                if len(outer) >= MAX_DEPTH:
                    raise _too_deep(at)
                items = []
                append = items.append
                start = at
            elif kind == CLOSE:
                block = tree.Block(tuple(items), start, at)
                if not outer:
                    return block
                start, items = outer.pop()
                append = items.append
                append(block)
            else:
                break
        else:
            at = len(clean)
        self.fail("statement", at)
