"""Memory of conditions: of bytes, 0 where one does not hold, 1 where it does, as numpy's bool."""

from __future__ import annotations

from xdsl.ir import SSAValue

from fragir.builder.places import fail
from fragir.builder.trace import Trace
from fragir.builder.types import byte, condition, s32, type_name
from fragir.builder.values import Memory, Scalar, Tile


def outside(trace: Trace, other: Scalar | float | None, memory: Memory) -> SSAValue | None:
    """What is read outside of memory, as memory would hold it."""
    if other is None or not memory.conditions:
        return None if other is None else trace.scalar(other, memory.element, "other")
    if not isinstance(other, Scalar):
        return trace.scalar(int(other != 0), byte, "other")
    if other.type != condition:
        fail(f"other is {other!r}, it must be a condition", "compare it, or write True or False")
    return trace.use(other.cast(s32).cast(byte))


def read(trace: Trace, tile: SSAValue, memory: Memory) -> Tile:
    """A tile of memory as the kernel computes with it."""
    found: Tile = trace.wrap(tile)
    return found.cast(s32) != 0 if memory.conditions else found


def written(tile: Tile, memory: Memory) -> Tile:
    """A tile as memory holds it; an error at the user's line where that is of another type."""
    if memory.element == tile.element:
        return tile.cast(byte) if memory.conditions else tile
    if memory.conditions:
        fail(f"{memory!r} takes conditions, not {type_name(tile.element)}", "compare the tile")
    name = type_name(memory.element)
    fail(
        f"the tile holds {type_name(tile.element)}, the memory {name}",
        f"store tile.cast(fragir.{name})",
    )
