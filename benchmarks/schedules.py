"""The schedules chosen for products of language models, and for sizes that nothing divides.

    python benchmarks/schedules.py [--quick] [--json FILE] [--update PAGE.md]

For each product on sm_90a: the tile, stages and roles that are chosen; by the cost model, how much
less that costs than what would be chosen of tiles whose sides are powers of two; tensor copies for
a slot of the ring; registers and spills by ptxas; how long choosing takes. No times of kernels.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from math import ceil, prod

from report import Column, Report, Row, Table, arguments, command, machine, present, status
from rich.console import Console

import fragir
from fragir.compiler import parse
from fragir.dialects import frag
from fragir.passes.tiling.choosing import choice_for
from fragir.passes.tiling.gemm_schedule import configuration_of, may_have_roles, problem_of
from fragir.passes.tiling.parts_memory import LAUNCH
from fragir.scheduling.candidates import FRAG_TILE, SPECIALISED
from fragir.scheduling.choice import choose
from fragir.scheduling.cost import compulsory, estimate
from fragir.scheduling.devices import KIB
from fragir.toolchain.ptxas import assemble

TARGET = "sm_90a"
_COPIES = re.compile(r"cp\.async\.bulk\.tensor\.\dd\.shared")


@dataclass(frozen=True)
class Product:
    """C = A B in f16, sums in f32; `turned`: B is K-major, as weights are."""

    m: int
    n: int
    k: int
    turned: bool = True

    @property
    def name(self) -> str:
        return f"{self.m} x {self.n} x {self.k}{'' if self.turned else ', B by rows'}"

    def program(self) -> str:
        """The program's text."""
        m, n, k = self.m, self.n, self.k
        b = f"memref<{n}x{k}xf16>" if self.turned else f"memref<{k}x{n}xf16>"
        return f"""func.func @gemm(%a: memref<{m}x{k}xf16>, %b: {b}, %c: memref<{m}x{n}xf16>) {{
  frag.matmul %a, %b{" transposed" if self.turned else ""} into %c
      : memref<{m}x{k}xf16>, {b} into memref<{m}x{n}xf16>
  func.return
}}
"""


PRODUCTS = (
    *(Product(size, size, size) for size in (8192, 4096, 3072, 2048)),
    Product(1536, 1536, 4096),
    Product(4096, 576, 7168),
    Product(4096, 2112, 7168),
    Product(4096, 7168, 2048),
    Product(4096, 24576, 1536),
    Product(2048, 5120, 5120),
    Product(2048, 13824, 5120),
    Product(8192, 1280, 8192),
    Product(4096, 6144, 4096),
    Product(1000, 4000, 1024),
    Product(512, 4096, 4096),
    Product(6000, 6000, 6000),
    Product(128, 7168, 4096),
)
"""Squares, projections of models with 5120 to 8192 channels, and sizes of no power of two."""


DECODING = (
    Product(1, 4096, 4096),
    Product(16, 4096, 4096),
    Product(32, 8192, 8192),
    Product(64, 14336, 4096),
    Product(64, 4096, 14336),
    Product(8, 8192, 28672),
    Product(128, 7168, 4096),
    Product(64, 1024, 4096),
)
"""Few rows: a model's answers, token by token."""


def decoding_row(product: Product, target: str) -> Row:
    """What is on its way to an SM, and the part of memory's rate that this lets a product have."""
    op = next(each for each in parse(product.program()).walk() if isinstance(each, frag.MatmulOp))
    problem = problem_of(op, (product.m, product.n, product.k), target)
    found = configuration_of(choice_for(op, target, allocates=True).schedule)
    (m, n, k), sms = found.tile, problem.device.sms
    blocks = ceil(product.m / m) * ceil(product.n / n) * found.parts
    resident = min(blocks, sms * found.resident(problem))
    cost = estimate(problem, found)
    return {
        "product": product.name,
        "target": target,
        "tile": "x".join(map(str, found.tile)),
        "stages": found.stages,
        "roles": found.roles,
        "sms": min(blocks, sms) / sms,
        "flight": (found.stages - 1) * (min(m, product.m) + n) * k * 2 * resident / sms / KIB,
        "wanted": problem.device.in_flight / KIB,
        "parts": found.parts,
        "share": compulsory(problem) / (cost.cycles + LAUNCH * (found.parts > 1)),
        "limit": cost.limit,
    }


