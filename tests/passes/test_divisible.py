"""`frag.divisible`: what a program promises of its sizes, used, kept and broken.

Inputs are small integers, so every sum is exact and results are compared exactly. The emulator
refuses accesses outside of the arrays, which have no room beyond their sizes.
"""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.errors import FragirError

Array = npt.NDArray[Any]
Sizes = dict[str, int]

EPILOGUE = """ epilogue {
  ^bb0(%sum: f32, %old: f32):
    %r = arith.addf %sum, %old : f32
    frag.yield %r : f32
  }"""


def attribute(promises: Sizes) -> str:
    if not promises:
        return ""
    entries = ", ".join(f"{name} = {by}" for name, by in promises.items())
    return f" attributes {{frag.divisible = {{{entries}}}}}"


def gemm(
    promises: Sizes,
    tile: tuple[int, int, int] = (64, 64, 32),
    *,
    a: str = "f16",
    c: str = "f32",
    orders: tuple[bool, bool] = (False, False),
    stages: int = 3,
) -> str:
    """C = A B + C of any sizes."""
    words = [" transposed" if order else "" for order in orders]
    what = f"{{tile = array<i64: {', '.join(map(str, tile))}>, stages = {stages} : i64}}"
    types = f"memref<?x?x{a}>, memref<?x?x{a}> into memref<?x?x{c}>"
    arguments = f"%a: memref<?x?x{a}>, %b: memref<?x?x{a}>, %c: memref<?x?x{c}>"
    epilogue = EPILOGUE if c == "f32" else ""
    return (
        f"func.func @gemm({arguments}){attribute(promises)} {{\n"
        f"  frag.matmul %a{words[0]}, %b{words[1]} into %c {what} : {types}{epilogue}\n"
        "  func.return\n}\n"
    )


def operands(sizes: Sizes, orders: tuple[bool, bool], a: str = "f16") -> tuple[Array, Array]:
    rng = np.random.default_rng(sum(sizes.values()))
    kind = {"f16": np.float16, "i8": np.int8}[a]
    left = rng.integers(-3, 4, (sizes["m"], sizes["k"])).astype(kind)
    right = rng.integers(-3, 4, (sizes["k"], sizes["n"])).astype(kind)
    stored = [x.T if order else x for x, order in zip((left, right), orders, strict=True)]
    return np.ascontiguousarray(stored[0]), np.ascontiguousarray(stored[1])


def check(
    kernel: fragir.Kernel, sizes: Sizes, orders: tuple[bool, bool] = (False, False), a: str = "f16"
) -> None:
    """Runs a kernel and compares all of C."""
    x, y = operands(sizes, orders, a)
    left, right = x.T if orders[0] else x, y.T if orders[1] else y
    kind = np.float32 if a == "f16" else np.int32
    start = np.full((sizes["m"], sizes["n"]), 5, kind)
    c = start.copy()
    kernel(x, y, c, on="emulator")
    product = left.astype(kind) @ right.astype(kind)
    np.testing.assert_array_equal(c, product + start if a == "f16" else product)


def predicates(ptx: str) -> int:
    """Guarded accesses, and copies that may be of nothing."""
    return len(re.findall(r"@%\w+ (?:ld|st)\.global", ptx)) + len(re.findall(r"selp\.b32", ptx))


# --- what the compiler makes of it ----------------------------------------------------------------


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_more_promised_is_less_code(target: str) -> None:
    tile = (128, 128, 32) if target == "sm_80" else (128, 256, 64)
    texts = [
        fragir.compile(gemm(dict.fromkeys("mnk", by) if by else {}, tile), target=target).ptx
        for by in (0, 8, 16, 256)
    ]
    lengths = [len(text.splitlines()) for text in texts]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) == 4
    # one element at a time without a promise, two with one, both for C as read and as written
    assert "st.global.v2.b32" not in texts[0]
    assert all("st.global.b32" not in text for text in texts[1:])
    assert all("ld.global.b16" not in text for text in texts[1:])  # the other way to copy A and B
    assert predicates(texts[3]) < predicates(texts[2]) < predicates(texts[0])


def test_multiples_of_the_tile_need_no_mask() -> None:
    """But while the first stages are filled: K may have fewer steps than there are stages."""
    kernel = fragir.compile(gemm({"m": 64, "n": 64, "k": 32}))
    assert not re.search(r"@%\w+ (ld|st)\.global", kernel.ptx)
    loop = kernel.ptx[kernel.ptx.index("$loop_0:") : kernel.ptx.index("bra $loop_0;")]
    assert "cp.async.cg.shared.global" in loop
    assert "selp.b32 %bytes" not in loop


def test_a_promise_for_one_size_leaves_the_others_alone() -> None:
    kernel = fragir.compile(gemm({"n": 16}))
    assert "st.global.v2.b32" in kernel.ptx
    for m, k in ((1, 1), (63, 33), (65, 31)):
        check(kernel, {"m": m, "n": 48, "k": k})


