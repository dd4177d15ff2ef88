"""Programs that run one instruction's product in many blocks, each on matrices of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir import compile as compile_program
from fragir.compiler import Kernel, Place
from fragir.reference.bounded import exactly
from fragir.reference.formats import INTEGERS, decode, encode, storage
from fragir.reference.tensor_cores import chains, dot
from fragir.toolchain import driver

Array = npt.NDArray[Any]

DEEP = bool(os.environ.get("FRAGIR_DEEP"))
PLACES: tuple[Place, ...] = ("emulator",) if driver.available() is not None else ("emulator", "gpu")
# types of the IR -> names of the PTX ISA
NAMES = {
    "f8E4M3FN": "e4m3",
    "f8E5M2": "e5m2",
    "si8": "s8",
    "ui8": "u8",
    "i32": "s32",
}


def name_of(element: str) -> str:
    """The PTX ISA's name of a type of the IR."""
    return NAMES.get(element, element)


@dataclass(frozen=True)
class Family:
    """One mma.sync: shape, types of A, B, C and D, how many products, row and col."""

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    products: int = 1
    orders: tuple[str, ...] = ()
    target: str = "sm_80"

    @property
    def instruction(self) -> str:
        """The short name."""
        words = (f"m{self.m}n{self.n}k{self.k}", name_of(self.a), *self.orders)
        return ".".join(words)

    @property
    def elements(self) -> tuple[str, str, str, str]:
        return self.a, self.b, self.c, self.d

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of A, B, C and D."""
        more = (self.products,) if self.products > 1 else ()
        shapes = ((self.m, self.k), (self.k, self.n), (self.m, self.n), (self.m, self.n))
        return tuple((*shape, *more) for shape in shapes)

    def program(self, blocks: int) -> str:
        """Block b multiplies A[b] by B[b], adds C[b] and writes D[b]."""
        memory: list[str] = []
        tiles: list[str] = []
        for shape, element in zip(self.shapes(), self.elements, strict=True):
            extents = "x".join(map(str, shape))
            memory.append(f"memref<{blocks}x{extents}x{element}>")
            tiles.append(f"!frag.tile<{extents}x{element}>")
        at = ", ".join(["%block", *["0"] * len(self.shapes()[0])])
        arguments = ", ".join(f"%{x}: {t}" for x, t in zip("abcd", memory, strict=True))
        loads = "\n".join(
            f"  %t{x} = frag.load %{x}[{at}] : {m} -> {t}"
            for x, m, t in zip("abc", memory, tiles, strict=False)
        )
        return f"""
func.func @family({arguments}) attributes {{frag.grid = #frag.grid<{blocks}>}} {{
  %block = frag.block_id x
{loads}
  %sum = frag.mma %ta, %tb, %tc using "{self.instruction}" : {", ".join(tiles[:3])} -> {tiles[3]}
  frag.store %sum, %d[{at}] : {tiles[3]}, {memory[3]}
  func.return
}}
"""


def _mma() -> list[Family]:
    result = [
        Family(8, 8, 4, "f16", "f16", c, d, 4, (row, col))
        for row in ("row", "col")
        for col in ("row", "col")
        for c, d in (("f16", "f16"), ("f32", "f32"), ("f16", "f32"))
    ]
    result += [
        Family(8, 8, 4, "f16", "f16", c, c, 4, ("row", "col"), "sm_75") for c in ("f16", "f32")
    ]
    result.append(Family(8, 8, 4, "f64", "f64", "f64", "f64"))
    result += [Family(16, 8, k, "f64", "f64", "f64", "f64", target="sm_90") for k in (4, 8, 16)]
    for k in (8, 16):
        result += [Family(16, 8, k, "f16", "f16", c, c) for c in ("f16", "f32")]
        result.append(Family(16, 8, k, "bf16", "bf16", "f32", "f32"))
    result += [Family(16, 8, k, "tf32", "tf32", "f32", "f32") for k in (4, 8)]
    for m, k in ((8, 16), (16, 16), (16, 32)):
        target = "sm_75" if m == 8 else "sm_80"
        result += [
            Family(m, 8, k, a, b, "i32", "i32", target=target)
            for a in ("si8", "ui8")
            for b in ("si8", "ui8")
        ]
    result += [
        Family(16, 8, k, a, b, c, c, target="sm_89")
        for k in (16, 32)
        for a in ("f8E4M3FN", "f8E5M2")
        for b in ("f8E4M3FN", "f8E5M2")
        for c in ("f16", "f32")
    ]
    return result


FAMILIES = _mma()


@cache
def compiled(family: Family, blocks: int, target: str) -> Kernel:
    """A family's kernel; ptxas must have nothing to say of it."""
    kernel = compile_program(family.program(blocks), target=target)
    assert kernel.assembled.warnings == []
    return kernel


