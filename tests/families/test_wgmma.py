"""wgmma from matrix IR to ptxas and the emulator: every N, A from registers and shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from fragir import compile as compile_program
from fragir.compiler import Kernel, Place
from fragir.reference.formats import decode

from .programs import (
    DEEP,
    PLACES,
    Array,
    Family,
    assert_within_bound,
    empty,
    exact,
    multiply,
    name_of,
    one,
    random,
    small,
)

TARGET = "sm_90a"
K = {"f16": 16, "bf16": 16, "tf32": 8}
BITS = {"f16": 16, "bf16": 16, "tf32": 32}


@dataclass(frozen=True)
class Wgmma(Family):
    """One warpgroup's product; `k_major` says that K runs along the rows of memory."""

    registers: bool = True
    a_k_major: bool = True
    b_k_major: bool = True
    a_swizzle: int = 32
    b_swizzle: int = 32
    groups: tuple[int, int] = (1, 1)

    @property
    def instruction(self) -> str:
        step = K.get(self.a, 32)
        return f"m64n{self.n // self.groups[1]}k{step}.{name_of(self.a)}"

    def stored(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The shapes of A and B in memory."""
        a = (self.m, self.k) if self.a_k_major else (self.k, self.m)
        b = (self.n, self.k) if self.b_k_major else (self.k, self.n)
        return a, b

    def program(self, blocks: int) -> str:
        a, b = self.stored()
        ma, mb = (f"memref<{blocks}x{s[0]}x{s[1]}x{e}>" for s, e in ((a, self.a), (b, self.b)))
        sa, sb = (
            f"memref<{s[0]}x{s[1]}x{e}, #frag.shared<swizzle = {w}>>"
            for s, e, w in ((a, self.a, self.a_swizzle), (b, self.b, self.b_swizzle))
        )
        tile, acc = (
            f"!frag.tile<{self.m}x{self.k}x{self.a}>",
            f"!frag.tile<{self.m}x{self.n}x{self.d}>",
        )
        md = f"memref<{blocks}x{self.m}x{self.n}x{self.d}>"
        turned = "" if self.a_k_major else " transposed"
        if self.registers:
            load = f"%ta = frag.load %a[%block, 0, 0]{turned} : {ma} -> {tile}"
            first, type_ = "%ta", tile
        else:
            load = (
                f"%sa = memref.alloc() : {sa}\n"
                f"  frag.copy async %a[%block, 0, 0] to %sa[] : {ma} to {sa}"
            )
            first, type_ = f"%sa{turned}", sa
        second = f"%sb{' transposed' if self.b_k_major else ''}"
        return f"""
func.func @wgmma(%a: {ma}, %b: {mb}, %c: {md}, %d: {md}) attributes {{
    frag.grid = #frag.grid<{blocks}>,
    frag.warpgroups = array<i64: {self.groups[0]}, {self.groups[1]}>}} {{
  %block = frag.block_id x
  {load}
  %sb = memref.alloc() : {sb}
  frag.copy async %b[%block, 0, 0] to %sb[] : {mb} to {sb}
  frag.commit
  frag.wait 0
  frag.barrier
  %tc = frag.load %c[%block, 0, 0] : {md} -> {acc}
  %sum = frag.wgmma {first}, {second}, %tc : {type_}, {sb}, {acc}
  frag.store %sum, %d[%block, 0, 0] : {acc}, {md}
  func.return
}}
"""

    def stored_arrays(self, a: Array, b: Array) -> tuple[Array, Array]:
        """A and B as memory holds them."""
        if not self.a_k_major:
            a = a.transpose(0, 2, 1)
        if self.b_k_major:
            b = b.transpose(0, 2, 1)
        return np.ascontiguousarray(a), np.ascontiguousarray(b)


def every_n() -> list[Wgmma]:
    """Every N, f16 and f32 results, A from both places; K and the swizzle take turns."""
    result: list[Wgmma] = []
    for i, n in enumerate(range(8, 257, 8)):
        for c in ("f16", "f32"):
            for registers in (True, False):
                k = (16, 32, 64)[(i + registers) % 3] if n <= 64 else 16
                swizzle = 2 * k
                result.append(
                    Wgmma(64, n, k, "f16", "f16", c, c, 1, (), TARGET, registers, True, True)
                    if swizzle == 32
                    else Wgmma(
                        *(64, n, k, "f16", "f16", c, c, 1, (), TARGET, registers, True, True),
                        a_swizzle=swizzle,
                        b_swizzle=swizzle,
                    )
                )
    return result


def majors_and_swizzles() -> list[Wgmma]:
    """Every swizzle of A and of B, K-major and MN-major."""
    result: list[Wgmma] = []
    for swizzle in (32, 64, 128):
        for other in (32, 64, 128):
            for a_k, b_k in ((True, True), (True, False), (False, True), (False, False)):
                for registers in (False, True) if swizzle == 128 and other == 128 else (False,):
                    result.append(
                        Wgmma(
                            *(64, 64, 64, "bf16", "bf16", "f32", "f32", 1, (), TARGET),
                            *(registers, a_k, b_k, swizzle, other),
                        )
                    )
    return result


def types() -> list[Wgmma]:
    """The other types, which must be K-major in memory."""
    pairs = [
        *(("tf32", "tf32", "f32", 16),),
        *((a, b, "i32", 64) for a in ("si8", "ui8") for b in ("si8", "ui8")),
        *((a, a, c, 64) for a in ("f8E4M3FN", "f8E5M2") for c in ("f16", "f32")),
        ("f8E4M3FN", "f8E5M2", "f32", 64),
    ]
    return [
        Wgmma(64, 48, k, a, b, c, c, 1, (), TARGET, registers, True, True, 64, 64)
        for a, b, c, k in pairs
        for registers in (True, False)
    ]


def groups() -> list[Wgmma]:
    """Several warpgroups, several instructions each."""
    shape = ("f16", "f16", "f32", "f32", 1, (), TARGET)
    return [
        Wgmma(128, 96, 64, *shape, False, True, True, 128, 128, (2, 1)),
        Wgmma(128, 128, 64, *shape, False, False, False, 128, 128, (1, 2)),
        Wgmma(128, 192, 64, *shape, True, True, True, 128, 128, (1, 2)),
        Wgmma(128, 128, 64, *shape, True, False, False, 128, 64, (2, 2)),
        Wgmma(256, 64, 32, *shape, False, True, False, 64, 128, (2, 1)),
    ]


CASES = [*every_n(), *majors_and_swizzles(), *types(), *groups()]


def name(case: Wgmma) -> str:
    a = "registers" if case.registers else f"{'k' if case.a_k_major else 'm'}{case.a_swizzle}"
    b = f"{'k' if case.b_k_major else 'n'}{case.b_swizzle}"
    elements = "-".join(name_of(e) for e in (case.a, case.b, case.d))
    return f"{case.m}x{case.n}x{case.k}-{elements}-{a}-{b}-{case.groups[0]}x{case.groups[1]}"


def blocks_for(case: Wgmma) -> int:
    """Enough for one-hot inputs to reach every row; tests of a wide N share its columns."""
    return max(case.m, case.n if DEEP else 64, case.k)


@cache
def compiled(case: Wgmma) -> Kernel:
    kernel = compile_program(case.program(blocks_for(case)), target=TARGET)
    assert kernel.assembled.warnings == []
    return kernel


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_wgmma(case: Wgmma, place: Place) -> None:
    """One-hot and small integers exactly, normal inputs within the bound."""
    kernel, blocks = compiled(case), blocks_for(case)
    assert f"wgmma.mma_async.sync.aligned.{case.instruction.split('.')[0]}" in kernel.ptx
    rng = np.random.default_rng(len(kernel.ptx))

    def run(a: Array, b: Array, c: Array, count: int) -> Array:
        left, right = case.stored_arrays(a, b)
        return multiply(kernel, [left, right, c, np.full_like(c, 77)], place, count)

    shapes = [(len_, *shape) for len_, shape in zip([blocks] * 3, case.shapes(), strict=False)]
    a, b, c = (empty(e, s) for e, s in zip(case.elements, shapes, strict=False))
    wanted = c.copy()
    block = np.arange(blocks)
    i, k = (rng.permutation(blocks) % size for size in (case.m, case.k))
    j = np.resize(rng.permutation(case.n), blocks)
    a[block, i, k], b[block, k, j] = one(case.a), one(case.b)
    wanted[block, i, j] = one(case.d)
    np.testing.assert_array_equal(run(a, b, c, blocks), wanted)

    few = 4
    a, b, c = (empty(e, s) for e, s in zip(case.elements, shapes, strict=False))
    for array, element in ((a, case.a), (b, case.b), (c, case.c)):
        array[:few] = small(rng, element, (few, *array.shape[1:]))
    found = run(a, b, c, few)[:few]
    np.testing.assert_array_equal(
        decode(found, name_of(case.d)), exact(case, a[:few], b[:few], c[:few])
    )

    for array, element in ((a, case.a), (b, case.b), (c, case.c)):
        array[:few] = random(rng, element, (few, *array.shape[1:]))
    found = run(a, b, c, few)[:few]
    assert_within_bound(case, [a[:few], b[:few], c[:few]], found, TARGET)
