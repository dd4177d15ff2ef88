"""Parts and other shapes of tensors, and what is put together of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.linalg.judging import judged

Array = npt.NDArray[Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def doubled(source: str, type_: str) -> str:
    """%r, twice a tensor, in a new one of static size."""
    return f"""%e = tensor.empty() : {type_}
  %r = linalg.add ins({source}, {source} : {type_}, {type_}) outs(%e : {type_}) -> {type_}"""


def test_a_part_is_read() -> None:
    a = numbers(20, 40)
    text = f"""func.func @f(%a: tensor<20x40xf32>) -> tensor<7x16xf32> {{
  %p = tensor.extract_slice %a[3, 5] [7, 16] [2, 1] : tensor<20x40xf32> to tensor<7x16xf32>
  {doubled("%p", "tensor<7x16xf32>")}
  return %r : tensor<7x16xf32>
}}"""
    (found,) = judged(text, "a", [a], "sm_80")
    assert np.array_equal(found, 2 * a[3:17:2, 5:21])


def test_a_part_is_written() -> None:
    a, b = numbers(20, 40), numbers(7, 16, seed=1)
    text = f"""func.func @f(%a: tensor<20x40xf32>, %b: tensor<7x16xf32>) -> tensor<20x40xf32> {{
  {doubled("%b", "tensor<7x16xf32>")}
  %o = tensor.insert_slice %r into %a[3, 5] [7, 16] [2, 1] : tensor<7x16xf32> into tensor<20x40xf32>
  return %o : tensor<20x40xf32>
}}"""
    wanted = a.copy()
    wanted[3:17:2, 5:21] = 2 * b
    (found,) = judged(text, "ab", [a, b], "sm_80")
    assert np.array_equal(found, wanted)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_random_parts(data: st.DataObject) -> None:
    """Of sizes that a launch knows; what is left out has size 1."""
    shape = [data.draw(st.integers(1, 24)) for _ in range(3)]
    steps = [data.draw(st.integers(1, 3)) for _ in shape]
    first = [data.draw(st.integers(0, n - 1)) for n in shape]
    sizes = [
        data.draw(st.integers(0 if d else 1, (n - at - 1) // s + 1))
        for d, (n, at, s) in enumerate(zip(shape, first, steps, strict=True))
    ]
    drop = data.draw(st.booleans())
    if drop:
        sizes[0] = 1
    dynamic = data.draw(st.booleans())
    whole = "tensor<?x?x?xf32>" if dynamic else f"tensor<{'x'.join(map(str, shape))}xf32>"
    part = f"tensor<{'x'.join(map(str, sizes[drop:]))}xf32>"
    lists = " ".join(str(x) for x in (first, sizes, steps))
    text = f"""func.func @f(%a: {whole}, %b: {part}) -> {whole} {{
  %p = tensor.extract_slice %a{lists} : {whole} to {part}
  %e = tensor.empty() : {part}
  %s = linalg.sub ins(%b, %p : {part}, {part}) outs(%e : {part}) -> {part}
  %o = tensor.insert_slice %s into %a{lists} : {part} into {whole}
  return %o : {whole}
}}"""
    a, b = numbers(*shape), numbers(*sizes[drop:], seed=1)
    wanted = a.copy()
    place = tuple(
        slice(at, at + (n - 1) * s + 1 if n else at, s)
        for at, n, s in zip(first, sizes, steps, strict=True)
    )
    wanted[place] = b.reshape(sizes) - wanted[place]
    (found,) = judged(text, "ab", [a, b], data.draw(st.sampled_from(["sm_80", "sm_90a"])))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dynamic", [False, True])
def test_other_shapes(dynamic: bool) -> None:
    a = numbers(6, 4, 8)
    whole, flat = ("tensor<?x4x8xf32>", "tensor<?x8xf32>") if dynamic else (
        "tensor<6x4x8xf32>", "tensor<24x8xf32>")  # fmt: skip
    split = "tensor<?x2x8xf32>" if dynamic else "tensor<12x2x8xf32>"
    sizes = "[%n, 2, 8]" if dynamic else "[12, 2, 8]"
    text = f"""func.func @f(%a: {whole}) -> {split} {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %m = tensor.dim %a, %c0 : {whole}
  %n = arith.muli %m, %c2 : index
  %c = tensor.collapse_shape %a [[0, 1], [2]] : {whole} into {flat}
  %x = tensor.expand_shape %c [[0, 1], [2]] output_shape {sizes} : {flat} into {split}
  %e = tensor.empty({"%n" if dynamic else ""}) : {split}
  %o = linalg.exp ins(%x : {split}) outs(%e : {split}) -> {split}
  return %o : {split}
}}"""
    (found,) = judged(text, "a", [a], "sm_80", {"n3": 12} if dynamic else None)
    assert np.allclose(found, np.exp(a.reshape(12, 2, 8)), rtol=1e-5)
