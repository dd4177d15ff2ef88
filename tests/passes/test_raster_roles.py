"""Loops over tiles in roles: a persistent product whose producer runs ahead from tile to tile."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import fragir
from fragir.compilation.kernel import Kernel

A, B = (f"memref<64x{n}xf16, #frag.shared<swizzle = 128>>" for n in (64, 128))
RING, SLOT = f"!frag.ring<{A}, {B}>", f"!frag.slot<{A}, {B}>"
SUM, ARRAY = "!frag.tile<64x128xf32>", "memref<?x?xf16>"
FLYING = f"!frag.in_flight<{SUM}>"


def program(words: str, cluster: int) -> str:
    """c = a b, tiles of 64 x 128 by one warpgroup, which a warp feeds by TMA."""
    loop = f"frag.for_tiles (%row, %col) of (%m, %n) by (64, 128) {words}"
    many = "multicast" if cluster > 1 else ""
    return f"""
    func.func @gemm(%a: {ARRAY} {{frag.sizes = ["m", "k"]}},
                    %b: {ARRAY} {{frag.sizes = ["k", "n"]}},
                    %c: memref<?x?xf32> {{frag.sizes = ["m", "n"]}})
        attributes {{frag.cluster = array<i64: {cluster}, 1, 1>}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %m = memref.dim %a, %c0 : {ARRAY}
      %k = memref.dim %a, %c1 : {ARRAY}
      %n = memref.dim %b, %c1 : {ARRAY}
      %ring = frag.ring 3 : {RING}
      frag.roles "load" warps [1, 1] {{
        {loop} {{
          scf.for %k0 = %c0 to %k step %c64 {{
            %s = frag.acquire %ring : {RING}
            %sa = frag.part %s[0] : {SLOT}
            %sb = frag.part %s[1] : {SLOT}
            frag.copy tma %a[%row, %k0] to %sa[] : {ARRAY} to {A}
            frag.copy tma %b[%k0, %col] to %sb[] {many} : {ARRAY} to {B}
            frag.publish %s : {SLOT}
          }}
        }}
      }}, "multiply" warpgroups [1, 1] {{
        {loop} {{
          %none = frag.no_slot : {SLOT}
          %start = frag.undefined : {FLYING}
          %t, %last = scf.for %k0 = %c0 to %k step %c64 iter_args(%sum = %start, %old = %none)
              -> ({FLYING}, {SLOT}) {{
            %s = frag.await %ring : {RING}
            %sa = frag.part %s[0] : {SLOT}
            %sb = frag.part %s[1] : {SLOT}
            %more = arith.cmpi ne, %k0, %c0 : index
            %next = frag.wgmma async %sa, %sb, %sum if %more : {A}, {B}, {FLYING}
            frag.release %old : {SLOT}
            scf.yield %next, %s : {FLYING}, {SLOT}
          }}
          %d = frag.await %t : {FLYING}
          frag.release %last : {SLOT}
          frag.store %d, %c[%row, %col] masked : {SUM}, memref<?x?xf32>
        }}
      }}
      func.return
    }}"""


@cache
def compiled(words: str, cluster: int) -> Kernel:
    return fragir.compile(program(words, cluster), target="sm_90a")


def run(kernel: Kernel, sizes: tuple[int, int, int], **options: Any) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.full((m, n), 7, np.float32)
    report = kernel(a, b, c, on="emulator", check=True, **options)
    assert report.findings == []
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize(
    ("words", "cluster", "sizes", "options"),
    [
        ("", 1, (128, 128, 64), {"asynchrony": "late"}),
        ("rows persistent", 1, (160, 264, 136), {"asynchrony": "early", "resident": 2}),
        ("grouped 2 persistent", 2, (200, 136, 136), {"asynchrony": "late", "resident": 4}),
        ("hilbert persistent", 1, (192, 392, 64), {"asynchrony": "random", "schedule": 3}),
    ],
)
def test_roles_share_out_tiles_alike(
    words: str, cluster: int, sizes: tuple[int, int, int], options: dict[str, Any]
) -> None:
    kernel = compiled(words, cluster)
    assert kernel.assembled.warnings == []
    run(kernel, sizes, **options)


def test_the_meaning_is_a_product() -> None:
    from xdsl.dialects import func

    from fragir.reference import evaluate

    module = fragir.parse(program("grouped 2 persistent", 1))
    function = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((100, 72), (72, 136)))
    c = np.zeros((100, 136), np.float32)
    found = evaluate(function, [a, b, c], target="sm_90a", grid=(1, 1, 1))[2]
    assert found is not None
    assert (found.value == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_a_function_says_its_clusters() -> None:
    kernel = compiled("grouped 2 persistent", 2)
    assert kernel.cluster == (2, 1, 1)
    assert str(kernel.grid_attribute) == str(compiled("grouped 2 persistent", 2).grid_attribute)
    assert kernel.grid({"m": 192, "n": 256, "k": 64}, 132) == (8, 1, 1)
    with pytest.raises(fragir.FragirError, match="says clusters of 4, its function of 2"):
        fragir.compile(program("rows cluster 4", 2), target="sm_90a")
    text = program("rows", 2).replace("array<i64: 2, 1, 1>", "array<i64: 1, 2, 1>")
    with pytest.raises(fragir.FragirError, match="loops over tiles go by clusters along x"):
        fragir.compile(text, target="sm_90a")
