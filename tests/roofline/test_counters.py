"""What is counted without running, against what the emulator counts when it runs the launch."""

from typing import Any

import numpy as np
import pytest

import fragir
from fragir.compilation.lint import launch_model
from fragir.compilation.signature import Interface
from fragir.roofline.counters import sampled_warps
from tests.roofline.programs import named, reduction

# Of sizes that are multiples of all tiles, so that all blocks and turns do the same.
COLUMNS = reduction("columns", (512, 64), kept=(1,))
ROWS = reduction("rows", (64, 512), kept=(0,))
PLAIN = named("matmul", ("64x48xf32", "48x64xf32"), "64x64xf32")
HALVES = named("matmul", ("64x1024xf16", "1024x64xf16"), "64x64xf32")
CONVOLVED = named("conv_2d_nhwc_hwcf", ("2x18x18x32xf16", "3x3x32x32xf16"), "2x16x16x32xf32")
TURNED = """
func.func @f(%x: memref<128x64xf16>, %y: memref<64x128xf16>) {
  linalg.transpose ins(%x : memref<128x64xf16>) outs(%y : memref<64x128xf16>) permutation = [1, 0]
  func.return
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("text", [COLUMNS, ROWS, PLAIN, HALVES, CONVOLVED, TURNED])
def test_counts_are_those_of_a_run(text: str, target: str) -> None:
    kernel = fragir.compile(text, target=target)
    assert kernel.lanes is not None
    interface = Interface(kernel.signature, kernel.grid_attribute, kernel.promises)
    model = launch_model(interface, kernel.lanes, target)
    arrays: list[Any] = []
    for argument in kernel.signature:
        shape = [size for size in argument.dims if isinstance(size, int)]
        kind = np.float16 if str(argument.type).endswith("xf16>") else np.float32
        arrays.append(np.zeros(shape, kind))
    statistics = kernel(*arrays, on="emulator", check=True).statistics
    work, blocks = model.work, model.blocks
    sectors = blocks * sum(use.turns * use.sectors for use in work.traffic)
    if "cp" not in statistics.instructions:  # of copies the emulator counts no sectors
        assert sectors == pytest.approx(statistics.conflicts["sectors"], rel=0.1)
    asked = blocks * sum(use.turns * use.asked for use in work.traffic)
    warps = blocks * model.threads // 32
    read = statistics.loaded["global"] - warps * 32 * 8 * len(arrays)  # addresses of arrays
    moved = read + statistics.stored["global"]
    assert asked == pytest.approx(moved, rel=0.15)
    assert blocks * sum(work.products.values()) == pytest.approx(statistics.mma, rel=0.01)
    assert 0.4 < blocks * work.issued / statistics.total < 2.5


def test_every_warp_is_stood_for() -> None:
    for count in range(1, 33):
        found = sampled_warps(count)
        assert sum(standing for _, standing in found) == count
        assert [warp for warp, _ in found] == sorted({warp for warp, _ in found})
        assert found[-1][0] < count
