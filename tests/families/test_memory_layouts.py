"""Memory and tiles in any layout, from the matrix level to executed PTX."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute
from xdsl.parser import Parser

import fragir
from benchmarks.sweeps import memory_kernels
from fragir import compile as compile_program
from fragir.compilation.program import context
from fragir.compiler import Kernel
from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.layout import Layout

SWIZZLED = "row [8:^72 8:512] col [64:1]"


def memref(extents: str, layout: str) -> str:
    return f'memref<{extents}, #frag.layout<"{layout}">, #frag.shared>'


def parsed(text: str) -> MemRefType[Attribute]:
    return memref_type(Parser(context(), text).parse_type())


# What the type says


@pytest.mark.parametrize(
    ("extents", "layout", "strides"),
    [
        ("16x64xf16", "row [8:^72 2:512] col [64:1]", None),
        ("64x64xf32", "row [64:72] col [64:1]", (72, 1)),
        ("16x8xi8", "row [16:1] col [8:24]", (1, 24)),
        ("2x16x64xf16", "stage [2:1024] row [8:^72 2:512] col [64:1]", None),
        ("10x6xf32", "row [4:^12 3:64] col [8:1]", None),
    ],
)
def test_a_memref_says_where_its_elements_lie(
    extents: str, layout: str, strides: tuple[int, ...] | None
) -> None:
    text = memref(extents, layout)
    type_ = parsed(text)
    assert str(type_) == text
    assert parsed(str(type_)) == type_
    value = Layout.parse(layout)
    assert frag.memory_layout(type_) == value
    assert type_.get_strides() == strides
    assert type_.get_offset() == (None if strides is None else 0)
    element, bytes_ = type_.get_affine_map(), type_.get_affine_map_in_bytes()
    size = element_bits(type_.element_type) // 8
    for point in list(product(*map(range, type_.get_shape())))[::3]:
        wanted = value(**dict(zip(value.names, point, strict=True)))
        assert wanted is not None
        assert element.eval(list(point), []) == wanted
        assert bytes_.eval(list(point), []) == (wanted[0] * size,)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("memref<64x64xf16, #frag.shared<swizzle = 128>>", memref("64x64xf16", SWIZZLED)),
        (
            "memref<64x64xi8, #frag.shared<swizzle = 64>>",
            memref("64x64xi8", "row [2:64 4:^144 8:512] col [64:1]"),
        ),
        ("memref<4x8xf32, #frag.shared>", memref("4x8xf32", "row [4:8] col [8:1]")),
        (
            "memref<4x8xf32, strided<[12, 1]>, #frag.shared>",
            'memref<4x8xf32, #frag.layout<"row [4:12] col [8:1]">, #frag.shared>',
        ),
    ],
)
def test_a_swizzle_is_short_for_a_layout(short: str, long: str) -> None:
    one, other = frag.memory_layout(parsed(short)), frag.memory_layout(parsed(long))
    assert [axis.modes for axis in one.simplified().axes] == [
        axis.modes for axis in other.simplified().axes
    ]


LOAD = """
func.func @load(%d: memref<64x64xf16>) {{
  %s = memref.alloc() : {memory}
  %t = frag.load %s[0, 0] : {memory} -> !frag.tile<64x64xf16>
  frag.store %t, %d[0, 0] : !frag.tile<64x64xf16>, memref<64x64xf16>
  func.return
}}
"""


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("row [64:1] col [64:1]", "puts several elements at one place"),
        ("row [8:8 8:512] col [64:1]", "puts several elements at one place"),
        ("row [32:64] col [64:1]", "axis row of row [32:64] col [64:1] has 32 coordinates"),
        ("row [64:64]", "has 1 axes, the memref 2 dimensions"),
        ("row [64:(1,0)] col [64:(0,1)]", "has one dimension, index, not row, col"),
        ("row [64:128] col [64:2] dims (byte)", "has one dimension, index, not byte"),
        ("row [64:64] col [64:1] where row%2==0", "has no predicate"),
        ("col [64:64] row [64:1]", "names its axes col, row"),
    ],
)
def test_what_gives_an_element_no_place_of_its_own_is_refused(layout: str, message: str) -> None:
    with pytest.raises(FragirError) as error:
        compile_program(LOAD.format(memory=memref("64x64xf16", layout)), target="sm_80")
    assert message in str(error.value)


def test_a_layout_and_a_swizzle_are_one_too_many() -> None:
    memory = f'memref<64x64xf16, #frag.layout<"{SWIZZLED}">, #frag.shared<swizzle = 128>>'
    with pytest.raises(FragirError, match="has a layout and a swizzle"):
        compile_program(LOAD.format(memory=memory), target="sm_80")


def test_global_memory_has_strides() -> None:
    program = """
