"""The syntax tree of PTX: what `fragir.ptx.parse` returns and all that `fragir.ptx.write` sees.

Every node is a frozen, slotted dataclass (`fragir.ptx.node`). A string in a node is the text of one
token of the source, without the leading dot where PTX writes one (`Instruction.opcode` of
`ld.param.u64` is `("ld", "param", "u64")`, `Declaration.type` of `.reg .b32` is `"b32"`). Names of
registers, variables, labels, parameters and functions are `Name` nodes wherever they stand, so that
a walk over `Name` finds every use and every definition.

`at` is the offset in the source text of the node's first token, -1 for a node that was not read.
It takes no part in comparison and hashing: two trees are equal if they say the same. A line and a
column are computed from it when asked for: `module.source.place(node.at)`.

Section numbers are those of the PTX ISA 9.2.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from fragir.ptx.node import Frozen, node


class Source:
    """The text that a tree was read from, for messages. The writer does not look at it."""

    __slots__ = ("_starts", "filename", "text")

    def __init__(self, text: str, filename: str = "<ptx>"):
        self.text = text
        self.filename = filename
        self._starts: list[int] | None = None

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


def _at() -> int:
    return field(default=-1, compare=False, repr=False)


# ------------------------------------------------------------------ operands (section 6)


@node
class Name(Frozen):
    """A register, variable, label, parameter, function, or special register: `%r1`, `$L__BB0_2`."""

    text: str
    at: int = _at()


@node
class Sink(Frozen):
    """`_`: a destination whose value is not wanted, or an argument left out."""

    at: int = _at()


@node
class Integer(Frozen):
    """An integer literal (4.5.1): `10`, `0x1F`, `017`, `0b101`, each with `U` behind it or not."""

    text: str
    at: int = _at()

    @property
    def unsigned(self) -> bool:
        """Whether PTX types the literal `.u64` (it ends in `U`, or does not fit `.s64`)."""
        return self.text.endswith("U") or self.value >> 63 != 0

    @property
    def value(self) -> int:
        text = self.text.removesuffix("U")
        if len(text) > 1 and text[0] == "0":
            kind = text[1]
            base = 16 if kind in "xX" else 2 if kind in "bB" else 8
            return int(text[2:] if base != 8 else text, base)
        return int(text)


@node
class Float(Frozen):
    """A floating-point literal (4.5.2): `0f3F800000`, `0d3FF0000000000000`, `1.5e3`."""

    text: str
    at: int = _at()

    @property
    def width(self) -> int:
        """32 for `0f...`, else 64."""
        return 32 if self.text[:2] in ("0f", "0F") else 64

    @property
    def bits(self) -> int:
        """The IEEE pattern, `width` bits of it."""
        if self.text[:2] in ("0f", "0F", "0d", "0D"):
            return int(self.text[2:], 16)
        import struct

        return int(struct.unpack("<Q", struct.pack("<d", float(self.text)))[0])

    @property
    def value(self) -> float:
        import struct

        kind, raw = ("<f", "<I") if self.width == 32 else ("<d", "<Q")
        return float(struct.unpack(kind, struct.pack(raw, self.bits))[0])


@node
class String(Frozen):
    """A string with its quotes: `"nounroll"`."""

    text: str
    at: int = _at()

    @property
    def value(self) -> str:
        return self.text[1:-1]


@node
class Component(Frozen):
    """One component of a vector register, or a part selected by a video instruction: `%tid.x`."""

    base: Name
    component: str
    at: int = _at()


@node
class Vector(Frozen):
    """`{%r1, %r2}`; also the braces of an initialiser, where they nest."""

    elements: tuple[Operand, ...]
    at: int = _at()


@node
class Parens(Frozen):
    """`(...)`: the parameters of a call, or a bracket in a constant expression."""

    elements: tuple[Operand, ...]
    at: int = _at()


@node
class Address(Frozen):
    """`[base]`, `[base+offset]`, and with more behind a comma `[map, {c0, c1}]` (6.4.1).

    `offset` is a constant expression: `[%rd1+-16]` has `Unary("-", Integer("16"))`. `rest` holds
    the coordinates of a tensor or texture address, for a texture with the sampler before them.
    `suffix` is the `unified` of `[a].unified` (9.7.9.8).
    """

    base: Operand
    offset: Operand | None = None
    rest: tuple[Operand, ...] = ()
    suffix: str | None = None
    at: int = _at()


@node
class Index(Frozen):
    """An element of an array: `table[3]` (6.4.2)."""

    base: Name
    index: Operand
    at: int = _at()


@node
class Pair(Frozen):
    """Two destinations: `p|q` of setp, `d|p` of shfl.sync, `_|p` of elect.sync."""

    first: Name | Sink
    second: Name | Sink
    at: int = _at()


@node
class Unary(Frozen):
    """`-5`; `!%p1` of a predicate. The operator is one of `+ - ! ~` (4.5.5)."""

    operator: str
    operand: Operand
    at: int = _at()


@node
class Binary(Frozen):
    """`a+4` in a constant expression (4.5.5). Brackets of the source are `Parens` within it."""

    operator: str
    left: Operand
    right: Operand
    at: int = _at()


@node
class Conditional(Frozen):
    """`a ? b : c` in a constant expression."""

    condition: Operand
    then: Operand
    otherwise: Operand
    at: int = _at()


@node
class Cast(Frozen):
    """`(.s64) a` in a constant expression; the type is `s64` or `u64`."""

    type: str
    operand: Operand
    at: int = _at()


@node
class Resident(Frozen):
    """`{%r1, %r2, %r3, %r4}|%p`: what a texture returns, and whether it was resident (9.7.9.3)."""

    vector: Vector
    predicate: Name
    at: int = _at()


@node
class Setting(Frozen):
    """`filter_mode = nearest` in the initialiser of a sampler or a texture (5.3.2)."""

    field: str
    value: str
    at: int = _at()


@node
class Apply(Frozen):
    """`generic(x)` or the mask `0xFF00(x)` in an initialiser (5.4.4, 5.4.5)."""

    function: Name | Integer
    argument: Operand
    at: int = _at()


Operand = (
    Name
    | Sink
    | Integer
    | Float
    | Component
    | Vector
    | Parens
    | Address
    | Index
    | Pair
    | Unary
    | Binary
    | Conditional
    | Cast
    | Apply
    | Resident
    | Setting
)
OPERANDS = (
    Name,
    Sink,
    Integer,
    Float,
    Component,
    Vector,
    Parens,
    Address,
    Index,
    Pair,
    Unary,
    Binary,
    Conditional,
    Cast,
    Apply,
    Resident,
    Setting,
)


# ------------------------------------------------------------------ statements (section 4.3)


@node
class Comment(Frozen):
    """`// ...`, `/* ... */` or `# 7 "file.cu"`, whole.

    `trailing`: it stands on the line of what is before it.

    A comment within a statement comes after that statement, one in a function's head before the
    function.
    """

    text: str
    trailing: bool = False
    at: int = _at()


@node
class Guard(Frozen):
    """`@%p1` or `@!%p1` (9.3)."""

    register: Name
    negated: bool = False
    at: int = _at()


@node
class Instruction(Frozen):
    """`@%p1 ld.param.u64 %rd1, [k_param_0];`: the opcode is split at its dots."""

    guard: Guard | None
    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    at: int = _at()

    @property
    def mnemonic(self) -> str:
        return ".".join(self.opcode)


@node
class Label(Frozen):
    """`$L__BB0_2:`. What it names is the next statement."""

    name: Name
    at: int = _at()


@node
class Block(Frozen):
    """`{ ... }`: a scope of its own for registers, variables and labels. `end` is where `}` is."""

    items: tuple[Statement, ...]
    at: int = _at()
    end: int = _at()


@node
class Variable(Frozen):
    """One name of a declaration: `%r<12>`, `a[4][8] = {...}`, `s[]`.

    `count` is the number in `%r<12>` (the names `%r0` to `%r11`); a dimension is None where the
    brackets are empty. The name is `_` in prototypes.
    """

    name: Name
    count: Integer | None = None
    dimensions: tuple[Operand | None, ...] = ()
    initializer: Operand | None = None
    at: int = _at()


@node
class Attribute(Frozen):
    """`.attribute(.managed)`, `.attribute(.unified(0x1, 0x2))` (5.4.8).

    `joined`: it stands in the brackets of the attribute before it.
    """

    name: str
    values: tuple[Operand, ...] = ()
    joined: bool = False
    at: int = _at()


@node
class Pointer(Frozen):
    """`.ptr .global .align 16` of a kernel's parameter (5.1.6.3)."""

    space: str | None = None
    align: Integer | None = None
    at: int = _at()


