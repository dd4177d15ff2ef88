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


def written(scale: Scale | None, operand: str, outer: int, k: int, static: bool) -> Written:
    """The scale of operand "a" or "b", which has `outer` rows or columns."""
    if scale is None:
        return Written("", "", ())
    name, type_, by = f"s{operand}", "f32", ""
    if scale.outer and scale.depth:
        rows, cols = _shape(scale, operand, outer, k)
        type_ = f"memref<{rows}x{cols}xf32>" if static else "memref<?x?xf32>"
        extents = [scale.outer, scale.depth] if operand == "a" else [scale.depth, scale.outer]
        by = f"{' transposed' * scale.transposed} by {extents}"
    elif scale.outer:
        type_ = f"memref<{outer if static else '?'}xf32>"
    elif scale.in_memory:
        type_ = "memref<1xf32>"
    return Written(f" scaled %{name}{by}", f" scaled {type_}", (f"%{name}: {type_}",))


def _shape(scale: Scale, operand: str, outer: int, k: int) -> tuple[int, int]:
    """How memory holds a scale of blocks."""
    blocks = -(-outer // scale.outer), -(-k // scale.depth)
    first, second = blocks
    return (second, first) if (operand == "b") != scale.transposed else (first, second)


def numbers(
    scales: Sequence[Scale | None], sizes: tuple[int, int, int], rng: np.random.Generator
) -> tuple[list[Any], list[Any]]:
    """The arguments, and what the elements of A (M x K) and of B (K x N) are multiplied by."""
    m, n, k = sizes
    arguments: list[Any] = []
    factors: list[Any] = []
    for operand, scale, outer in zip("ab", scales, (m, n), strict=True):
        factor: Any = 1.0
        if scale is not None:
            shape = -(-outer // scale.outer) if scale.outer else 1, 1
            if scale.depth:
                shape = shape[0], -(-k // scale.depth)
            drawn = np.exp2(rng.integers(-1, 3, shape)).astype(np.float32)
            factor = np.repeat(drawn, scale.outer or outer, 0)[:outer]
            factor = np.repeat(factor, scale.depth or k, 1)[:, :k]
            if operand == "b":
                factor = factor.T
            held: Any = drawn.ravel()
            if scale.depth:
                turned = (operand == "b") != scale.transposed
                held = np.ascontiguousarray(drawn.T if turned else drawn)
            arguments.append(held if scale.outer or scale.in_memory else float(drawn[0, 0]))
        factors.append(factor)
    return arguments, factors
