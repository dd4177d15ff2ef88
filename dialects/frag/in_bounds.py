"""Whether an access without `masked` stays in its memory, as far as types and constants tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException


def number(index: int | SSAValue) -> int | None:
    """A constant index; None for one that is known at run time only."""
    if isinstance(index, int):
        return index
    owner = index.owner
    if isinstance(owner, Operation) and owner.name == "arith.constant":
        value: Attribute | None = owner.properties.get("value")
        if isinstance(value, IntegerAttr):
            return value.value.data
    return None


AnyT = TypeVar("AnyT")


def last_two_turned(sizes: tuple[AnyT, ...]) -> tuple[AnyT, ...]:
    """What memory has of a tile that it holds transposed: the last two dimensions change places."""
    return (*sizes[:-2], *sizes[:-3:-1])


def check_inside(
    name: str,
    sizes: Sequence[int],
    indices: Sequence[int | SSAValue],
    extents: Sequence[int],
    maskable: bool = True,
) -> None:
    """VerifyException where `extents` elements a dimension from the indices on leave the memory."""
    for dim, (size, index, extent) in enumerate(zip(sizes, indices, extents, strict=True)):
        first = number(index)
        low = 0 if first is None else first
        if low >= 0 and (size == DYNAMIC_INDEX or low + extent <= size):
            continue
        at = f" from {low} on" if first is not None else ""
        what = f"{extent} elements{at}" if extent > 1 else f"index {low}"
        raise VerifyException(
            f"{name}: {what} in dimension {dim} "
            + ("lie" if extent > 1 else "lies")
            + (" outside of the memory" if low < 0 else f" outside of its {size}")
            + ("; write `masked`, then what lies outside is 0 or dropped" if maskable else "")
        )
