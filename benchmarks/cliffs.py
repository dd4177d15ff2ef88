"""Whether launches fall off a cliff: what bounds them, and how much faster they could be.

    python benchmarks/cliffs.py [--target SM] [--json FILE] [--update PAGE.md]

Reductions, columns, transposes, norms, convolutions and products by sizes at which it shows. Of
each launch the lane code is counted, as `Kernel.lint` does (`fragir/roofline`): cycles are the
largest of

    L2           bytes of whole sectors that a block reads, times the blocks of the busiest SM, by
                 64 bytes a cycle of an SM, or its share of the L2's rate where all SMs read
    L1           lines of 128 bytes that all requests of the block touch, one a cycle
    issue        instructions, four a cycle; functions: 16 lanes a cycle; tensor cores: their rate
    latency      700 cycles for each time that a warp waits for memory, for each round of blocks
    memory       bytes of arrays, as often as they are read where L2 does not hold them, by the
                 rate of the memory

"best" is the same with all SMs busy, sectors and accesses full, each array read once, and enough on
its way; `tests/roofline` compares the counts with the emulator's. Nothing was measured on a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from report import Column, Report, Table, arguments, command, machine, present, status
from rich.console import Console

import fragir
from fragir.compilation.lint import launch_model
from fragir.compilation.signature import Interface
from fragir.roofline.lint import CAUSES
from tests.linalg.test_best import best
from tests.roofline.programs import named, reduction

EXAMPLES = Path(__file__).parents[1] / "examples"


class Case(NamedTuple):
    """A program, and how much slower than the best it may be."""

    name: str
    text: str
    aim: float
    entry: str | None = None
    sizes: Mapping[str, int] = MappingProxyType({})


def softmax(dimension: int) -> str:
    """A softmax over a dimension of 8192 x 4096 numbers."""
    tensor = "tensor<8192x4096xf32>"
    return f"""
func.func @softmax(%x: {tensor}) -> {tensor} {{
  %e = tensor.empty() : {tensor}
  %r = linalg.softmax dimension({dimension}) ins(%x : {tensor}) outs(%e : {tensor}) -> {tensor}
  func.return %r : {tensor}
}}
"""


def transpose(element: str) -> str:
    """8192 x 4096 elements transposed."""
    return f"""
