"""What a step along K takes for operands in every order and of every length of rows: instructions
that warps execute, and passes over the banks of shared memory, counted by the emulator.

    python benchmarks/operands.py [--quick] [--json FILE] [--update PAGE.md]

C = A B of 128 x 128 in one tile (f64 in four); what a step takes is the difference between 24 steps
and 12. A step is 64 bytes along K. Rows of a length that is no multiple of 16 bytes are of sizes
known at run time.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from report import Column, Report, Row, Table, arguments, command, machine, present

import fragir
from fragir.emulator.report import Statistics

SIZE, STEP = 128, 64  # of C; bytes of K in a step
BITS = {"f16": 16, "si8": 8, "f8E4M3FN": 8, "tf32": 32, "f64": 64}
ARRAYS = {"f16": np.float16, "si8": np.int8, "f8E4M3FN": np.uint8, "tf32": np.float32}
SUMS = {"si8": "i32", "f64": "f64"}
ORDERS = {
    "NN": (False, False),
    "NT": (False, True),
    "TN": (True, False),
    "TT": (True, True),
}
WORDS = ("ldmatrix", "stmatrix", "ld", "st", "prmt", "cp")


@dataclass(frozen=True)
class Case:
    """A product: element, order of A and B (T: transposed in memory), target, and how far rows are
    from multiples of 16 bytes, in elements."""

    element: str
    order: str
    target: str
    short: int | None = None

    @property
    def name(self) -> str:
        rows = "" if self.short is None else f", K = 32 n - {self.short}"
        return f"{self.element} {self.order}{rows}"

    def program(self, k: int) -> str:
        left, right = ORDERS[self.order]
        out = SUMS.get(self.element, "f32")

        def memory(rows: int, cols: int, element: str) -> str:
            shape = "?x?" if self.short is not None else f"{rows}x{cols}"
            return f"memref<{shape}x{element}>"

        a = memory(k, SIZE, self.element) if left else memory(SIZE, k, self.element)
        b = memory(SIZE, k, self.element) if right else memory(k, SIZE, self.element)
        c = memory(SIZE, SIZE, out)
        k_bytes = 2 * STEP if self.target == "sm_90a" or self.element == "f64" else STEP
        size = 64 if self.element == "f64" else SIZE
        tile = f"{size}, {size}, {k_bytes * 8 // BITS[self.element]}"
        words = ["" if not turned else " transposed" for turned in (left, right)]
        return (
            f"func.func @gemm(%a: {a}, %b: {b}, %c: {c}) {{\n"
            f"  frag.matmul %a{words[0]}, %b{words[1]} into %c {{tile = array<i64: {tile}>}}\n"
            f"    : {a}, {b} into {c}\n"
            "  func.return\n}\n"
        )

    def run(self, k: int) -> tuple[fragir.Kernel, Statistics]:
        left, right = ORDERS[self.order]
        kernel = fragir.compile(self.program(k), target=self.target)
        type_ = ARRAYS.get(self.element, np.float64)
        a = np.zeros((k, SIZE) if left else (SIZE, k), type_)
        b = np.zeros((SIZE, k) if right else (k, SIZE), type_)
        out = {"i32": np.int32, "f64": np.float64}.get(SUMS.get(self.element, ""), np.float32)
        c = np.zeros((SIZE, SIZE), out)
        report = kernel(a, b, c, on="emulator", check=True)
        return kernel, report.statistics


def cases() -> Iterator[Case]:
    for target in ("sm_80", "sm_90a"):
        for element in ("si8", "tf32", "f64"):
            if target == "sm_80" or element != "f64":
                for order in ORDERS:
                    yield Case(element, order, target)
    for order in ORDERS:
        yield Case("f8E4M3FN", order, "sm_90a")
    for short in (0, 2, 1):
        yield Case("f16", "NN", "sm_80", short)
    for short in (0, 1):
        yield Case("tf32", "NN", "sm_80", short)


def row(case: Case) -> Row:
    """What a step takes of each warp, and what of the block's banks."""
    step = STEP * 8 // BITS[case.element]
    short = case.short or 0
    kernel, less = case.run(6 * step * 2 - short)
    _, more = case.run(12 * step * 2 - short)
    difference: Counter[str] = Counter(more.instructions)
    difference.subtract(less.instructions)
    blocks = 4 if case.element == "f64" else 1
    warps = kernel.block[0] // 32 * blocks
    passes, needed = (
        more.conflicts[word] - less.conflicts[word] for word in ("passes", "passes_needed")
    )
    entry = next(iter(kernel.assembled.entries.values()))
    return {
        "product": case.name,
        "target": case.target,
        "way": "wgmma" if "wgmma.mma_async" in kernel.ptx else "mma.sync",
        "instructions": sum(difference.values()) / 12 / warps,
        "tensor": (difference["mma"] or (more.mma - less.mma) * 4) / 12 / warps,
        **{word: difference[word] / 12 / warps for word in WORDS},
        "passes": passes / 12,
        "needed": needed / 12,
        "registers": entry.registers,
        "spills": entry.spill_stores + entry.spill_loads,
    }


def main() -> None:
    options = arguments(__doc__).parse_args()
    table = Table(
        "What a step of 64 bytes along K takes: instructions of a warp, passes of the block",
        (
            Column("product", "product"),
            Column("target", "target"),
            Column("way", "by"),
            Column("instructions", "instructions", ".1f"),
            Column("tensor", "products", ".1f"),
            *(Column(word, word, ".1f") for word in WORDS),
            Column("passes", "passes", ".0f"),
            Column("needed", "needed", ".0f"),
            Column("registers", "registers", "d"),
            Column("spills", "spill bytes", "d"),
        ),
        note="NN: A and B row-major, T: transposed in memory. Passes are those of ld, st, ldmatrix "
        "and stmatrix; what wgmma reads itself is not among them.",
    )
    for case in list(cases())[:1] if options.quick else cases():
        table.rows.append(row(case))
    facts = machine(["fragir", "nvidia-cuda-nvcc"])
    present(Report("operands", command(options), facts, [table]), options)


if __name__ == "__main__":
    sys.exit(main())
