"""frag.mma on elements of 8 bits and less: what runs is exact, what does not is refused clearly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import fragir
from fragir.cli.main import main
from fragir.compiler import Kernel
from fragir.errors import FragirError

Array = NDArray[Any]


def program(m: int, n: int, k: int, a: str, b: str, c: str, load_b: str = "rows") -> str:
    """D = A B + C by one warp; B lies as B^T, its K running along the rows."""
    tile_b = f"!frag.tile<{k}x{n}x{b}>"
    memory, word = {
        "rows": (f"memref<{n}x{k}x{b}>", " transposed"),
        "strided": (f"memref<{k}x{n}x{b}, strided<[1, {k}]>>", ""),
        "columns": (f"memref<{k}x{n}x{b}>", ""),
    }[load_b]
    tile_a, tile_c = f"!frag.tile<{m}x{k}x{a}>", f"!frag.tile<{m}x{n}x{c}>"
    memory_c = f"memref<{m}x{n}x{c}>"
    return f"""
    func.func @f(%a: memref<{m}x{k}x{a}>, %b: {memory}, %c: {memory_c}, %d: {memory_c}) {{
      %0 = frag.load %a[0, 0] : memref<{m}x{k}x{a}> -> {tile_a}
      %1 = frag.load %b[0, 0]{word} : {memory} -> {tile_b}
      %2 = frag.load %c[0, 0] : {memory_c} -> {tile_c}
      %3 = frag.mma %0, %1, %2 : {tile_a}, {tile_b}, {tile_c} -> {tile_c}
      frag.store %3, %d[0, 0] : {tile_c}, {memory_c}
      func.return
    }}
    """


def compiled(target: str, *shape_and_types: Any, **options: Any) -> Kernel:
    return fragir.compile(program(*shape_and_types, **options), target=target)


def packed(values: Array, bits: int) -> Array:
    """[rows, columns] integers as bytes, the first one lowest."""
    per = 8 // bits
    grouped = (values & ((1 << bits) - 1)).reshape(values.shape[0], -1, per)
    return (grouped << (bits * np.arange(per))).sum(-1).astype(np.uint8)


RANGES = {"i4": (-8, 8), "si4": (-8, 8), "ui4": (0, 16), "ui1": (0, 2)}


@pytest.mark.parametrize("load_b", ["rows", "strided", "columns"])
@pytest.mark.parametrize(
    ("target", "m", "n", "k", "a", "b", "mnemonic"),
    [
        ("sm_80", 16, 8, 64, "si4", "ui4", "m16n8k64.row.col.s32.s4.u4.s32"),
        ("sm_80", 32, 16, 128, "i4", "i4", "m16n8k64.row.col.s32.s4.s4.s32"),
        ("sm_80", 16, 8, 32, "ui4", "si4", "m16n8k32.row.col.s32.u4.s4.s32"),
        ("sm_75", 8, 8, 32, "ui4", "ui4", "m8n8k32.row.col.s32.u4.u4.s32"),
        ("sm_80", 16, 8, 256, "ui1", "ui1", "m16n8k256.row.col.s32.b1.b1.s32.and.popc"),
        ("sm_80", 16, 16, 128, "ui1", "ui1", "m16n8k128.row.col.s32.b1.b1.s32.and.popc"),
    ],
)
def test_integers_smaller_than_a_byte(
    target: str, m: int, n: int, k: int, a: str, b: str, mnemonic: str, load_b: str
) -> None:
    kernel = compiled(target, m, n, k, a, b, "i32", load_b=load_b)
    assert mnemonic in kernel.ptx
    rng = np.random.default_rng(0)
    left, right = rng.integers(*RANGES[a], (m, k)), rng.integers(*RANGES[b], (n, k))
    c = rng.integers(-100, 100, (m, n)).astype(np.int32)
    d = np.zeros_like(c)
    bits = int(a[-1])
    given = packed(right.T if load_b == "columns" else right, bits)
    given = given.T if load_b == "strided" else np.ascontiguousarray(given)
    kernel(packed(left, bits), given, c, d, on="emulator")
    assert np.array_equal(d, left @ right.T + c)
    assert any("do not share a byte" in note for note in kernel.notes) == (load_b == "columns")


FLOATS: dict[str, Callable[[Array], Array]] = {
    "f8E4M3FN": lambda x: x.astype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": lambda x: x.astype(ml_dtypes.float8_e5m2),
    "f6E3M2FN": lambda x: x.astype(ml_dtypes.float6_e3m2fn),
    "f6E2M3FN": lambda x: x.astype(ml_dtypes.float6_e2m3fn),
    "f4E2M1FN": lambda x: x.astype(ml_dtypes.float4_e2m1fn),
}


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        ("f6E3M2FN", "f6E3M2FN", "f32"),
        ("f4E2M1FN", "f4E2M1FN", "f32"),
        ("f4E2M1FN", "f8E4M3FN", "f16"),
        ("f8E5M2", "f6E2M3FN", "f32"),
        ("f8E4M3FN", "f8E5M2", "f32"),
    ],
)
def test_small_floats(a: str, b: str, c: str) -> None:
    """Numbers that every type has; sums are exact."""
    kernel = compiled("sm_120a", 16, 8, 64, a, b, c)
    assert ("kind::f8f6f4" in kernel.ptx) == bool({a, b} - {"f8E4M3FN", "f8E5M2"})
    rng = np.random.default_rng(1)
    numbers = np.array([-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2])
    left, right = rng.choice(numbers, (16, 64)), rng.choice(numbers, (8, 64))
    dtype = np.float16 if c == "f16" else np.float32
    addend = rng.integers(-4, 5, (16, 8)).astype(dtype)
    result = np.zeros_like(addend)
    kernel(FLOATS[a](left), FLOATS[b](right), addend, result, on="emulator")
    assert np.array_equal(result, (left @ right.T + addend).astype(dtype))


@pytest.mark.parametrize(
    ("target", "mnemonic"),
    [("sm_80", "m8n8k4.row.col.f64"), ("sm_90", "m16n8k16.row.col.f64")],
)
def test_f64_takes_the_largest_that_the_target_has(target: str, mnemonic: str) -> None:
    kernel = compiled(target, 16, 8, 16, "f64", "f64", "f64")
    assert mnemonic in kernel.ptx
    rng = np.random.default_rng(2)
    left, right = rng.integers(-9, 9, (16, 16)) * 1.0, rng.integers(-9, 9, (8, 16)) * 1.0
    c, d = np.ones((16, 8)), np.zeros((16, 8))
    kernel(left, right, c, d, on="emulator")
    assert np.array_equal(d, left @ right.T + c)


REFUSED: list[tuple[str, tuple[Any, ...], str, str]] = [
    ("sm_80", (16, 8, 64, "si4", "si8", "i32"), "rows", "no instruction multiplies s4 by s8"),
    ("sm_75", (8, 8, 128, "ui1", "ui1", "i32"), "rows", "sm_75 has no mma"),
    ("sm_89", (16, 8, 32, "f6E3M2FN", "f6E3M2FN", "f32"), "rows", "sm_89 has no mma"),
]


@pytest.mark.parametrize(("target", "arguments", "load_b", "words"), REFUSED)
def test_refusals(target: str, arguments: tuple[Any, ...], load_b: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        compiled(target, *arguments, load_b=load_b)


def test_packed_arrays_are_bytes() -> None:
    kernel = compiled("sm_80", 16, 8, 64, "si4", "si4", "i32")
    d = np.zeros((16, 8), np.int32)
    with pytest.raises(FragirError, match="holds int8, the kernel takes uint8"):
        kernel(np.zeros((16, 64), np.int8), np.zeros((8, 32), np.uint8), d, d.copy())


NOTES = [
    ("sm_90", ("f8E4M3FN", "f8E4M3FN", "f32"), 32, "e4m3.e4m3.f32 is emulated on sm_90"),
    ("sm_90", ("si4", "si4", "i32"), 64, "s4.s4.s32 is emulated on sm_90"),
    ("sm_100", ("f64", "f64", "f64"), 16, "is split on sm_100"),
    ("sm_89", ("f8E4M3FN", "f8E4M3FN", "f32"), 32, ""),
    ("sm_80", ("f16", "f16", "f32"), 16, ""),
]


@pytest.mark.parametrize(("target", "types", "k", "words"), NOTES)
def test_the_compiler_says_what_is_not_native(
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    target: str,
    types: tuple[str, str, str],
    k: int,
    words: str,
) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(program(16, 8, k, *types))
    assert main(["compile", str(path), "--target", target]) == 0
    captured = capfd.readouterr()
    assert f".target {target}" in captured.out
    if words:
        assert captured.err.startswith("note: ")
        assert words in captured.err
        assert captured.err.count("\n") == 1
    else:
        assert captured.err == ""


HEAD = """func.func @f(%a: memref<64x64xsi4>, %b: memref<64x64xsi4>, %d: memref<64x64xi32>,
    %t: memref<64x64xsi4, strided<[1, 64]>>, %u: memref<64x64xui1>) {"""
WHOLE = "memref<64x64xsi4>, memref<64x64xsi4> into memref<64x64xi32>"
PROGRAMS = {
    "b1 is not converted to s32": """
        %0 = frag.load %u[0, 0] : memref<64x64xui1> -> !frag.tile<64x64xui1>
        %1 = frag.cast %0 : !frag.tile<64x64xui1> -> !frag.tile<64x64xi32>
        frag.store %1, %d[0, 0] : !frag.tile<64x64xi32>, memref<64x64xi32>""",
    "copied where its last dimension is contiguous": """
        %s = memref.alloc() : memref<64x64xsi4, #frag.shared<swizzle = 32>>
        frag.copy %t[0, 0] to %s[] : memref<64x64xsi4, strided<[1, 64]>> to
            memref<64x64xsi4, #frag.shared<swizzle = 32>>""",
    "does not end at a whole byte": "%s = memref.alloc() : memref<64x3xsi4, #frag.shared>",
    "frag.matmul does not stage": f"frag.matmul %a, %b into %d : {WHOLE}",
    "an index along the bytes is 3 elements": """
        %0 = frag.load %a[0, 3] : memref<64x64xsi4> -> !frag.tile<16x32xsi4>
        frag.store %0, %b[0, 0] : !frag.tile<16x32xsi4>, memref<64x64xsi4>""",
}


