"""Products that are measured on a GPU: sizes, types, their data, and how right a result is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Type(NamedTuple):
    """Elements of A and B, of C, and whether B lies as N x K.

    `lost` bounds what a product's sum loses, of the sum of magnitudes: the fraction bits that
    tensor cores keep while they add (fp8: 13 of them, arXiv 2412.19437, section 3.3.2), with room.
    """

    element: str
    result: str
    turned: bool
    rounding: float
    lost: float


TYPES = {
    "bf16": Type("bf16", "bf16", False, 2.0**-8, 2.0**-16),
    "f16": Type("f16", "f16", False, 2.0**-10, 2.0**-16),
    "tf32": Type("tf32", "f32", True, 2.0**-10, 2.0**-16),
    "e4m3": Type("f8E4M3FN", "bf16", True, 2.0**-8, 2.0**-11),
}
"""tf32 takes numbers that are rounded to tf32 already."""


class Case(NamedTuple):
    """A product of M x K and K x N."""

    kind: str
    type: str
    m: int
    n: int
    k: int

    @property
    def key(self) -> str:
        return f"{self.type} {self.m}x{self.n}x{self.k}"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k


def cases(types: tuple[str, ...] = ("bf16", "f16", "e4m3", "tf32")) -> list[Case]:
    """The cases in the order of what they tell: if time runs out, the last are left out."""
    square = [8192, 4096, 2048, 16384, 1024, 512]
    other = [
        ("LLM", 4096, 10240, 8192),  # Llama 3 70B: queries, keys and values together
        ("LLM", 4096, 8192, 28672),  # its MLP, down
        ("LLM", 4096, 57344, 8192),  # its MLP, gate and up together
        ("LLM", 64, 8192, 8192),  # decoding 64 sequences
        ("tall", 65536, 1024, 1024),
        ("wide", 1024, 65536, 1024),
        ("deep", 1024, 1024, 65536),
        ("odd", 4095, 4097, 4104),  # no multiples of a tile
    ]
    found = [Case("square", types[0], n, n, n) for n in square]
    found += [Case(kind, types[0], *sizes) for kind, *sizes in other]  # type: ignore[arg-type]
    for kind in types[1:]:
        found += [Case("square", kind, n, n, n) for n in square[:3]]
        found += [Case("LLM", kind, 4096, 10240, 8192)]
    return found


def program(case: Case, attributes: str = "") -> str:
    """The product as fragir takes it; `attributes` such as `tile = array<i64: 128, 256, 64>`. Where
    they cut sums into parts, there is memory for these."""
    kind = TYPES[case.type]
    b = (case.n, case.k) if kind.turned else (case.k, case.n)
    types = [
        f"memref<{rows}x{cols}x{element}>"
        for (rows, cols), element in zip(
            ((case.m, case.k), b, (case.m, case.n)),
            (kind.element, kind.element, kind.result),
            strict=True,
        )
    ]
    given = f" {{{attributes}}}" if attributes else ""
    turned = " transposed" if kind.turned else ""
    through, memory, arguments = "", "", ""
    if "split_k" in attributes or "stream_k" in attributes:
        partial, counts = f"memref<?x{case.m}x{case.n}xf32>", "memref<?x?xi32>"
        through, memory = " through %partial, %counts", f" through {partial}, {counts}"
        arguments = f", %partial: {partial}, %counts: {counts}"
    return (
        f"func.func @gemm(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}{arguments}) {{\n"
        f"  frag.matmul %a, %b{turned} into %c{through}{given}"
        f" : {types[0]}, {types[1]} into {types[2]}{memory}\n"
        "  func.return\n}\n"
    )


# Numbers -----------------------------------------------------------------------------------------


def normal(shape: tuple[int, int], type: str, seed: int) -> Array:
    """Values of normal(0, 1) as the bits of a type: uint16, uint8 or float32 and float16.

    Beyond 2^24 values the same ones come again: what matters is that bits toggle as they do.
    """
    count = shape[0] * shape[1]
    drawn = np.random.default_rng(seed).standard_normal(min(count, 1 << 24), np.float32)
    bits = encode(drawn, type)
    return np.resize(bits, count).reshape(shape)


def encode(values: Array, type: str) -> Array:
    """Floats as a type's bits, rounded to nearest even."""
    if type == "f16":
        return values.astype(np.float16)
    if type == "f32":
        return values.astype(np.float32)
    words = values.astype(np.float32).view(np.uint32)
    if type == "bf16":
        return ((words + 0x7FFF + (words >> 16 & 1)) >> 16).astype(np.uint16)
    if type == "tf32":
        return ((words + 0xFFF + (words >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    return _e4m3(values)


def _e4m3(values: Array) -> Array:
    """The nearest of the 127 magnitudes of e4m3, with the sign above it; 448 is the largest."""
    codes = np.arange(127)
    magnitudes = decode(codes.astype(np.uint8), "f8E4M3FN").astype(np.float32)
    edges = (magnitudes[:-1] + magnitudes[1:]) / 2
    found = np.searchsorted(edges, np.abs(values).astype(np.float32)).astype(np.uint8)
    return found | (np.signbit(values).astype(np.uint8) << 7)


def decode(bits: Array, type: str) -> Array:
    """A type's bits as float64."""
    if type == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if type in ("f8E4M3FN", "e4m3"):
        exponent, fraction = (bits >> 3 & 15).astype(np.int64), (bits & 7).astype(np.float64)
        least = exponent == 0
        size = np.where(least, fraction / 8, 1 + fraction / 8) * 2.0 ** (
            np.where(least, 1, exponent) - 7
        )
        return np.where(bits & 128, -size, size)
    return bits.astype(np.float64)


def wrong(case: Case, a: Array, b: Array, c: Array, *, seed: int = 0, sample: int = 48) -> str:
    """Empty where a sample of C's elements is A B as far as rounding allows, else what is wrong."""
    kind = TYPES[case.type]
    draw = np.random.default_rng(seed)
    rows = np.unique(draw.integers(0, case.m, sample))
    cols = np.unique(draw.integers(0, case.n, sample))
    left = decode(a[rows], kind.element)
    right = decode(b[cols], kind.element).T if kind.turned else decode(b[:, cols], kind.element)
    exact = left @ right
    found = decode(c[np.ix_(rows, cols)], kind.result)
    bound = kind.rounding * np.abs(exact) + kind.lost * (np.abs(left) @ np.abs(right))
    bad = ~(np.abs(found - exact) <= bound)
    if not bad.any():
        return ""
    i, j = (int(index[0]) for index in np.nonzero(bad))
    return (
        f"{bad.sum()} of {bad.size} elements are wrong: C[{rows[i]},{cols[j]}] is {found[i, j]:g},"
        f" not {exact[i, j]:g} +- {bound[i, j]:.2g}"
    )
