"""A wrong entry in the table of layouts does not go unseen.

Two modes of an operand's layout change places in the table, so that some elements stand with the
wrong lane or in the wrong register. What the compiler emits then must fail the one-hot probes of
the emulator, which has its own lane maps. (Were they the compiler's, the errors would cancel.)
The right table has compiled the kernel before, so an answer kept from it would be seen as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from fragir import compile as compile_program
from fragir import isa
from fragir.dialects.frag.instructions import fragment_instruction
from fragir.isa import Instruction
from fragir.layout import Axis, Layout, Mode

from .programs import DEEP, FAMILIES, Family, empty, multiply
from .test_mma import one_hot, positions
from .test_wgmma import Wgmma

PROBES = 192
# the families whose table rows are changed: one for each rule of the table
CHANGED = [
    family
    for family in FAMILIES
    if (family.m, family.n, family.k, family.a, family.d)
    in {
        (8, 8, 4, "f16", "f32"),
        (8, 8, 4, "f64", "f64"),
        (8, 8, 16, "si8", "i32"),
        (16, 8, 8, "tf32", "f32"),
        (16, 8, 16, "f16", "f32"),
        (16, 8, 32, "si8", "i32"),
    }
    and family.b == family.a
    and family.c == family.d
    and family.target in ("sm_80", "sm_75")
    and family.orders in ((), ("row", "col"), ("col", "row"))
]


def mutants(layout: Layout) -> Iterator[Layout]:
    """The layouts in which two modes of one size have changed places, within or across axes."""
    places = [
        (a, m)
        for a, axis in enumerate(layout.axes)
        for m in range(len(axis.modes))
        if axis.modes[m].size > 1
    ]
    for first, second in ((x, y) for x in places for y in places if x < y):
        modes = [list(axis.modes) for axis in layout.axes]
        x, y = (modes[a][m] for a, m in (first, second))
        size = min(x.size, y.size)
        if x.size != size:
            first, second, x, y = second, first, y, x
        if x.size == y.size:
            modes[first[0]][first[1]], modes[second[0]][second[1]] = y, x
        else:
            # the slow part of the larger mode changes places with the smaller one
            rest = y.size // size
            if y.size % size:
                continue
            slow = Mode(size, tuple(rest * s for s in y.stride))
            modes[first[0]][first[1]] = slow
            a, m = second
            modes[a][m : m + 1] = [Mode(rest, y.stride), x]
        mutant = replace(
            layout,
            axes=tuple(
                Axis(axis.name, tuple(new)) for axis, new in zip(layout.axes, modes, strict=True)
            ),
        )
        if not mutant.equivalent(layout):
            yield mutant


def changed(instruction: Instruction, operand: str, layout: Layout) -> Instruction:
    """The row with another layout for an operand (for C: and D)."""
    names = ("c", "d") if operand == "c" else (operand,)
    held = [replace(instruction.operands[name], layout=layout) for name in names]
    return instruction.with_operands(*held)


def right(family: Family, target: str) -> bool:
    """Whether the family's kernel passes the one-hot probes."""
    at = positions(family, PROBES)[:PROBES]
    a, b, d = one_hot(family, at)
    c = empty(family.c, (len(at), *family.shapes()[2]))
    if isinstance(family, Wgmma):
        a, b = family.stored_arrays(a, b)
    kernel = compile_program(family.program(len(at)), target=target)
    found = multiply(kernel, [a, b, c, np.full_like(d, 77)], "emulator", len(at))
    return np.array_equal(found, d)


def row_of(family: Family, operand: str) -> Instruction:
    """The row of the table that gives an operand its layout."""
    name = family.instruction
    if family.orders:
        end = family.d if operand == "c" else f"f16.{family.orders['ab'.index(operand)]}"
        name = f"m8n8k4.{end}"
    return fragment_instruction(name, operand)


def survivors(
    family: Family, operand: str, target: str, limit: int | None
) -> tuple[int, list[str]]:
    """How many mutants there were, and those that the probes took for right."""
    row = row_of(family, operand)
    layout = row.operands[operand].layout
    assert layout is not None
    every = list(mutants(layout))
    if limit is not None:
        every = every[:: -(-len(every) // limit)]
    unseen: list[str] = []
    for mutant in every:
        isa.register(changed(row, operand, mutant))
        try:
            if right(family, target):
                unseen.append(str(mutant))
        finally:
            isa.unregister(row.mnemonic)
    return len(every), unseen


@pytest.mark.parametrize("operand", ["a", "b", "c"])
@pytest.mark.parametrize("family", CHANGED, ids=str)
def test_swapped_entries_of_mma_are_seen(family: Family, operand: str) -> None:
    assert right(family, family.target)
    count, unseen = survivors(family, operand, family.target, None if DEEP else 4)
    assert count > 0
    assert unseen == []


@pytest.mark.parametrize("operand", ["a", "c"])
def test_swapped_entries_of_wgmma_are_seen(operand: str) -> None:
    shape = (64, 24, 16, "f16", "f16", "f32", "f32")
    family = Wgmma(*shape, target="sm_90a", registers=True, a_swizzle=32, b_swizzle=32)
    assert right(family, "sm_90a")
    count, unseen = survivors(family, operand, "sm_90a", None if DEEP else 4)
    assert count > 0
    assert unseen == []