func.func @f(%x: memref<8192x4096x{element}>, %y: memref<4096x8192x{element}>) {{
  linalg.transpose ins(%x : memref<8192x4096x{element}>) outs(%y : memref<4096x8192x{element}>)
    permutation = [1, 0]
  func.return
}}
"""


def example(path: str, entry: str, aim: float, **sizes: int) -> Case:
    """A function of an example."""
    shown = " x ".join(map(str, sizes.values()))
    text = (EXAMPLES / f"{path}.mlir").read_text()
    return Case(f"examples/{path}, {entry}, {shown}", text, aim, entry, sizes)


WINDOWS = " {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}"
IMAGES, FILTERS = "32x58x58x64x", "3x3x64x128x"
CASES: Sequence[Case] = (
    Case("sum of 16.7 M f32", reduction("f", (1 << 24,), ()), 1.2),
    Case("sum of 1 x 16.7 M", reduction("f", (1, 1 << 24), (0,)), 1.2),
    Case("sum of 16777213 f32, a prime", reduction("f", (16777213,), ()), 1.2),
    Case("dot of 16.7 M f32", named("dot", (f"{1 << 24}xf32",) * 2, "f32"), 1.2),
    Case("column sums 262144 x 64", reduction("f", (262144, 64), (1,)), 1.5),
    Case("NHWC statistics 32x56x56x64", reduction("f", (32, 56, 56, 64), (3,)), 1.5),
    Case("NCHW statistics 32x64x56x56", reduction("f", (32, 64, 56, 56), (1,)), 1.5),
    Case("column sums 8192 x 4096", reduction("f", (8192, 4096), (1,)), 1.2),
    Case("sums of the middle 64x512x1024", reduction("f", (64, 512, 1024), (0, 2)), 1.2),
    Case("row sums 8192 x 4096", reduction("f", (8192, 4096), (0,)), 1.2),
    Case("softmax over dimension 0, 8192 x 4096", softmax(0), 1.2),
    Case("softmax over dimension 1, 8192 x 4096", softmax(1), 1.05),
    Case("vecmat 4096^2 f16", named("vecmat", ("4096xf16", "4096x4096xf16"), "4096xf32"), 1.2),
    Case("matvec 4096^2 f16", named("matvec", ("4096x4096xf16", "4096xf16"), "4096xf32"), 1.2),
    Case("argmax 64 x 32000", best((64, 32000), (0,)), 1.5),
    Case("argmax of 16.7 M", best((1 << 24,), (), gone=0), 1.2),
    Case("transpose 8192 x 4096 f16", transpose("f16"), 1.0),
    Case("transpose 8192 x 4096 f32", transpose("f32"), 1.0),
    example("rows/softmax", "softmax", 1.05, m=8192, n=4096),
    example("rows/rms_norm", "rms_norm", 1.05, m=8192, n=4096),
    example("rows/layer_norm", "layer_norm", 1.05, m=8192, n=4096),
    example("rows/cross_entropy", "cross_entropy", 1.1, m=512, n=128256),
    example("rows/column_sums", "column_sums", 1.2, m=8192, n=4096),
    Case(
        "convolution 3x3 NHWC f16",
        named("conv_2d_nhwc_hwcf", (f"{IMAGES}f16", f"{FILTERS}f16"), "32x56x56x128xf32"),
        1.5,
    ),
    Case(
        "convolution 3x3 NCHW f16",
        named("conv_2d_nchw_fchw", ("32x64x58x58xf16", "128x64x3x3xf16"), "32x128x56x56xf32"),
        1.5,
    ),
    Case(
        "convolution 3x3 NHWC f32",
        named("conv_2d_nhwc_hwcf", (f"{IMAGES}f32", f"{FILTERS}f32"), "32x56x56x128xf32"),
        1.5,
    ),
    Case(
        "depthwise 3x3 NHWC f16",
        named(
            "depthwise_conv_2d_nhwc_hwc", ("32x58x58x128xf16", "3x3x128xf16"), "32x56x56x128xf32"
        ),
        1.5,
    ),
    Case(
        "largest of 3x3 windows, f16",
        named("pooling_nhwc_max", ("32x114x114x64xf16", "3x3xf16"), "32x56x56x64xf16", WINDOWS),
        1.5,
    ),
    Case("product 4096^3 f32", named("matmul", ("4096x4096xf32",) * 2, "4096x4096xf32"), 1.5),
    Case("product 8192^3 bf16", named("matmul", ("8192x8192xbf16",) * 2, "8192x8192xbf16"), 1.1),
    Case(
        "product 16 x 8192^2 f16",
        named("matmul", ("16x8192xf16", "8192x8192xf16"), "16x8192xf32"),
        1.1,
    ),
    example("quantised/w4a16", "w4a16", 4.5, m=16, n=8192, k=8192, packed=8192, groups=128),
    example(
        *("quantised/w4a16_few", "w4a16_few", 1.3),
        **{"m": 16, "n": 8192, "k": 8192, "packed": 8192, "groups": 128, "rows": 1, "columns": 64},
    ),
)


def cliffs(target: str, cases: Sequence[Case]) -> Table:
    """A row a case: all its launches together."""
    columns = (
        Column("name", "case"),
        Column("launches", "launches", "d"),
        Column("blocks", "blocks", "d"),
        Column("sectors", "sectors for one", ".2f"),
        Column("flight", "KiB in flight an SM", ".0f"),
        Column("limit", "waits for"),
        Column("now", "us", ".1f"),
        Column("factor", "times the best", ".2f"),
        Column("aim", "aim", ".2f"),
        Column("told", "told"),
    )
    note = "microseconds of the model, not measured; blocks and limit are of the longest launch"
    table = Table(f"Cliffs on {target}", columns, note=note)
    say = status(Console(stderr=True))
    for case in cases:
        say(case.name)
        table.rows.append(row(case, target))
    return table


def row(case: Case, target: str) -> dict[str, object]:
    """What the launches of a program take."""
    program = fragir.compile(case.text, target=target, entry=case.entry).entry_for(case.sizes)
    models = [
        launch_model(
            Interface(kernel.signature, kernel.grid_attribute, kernel.promises),
            kernel.lanes,
            target,
            sizes=case.sizes,
        )
        for kernel in program.parts
        if kernel.lanes is not None
    ]
    now, least = sum(m.cycles() for m in models), sum(m.cycles(CAUSES) for m in models)
    longest = max(models, key=lambda model: model.cycles())
    told = {one.cause for kernel in program.parts for one in kernel.lint(case.sizes or None)}
    return {
        "name": case.name,
        "launches": len(models),
        "blocks": longest.blocks,
        "sectors": sum(m.blocks * sum(u.once for u in m.work.traffic) for m in models)
        / sum(m.blocks * sum(u.bytes for u in m.work.traffic) for m in models),
        "flight": longest.in_flight / 1024,
        "limit": longest.limit,
        "now": now / longest.device.clock / 1e3,
        "factor": now / least,
        "aim": case.aim,
        "told": ", ".join(sorted(told)),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--target", default="sm_90a", metavar="SM", help="the machine")
    options = parser.parse_args()
    cases = CASES[:3] if options.quick else CASES
    tables = [cliffs(options.target, cases)]
    present(Report("cliffs", command(options), machine(["fragir", "xdsl"]), tables), options)


if __name__ == "__main__":
    sys.exit(main())
