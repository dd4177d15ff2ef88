"""Scales for the products of `fragir sweep pipelines`: their words in a program, and their numbers.

They are powers of two, so that small whole numbers times them sum up exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Scale(NamedTuple):
    """The scale of one operand: of blocks of `outer` rows of A or columns of B, `depth` of K.

    0 stands for all of them. Without either it is an f32, or with `in_memory` a memref<1>.
    """

    outer: int = 0
    depth: int = 0
    transposed: bool = False
    in_memory: bool = True


SCALES: dict[str, tuple[Scale | None, Scale | None]] = {
    "numbers": (Scale(), Scale(in_memory=False)),
    "rows": (Scale(1), Scale(1)),
    "columns": (None, Scale(1)),
    "blocks": (Scale(1, 32, True), Scale(128, 32)),
    "blocks across": (Scale(1, 32), Scale(32, 64, True)),
    "lines": (Scale(1, 32), Scale(1, 32)),
    "blocks, columns": (Scale(64, 32), Scale(1)),
    "promoted": (None, None),
}
"""What `Config.scales` says; "promoted" is partial sums without scales."""
WORDS = {"promoted": "promote = 32 : i64"}
"""Attributes of the product."""


class Written(NamedTuple):
    """An operand's scale in a program."""

    words: str
    """Behind the operand."""
    type_: str
    """Behind the operand's type."""
    arguments: tuple[str, ...]


LEADS = {"a": (2, 1), "b": (2, 2)}
"""Of how many matrices of a batch of 2 x 2 there are scales of A and B: 1 is one for all."""


def leading(scale: Scale | None, operand: str, batch: str, groups: int) -> tuple[int, ...]:
    """How many scales of an operand there are of one matrix: `batch` has an x where those of A are
    for several, a y where those of B are.
    """
    if scale is None or not scale.in_memory or "xy"["ab".index(operand)] not in batch:
        return ()
    if groups:  # a row of A is in one group
        return (groups,) if operand == "b" or not scale.outer else ()
    return LEADS[operand]


def written(
    scale: Scale | None,
    operand: str,
    outer: int,
    k: int,
    static: bool,
    leads: tuple[int, ...] = (),
) -> Written:
    """The scale of operand "a" or "b", which has `outer` rows or columns."""
    if scale is None:
        return Written("", "", ())
    name, type_, by = f"s{operand}", "f32", ""
    front = "".join(f"{size}x" if static or size == 1 else "?x" for size in leads)
    if scale.outer and scale.depth:
        rows, cols = _shape(scale, operand, outer, k)
        type_ = f"memref<{front}{rows}x{cols}xf32>" if static else f"memref<{front}?x?xf32>"
        extents = [scale.outer, scale.depth] if operand == "a" else [scale.depth, scale.outer]
        by = f"{' transposed' * scale.transposed} by {extents}"
    elif scale.outer:
        type_ = f"memref<{front}{outer if static else '?'}xf32>"
    elif scale.in_memory:
        type_ = f"memref<{front}1xf32>"
    return Written(f" scaled %{name}{by}", f" scaled {type_}", (f"%{name}: {type_}",))


def _shape(scale: Scale, operand: str, outer: int, k: int) -> tuple[int, int]:
    """How memory holds a scale of blocks."""
    blocks = -(-outer // scale.outer), -(-k // scale.depth)
    first, second = blocks
    return (second, first) if (operand == "b") != scale.transposed else (first, second)


def numbers(
    scales: Sequence[Scale | None],
    sizes: tuple[int, int, int],
    rng: np.random.Generator,
    leads: Sequence[tuple[int, ...]] = ((), ()),
) -> tuple[list[Any], list[Any]]:
    """The arguments, and what the elements of A (... x M x K) and of B (... x K x N) are multiplied
    by; `leads` are how many there are of one matrix.
    """
    m, n, k = sizes
    arguments: list[Any] = []
    factors: list[Any] = []
    for operand, scale, outer, several in zip("ab", scales, (m, n), leads, strict=True):
        factor: Any = 1.0
        if scale is not None:
            shape = -(-outer // scale.outer) if scale.outer else 1, 1
            if scale.depth:
                shape = shape[0], -(-k // scale.depth)
            drawn = np.exp2(rng.integers(-1, 3, (*several, *shape))).astype(np.float32)
            factor = np.repeat(drawn, scale.outer or outer, -2)[..., :outer, :]
            factor = np.repeat(factor, scale.depth or k, -1)[..., :k]
            if operand == "b":
                factor = factor.swapaxes(-1, -2)
            held: Any = drawn.reshape(*several, -1)
            if scale.depth:
                turned = (operand == "b") != scale.transposed
                held = np.ascontiguousarray(drawn.swapaxes(-1, -2) if turned else drawn)
            arguments.append(held if scale.outer or scale.in_memory else float(drawn[0, 0]))
        factors.append(factor)
    return arguments, factors
