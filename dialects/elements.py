"""Element types: the names of the PTX ISA and the types of xDSL that stand for them."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatTF32Type,
    IndexType,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from fragir.errors import FragirError
from fragir.isa.model import FLOAT6_4, FLOAT8


@irdl_attr_definition
class PackedType(ParametrizedAttribute, TypeAttribute):
    """A 4-bit float of which two stand in a byte, the first one lowest: `!frag.packed<f4E2M1FN>`.

    `f4E2M1FN` itself stands in a byte of its own. The PTX ISA calls such a byte e2m1x2.
    """

    name = "frag.packed"
    element_type: Attribute

    def verify(self) -> None:
        if self.element_type != Float4E2M1FNType():
            raise VerifyException(f"f4E2M1FN alone is packed, not {self.element_type}")


# One row a type: PTX name, xDSL type, bits of one element in memory and in a register.
# A signless i8 is s8: PTX multiplies two's complement unless it is told otherwise.
_ROWS: tuple[tuple[str, TypeAttribute, int], ...] = (
    ("f16", Float16Type(), 16),
    ("bf16", BFloat16Type(), 16),
    ("tf32", FloatTF32Type(), 32),
    ("f32", Float32Type(), 32),
    ("f64", Float64Type(), 64),
    ("e4m3", Float8E4M3FNType(), 8),
    ("e5m2", Float8E5M2Type(), 8),
    # narrower floats stand in a byte each, in its lowest bits, as in ml_dtypes
    ("e3m2", Float6E3M2FNType(), 8),
    ("e2m3", Float6E2M3FNType(), 8),
    ("e2m1", Float4E2M1FNType(), 8),
    ("e2m1x2", PackedType(Float4E2M1FNType()), 4),
    # scales of blocks: powers of two; the other kind of scales, ue4m3, are e4m3
    ("ue8m0", Float8E8M0FNUType(), 8),
    ("s8", IntegerType(8), 8),
    ("s8", IntegerType(8, Signedness.SIGNED), 8),
    ("u8", IntegerType(8, Signedness.UNSIGNED), 8),
    # two or eight to a byte, the first one lowest; a signless i1 is a predicate
    ("s4", IntegerType(4), 4),
    ("s4", IntegerType(4, Signedness.SIGNED), 4),
    ("u4", IntegerType(4, Signedness.UNSIGNED), 4),
    ("b1", IntegerType(1, Signedness.UNSIGNED), 1),
    ("s16", IntegerType(16), 16),
    ("s32", IntegerType(32), 32),
    ("s32", IntegerType(32, Signedness.SIGNED), 32),
    ("u32", IntegerType(32, Signedness.UNSIGNED), 32),
    ("s64", IntegerType(64), 64),
    ("pred", IntegerType(1), 1),
    ("s32", IndexType(), 32),  # index is 32 bits wide on the device
)
_NAME: dict[Attribute, str] = {type_: name for name, type_, _ in _ROWS}
_BITS: dict[Attribute, int] = {type_: bits for _, type_, bits in _ROWS}
_TYPE: dict[str, TypeAttribute] = {name: type_ for name, type_, _ in reversed(_ROWS)}

# types that a tile and memory may have
TILE_ELEMENTS = frozenset(
    type_ for name, type_, _ in _ROWS if name != "pred" and type_ != IndexType()
)
FLOATS = frozenset({"f16", "bf16", "tf32", "f32", "f64", *FLOAT8})
NARROW_FLOATS = frozenset(FLOAT6_4)
# What is only loaded, converted and multiplied: no instruction computes element by element.
MULTIPLIED_ONLY = frozenset({*NARROW_FLOATS, "e2m1x2", "ue8m0", "s4", "u4", "b1"})


class NoElementError(FragirError, KeyError):
    """A type that no register holds and no instruction knows."""

    def __init__(self, type_: Attribute):
        super().__init__(f"{type_} is no type of an element")


def element_name(type_: Attribute) -> str:
    """The PTX name (`f16`, `s8`, ...) of an xDSL scalar type; NoElementError for any other type."""
    try:
        return _NAME[type_]
    except KeyError:
        raise NoElementError(type_) from None


def multiplied_as(name: str) -> str:
    """What the instructions of the table call the type of an operand: e2m1 for e2m1x2."""
    return name.removesuffix("x2")


def element_bits(type_: Attribute) -> int:
    """Bits that one element takes in memory and in a packed register; as for `element_name`."""
    try:
        return _BITS[type_]
    except KeyError:
        raise NoElementError(type_) from None


def element_type(name: str) -> TypeAttribute:
    """The xDSL type for a PTX element name."""
    return _TYPE[name]


def is_element(type_: Attribute) -> bool:
    """Whether memory and tiles may hold elements of this type."""
    return type_ in TILE_ELEMENTS


def is_predicate(type_: Attribute) -> bool:
    """Whether it is i1, true or false: tiles may hold it, memory not."""
    return type_ == IntegerType(1)