@node
class Declaration(Frozen):
    """`.visible .global .align 16 .v4 .f32 a, b[4];`, `.reg .b32 %r<5>;`, or one parameter.

    `linkage`: extern, visible, weak or common, if any. `space`: reg, const, global, local, param,
    shared, tex. `vector`: v2, v4 or None. `bank`: of `.const[2]`, which PTX 2.2 gave up.
    A parameter has exactly one variable.
    """

    linkage: tuple[str, ...]
    space: str
    align: Integer | None
    vector: str | None
    type: str
    variables: tuple[Variable, ...]
    attributes: tuple[Attribute, ...] = ()
    pointer: Pointer | None = None
    bank: Integer | None = None
    at: int = _at()


@node
class FunctionDirective(Frozen):
    """`.maxntid 128, 1, 1`, `.minnctapersm 2`, `.noreturn` in a function's head (11.4)."""

    name: str
    values: tuple[Operand, ...] = ()
    at: int = _at()


@node
class Pragma(Frozen):
    """`.pragma "nounroll";`, in a function's head too."""

    values: tuple[String, ...]
    at: int = _at()


@node
class Function(Frozen):
    """A kernel (`kind` is `entry`) or a device function (`func`); without a body, its prototype.

    Of `returns` and `parameters`, `()` are empty brackets and None is none at all, which means the
    same.
    """

    linkage: tuple[str, ...]
    kind: str
    name: Name
    returns: tuple[Declaration, ...] | None
    parameters: tuple[Declaration, ...] | None
    directives: tuple[FunctionDirective | Pragma, ...]
    body: Block | None
    attributes: tuple[Attribute, ...] = ()
    at: int = _at()


