"""What holds of every tensor-core instruction, from the matrix level to the emulator.

A judge raises AssertionError where it does not; `test_every` asks them of a sample, the sweep
`wgmma-families` of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from xdsl.dialects import func

from fragir import compile as compile_program
from fragir import isa
from fragir.compiler import Kernel, parse
from fragir.reference import compare, evaluate

from .every import Array, Case

FAMILIES = ("mma", "mma.sp", "mma.sp::ordered_metadata", "wgmma", "wgmma.sp")
# Why the matrix level does not reach an instruction; every other one it does.
UNREACHED = {
    f"mma.sync.aligned.m8n8k4.{orders}.f32.{type_}.{type_}.f32": "ptxas emits nothing for it"
    for orders in ("row.col", "row.row", "col.row", "col.col")
    for type_ in ("bf16", "tf32")
}
BLOCKS = 4


def every_case(family: str) -> Iterator[Case]:
    """What is reached of a family, both forms of a wgmma."""
    for instruction in isa.instructions():
        if instruction.family == family and instruction.mnemonic not in UNREACHED:
            for form in instruction.variants or ("registers",):
                yield Case(instruction, form)


def name(case: Case) -> str:
    text = case.instruction.mnemonic.replace(".sync.aligned", "")
    return f"{text}-{case.form}" if case.is_wgmma else text


@cache
def compiled(case: Case) -> Kernel:
    return compile_program(case.program(blocks=BLOCKS), target=case.target)


def run(case: Case, values: dict[str, Array]) -> Array:
    """D of the kernel on the emulator, which must find nothing wrong."""
    kernel = compiled(case)
    wanted = np.zeros((BLOCKS, *case.shapes()["d"]))
    d = case.stored("d", wanted)
    arrays = [case.stored(x, values[x]) for x in case.shapes() if x != "d"]
    report = kernel.launch(BLOCKS, None, *arrays, d, on="emulator")
    assert report.findings == []
    return d


def values_of(case: Case, rng: np.random.Generator, small: bool) -> dict[str, Array]:
    operands = [x for x in case.shapes() if x not in "ed"]
    values = {x: case.random(rng, x, BLOCKS, small) for x in operands}
    if case.is_sparse:
        values["e"], values["positions"] = case.metadata(rng, BLOCKS)
    return values


def products_are_exact(case: Case) -> None:
    """Small integers in every type; integers also of the whole range, wrapped or clamped."""
    rng = np.random.default_rng(len(name(case)))
    integers = case.instruction.types.d == "s32"
    for small in (True, False) if integers else (True,):
        values = values_of(case, rng, small)
        wanted = case.expected(values)
        np.testing.assert_array_equal(run(case, values).astype(wanted.dtype), wanted)
        if "satfinite" in case.flags and not small:
            assert np.isin(wanted, (-(2**31), 2**31 - 1)).any()


def random_products_are_within_the_bound(case: Case) -> None:
    """The meaning of the operation in numpy (fragir.reference) with its bound."""
    rng = np.random.default_rng(len(name(case)) + 2)
    values = {x: case.normal(rng, x, BLOCKS) for x in case.shapes() if x not in "ed"}
    if case.is_sparse:
        values["e"], _ = case.metadata(rng, BLOCKS)
    found = run(case, values)
    arrays = [case.stored(x, values[x]) for x in case.shapes() if x != "d"]
    function = next(iter(parse(case.program(blocks=BLOCKS)).ops))
    assert isinstance(function, func.FuncOp)
    views = [x if x.dtype.kind in "iuf" else x.view(np.dtype(f"u{x.itemsize}")) for x in arrays]
    (*_, reference) = evaluate(
        function, [*views, np.zeros_like(found)], target=case.target, grid=(BLOCKS, 1, 1)
    )
    assert reference is not None
    result = compare(reference, found, case.instruction.types.d)
    assert (result.mismatches, result.unbounded) == (0, 0), result
    # a bound that says nothing proves nothing
    largest = np.abs(reference.value).max()
    assert reference.bound.max() <= 0.1 * largest


def one_hot_says_something(case: Case) -> bool:
    """`test_mma` has the products of m8n8k4; with xor every unequal bit counts."""
    return not case.is_quad and "xor" not in case.flags


def one_element_hits_one(case: Case) -> None:
    """One of A and of B hits one of D; metadata and scales of every place are random."""
    rng = np.random.default_rng(len(name(case)) + 1)
    values = values_of(case, rng, True)
    shapes = case.shapes()
    for x in "abc":
        values[x] = np.zeros_like(values[x])
    places: list[tuple[int, int]] = []
    for block in range(BLOCKS):
        i, k, j = (int(rng.integers(size)) for size in (*shapes["a"], shapes["b"][1]))
        column = int(values["positions"][block, i, k]) if case.is_sparse else k
        values["a"][block, i, k] = values["b"][block, column, j] = 1
        places.append((i, j))
    wanted = case.expected(values)
    for block, place in enumerate(places):
        assert [tuple(at) for at in np.argwhere(wanted[block])] == [place]
    np.testing.assert_array_equal(run(case, values).astype(wanted.dtype), wanted)
