"""Parts of memory and tensors, as operations with lists of offsets, sizes and strides say them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase
from xdsl.ir import SSAValue

from fragir.dialects.narrow import integers
from fragir.errors import FragirError

NumberT = TypeVar("NumberT")


def mixed(static: DenseArrayBase, dynamic: Sequence[NumberT]) -> list[int | NumberT]:
    """A list of which some numbers stand in the text and others are values."""
    given: Iterator[NumberT] = iter(dynamic)
    return [next(given) if n == DYNAMIC_INDEX else n for n in integers(static)]


def kept_dims(sizes: Sequence[int | SSAValue], shape: Sequence[int], what: str) -> list[int]:
    """The dimensions of a part that its type keeps: it may leave out some of size 1.

    FragirError where the type is of another shape.
    """
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        wanted = shape[len(kept)] if len(kept) < len(shape) else None
        if wanted is not None and (size == wanted or (wanted < 0 and not isinstance(size, int))):
            kept.append(dim)
        elif size != 1:
            break
    else:
        if len(kept) == len(shape):
            return kept
    given = "x".join(str(size) if isinstance(size, int) else "?" for size in sizes)
    words = "x".join("?" if size < 0 else str(size) for size in shape)
    raise FragirError(
        f"{what} takes a part of {given}, which is not of the shape {words}",
        hint="a type may leave out only dimensions of size 1",
    )
