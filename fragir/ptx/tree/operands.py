"""Operands (PTX ISA 9.2, section 6), and the constants of initialisers (4.5, 5.4)."""

from __future__ import annotations

from fragir.ptx.node import Frozen, node, position


@node
class Name(Frozen):
    """A register, variable, label, parameter, function, or special register: `%r1`, `$L__BB0_2`."""

    text: str
    at: int = position()


@node
class Sink(Frozen):
    """`_`: a destination whose value is not wanted, or an argument left out."""

    at: int = position()


@node
class Integer(Frozen):
    """An integer literal (4.5.1): `10`, `0x1F`, `017`, `0b101`, each with `U` behind it or not."""

    text: str
    at: int = position()

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
    at: int = position()

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
    at: int = position()

    @property
    def value(self) -> str:
        return self.text[1:-1]


@node
class Component(Frozen):
    """One component of a vector register, or a part selected by a video instruction: `%tid.x`."""

    base: Name
    component: str
    at: int = position()

    @property
    def part(self) -> str:
        """Its name with x, y, z or w, which may be written r, g, b or a (5.4.2)."""
        xyzw = {"r": "x", "g": "y", "b": "z", "a": "w"}.get(self.component, self.component)
        return f"{self.base.text}.{xyzw}"


@node
class Vector(Frozen):
    """`{%r1, %r2}`; also the braces of an initialiser, where they nest."""

    elements: tuple[Operand, ...]
    at: int = position()


@node
class Parens(Frozen):
    """`(...)`: the parameters of a call, or a bracket in a constant expression."""

    elements: tuple[Operand, ...]
    at: int = position()


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
    at: int = position()


@node
class Index(Frozen):
    """An element of an array: `table[3]` (6.4.2)."""

    base: Name
    index: Operand
    at: int = position()


@node
class Pair(Frozen):
    """Two destinations: `p|q` of setp, `d|p` of shfl.sync, `_|p` of elect.sync."""

    first: Name | Sink
    second: Name | Sink
    at: int = position()


@node
class Unary(Frozen):
    """`-5`; `!%p1` of a predicate. The operator is one of `+ - ! ~` (4.5.5)."""

    operator: str
    operand: Operand
    at: int = position()


@node
class Binary(Frozen):
    """`a+4` in a constant expression (4.5.5). Brackets of the source are `Parens` within it."""

    operator: str
    left: Operand
    right: Operand
    at: int = position()


@node
class Conditional(Frozen):
    """`a ? b : c` in a constant expression."""

    condition: Operand
    then: Operand
    otherwise: Operand
    at: int = position()


@node
class Cast(Frozen):
    """`(.s64) a` in a constant expression; the type is `s64` or `u64`."""

    type: str
    operand: Operand
    at: int = position()


@node
class Resident(Frozen):
    """`{%r1, %r2, %r3, %r4}|%p`: what a texture returns, and whether it was resident (9.7.9.3)."""

    vector: Vector
    predicate: Name
    at: int = position()


@node
class Setting(Frozen):
    """`filter_mode = nearest` in the initialiser of a sampler or a texture (5.3.2)."""

    field: str
    value: str
    at: int = position()


@node
class Apply(Frozen):
    """`generic(x)` or the mask `0xFF00(x)` in an initialiser (5.4.4, 5.4.5)."""

    function: Name | Integer
    argument: Operand
    at: int = position()


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
