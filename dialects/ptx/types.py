"""Types of the lane level: pointers, and how values are held in registers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import IndexType, IntAttr, IntegerAttr, IntegerType, VectorType, i1, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from fragir.dialects.elements import element_bits
from fragir.dialects.limits import check_registers
from fragir.dialects.shorthands import is_vector

# -- bit types -------------------------------------------------------------------------------------
# The type of registers that few programs have.


@irdl_attr_definition
class BitsType(ParametrizedAttribute, TypeAttribute):
    """A register of 8 or 128 bits, which no other type has: `!ptx.bits<128>`.

    An i8 stands in a register of 32 bits, which few instructions refuse.
    """

    name = "ptx.bits"
    width: IntAttr

    def __init__(self, width: int | IntAttr):
        super().__init__(IntAttr(width) if isinstance(width, int) else width)

    def verify(self) -> None:
        if self.width.data not in (8, 128):
            raise VerifyException("!ptx.bits has 8 or 128 bits; others are i16, i32 and i64")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.width.data))


class Space(StrEnum):
    """A state space of PTX (PTX ISA 9.2, section 5.1)."""

    GLOBAL = "global"
    SHARED = "shared"


@irdl_attr_definition
class SpaceAttr(EnumAttribute[Space], SpacedOpaqueSyntaxAttribute):
    """The state space a pointer points to."""

    name = "ptx.space"


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """An address: 64 bits in global memory, 32 bits in shared memory. `!ptx.ptr<global>`."""

    name = "ptx.ptr"
    space: SpaceAttr

    def __init__(self, space: Space | SpaceAttr):
        super().__init__(SpaceAttr(space) if isinstance(space, Space) else space)

    @property
    def is_shared(self) -> bool:
        return self.space.data == Space.SHARED

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [SpaceAttr(parser.parse_str_enum(Space))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.space.data.value)


NO_UNROLL = "ptx.nounroll"
"""The attribute of an scf.for that ptxas leaves as it is (PTX ISA 9.2, section 11.5.2). Of a loop
of few turns it would make so many copies, of a pipelined one tens of thousands of bytes."""
_BITS = "ptx.bits"  # BitsType, without its import: few programs have it
_TENSOR_MAP = "ptx.tensor_map"  # TensorMapType, likewise
GLOBAL = PointerType(Space.GLOBAL)
SHARED = PointerType(Space.SHARED)


@lru_cache(maxsize=4096)
def i64_attr(number: int) -> IntegerAttr[IntegerType]:
    """A 64-bit constant; a kernel has hundreds of operations with the same few."""
    return IntegerAttr(number, i64)


@lru_cache(maxsize=256)
def vector_type(element: Attribute, count: int) -> VectorType[Attribute]:
    """`vector<count x element>`."""
    return VectorType(element, [count])


def scalar_type(type_: Attribute) -> Attribute:
    """The element type of a vector; any other type is its own."""
    return type_.element_type if is_vector(type_) else type_


def length(type_: Attribute) -> int:
    """The number of elements of a vector, 1 for a scalar."""
    return type_.element_count() if is_vector(type_) else 1


def bits(type_: Attribute) -> int:
    """Bits of one element; 64 or 32 for a pointer, 1 for a predicate, 32 for an index."""
    scalar = scalar_type(type_)
    if type(scalar) is PointerType:
        return 32 if scalar.is_shared else 64
    if type(scalar) is IndexType:
        return 32
    if scalar.name == _BITS:
        return cast("BitsType", scalar).width.data
    if scalar.name == _TENSOR_MAP:
        return 64
    return element_bits(scalar)


@lru_cache(maxsize=1024)
def register_bits(type_: Attribute) -> int:
    """Bits of the registers that hold a value.

    Small elements of a vector are packed in 32; a byte alone takes 32, since few instructions
    know registers of 8 bits.
    """
    width = bits(type_)
    if scalar_type(type_) == i1:
        return 1
    if type_.name == _BITS:
        return width
    return max(32, width) if is_vector(type_) or width == 8 else width


@lru_cache(maxsize=1024)
def registers(type_: Attribute) -> int:
    """How many registers hold a value; a vector's small elements are packed, lowest first.

    FragirError where they are more than `LANE_REGISTERS`.
    """
    width = bits(type_)
    if not is_vector(type_) or scalar_type(type_) == i1:
        count = length(type_)
    else:
        count = -(-length(type_) * width // register_bits(type_))
    return check_registers(count, str(type_))
