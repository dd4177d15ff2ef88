"""Copies between what computes are no kernels: few kernels, and the result is numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fragir
from fragir.host import Program
from tests.linalg.copies import CopiedFunction, Cut
from tests.linalg.judging import judged


def held(function: CopiedFunction, *results: Cut, target: str = "sm_80") -> int:
    """How many kernels a function has; its results are those of numpy."""
    text = function.text(*results)
    arguments = function.arguments
    found = judged(text, [x.name[1:] for x in arguments], [x.array for x in arguments], target)
    for one, wanted in zip(found, results, strict=True):
        scale = np.abs(wanted.array).max(initial=1)
        assert np.abs(one - wanted.array).max(initial=0) <= 1e-5 * scale
    made = fragir.compile(text, target=target)
    return len(made.plan.launches) if isinstance(made, Program) else 1


def halves_exchanged(f: CopiedFunction, x: Cut, join: str = "joined") -> Cut:
    """As rotary embeddings do it: the second half, negated, then the first one."""
    *outer, last = x.array.shape
    zeros, sizes = [0] * len(outer), [*outer, last // 2]
    first, second = f.part(x, [*zeros, 0], sizes), f.part(x, [*zeros, last // 2], sizes)
    return getattr(f, join)(len(outer), f.negated(second), first)


@pytest.mark.parametrize("join", ["joined", "inserted"])
def test_rotary_embedding_is_one_kernel(join: str) -> None:
    f = CopiedFunction((3, 5, 12), (5, 12), (5, 12))
    x, cosines, sines = f.arguments
    turned = f.combined("mulf", halves_exchanged(f, x, join), sines)
    assert held(f, f.combined("addf", f.combined("mulf", x, cosines), turned)) == 1


def test_pixel_shuffle_is_one_kernel() -> None:
    f = CopiedFunction((1, 8, 3, 5))
    (x,) = f.arguments
    padded = f.padded(f.negated(x), [0, 0, 1, 2], [0, 0, 2, 1])
    wide = f.turned(f.apart(padded, 1, (2, 2, 2)), (0, 1, 4, 2, 5, 3))
    assert held(f, f.together(f.together(wide, 4, 2), 2, 2)) == 1


def test_elements_set_apart_among_zeros_are_one_kernel() -> None:
    """As the input of a transposed convolution."""
    f = CopiedFunction((3, 4))
    wide = f.set_apart(f.negated(f.arguments[0]), [1, 0], [2, 3], 2)
    assert held(f, f.combined("mulf", wide, wide)) == 1


def test_heads_are_views_of_a_product() -> None:
    """What a product gives as heads, scaled: its last copy is where it is stored."""
    f = CopiedFunction((7, 12), (12, 20), (20,))
    x, w, bias = f.arguments
    y = f.combined("addf", f.product(x, w), bias)
    assert held(f, f.negated(f.turned(f.apart(y, 1, (4, 5)), (1, 0, 2)))) == 1


def test_gates_of_a_cell_are_parts_of_one_sum() -> None:
    f = CopiedFunction((3, 6), (6, 20), (3, 5))
    x, w, c = f.arguments
    y = f.product(x, w)
    a, b, g, o = (f.part(y, [0, 5 * at], [3, 5]) for at in range(4))
    new = f.combined("addf", f.combined("mulf", f.negated(a), c), f.combined("mulf", b, g))
    assert held(f, f.combined("mulf", o, new), new) == 2


def test_rows_with_a_dimension_of_one_element_are_one_kernel() -> None:
    f = CopiedFunction((1, 3, 6, 33))
    (x,) = f.arguments
    mean = f.apart(f.summed(f.combined("mulf", x, x)), 2, (6, 1))
    assert held(f, f.negated(f.combined("mulf", x, mean))) == 1


@pytest.mark.parametrize("column", [0, 1])
def test_what_others_see_is_stored_whole(column: int) -> None:
    """A column of it is all that the last operation reads."""
    f = CopiedFunction((8, 5))
    seen = f.negated(f.arguments[0])
    assert held(f, seen, f.negated(f.part(seen, [0, column], [8, 1]))) == 2


def test_of_a_sum_that_others_see_not_only_a_part_is_stored() -> None:
    f = CopiedFunction((6, 8), (8, 10))
    y = f.product(*f.arguments)
    assert held(f, y, f.negated(f.part(y, [0, 0], [6, 5]))) == 2


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_any_row_of_copies(data: st.DataObject) -> None:
    """Cut, joined, padded, turned, taken apart and together, with arithmetic in between."""

    def choose(*options: object) -> object:
        return data.draw(st.sampled_from(options))

    f = CopiedFunction((4, 6), (6, 4), (2, 3, 4))
    values = list(f.arguments)
    for _ in range(data.draw(st.integers(2, 7))):
        x = data.draw(st.sampled_from(values[-3:]))
        shape, last = x.array.shape, x.array.ndim - 1
        step = choose("part", "join", "pad", "turn", "apart", "together", "map", "map", "sum")
        if step == "part" and min(shape, default=0) > 1:
            first = [data.draw(st.integers(0, n // 2)) for n in shape]
            sizes = [data.draw(st.integers(1, n - a)) for n, a in zip(shape, first, strict=True)]
            values.append(f.part(x, first, sizes))
        elif step == "join" and shape:
            y = choose(x, f.negated(x))
            assert isinstance(y, Cut)
            join = f.joined if data.draw(st.booleans()) else f.inserted
            values.append(join(data.draw(st.integers(0, last)), x, y))
        elif step == "pad" and shape:
            low, high = ([data.draw(st.integers(0, 2)) for _ in shape] for _ in range(2))
            values.append(f.padded(x, low, high))
        elif step == "turn" and last > 0:
            values.append(f.turned(x, data.draw(st.permutations(range(last + 1)))))
        elif step == "apart" and last < 4 and shape and shape[-1] % 2 == 0:
            values.append(f.apart(x, last, data.draw(st.permutations((2, shape[-1] // 2)))))
        elif step == "together" and last > 0:
            values.append(f.together(x, data.draw(st.integers(0, last - 1)), 2))
        elif step == "sum" and last > 0:
            values.append(f.summed(x))
        elif shape:
            values.append(f.combined("mulf", f.negated(x), x))
    result = values[-1]
    assume(result not in f.arguments and result.array.size <= 4000)
    held(f, result, target=data.draw(st.sampled_from(["sm_80", "sm_90a"])))
