"""A whole PTX text (PTX ISA 9.2, section 11.1) and what stands in it beside functions."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from fragir.errors import short_text
from fragir.ptx.node import Frozen, node, position
from fragir.ptx.tree.operands import Integer, Name, Operand, String
from fragir.ptx.tree.statements import (
    Attribute,
    Comment,
    Declaration,
    Function,
    FunctionDirective,
    Guard,
    Label,
    Pointer,
    Pragma,
    SectionName,
    Statement,
    Variable,
)

# -- source ----------------------------------------------------------------------------------------
# The text that a syntax tree was read from, and places in it.


class Source:
    """The text that a tree was read from, for messages. The writer does not look at it."""

    __slots__ = ("_starts", "filename", "text")

    def __init__(self, text: str, filename: str = "<ptx>"):
        self.text = text
        self.filename = filename
        self._starts: list[int] | None = None

    def __repr__(self) -> str:
        return f"<{self.filename}: {len(self.text)} characters>"

    def place(self, at: int) -> tuple[int, int]:
        """Line and column, both 1-based, of an offset; (0, 0) where `at` is -1."""
        if at < 0:
            return 0, 0
        if self._starts is None:
            starts = [0]
            find = self.text.find
            while end := find("\n", starts[-1]) + 1:
                starts.append(end)
            self._starts = starts
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (1-based), without its end; empty beyond the text."""
        self.place(0)
        starts = self._starts or [0]
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")


@node
class Version(Frozen):
    """`.version 8.7`."""

    text: str
    at: int = position()

    @property
    def value(self) -> tuple[int, int]:
        major, minor = self.text.split(".")
        return int(major), int(minor)


@node
class Target(Frozen):
    """`.target sm_90a, debug`."""

    words: tuple[str, ...]
    at: int = position()


@node
class AddressSize(Frozen):
    """`.address_size 64`."""

    bits: Integer
    at: int = position()


@node
class File(Frozen):
    """`.file 1 "kernel.cu", 1690000000, 1234` (11.5.4)."""

    index: Integer
    path: String
    timestamp: Integer | None = None
    size: Integer | None = None
    at: int = position()


@node
class SectionData(Frozen):
    """One line of a section: `.b8 1, 2`, `.b32 .debug_abbrev`, `.b64 $L__tmp1`, or a label."""

    type: str
    values: tuple[Operand | SectionName, ...]
    at: int = position()


@node
class Section(Frozen):
    """`.section .debug_info { ... }` (11.5.3).

    `body` is the text between the braces until `fragir.ptx.expand_section` is asked to read it.
    """

    name: str
    body: str | tuple[Label | SectionData, ...]
    at: int = position()

    def __repr__(self) -> str:
        size = f"{len(self.body)} {'characters' if isinstance(self.body, str) else 'items'}"
        return f"<section {self.name}: {size}>"


@node
class Dwarf(Frozen):
    """`@@DWARF .4byte 1, 2`: debug information before PTX 2.0 (11.5.1)."""

    directive: str
    values: tuple[Operand | SectionName | String | DwarfFlag, ...]
    at: int = position()


@node
class DwarfFlag(Frozen):
    """`@progbits` of `@@DWARF .section .debug_info, "", @progbits`."""

    text: str
    at: int = position()


@node
class Alias(Frozen):
    """`.alias f, g;` (11.6.5)."""

    name: Name
    target: Name
    at: int = position()


Item = (
    Version
    | Target
    | AddressSize
    | File
    | Section
    | Dwarf
    | Declaration
    | Function
    | Alias
    | Pragma
    | Comment
)


@node
class Module(Frozen):
    """A whole PTX text. `.version`, `.target` and `.address_size` stand among the items."""

    items: tuple[Item, ...]
    source: Source | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        words = ", ".join(self.target) or "no target"
        names = ", ".join(self.entries) or "no entries"
        return short_text(f"<PTX for {words}: {names}; {len(self.items)} items>")

    @property
    def version(self) -> tuple[int, int] | None:
        return next((x.value for x in self.items if isinstance(x, Version)), None)

    @property
    def target(self) -> tuple[str, ...]:
        """All words of the first `.target`: the architecture, then options; () where none is."""
        return next((x.words for x in self.items if isinstance(x, Target)), ())

    @property
    def address_size(self) -> int:
        """32 where no `.address_size` is (11.1.3)."""
        return next((x.bits.value for x in self.items if isinstance(x, AddressSize)), 32)

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(x for x in self.items if isinstance(x, Function))

    @property
    def entries(self) -> dict[str, Function]:
        """The kernels that have a body, by name."""
        return {f.name.text: f for f in self.functions if f.kind == "entry" and f.body is not None}

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        return tuple(x for x in self.items if isinstance(x, Declaration))


Node = (
    Module
    | Item
    | Statement
    | Operand
    | Guard
    | Variable
    | Attribute
    | Pointer
    | FunctionDirective
    | SectionData
    | SectionName
    | DwarfFlag
    | String
)