def test_the_wrong_size_does_not_help() -> None:
    """Rows of C begin at multiples of n; nothing of m or k makes them aligned."""
    assert "st.global.v2.b32" not in fragir.compile(gemm({"m": 16, "k": 16})).ptx


def test_sizes_that_no_memory_needs_are_kept() -> None:
    """Odd promises and those that are no power of two."""
    kernel = fragir.compile(gemm({"m": 3, "n": 24, "k": 40}))
    for sizes in ({"m": 3, "n": 24, "k": 40}, {"m": 66, "n": 72, "k": 120}):
        check(kernel, sizes)


# --- random sizes that keep the promise -----------------------------------------------------------

FAMILY = [
    (target, orders, by, seed)
    for seed, (target, orders, by) in enumerate(
        (target, orders, by)
        for target in ("sm_75", "sm_80", "sm_90a")
        for orders in ((False, False), (True, False), (False, True))
        for by in ((8, 8, 8), (2, 4, 16), (64, 64, 32), (64, 16, 64), (1, 64, 1))
        if not (target == "sm_75" and orders != (False, False))
    )
]


@pytest.mark.parametrize(("target", "orders", "by", "seed"), FAMILY)
def test_random_sizes(
    target: str, orders: tuple[bool, bool], by: tuple[int, int, int], seed: int
) -> None:
    choose = random.Random(seed)
    kernel = fragir.compile(gemm(dict(zip("mnk", by, strict=True)), orders=orders), target=target)
    for largest in (1, 3, 9):
        sizes = {
            name: step * choose.randint(1, max(1, largest * 16 // step))
            for name, step in zip("mnk", by, strict=True)
        }
        check(kernel, sizes, orders)


@pytest.mark.parametrize("k", [16, 32, 48, 64, 160])
def test_few_steps_and_many_stages(k: int) -> None:
    kernel = fragir.compile(gemm({"m": 64, "n": 64, "k": 16}, (64, 64, 16), stages=5))
    check(kernel, {"m": 64, "n": 128, "k": k})


def test_bytes() -> None:
    kernel = fragir.compile(gemm({"n": 16, "k": 16}, a="i8", c="i32"))
    for sizes in ({"m": 7, "n": 16, "k": 16}, {"m": 70, "n": 80, "k": 48}):
        check(kernel, sizes, a="i8")


def test_linalg_and_names_of_its_sizes() -> None:
    program = f"""
func.func @gemm(%a: memref<?x?xf16>, %b: memref<?x?xf16>,
                %c: memref<?x?xf16> {{frag.sizes = ["rows", "cols"]}})
    {attribute({"cols": 16, "k": 16})} {{
  linalg.matmul ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf16>)
  func.return
}}
"""
    kernel = fragir.compile(program)
    assert kernel.promises == {"cols": 16, "k": 16}
    assert "st.global.v4.b32" in kernel.ptx
    assert "st.global.b16" not in kernel.ptx
    x, y = operands({"m": 19, "n": 32, "k": 48}, (False, False))
    c = np.ones((19, 32), np.float16)
    kernel(x, y, c, on="emulator")
    np.testing.assert_array_equal(c, x @ y + np.float16(1))
    with pytest.raises(FragirError, match="cols = 34, but gemm is promised multiples of 16"):
        kernel(x, np.zeros((48, 34), np.float16), np.zeros((19, 34), np.float16), on="emulator")


COPY = """
func.func @copy(%x: memref<?x?xf16{layout}>, %y: memref<?x?xf16{layout}>)
    attributes {{frag.warps = array<i64: 1, 1>, frag.divisible = {{{promises}}}}} {{
  %t = frag.load %x[0, 0] masked : memref<?x?xf16{layout}> -> !frag.tile<16x64xf16>
  frag.store %t, %y[0, 0] masked : !frag.tile<16x64xf16>, memref<?x?xf16{layout}>
  func.return
}}
"""


@pytest.mark.parametrize(
    ("by", "access"), [(1, ".b16"), (2, ".b32"), (4, ".v2.b32"), (8, ".v4.b32")]
)
def test_accesses_are_as_wide_as_the_promise(by: int, access: str) -> None:
    """Also: dimensions without names are called after the argument."""
    promises = f"x_d1 = {by}, y_d1 = {by}"
    kernel = fragir.compile(COPY.format(layout="", promises=promises))
    assert set(re.findall(r"ld\.global(\S+)", kernel.ptx)) == {access}
    assert set(re.findall(r"st\.global(\S+)", kernel.ptx)) == {access}
    for cols in (by, 24, 56):
        x = np.arange(9 * cols, dtype=np.float16).reshape(9, cols)
        y = np.zeros_like(x)
        kernel(x, y, on="emulator")
        np.testing.assert_array_equal(x, y)


def test_strides() -> None:
    text = COPY.format(
        layout=", strided<[?, 1]>", promises="x_d1 = 8, y_d1 = 8, x_s0 = 8, y_s0 = 8"
    )
    kernel = fragir.compile(text)
    assert "ld.global.v4.b32" in kernel.ptx
    wide = np.arange(9 * 64, dtype=np.float16).reshape(9, 64)
    x, y = wide[:, :40], np.zeros((9, 48), np.float16)[:, :40]
    kernel(x, y, on="emulator")
    np.testing.assert_array_equal(x, y)
    with pytest.raises(FragirError, match="y_s0 = 41, but copy is promised multiples of 8"):
        kernel(x, np.zeros((9, 41), np.float16)[:, :40], on="emulator")
    without = COPY.format(layout=", strided<[?, 1]>", promises="x_d1 = 8, y_d1 = 8")
    assert "ld.global.v4.b32" not in fragir.compile(without).ptx


# --- promises that are broken or wrong ------------------------------------------------------------


def test_a_broken_promise_names_the_size_and_the_promise() -> None:
    kernel = fragir.compile(gemm({"n": 16, "k": 8}))
    x, y = operands({"m": 3, "n": 24, "k": 8}, (False, False))
    words = "n = 24, but gemm is promised multiples of 16"
    c = np.zeros((3, 24), np.float32)
    for call in (
        lambda: kernel(x, y, c, on="emulator"),
        lambda: kernel.launch(1, None, x, y, c, on="emulator"),
        lambda: kernel.parameters([x, y, c]),
        lambda: kernel.sizes([x, y, c]),
    ):
        with pytest.raises(FragirError, match=words) as caught:
            call()
        assert "frag.divisible" in str(caught.value.hint)
    assert not c.any()


@pytest.mark.parametrize("by", [2, 3, 8, 12])
def test_a_promise_holds_for_multiples_and_nothing_else(by: int) -> None:
    """Sizes below the divisor too, which is where a test of the remainder alone could slip."""
    kernel = fragir.compile(COPY.format(layout="", promises=f"x_d1 = {by}, y_d1 = {by}"))
    for cols in range(1, 3 * by + 1):
        x = np.ones((2, cols), np.float16)
        y = np.zeros_like(x)
        if cols % by == 0:
            kernel.check({"x_d1": cols})
            kernel(x, y, on="emulator")
            np.testing.assert_array_equal(x, y)
            continue
        with pytest.raises(FragirError, match=f"x_d1 = {cols}, but copy is promised multiples"):
            kernel(x, y, on="emulator")
        with pytest.raises(FragirError, match=f"y_d1 = {cols}, but copy is promised multiples"):
            kernel.check({"x_d1": by, "y_d1": cols})
        assert not y.any()


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        ("{n = 0}", "promises that n is a multiple of 0"),
        ("{n = -16}", "promises that n is a multiple of -16"),
        ('{n = "16"}', 'promises that n is a multiple of "16"'),
        ("16", "names no sizes"),
    ],
)
def test_what_is_no_promise(promise: str, words: str) -> None:
    text = gemm({"n": 16}).replace("{n = 16}", promise)
    with pytest.raises(FragirError, match=words) as caught:
        fragir.compile(text, filename="gemm.mlir")
    assert (caught.value.file, caught.value.line) == ("gemm.mlir", 1)


