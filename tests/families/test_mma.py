"""Every mma.sync family from matrix IR to ptxas and the emulator (and a GPU where there is one)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fragir import compile as compile_program
from fragir.compiler import Place
from fragir.isa.targets import number
from fragir.reference.formats import decode

from .programs import (
    DEEP,
    FAMILIES,
    PLACES,
    Array,
    Family,
    assert_within_bound,
    compiled,
    empty,
    exact,
    multiply,
    name_of,
    one,
    random,
    small,
)

BLOCKS = 256
RANDOM_BLOCKS = 16
TARGETS = {"sm_75": ("sm_75",), "sm_80": ("sm_80", "sm_90a"), "sm_89": ("sm_89", "sm_90a")}
CASES = [
    (family, target)
    for family in FAMILIES
    for target in TARGETS.get(family.target, (family.target,))
]


def name(case: object) -> str:
    if not isinstance(case, Family):
        return str(case)
    shape = f"m{case.m}n{case.n}k{case.k}"
    return "-".join((shape, *case.orders, *(name_of(e) for e in case.elements)))


def blocks_of(arrays: list[Array], blocks: int) -> list[Array]:
    """Arrays with as many matrices as the kernel takes: the last ones are zeros."""
    return [np.concatenate([x, np.zeros((blocks - len(x), *x.shape[1:]), x.dtype)]) for x in arrays]


def positions(family: Family, count: int | None) -> Array:
    """(i, k, j, product) of one element of A, one of B and the element of D that they make.

    All of them, or a sample in which every element of A, B and D still occurs.
    """
    every = np.array(
        list(product(*map(range, (family.m, family.k, family.n, family.products)))), np.int64
    )
    if count is None or len(every) <= count:
        return every
    order = np.random.default_rng(len(every)).permutation(len(every))
    chosen: list[int] = []
    for columns in ((0, 1, 3), (1, 2, 3), (0, 2, 3)):
        _, first = np.unique(every[order][:, columns], axis=0, return_index=True)
        chosen += list(order[first])
    kept = list(dict.fromkeys([*chosen, *order]))[: max(count, len(set(chosen)))]
    return every[kept]


def one_hot(family: Family, at: Array) -> tuple[Array, Array, Array]:
    """A, B and the expected D of one block a position."""
    shapes = [(len(at), *shape) for shape in family.shapes()]
    a, b, d = (empty(family.elements[i], shapes[i]) for i in (0, 1, 3))
    block = np.arange(len(at))
    i, k, j, p = at.T
    more = (p,) if family.products > 1 else ()
    a[(block, i, k, *more)] = one(family.a)
    b[(block, k, j, *more)] = one(family.b)
    d[(block, i, j, *more)] = one(family.d)
    return a, b, d


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("family", "target"), CASES, ids=name)
def test_one_element_of_a_and_b_hits_one_of_d(family: Family, target: str, place: Place) -> None:
    at = positions(family, None if DEEP else BLOCKS)
    for first in range(0, len(at), BLOCKS):
        a, b, d = one_hot(family, at[first : first + BLOCKS])
        count = len(a)
        c = empty(family.c, (count, *family.shapes()[2]))
        arrays = blocks_of([a, b, c, np.full_like(d, 77)], BLOCKS)
        found = multiply(compiled(family, BLOCKS, target), arrays, place, count)[:count]
        np.testing.assert_array_equal(found, d)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("family", "target"), CASES, ids=name)
def test_small_integers_are_exact(family: Family, target: str, place: Place) -> None:
    rng = np.random.default_rng(1)
    shapes = [(BLOCKS, *shape) for shape in family.shapes()]
    arrays = [small(rng, e, s) for e, s in zip(family.elements, shapes, strict=True)]
    found = multiply(compiled(family, BLOCKS, target), arrays, place, RANDOM_BLOCKS)
    wanted = exact(family, *(x[:RANDOM_BLOCKS] for x in arrays[:3]))
    np.testing.assert_array_equal(decode(found[:RANDOM_BLOCKS], name_of(family.d)), wanted)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("family", "target"), CASES, ids=name)
def test_random_products_are_within_their_bound(family: Family, target: str, place: Place) -> None:
    rng = np.random.default_rng(2)
    shapes = [(BLOCKS, *shape) for shape in family.shapes()]
    arrays = [random(rng, e, s) for e, s in zip(family.elements, shapes, strict=True)]
    found = multiply(compiled(family, BLOCKS, target), arrays, place, RANDOM_BLOCKS)
    first = [x[:RANDOM_BLOCKS] for x in arrays]
    assert_within_bound(family, first, found[:RANDOM_BLOCKS], target)


@pytest.mark.parametrize("family", FAMILIES, ids=name)
def test_the_instruction_is_the_family_s_own(family: Family) -> None:
    """One instruction a block, of the shape and types asked for."""
    text = compiled(family, BLOCKS, family.target).ptx
    lines = [line for line in text.splitlines() if "mma.sync" in line]
    assert len(lines) == 1
    types = ".".join(name_of(family.elements[i]) for i in (3, 0, 1, 2))
    assert f".m{family.m}n{family.n}k{family.k}." in lines[0]
    assert f".{types} " in lines[0]
    assert number(family.target) >= 75


@pytest.mark.parametrize("family", FAMILIES, ids=name)
def test_constant_operands(family: Family) -> None:
    """A, B and C that are constants: K ones and one more."""
    program = family.program(1)
    for operand, element in zip("abc", family.elements, strict=False):
        if element in ("si8", "ui8"):  # arith has constants of signless types only
            continue
        load = next(line for line in program.splitlines() if f"%t{operand} = " in line)
        value = "1" if element == "i32" else "1.0"
        constant = f"  %x{operand} = arith.constant {value} : {element}"
        fill = f"  %t{operand} = frag.fill %x{operand} : {load.split(' -> ')[1]}"
        program = program.replace(load, f"{constant}\n{fill}")
    kernel = compile_program(program, target=family.target)
    assert kernel.assembled.warnings == []
    shapes = [(1, *shape) for shape in family.shapes()]
    arrays = [np.full(s, one(e)) for e, s in zip(family.elements, shapes, strict=True)]
    found = multiply(kernel, arrays, "emulator", 1)
    assert (decode(found, name_of(family.d)) == family.k + 1).all()