def row(product: Product) -> Row:
    """What is chosen for a product, and what of tiles of powers of two."""
    op = next(each for each in parse(product.program()).walk() if isinstance(each, frag.MatmulOp))
    before = time.process_time()
    choice = choice_for(op, TARGET)
    choosing = (time.process_time() - before) * 1000
    problem = problem_of(op, (product.m, product.n, product.k), TARGET)
    found, usual = configuration_of(choice.schedule), configuration_of(choice.usual)
    plain = choose(problem, usual, space=FRAG_TILE._replace(between=False))
    if may_have_roles(op, problem, plain):
        plain = choose(problem, plain, space=SPECIALISED._replace(between=False))
    kernel = fragir.compile(product.program(), target=TARGET)
    ((_, info),) = assemble(kernel.ptx, TARGET).entries.items()
    old, new = estimate(problem, plain), estimate(problem, found)
    return {
        "product": product.name,
        "tile": "x".join(map(str, found.tile)),
        "stages": found.stages,
        "roles": found.roles,
        "waves": new.waves,
        "powers": "x".join(map(str, plain.tile)),
        "gain": old.cycles / new.cycles,
        "copies": len(_COPIES.findall(kernel.ptx)),
        "registers": info.registers,
        "spills": info.spill_stores + info.spill_loads,
        "choosing": choosing,
    }


def main() -> int:
    """The table of all products."""
    options = arguments(__doc__).parse_args()
    products = PRODUCTS[4:6] if options.quick else PRODUCTS
    products = (*products, *(Product(*(p.m, p.n, p.k), turned=False) for p in products[4:7]))
    say = status(Console(stderr=True))
    rows: list[Row] = []
    for product in products:
        say(product.name)
        rows.append(row(product))
    gains = [each["gain"] for each in rows[: len(PRODUCTS)]]
    mean = prod(gains) ** (1 / len(gains))
    table = Table(
        f"Schedules of products on {TARGET}, f16",
        (
            Column("product", "M x N x K"),
            Column("tile", "tile"),
            Column("stages", "stages", "d"),
            Column("roles", "roles"),
            Column("waves", "waves", ".2f"),
            Column("powers", "of powers of two"),
            Column("gain", "costs times as much", ".2f"),
            Column("copies", "tensor copies", "d"),
            Column("registers", "registers", "d"),
            Column("spills", "spills", "d"),
            Column("choosing", "choosing, ms", ".0f"),
        ),
        rows,
        f"Geometric mean of the first {len(gains)}: {mean:.2f}.",
    )
    few = DECODING[1:2] if options.quick else DECODING
    decoding = Table(
        "Products of few rows, f16",
        (
            Column("product", "M x N x K"),
            Column("target", "target"),
            Column("tile", "tile"),
            Column("stages", "stages", "d"),
            Column("roles", "roles"),
            Column("parts", "parts", "d"),
            Column("sms", "SMs used", ".0%"),
            Column("flight", "KiB under way, an SM", ".1f"),
            Column("wanted", "memory wants", ".0f"),
            Column("share", "of memory's rate", ".0%"),
            Column("limit", "waits for"),
        ),
        [decoding_row(product, target) for target in (TARGET, "sm_80") for product in few],
        "Under way: (stages - 1) slots of all blocks that run, over the SMs. The part of memory's "
        "rate is the time for A and B at that rate, over the model's; where sums have parts, with "
        "another launch.",
    )
    report = Report("schedules", command(options), machine(("xdsl",)), [table, decoding])
    present(report, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
