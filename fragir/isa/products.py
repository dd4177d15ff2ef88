"""What the table multiplies: shapes, accumulators, pairs of types, for the compiler's choice.

Types are those of A as they are held: `e2m1x2` are e2m1 of which two stand in a byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from math import prod

from fragir.isa.canonical import PACKED_PAIR
from fragir.isa.fragments import container, lowering_of, scale_blocks
from fragir.isa.model import BITS, Form
from fragir.isa.registry import current, per_table
from fragir.isa.spelling import mnk

PACKED = PACKED_PAIR
DENSE = ("mma",)
SPARSE = ("mma.sp", "mma.sp::ordered_metadata")
WARPGROUP = ("wgmma",)
Families = tuple[str, ...]


def held_type(form: Form) -> str:
    """The type of A, and whether it is packed."""
    return PACKED if container(form, form.types[1]) == 4 else form.types[1]


def _forms(families: Families, a: str = "") -> Iterator[Form]:
    """The forms that multiply row by column, as all do but the m8n8k4 of f16."""
    element = "e2m1" if a == PACKED else a
    for family in families:
        for form in current().forms(family, element):
            if form.layouts in ((), ("row", "col")) and (not a or held_type(form) == a):
                yield form


def _is_scaled(form: Form) -> bool:
    return bool(scale_blocks(form))


@per_table
def shapes(families: Families, a: str, scaled: bool) -> tuple[str, ...]:
    """The shapes for a type of A, with scales or without, the most multiplications first.

    Those that form several products at once (m8n8k4 of f16) are not among them, nor those that
    must not be emitted.
    """
    table, one_product = current(), dict[str, bool]()
    for form in _forms(families, a):
        if _is_scaled(form) == scaled and form.shape not in one_product:
            instruction = table.resolve(form)
            if instruction is not None and instruction.refused is None:
                one_product[form.shape] = len(instruction.operand("a").shape) == 2
    found = [shape for shape, one in one_product.items() if one]
    return tuple(sorted(found, key=lambda shape: prod(mnk(shape)), reverse=True))


@per_table
def multiplied(families: Families, scaled: bool) -> tuple[str, ...]:
    """The types of A, with scales or without, as the table has them in order."""
    return tuple(
        dict.fromkeys(held_type(form) for form in _forms(families) if _is_scaled(form) == scaled)
    )


def by_width(types: Iterable[str]) -> list[str]:
    """Types of A, the widest first, integers before floats."""
    return sorted(types, key=_width)


def _width(a: str) -> tuple[int, bool]:
    integer = a[0] in "sub" and a[1:].isdigit()
    # narrow floats stand in bytes unless they are packed
    bits = 4 if a == PACKED else BITS[a] if integer else max(BITS[a], 8)
    return -min(bits, 16), not integer and bits < 16


@per_table
def accumulators(a: str) -> tuple[str, ...]:
    """The types that sum plain products of a type of A, the widest first; () without any."""
    types = dict.fromkeys(form.types[0] for form in _forms(DENSE, a) if not _is_scaled(form))
    return tuple(sorted(types, key=lambda d: -BITS[d]))


@per_table
def multiplies(a: str, b: str) -> bool:
    """Whether some instruction multiplies these two types, without scales."""
    return any(form.types[2] == b and not _is_scaled(form) for form in _forms(DENSE, a))


@per_table
def blocks(a: str, scale: str) -> tuple[int, ...]:
    """How many elements of A along K one scale of a type may serve, the most first."""
    served = {
        mnk(form.shape)[2] // scale_blocks(form)
        for form in _forms(DENSE, a)
        if _is_scaled(form) and form.types[4] == scale
    }
    return tuple(sorted(served, reverse=True))


@per_table
def wgmma_k(a: str) -> int:
    """K of a dense wgmma on a type of A; 0 where there is none."""
    return next((mnk(form.shape)[2] for form in _forms(WARPGROUP, a)), 0)


@per_table
def is_emulated(a: str, target: str) -> bool:
    """Whether ptxas makes mma of elements of A of conversions and a product of wider ones."""
    return any(lowering_of((), form, target) == "emulated" for form in _forms(DENSE, a))


@per_table
def has_wgmma(a: str, target: str) -> bool:
    """Whether a target multiplies a type of A by warpgroups."""
    table = current()
    # by the rules all N are on the same targets
    forms = islice(_forms(WARPGROUP, a), None if table.own else 1)
    found = map(table.resolve, forms)
    return any(instruction is not None and target in instruction.targets for instruction in found)
