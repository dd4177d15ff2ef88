"""frag.mma_sparse: packed A and metadata from memory, exact results, refusals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import fragir
from fragir.errors import FragirError
from fragir.toolchain import ptxas

Array = NDArray[Any]

# Type of A -> (elements of K in a chunk, in how many parts, how many parts are kept).
CHUNKS = {
    "f16": (4, 4, 2),
    "bf16": (4, 4, 2),
    "tf32": (2, 2, 1),
    "si8": (4, 4, 2),
    "si4": (8, 4, 2),
    "f8E4M3FN": (4, 4, 2),
}


def program(m: int, n: int, k: int, a: str, d: str, nibbles: int, warps: str = "") -> str:
    """D = A B + C; B lies as B^T."""
    types = {
        "a": (f"{m}x{k // 2}x{a}", f"{m}x{k // 2}x{a}", ""),
        "b": (f"{n}x{k}x{a}", f"{k}x{n}x{a}", " transposed"),
        "c": (f"{m}x{n}x{d}", f"{m}x{n}x{d}", ""),
        "e": (f"{m}x{nibbles}xui4", f"{m}x{nibbles}xui4", ""),
    }
    arguments = ", ".join(f"%{name}: memref<{memory}>" for name, (memory, _, _) in types.items())
    loads = "\n".join(
        f"%t{name} = frag.load %{name}[0, 0]{word} : memref<{memory}> -> !frag.tile<{tile}>"
        for name, (memory, tile, word) in types.items()
    )
    tiles = ", ".join(f"!frag.tile<{tile}>" for _, tile, _ in types.values())
    c = types["c"][1]
    return f"""
    func.func @f({arguments}, %d: memref<{c}>){warps} {{
      {loads}
      %r = frag.mma_sparse %ta, %tb, %tc, %te : {tiles} -> !frag.tile<{c}>
      frag.store %r, %d[0, 0] : !frag.tile<{c}>, memref<{c}>
      func.return
    }}
    """


def sparse(
    rng: np.random.Generator, rows: int, k: int, values: Array, a: str
) -> tuple[Array, Array, Array]:
    """A sparse matrix, what is kept of it, and a nibble for every chunk."""
    length, parts, kept = CHUNKS[a]
    each = length // parts
    full = np.zeros((rows, k), np.int64)
    packed = np.zeros((rows, k // 2), np.int64)
    nibbles = np.zeros((rows, k // length), np.int64)
    for row in range(rows):
        for chunk in range(k // length):
            chosen = np.sort(rng.choice(parts, kept, replace=False))
            numbers = rng.choice(values, (kept, each))
            for position, part in enumerate(chosen):
                at = chunk * length + part * each
                full[row, at : at + each] = numbers[position]
                start = (chunk * kept + position) * each
                packed[row, start : start + each] = numbers[position]
            if parts == 2:
                nibbles[row, chunk] = 0b0100 if chosen[0] == 0 else 0b1110
            else:
                nibbles[row, chunk] = chosen[0] | chosen[1] << 2
    return full, packed, nibbles


def nibble_bytes(values: Array) -> Array:
    """Two to a byte, the first one lowest."""
    return (values[:, ::2] & 15 | (values[:, 1::2] & 15) << 4).astype(np.uint8)


def stored(values: Array, element: str) -> Array:
    if element == "si4":
        return nibble_bytes(values)
    dtypes: dict[str, Any] = {
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "tf32": np.float32,
        "si8": np.int8,
        "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    }
    return values.astype(dtypes[element])


@pytest.mark.parametrize(
    ("target", "m", "n", "k", "a", "d", "mnemonic"),
    [
        ("sm_80", 16, 8, 32, "f16", "f32", "m16n8k32.row.col.f32.f16.f16.f32"),
        ("sm_80", 16, 8, 16, "f16", "f16", "m16n8k16.row.col.f16.f16.f16.f16"),
        ("sm_80", 32, 24, 64, "bf16", "f32", "m16n8k32.row.col.f32.bf16.bf16.f32"),
        ("sm_80", 16, 8, 16, "tf32", "f32", "m16n8k16.row.col.f32.tf32.tf32.f32"),
        ("sm_80", 32, 8, 8, "tf32", "f32", "m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("sm_80", 16, 16, 128, "si8", "i32", "m16n8k64.row.col.s32.s8.s8.s32"),
        ("sm_80", 16, 8, 32, "si8", "i32", "m16n8k32.row.col.s32.s8.s8.s32"),
        ("sm_80", 16, 8, 128, "si4", "i32", "m16n8k128.row.col.s32.s4.s4.s32"),
        ("sm_80", 16, 8, 64, "si4", "i32", "m16n8k64.row.col.s32.s4.s4.s32"),
        ("sm_89", 16, 8, 64, "f8E4M3FN", "f32", "m16n8k64.row.col.f32.e4m3.e4m3.f32"),
    ],
)
def test_products(target: str, m: int, n: int, k: int, a: str, d: str, mnemonic: str) -> None:
    nibbles = k // CHUNKS[a][0]
    kernel = fragir.compile(program(m, n, k, a, d, nibbles), target=target)
    assert f"mma.sp::ordered_metadata.sync.aligned.{mnemonic}" in kernel.ptx
    ptxas.assemble(kernel.ptx, target)
    rng = np.random.default_rng(0)
    values = np.array([-3, -2, -1, 1, 2, 3])
    full, packed, metadata = sparse(rng, m, k, values, a)
    right = rng.integers(-2, 3, (n, k))
    dtype: Any = {"f32": np.float32, "f16": np.float16, "i32": np.int32}[d]
    c = rng.integers(-5, 6, (m, n)).astype(dtype)
    result = np.zeros_like(c)
    given = stored(packed, a), stored(right, a), c, nibble_bytes(metadata), result
    kernel(*given, on="emulator")
    assert np.array_equal(result, (full @ right.T + c).astype(dtype))


def test_several_warps() -> None:
    """Each warp reads the metadata of its own rows."""
    text = program(64, 32, 64, "f16", "f32", 16, " attributes {frag.warps = array<i64: 2, 2>}")
    kernel = fragir.compile(text, target="sm_80")
    assert kernel.block == (128, 1, 1)
    rng = np.random.default_rng(1)
    full, packed, metadata = sparse(rng, 64, 64, np.array([-1, 1, 2]), "f16")
    right = rng.integers(-2, 3, (32, 64))
    c, result = np.ones((64, 32), np.float32), np.zeros((64, 32), np.float32)
    half = np.float16
    kernel(packed.astype(half), right.astype(half), c, nibble_bytes(metadata), result)
    assert np.array_equal(result, (full @ right.T + 1).astype(np.float32))


@pytest.mark.parametrize(
    ("target", "arguments", "words"),
    [
        ("sm_80", (16, 8, 32, "f16", "f32", 4), "16x8xui4"),
        ("sm_80", (16, 8, 24, "f16", "f32", 6), "no sparse mma of f16 divides 16x8x24"),
        ("sm_80", (16, 8, 32, "f64", "f64", 8), "no sparse mma multiplies f64"),
        ("sm_75", (16, 8, 32, "f16", "f32", 8), "sm_75 has no mma.sp"),
        ("sm_80", (16, 8, 64, "f8E4M3FN", "f32", 16), "sm_80 has no mma.sp"),
    ],
)
def test_refusals(target: str, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(FragirError, match=words):
        fragir.compile(program(*arguments), target=target)
