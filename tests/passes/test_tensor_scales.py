"""Block scales of products in tensor memory: frag.tcgen05_copy, `scaled` of frag.tcgen05_mma."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragir
from tests.emulator.generated import launches
from tests.emulator.mutation import verdict
from tests.passes.block_scaled import E4M3, E5M2, E8M0, NIBBLES, chunks, numbers, powers, scaled

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples" / "tcgen05_scaled.mlir").read_text("utf-8")
GOLDEN = (ROOT / "tests" / "golden" / "frag_tcgen05_copy.mlir").read_text("utf-8")


def check(kernel: fragir.Kernel, arguments: list[Any], expected: Any) -> None:
    """Every check is silent, the result exact, and ptxas spills nothing."""
    report = kernel(*arguments, on="emulator", check=True)
    assert report.findings == []
    assert report.schedules.every
    assert np.array_equal(arguments[-1].astype(np.float64), expected)
    (entry,) = kernel.assembled.entries.values()
    assert (entry.spill_loads, entry.spill_stores) == (0, 0)


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
def test_the_example(target: str) -> None:
    rng = np.random.default_rng(1)
    a, b = numbers(rng, (200, 304), E4M3), numbers(rng, (64, 304), E4M3)
    x, y = powers(rng, (200, 10)), powers(rng, (64, 10))
    kernel = fragir.compile(EXAMPLE, target=target)
    c = np.full((200, 64), 7, np.float32)
    arguments = [a, b, chunks(x, 2, 3), chunks(y, 1, 3), c]
    check(kernel, arguments, scaled(a, x, 32) @ scaled(b, y, 32).T)
    assert "kind::mxf8f6f4.block_scale.scale_vec::1X" in kernel.ptx
    assert kernel.ptx.count("tcgen05.cp") == 2


def test_scales_by_threads() -> None:
    """Rows by blocks, put into chunks by a role; fp8 of two types."""
    rng = np.random.default_rng(2)
    a, b = numbers(rng, (128, 128), E4M3), numbers(rng, (64, 128), E5M2)
    x, y = powers(rng, (128, 4)), powers(rng, (64, 4))
    c = np.full((128, 64), 7, np.float32)
    kernel = fragir.compile(GOLDEN, target="sm_100a")
    check(kernel, [a, b, chunks(x, 1, 1), y, c], scaled(a, x, 32) @ scaled(b, y, 32).T)


FP4 = """
!a = memref<128x256x!frag.packed<f4E2M1FN>, #frag.shared<swizzle = 128>>
!x = memref<1x{H}x2x256x{T}, #frag.shared>
!s = memref<128x{S}x{T}, #frag.tensor<scales>>
!d = memref<128x128xf32, #frag.tensor>
!slot = !frag.slot<{A}, {A}, {X}, {X}>
!held = !frag.slot<{D}, {SF}, {SF}>
!A = memref<128x512x!frag.packed<f4E2M1FN>>
!X = memref<1x{HH}x2x256x{T}>
func.func @fp4(%a: !A, %b: !A, %x: !X, %y: !X, %c: memref<128x128xf32>) {{
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %each = arith.constant {E} : index
  %ring = frag.ring 2 : !frag.ring<{A}, {A}, {X}, {X}>
  %sums = frag.ring 1 : !frag.ring<{D}, {SF}, {SF}>
  frag.roles packed "load" warps [1, 1] {{
    scf.for %k0 = %c0 to %c512 step %c256 {{
      %h = arith.divui %k0, %each : index
      %free = frag.acquire %ring : !frag.ring<{A}, {A}, {X}, {X}>
      %sa = frag.part %free[0] : !slot
      %sb = frag.part %free[1] : !slot
      %sx = frag.part %free[2] : !slot
      %sy = frag.part %free[3] : !slot
      frag.copy tma %a[0, %k0] to %sa[] : !A to !a
      frag.copy tma %b[0, %k0] to %sb[] : !A to !a
{copies}
      frag.publish %free : !slot
    }}
  }}, "multiply" warps [1, 1] {{
    %free = frag.acquire %sums : !frag.ring<{D}, {SF}, {SF}>
    %d = frag.part %free[0] : !held
    %sfa = frag.part %free[1] : !held
    %sfb = frag.part %free[2] : !held
    scf.for %k0 = %c0 to %c512 step %c256 {{
      %later = arith.cmpi ne, %k0, %c0 : index
      %slot = frag.await %ring : !frag.ring<{A}, {A}, {X}, {X}>
      %sa = frag.part %slot[0] : !slot
      %sb = frag.part %slot[1] : !slot
      %sx = frag.part %slot[2] : !slot
      %sy = frag.part %slot[3] : !slot
      frag.tcgen05_copy %sx to %sfa : !x to !s
      frag.tcgen05_copy %sy to %sfb : !x to !s
      frag.tcgen05_mma %sa, %sb transposed scaled %sfa, %sfb into %d if %later
        : !a, !a scaled !s, !s into !d
      frag.release %slot : !slot
    }}
    frag.publish %free : !held
  }}, "store" warpgroups [1, 1] {{
    %full = frag.await %sums : !frag.ring<{D}, {SF}, {SF}>
    %d = frag.part %full[0] : !held
    %tile = frag.tcgen05_load %d : !d -> !frag.tile<128x128xf32>
    frag.release %full : !held
    frag.store %tile, %c[0, 0] : !frag.tile<128x128xf32>, memref<128x128xf32>
  }}
  func.return
}}
"""


def fp4_program(scale: str, block: int) -> str:
    """A product of 128 x 128 x 512 in fp4, half of K a turn."""
    along = 256 // block // 4
    copies = [
        f"      %o{i} = arith.constant {i} : index\n      %h{i} = arith.addi %h, %o{i} : index\n"
        f"      frag.copy tma %x[0, %h{i}, 0, 0] to %sx[0, {i}] : !X to !x\n"
        f"      frag.copy tma %y[0, %h{i}, 0, 0] to %sy[0, {i}] : !X to !x"
        for i in range(along)
    ]
    return FP4.format(
        A="memref<128x256x!frag.packed<f4E2M1FN>, #frag.shared<swizzle = 128>>",
        X=f"memref<1x{along}x2x256x{scale}, #frag.shared>",
        SF=f"memref<128x{4 * along}x{scale}, #frag.tensor<scales>>",
        D="memref<128x128xf32, #frag.tensor>",
        T=scale,
        H=along,
        HH=2 * along,
        S=4 * along,
        E=4 * block,
        copies="\n".join(copies),
    )


@pytest.mark.parametrize(
    ("scale", "dtype", "block", "kind"),
    [
        ("f8E8M0FNU", E8M0, 32, "mxf4.block_scale.scale_vec::2X"),
        ("f8E8M0FNU", E8M0, 16, "mxf4nvf4.block_scale.scale_vec::4X"),
        ("f8E4M3FN", E4M3, 16, "mxf4nvf4.block_scale.scale_vec::4X"),
    ],
)
def test_fp4(scale: str, dtype: Any, block: int, kind: str) -> None:
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, 16, (128, 512), dtype=np.uint8) for _ in range(2)]
    a, b = (each[:, ::2] | each[:, 1::2] << 4 for each in codes)
    x, y = (powers(rng, (128, 512 // block), dtype) for _ in range(2))
    if dtype is E4M3:
        x = -x  # of which the sign does not count
    along = 512 // block // 4
    c = np.full((128, 128), 7, np.float32)
    kernel = fragir.compile(fp4_program(scale, block), target="sm_100a")
    left, right = scaled(NIBBLES[codes[0]], abs(x), block), scaled(NIBBLES[codes[1]], y, block)
    check(kernel, [a, b, chunks(x, 1, along), chunks(y, 1, along), c], left @ right.T)
    assert kind in kernel.ptx


def test_other_targets_of_the_family() -> None:
    """sm_100f has no scale_vec, but says the size of blocks."""
    for target in ("sm_100f", "sm_110a"):
        ptx = fragir.compile(EXAMPLE, target=target).ptx
        assert (".block32" in ptx) == (target == "sm_100f")


def test_a_missing_copy_is_found() -> None:
    """Without scales in tensor memory a product reads what nobody has written."""
    (launch,) = launches("tensor mxfp8")
    copies = [line for line in launch.text.splitlines() if "tcgen05.cp" in line]
    assert len(copies) == 2
    for line in copies:
        assert verdict(launch, launch.text.replace(f"{line}\n", ""))
