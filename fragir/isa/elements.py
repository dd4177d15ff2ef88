"""Element types of matrix operands, and how registers hold them (PTX ISA 9.2, section 9.7.14.5).

Sub-byte floating-point types stand in 8-bit containers in `.kind::f8f6f4` and
`.kind::mxf8f6f4`, and in the 8-bit matrix copies; packed with 4 bits in `.kind::mxf4*`.
"""

from __future__ import annotations

BITS: dict[str, int] = {
    "b1": 1,
    "s4": 4,
    "u4": 4,
    "e2m1": 4,
    "e2m3": 6,
    "e3m2": 6,
    "s8": 8,
    "u8": 8,
    "e4m3": 8,
    "e5m2": 8,
    "ue8m0": 8,
    "ue4m3": 8,
    "b8": 8,
    "b8x16.b6x16_p32": 8,
    "b8x16.b4x16_p64": 8,
    "f16": 16,
    "bf16": 16,
    "b16": 16,
    "tf32": 32,
    "f32": 32,
    "s32": 32,
    "u32": 32,
    "b32": 32,
    "f64": 64,
}

FLOAT8 = ("e4m3", "e5m2")
FLOAT6_4 = ("e3m2", "e2m3", "e2m1")
FLOAT8_6_4 = (*FLOAT8, *FLOAT6_4)

Signature = tuple[str, ...]  # D, A, B, C (wgmma: D, A, B) and the type of block scales, if any


def pairs(first: tuple[str, ...], d: tuple[str, ...]) -> tuple[Signature, ...]:
    """Every signature with A and B any of `first` and C like D."""
    return tuple((t, a, b, t) for t in d for a in first for b in first)


_WORD32 = ("b32", "f32", "s32", "u32", "f16x2")

# What ptxas takes as the declared type of a register, by the element type it holds.
ACCEPTS: dict[str, tuple[str, ...]] = {
    "f16": ("b32", "f16x2"),
    "bf16": ("b32", "f16x2"),
    "tf32": ("b32",),
    "f32": ("f32", "b32"),
    "s32": ("s32", "u32", "b32"),
    "f64": ("f64", "b64"),
}


def per_register(element: str, container: int = 0) -> int:
    """Elements in one register; `container` overrides the element's own width in bits."""
    return max(1, 32 // (container or BITS[element]))


def register_type(element: str) -> str:
    """The PTX type to declare for a register that holds `element`s."""
    return element if element in ("f32", "s32", "f64") else "b32"


def accepts(element: str) -> tuple[str, ...]:
    """Every declared register type ptxas takes for fragments of this element type."""
    return ACCEPTS.get(element, _WORD32)