func.func @turn(%a: memref<8x16xf32, #frag.layout<"row [8:1] col [16:8]">>, %d: memref<8x16xf32>) {
  %t = frag.load %a[0, 0] : memref<8x16xf32, #frag.layout<"row [8:1] col [16:8]">>
    -> !frag.tile<8x16xf32>
  frag.store %t, %d[0, 0] : !frag.tile<8x16xf32>, memref<8x16xf32>
  func.return
}
"""
    array = np.arange(128, dtype=np.float32).reshape(16, 8).T
    result = np.zeros((8, 16), np.float32)
    compile_program(program, target="sm_80").launch(
        (1, 1, 1), (32, 1, 1), array, result, on="emulator"
    )
    np.testing.assert_array_equal(result, array)
    with pytest.raises(FragirError, match="has a layout without strides"):
        compile_program(program.replace("col [16:8]", "col [2:8 8:32]"), target="sm_80")


# What kernels do with it


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=8, deadline=None)
def test_random_layouts_of_memory_and_tiles(seed: int) -> None:
    assert memory_kernels.check(memory_kernels.trial(Random(seed)), seed) == []


MMA = """
func.func @product(%a: memref<64x32xf16>, %b: memref<32x64xf16>, %d: memref<64x64xf32>)
    attributes {{frag.warps = array<i64: 2, 2>}} {{
  %s = memref.alloc() : {a}
  %u = memref.alloc() : {b}
  frag.copy async %a[0, 0] to %s[] : memref<64x32xf16> to {a}
  frag.copy async %b[0, 0] to %u[] : memref<32x64xf16> to {b}
  frag.commit
  frag.wait 0
  frag.barrier
  %x = frag.load %s[0, 0] : {a} -> !frag.tile<64x32xf16>
  %y = frag.load %u[0, 0] : {b} -> !frag.tile<32x64xf16>
  %zero = arith.constant 0.0 : f32
  %c = frag.fill %zero : !frag.tile<64x64xf32>
  %v = frag.mma %x, %y, %c : !frag.tile<64x32xf16>, !frag.tile<32x64xf16>, !frag.tile<64x64xf32>
    -> !frag.tile<64x64xf32>
  frag.store %v, %d[0, 0] : !frag.tile<64x64xf32>, memref<64x64xf32>
  func.return
}}
"""


@pytest.mark.parametrize(
    ("a", "b", "by_matrices", "by_chunks"),
    [
        ("row [64:40] col [32:1]", "row [32:72] col [64:1]", True, True),
        ("row [64:1] col [32:72]", "row [32:1] col [64:40]", True, False),
        ("row [64:33] col [32:1]", "row [32:65] col [64:1]", False, False),
        ("row [8:^72 8:512] col [32:1]", "row [2:512 4:^72 4:1024] col [64:1]", True, True),
        ("row [8:^36 4:^1 2:1024] col [32:^33]", "row [32:^3] col [64:32]", False, False),
    ],
)
def test_operands_of_mma_in_any_layout(a: str, b: str, by_matrices: bool, by_chunks: bool) -> None:
    """ldmatrix and cp.async serve what has 16 bytes side by side, other accesses the rest."""
    program = MMA.format(a=memref("64x32xf16", a), b=memref("32x64xf16", b))
    kernel = compile_program(program, target="sm_80")
    assert ("ldmatrix" in kernel.ptx) == by_matrices
    assert ("cp.async.cg" in kernel.ptx) == by_chunks
    _multiply(kernel)


def _multiply(kernel: Kernel, shapes: tuple[tuple[int, int], ...] = ((64, 32), (32, 64))) -> None:
    random = np.random.default_rng(1)
    left, right = (random.integers(-4, 5, shape).astype(np.float16) for shape in shapes)
    result = np.zeros((64, 64), np.float32)
    kernel.launch((1, 1, 1), (128, 1, 1), left, right, result, on="emulator")
    np.testing.assert_array_equal(result, left.astype(np.float32) @ right.astype(np.float32))


WGMMA = """
func.func @product(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %d: memref<64x64xf32>)
    attributes {{frag.warps = array<i64: 4, 1>}} {{
  %s = memref.alloc() : {a}
  %u = memref.alloc() : {b}
  frag.copy async %a[0, 0] to %s[] : memref<64x64xf16> to {a}
  frag.copy async %b[0, 0] to %u[] : memref<64x64xf16> to {b}
  frag.commit
  frag.wait 0
  frag.barrier
  %zero = arith.constant 0.0 : f32
  %c = frag.fill %zero : !frag.tile<64x64xf32>
  %v = frag.wgmma %s, %u, %c : {a}, {b}, !frag.tile<64x64xf32>
  frag.store %v, %d[0, 0] : !frag.tile<64x64xf32>, memref<64x64xf32>
  func.return
}}
"""


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (SWIZZLED, SWIZZLED),
        ("row [8:^72 8:1024] col [64:1]", "row [8:^72 8:1024] col [64:1]"),
        ("row [8:8 8:512] col [8:1 8:64]", "row [8:8 8:64] col [8:1 8:512]"),
        ("row [2:32 4:^72 8:256] col [32:1 2:2048]", "row [4:16 2:^72 8:128] col [16:1 4:1024]"),
    ],
    ids=["128 bytes", "rows apart", "core matrices", "64 and 32 bytes"],
)
def test_operands_of_wgmma_are_what_a_descriptor_says(a: str, b: str) -> None:
    program = WGMMA.format(a=memref("64x64xf16", a), b=memref("64x64xf16", b))
    _multiply(compile_program(program, target="sm_90a"), ((64, 64), (64, 64)))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("row [64:72] col [64:1]", "lies in shared memory without a swizzle"),
        ("row [64:^72] col [64:1]", "which no descriptor says"),
        ("row [8:^136 8:1024] col [64:1]", "which no descriptor says"),
        ("row [8:^72 4:512 2:4096] col [64:1]", "do not stand equally far from each other"),
    ],
)
def test_other_operands_of_wgmma_are_refused(layout: str, message: str) -> None:
    program = WGMMA.format(a=memref("64x64xf16", layout), b=memref("64x64xf16", SWIZZLED))
    with pytest.raises(FragirError) as error:
        compile_program(program, target="sm_90a")
    assert message in str(error.value)
    assert "operand a of wgmma" in str(error.value)


def test_stacks_are_viewed_where_their_matrices_are_alike() -> None:
    with fragir.kernel("stacks", warps=(1, 1)) as k:
        a = k.memory("a", fragir.f16, (2, 16, 64))
        d = k.memory("d", fragir.f16, (16, 64))
        stack = k.shared(
            (2, 16, 64), fragir.f16, layout="stage [2:1024] row [8:^72 2:512] col [64:1]"
        )
        for stage in range(2):
            k.copy(a, (stage, 0, 0), stack, (stage,))
        k.barrier()
        one = k.view(stack, (1,))
        assert str(one.type) == memref("16x64xf16", "row [8:^72 2:512] col [64:1]")
        k.store(k.load(one, (0, 0), shape=(16, 64)), d, (0, 0))
    array = np.arange(2 * 16 * 64, dtype=np.float16).reshape(2, 16, 64)
    result = np.zeros((16, 64), np.float16)
    compile_program(k.module, target="sm_80").launch(
        (1, 1, 1), (32, 1, 1), array, result, on="emulator"
    )
    np.testing.assert_array_equal(result, array[1])


def test_matrices_of_a_stack_that_are_not_alike_have_no_view() -> None:
    with fragir.kernel("mixed") as k:
        mixed = k.shared((2, 8, 8), fragir.f16, layout="stage [2:^72] row [8:8] col [8:1]")
        with pytest.raises(FragirError, match=r"of a stack laid out by .+ are not alike"):
            k.view(mixed, (0,))
