"""How large things may be: what a machine has, and what a compiler is to unroll."""

from __future__ import annotations

from xdsl.ir import Attribute

from fragir.dialects.elements import element_bits
from fragir.errors import FragirError

BLOCK_REGISTERS = 65536
"""32-bit registers of a block, on every target (CUDA programming guide, "Technical specifications
per compute capability")."""
LANE_REGISTERS = 1024
"""32-bit registers that one value may take of a lane: four times what a lane has (255). What does
not fit is spilled, which a tile that is read and written piece by piece need not be."""
MAPPED_DIMENSIONS = 5
"""Of memory that a tensor map says (PTX ISA 9.2, section 5.5.1)."""
MOST_PARTS = 16
"""That a sum is cut into where a program leaves their number open, and the memory for them."""
LARGEST_INDEX = 2**31 - 1
"""Sizes and indices have 32 bits on the device; distances in memory have 64."""


def is_s32(number: int) -> bool:
    """Whether 32 bits hold a number, with its sign."""
    return -LARGEST_INDEX - 1 <= number <= LARGEST_INDEX


def tile_limit(elements: int, element: Attribute) -> str | None:
    """What is wrong with a tile of so many elements; None where it fits into a block."""
    registers = -(-elements * element_bits(element) // 32)
    if registers <= BLOCK_REGISTERS:
        return None
    return f"it takes {registers} registers, a block has {BLOCK_REGISTERS}; take smaller tiles"


def check_registers(count: int, what: str) -> int:
    """The number of registers that a lane needs for something; FragirError beyond the limit."""
    if count > LANE_REGISTERS:
        raise FragirError(
            f"{what} takes {count} registers of every lane, the limit is {LANE_REGISTERS}",
            hint="take smaller tiles or more warps",
        )
    return count


def check_index(number: int, what: str) -> int:
    """A size, stride or index; FragirError where 32 bits do not hold it."""
    if not is_s32(number):
        raise FragirError(f"{what} is {number}, a kernel's sizes and indices have 32 bits")
    return number
