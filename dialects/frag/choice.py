"""Which instruction multiplies which tiles: the choice, and what to write where there is none."""

from __future__ import annotations

from math import prod

from xdsl.ir import Attribute

from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.attributes import MmaLayoutAttr
from fragir.dialects.frag.instructions import (
    QUAD,
    accumulator_of,
    check_target,
    check_words,
    exists,
    largest_n,
    lookup,
    parse_name,
    wgmma_types,
)
from fragir.dialects.frag.qualifiers import PLAIN, How, check_how
from fragir.dialects.frag.types import TileType
from fragir.errors import FragirError
from fragir.isa.products import DENSE, shapes, wgmma_k
from fragir.isa.registry import per_table
from fragir.isa.spelling import mnk


def choose(
    a: TileType,
    b: TileType,
    c: TileType,
    d: TileType,
    using: str | None,
    target: str | None = None,
    how: How = PLAIN,
) -> str:
    """The short name of the mma.sync for these tiles: from their layouts, `using`, or the best.

    With a target only what it has is chosen. FragirError, with what to write instead, where no
    instruction fits.
    """
    return _choose(a, b, c, d, using, target, how)


@per_table
def _choose(
    a: TileType,
    b: TileType,
    c: TileType,
    d: TileType,
    using: str | None,
    target: str | None,
    how: How,
) -> str:
    types = a.element, b.element, c.element, d.element
    check_words(types, how)
    name = using or _placed_name(a, b)
    if name is not None:
        shape, type_, orders = parse_name(name)
        quad = shape == QUAD and type_ == "f16"
        if len(orders) != 2 * quad:
            raise FragirError(
                f"{name} must say how A and B are stored"
                if quad
                else f"{name}: only m8n8k4.f16 has a choice of row and col",
                hint=f"write {shape}.{type_}{'.row.col' * quad}",
            )
        if type_ != types[0]:
            raise FragirError(f"{name} multiplies {type_}, but A holds {types[0]}")
        _check_fit(shape, a, c, name)
        check_target(lookup(shape, types, orders, how), target)
        return name
    if a.products > 1:
        if a.products != 4 or types[0] != "f16":
            raise FragirError(
                f"no instruction forms {a.products} products of {types[0]} at once",
                hint="m8n8k4 of f16 forms four",
            )
        _check_fit(QUAD, a, c, QUAD)
        check_target(lookup(QUAD, types, ("row", "col"), how), target)
        return f"{QUAD}.f16.row.col"
    every = shapes(DENSE, types[0], bool(how.scale))
    fitting = [shape for shape in every if _fits(shape, a, c)]
    if not fitting and _can_be_padded(a, how):
        fitting = sorted(every, key=lambda shape: padded(shape, a, c))
    elif not fitting:
        m, n, k = c.rows, c.cols, a.cols
        raise FragirError(
            f"no mma of {types[0]} divides {m}x{n}x{k} (M x N x K)",
            hint=f"make the tile a multiple of {' or '.join(every)}",
        )
    # where A's and B's types differ, not every shape of A's type exists
    found = [shape for shape in fitting if exists(shape, types, how)] or fitting[-1:]
    instructions = {shape: lookup(shape, types, (), how) for shape in found}
    for shape, instruction in instructions.items():
        if target is None or target in instruction.targets:
            return f"{shape}.{types[0]}"
    check_target(instructions[found[-1]], target)
    raise AssertionError("an instruction that the target lacks is refused")


def padded(shape: str, a: TileType, c: TileType) -> int:
    """The multiplications of a product of which every dimension is filled up to whole
    instructions; frag-place does that where none divides it."""
    sizes = zip((c.rows, c.cols, a.cols), mnk(shape), strict=True)
    return prod(-(-size // step) * step for size, step in sizes)


def _can_be_padded(a: TileType, how: How) -> bool:
    """Whether zeros behind the tiles change nothing, and have a place of their own."""
    return not how.scale and not how.bitop and element_bits(a.element_type) >= 8


def _placed_name(a: TileType, b: TileType) -> str | None:
    first, second = a.placement, b.placement
    if not isinstance(first, MmaLayoutAttr) or first.data.operand != "a":
        # it is converted to what the instruction takes, or has it by another name
        if first is None or not isinstance(second, MmaLayoutAttr) or second.data.operand != "b":
            return None
        shape, _, orders = parse_name(second.data.instruction)
        return None if orders else f"{shape}.{a.element}"
    name = first.data.instruction
    if parse_name(name)[2] and isinstance(second, MmaLayoutAttr):
        name += "." + ".".join(parse_name(second.data.instruction)[2])
    return name


def _fits(shape: str, a: TileType, c: TileType) -> bool:
    m, n, k = mnk(shape)
    return c.rows % m == 0 and c.cols % n == 0 and a.cols % k == 0


def _check_fit(shape: str, a: TileType, c: TileType, name: str) -> None:
    if not _fits(shape, a, c):
        raise FragirError(
            f"{name} does not divide the tiles: M x N x K is {c.rows}x{c.cols}x{a.cols}",
            hint=f"make the tile a multiple of {shape}",
        )


def check_wgmma(
    a: Attribute, b: Attribute, c: TileType, k: int, how: How = PLAIN, negated: bool = False
) -> None:
    """FragirError unless wgmma multiplies these types into tile c, as `how` says."""
    first, second = element_name(a), element_name(b)
    check_how(first, second, c.element, how)
    accumulator_of(first, second, c.element)
    if not wgmma_k(first):
        raise FragirError(f"wgmma does not multiply {first}", hint=f"only {wgmma_types()}")
    if how.sparse and first == "b1":
        raise FragirError("there is no sparse wgmma of b1")
    if negated and c.element == "s32":
        raise FragirError(f"`negated` flips the sign of floats, not of {first}")
    step = wgmma_k(first) * (2 if how.sparse else 1)
    if k % step:
        what = "sparse wgmma" if how.sparse else "wgmma"
        raise FragirError(f"K = {k} is no multiple of {step}, {what}'s K for {first}")
    if c.rows % 64:
        raise FragirError(f"C has {c.rows} rows; a warpgroup computes 64 at a time")
    wgmma_n(c, first)


def wgmma_n(c: TileType, a: str) -> int:
    """N of one wgmma for a tile of C: all columns of a warpgroup where that is legal."""
    if isinstance(c.placement, MmaLayoutAttr):
        return c.placement.data.mnk[1]
    return largest_n(c.cols, a)