def multiply(kernel: Kernel, arrays: Sequence[Array], place: Place, blocks: int) -> Array:
    """Runs the first blocks on copies; the last array as it is afterwards."""
    arguments = [array.copy() for array in arrays]
    report = kernel.launch(blocks, None, *arguments, on=place)
    assert report is None or report.findings == []
    return arguments[-1]


def random(rng: np.random.Generator, element: str, shape: tuple[int, ...]) -> Array:
    """Elements in their storage type: normal floats, integers of the whole range."""
    name = name_of(element)
    if name in INTEGERS:
        low, high = {"s8": (-128, 128), "u8": (0, 256)}.get(name, (-(2**20), 2**20))
        return encode(rng.integers(low, high, shape), name)
    return encode(rng.standard_normal(shape), name)


def small(rng: np.random.Generator, element: str, shape: tuple[int, ...]) -> Array:
    """Integers of which every product and sum here is exact in every type."""
    low = 0 if element == "ui8" else -2
    return encode(rng.integers(low, 3, shape), name_of(element))


def empty(element: str, shape: tuple[int, ...]) -> Array:
    """Zeros in the storage type."""
    return np.zeros(shape, storage(name_of(element)))


def one(element: str) -> Any:
    """The number one in the storage type."""
    return encode(np.array(1), name_of(element))[()]


def exact(family: Family, a: Array, b: Array, c: Array) -> Array:
    """`a b + c` for [block, ...] arrays, in int64 or float64."""
    kind = np.int64 if name_of(family.d) in INTEGERS else np.float64
    values = [
        decode(x, name_of(e)).astype(kind) for x, e in zip((a, b, c), family.elements, strict=False)
    ]
    return np.einsum("bmk...,bkn...->bmn...", values[0], values[1]) + values[2]


def assert_within_bound(family: Family, arrays: Sequence[Array], found: Array, target: str) -> None:
    """Random results against float64 with the bound of docs/accuracy.md; integers exactly."""
    names = [name_of(e) for e in family.elements]
    if names[3] in INTEGERS:
        wanted = exact(family, *arrays[:3]).astype(np.int32)
        np.testing.assert_array_equal(found, wanted)
        return
    ways = chains(target, names[0], names[3], family.instruction)
    a, b, c = (decode(x, n) for x, n in zip(arrays[:3], names, strict=False))
    if family.products > 1:  # one more stack
        a, b, c, found = (np.moveaxis(x, -1, 1) for x in (a, b, c, found))
    types = names[0], names[1], names[3]
    reference = dot(exactly(a), exactly(b), exactly(c), types, ways, names[2])
    error = np.abs(decode(np.ascontiguousarray(found), names[3]) - reference.value)
    assert np.isfinite(reference.bound).all()
    assert (error <= reference.bound).all(), float((error - reference.bound).max())
    # a bound that says nothing proves nothing
    assert (reference.bound <= 0.05 * (np.abs(a) @ np.abs(b) + np.abs(c)).max()).all()