@pytest.mark.parametrize("words", PROGRAMS)
def test_what_sub_byte_elements_cannot_do(words: str) -> None:
    with pytest.raises(FragirError, match=words):
        fragir.compile(f"{HEAD}\n{PROGRAMS[words]}\nfunc.return\n}}")


def test_sparse_products_have_no_operation_yet() -> None:
    """Without metadata they would multiply the wrong elements."""
    text = """
    func.func @f(%a: vector<8xf16>, %b: vector<8xf16>, %c: vector<4xf32>) {
      %d = ptx.mma "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32" %a, %b, %c
        : vector<8xf16>, vector<8xf16>, vector<4xf32> -> vector<4xf32>
      func.return
    }
    """
    with pytest.raises(FragirError, match="takes more than a, b and c"):
        fragir.compile(text)


@pytest.mark.parametrize(
    ("word", "shape", "element"),
    [
        ("load", "33x7", "ui4"),
        ("load", "2x3x4x5", "i4"),
        ("load", "4x12", "ui1"),
        ("store", "33x7", "i4"),
    ],
)
def test_a_tile_that_ends_within_a_byte(word: str, shape: str, element: str) -> None:
    """Its rows are told, not the layout that nobody wrote."""
    *leading, columns = shape.split("x")
    tile, memory = f"!frag.tile<{shape}x{element}>", f"memref<{'x'.join(leading)}x16x{element}>"
    at = ", ".join("0" for _ in shape.split("x"))
    lines = [f"%t = frag.load %a[{at}] : {memory} -> {tile}"]
    if word == "store":
        lines = [
            f"%z = arith.constant 0 : {element}",
            f"%t = frag.fill %z : {tile}",
            f"frag.store %t, %a[{at}] : {tile}, {memory}",
        ]
    text = "\n".join((f"func.func @f(%a: {memory}) {{", *lines, "func.return }"))
    with pytest.raises(FragirError, match=f"frag.{word}: {columns} elements of {element} in a row"):
        fragir.compile(text, target="sm_80")