@node
class CallPrototype(Frozen):
    """`.callprototype (.param .b32 _) _ (.param .b64 _);` behind its label (11.2.2).

    `()` and None are as in `Function`.
    """

    returns: tuple[Declaration, ...] | None
    name: Name | Sink
    parameters: tuple[Declaration, ...] | None
    directives: tuple[FunctionDirective, ...] = ()
    at: int = _at()


@node
class BranchTargets(Frozen):
    """`.branchtargets L1, L2;` behind its label (11.2.1).

    `counts`: those of `L<3>`, which is L0, L1 and L2; empty if no label has one.
    """

    labels: tuple[Name, ...]
    counts: tuple[Integer | None, ...] = ()
    at: int = _at()


@node
class CallTargets(Frozen):
    """`.calltargets f1, f2;` behind its label (11.2.3)."""

    functions: tuple[Name, ...]
    at: int = _at()


@node
class Loc(Frozen):
    """`.loc 1 15 3, function_name $L__info_string0, inlined_at 1 10 5` (11.5.2)."""

    file: Integer
    line: Integer
    column: Integer
    function: Name | SectionName | None = None
    function_offset: Integer | None = None
    inlined_at: tuple[Integer, Integer, Integer] | None = None
    at: int = _at()


# ------------------------------------------------------------------ the module (section 11.1)


@node
class Version(Frozen):
    """`.version 8.7`."""

    text: str
    at: int = _at()

    @property
    def value(self) -> tuple[int, int]:
        major, minor = self.text.split(".")
        return int(major), int(minor)


@node
class Target(Frozen):
    """`.target sm_90a, debug`."""

    words: tuple[str, ...]
    at: int = _at()


@node
class AddressSize(Frozen):
    """`.address_size 64`."""

    bits: Integer
    at: int = _at()


@node
class File(Frozen):
    """`.file 1 "kernel.cu", 1690000000, 1234` (11.5.4)."""

    index: Integer
    path: String
    timestamp: Integer | None = None
    size: Integer | None = None
    at: int = _at()


@node
class SectionData(Frozen):
    """One line of a section: `.b8 1, 2`, `.b32 .debug_abbrev`, `.b64 $L__tmp1`, or a label."""

    type: str
    values: tuple[Operand | SectionName, ...]
    at: int = _at()


@node
class SectionName(Frozen):
    """A section named as a value: `.debug_abbrev`, in `.debug_str+12` with its offset."""

    text: str
    offset: Integer | None = None
    at: int = _at()


@node
class Section(Frozen):
    """`.section .debug_info { ... }` (11.5.3).

    `body` is the text between the braces until `fragir.ptx.expand_section` is asked to read it.
    """

    name: str
    body: str | tuple[Label | SectionData, ...]
    at: int = _at()


@node
class Dwarf(Frozen):
    """`@@DWARF .4byte 1, 2`: debug information before PTX 2.0 (11.5.1)."""

    directive: str
    values: tuple[Operand | SectionName | String | DwarfFlag, ...]
    at: int = _at()


@node
class DwarfFlag(Frozen):
    """`@progbits` of `@@DWARF .section .debug_info, "", @progbits`."""

    text: str
    at: int = _at()


@node
class Alias(Frozen):
    """`.alias f, g;` (11.6.5)."""

    name: Name
    target: Name
    at: int = _at()


Statement = (
    Instruction
    | Label
    | Declaration
    | Block
    | Loc
    | Pragma
    | BranchTargets
    | CallTargets
    | CallPrototype
    | Comment
)
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