def test_a_promise_of_nothing_known() -> None:
    with pytest.raises(FragirError, match="of cols, which is no dynamic size of gemm") as caught:
        fragir.compile(gemm({"cols": 16}))
    assert caught.value.line == 1
    assert "k, m, n" in str(caught.value)


# --- from Python ----------------------------------------------------------------------------------


def built(**promises: int) -> fragir.Kernel:
    with fragir.kernel("gemm") as k:
        a = k.memory("a", fragir.f16, ("m", "k"))
        b = k.memory("b", fragir.f16, ("k", "n"))
        c = k.memory("c", fragir.f32, ("m", "n"))
        k.divisible(**promises)
        k.matmul(a, b, into=c, tile=(64, 64, 32), epilogue=lambda total, old: total + old)
    return k.compile()


def test_the_builder_promises_the_same() -> None:
    kernel = built(n=16, k=8)
    assert kernel.promises == {"n": 16, "k": 8}
    text = gemm({"n": 16, "k": 8}).replace(", stages = 3 : i64", "")
    assert kernel.ptx == fragir.compile(text).ptx
    check(kernel, {"m": 5, "n": 80, "k": 24})


def test_promises_add_up() -> None:
    with fragir.kernel("f") as k:
        k.memory("a", fragir.f16, ("m", "n"))
        k.divisible(m=4)
        k.divisible(m=6, n=2)
    assert "frag.divisible = {m = 12 : i64, n = 2 : i64}" in k.mlir


@pytest.mark.parametrize(
    ("promises", "words"),
    [
        ({"q": 16}, "no argument has a size q"),
        ({"n": 0}, "n cannot be a multiple of 0"),
        ({"n": 2.5}, "n cannot be a multiple of 2.5"),
        ({"n": True}, "n cannot be a multiple of True"),
    ],
)
def test_the_builder_refuses(promises: dict[str, Any], words: str) -> None:
    with pytest.raises(FragirError, match=re.escape(words)):
        built(**promises)
