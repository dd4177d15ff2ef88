"""Main loops, prologues and epilogues of products in machine code, beside Triton's.

    python benchmarks/main_loops.py [--alone] [--ptx NAME=FILE ...] [--json FILE] [--update PAGE.md]

C = A B of 8192 x 8192 x 8192, sizes known, the same tile everywhere; all of it assembled by the
ptxas that fragir uses. A step is one tile along K; what ptxas unrolls is divided. `--ptx` adds
PTX of the f16 product with the tile 128 x 256 x 64 from elsewhere, such as CUTLASS's.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neighbours import TRITON_LOOPS, Worker, worker
from report import Column, Report, Row, Table, arguments, command, machine, present

import fragir
from fragir.toolchain.ptxas import assemble
from fragir.toolchain.sass import disassemble
from fragir.toolchain.sass_loops import TENSOR, instructions, kind_of, main_loop

SIZE = 8192
SHAPES = {"16816": (16, 8, 16), "1688": (16, 8, 8), "16832": (16, 8, 32), "884": (8, 8, 4),
          "1684": (16, 8, 4)}  # fmt: skip
"""What opcodes write without x: m, n, k."""


@dataclass(frozen=True)
class Case:
    """A product and a schedule. `turned`: B is K-major; `warps` and `stages` are Triton's, too.

    `scaled`: an f32 multiplies each 1 x 128 of A and 128 x 128 of B.
    """

    element: str
    target: str
    tile: tuple[int, int, int]
    warps: int
    stages: int
    out: str = "f32"
    turned: bool = False
    extra: str = ""
    scaled: bool = False

    @property
    def product(self) -> str:
        order = "NT" if self.turned else "NN"
        tile = "x".join(map(str, self.tile))
        scaled = " scaled" * self.scaled
        return f"{self.element} {order}{scaled}, C {self.out}, {tile}, {self.target}"

    def program(self) -> str:
        """The program of ours."""
        a = f"memref<{SIZE}x{SIZE}x{self.element}>"
        c = f"memref<{SIZE}x{SIZE}x{self.out}>"
        tile = ", ".join(map(str, self.tile))
        schedule = f"tile = array<i64: {tile}>, stages = {self.stages} : i64{self.extra}"
        transposed = " transposed" if self.turned else ""
        x, y = f"memref<{SIZE // 128}x{SIZE}xf32>", f"memref<{SIZE // 128}x{SIZE // 128}xf32>"
        arguments, operands = f"%a: {a}, %b: {a}, %c: {c}", f"%a, %b{transposed}"
        types = f"{a}, {a}"
        if self.scaled:
            arguments += f", %x: {x}, %y: {y}"
            by = "transposed by"
            operands = f"%a scaled %x {by} [1, 128], %b{transposed} scaled %y {by} [128, 128]"
            types = f"{a} scaled {x}, {a} scaled {y}"
        return f"""func.func @gemm({arguments}) {{
  frag.matmul {operands} into %c {{{schedule}}} : {types} into {c}
  func.return
}}
"""

    def triton(self, kernel: str) -> dict[str, Any]:
        """The request for Triton's."""
        return {
            "kernel": kernel,
            "element": _TRITON[self.element],
            "out": _TRITON[self.out],
            "sum": {"i32": "i32", "f64": "fp64"}.get(self.out, "fp32"),
            "tile": self.tile,
            "sizes": [SIZE] * 3,
            "turned": self.turned,
            "target": int(self.target.removeprefix("sm_").rstrip("a")),
            "warps": self.warps,
            "stages": self.stages,
        }


_TRITON = {
    **{"f16": "fp16", "bf16": "bf16", "tf32": "fp32", "f32": "fp32", "f64": "fp64"},
    **{"si8": "i8", "i32": "i32", "f8E4M3FN": "fp8e4nv"},
}
F16 = Case("f16", "sm_90a", (128, 256, 64), 8, 3, "f16")
CASES = (
    F16,
    Case("f16", "sm_90a", (128, 256, 64), 8, 3),
    Case("f8E4M3FN", "sm_90a", (128, 256, 128), 8, 3, "f16", True),
    Case("f8E4M3FN", "sm_90a", (128, 128, 128), 8, 3, "f16"),
    Case("f8E4M3FN", "sm_90a", (128, 128, 128), 8, 3, "bf16", True, scaled=True),
    Case("f8E4M3FN", "sm_89", (128, 128, 128), 8, 3, "bf16", True, scaled=True),
    Case("si8", "sm_90a", (128, 256, 128), 8, 3, "i32", True),
    Case("tf32", "sm_90a", (128, 256, 32), 8, 3, "f32", True),
    Case("tf32", "sm_90a", (128, 128, 32), 8, 3),
    Case("f16", "sm_80", (128, 128, 32), 4, 3, "f16"),
    Case("f16", "sm_80", (128, 128, 64), 4, 3, "f16"),
    Case("si8", "sm_80", (128, 128, 64), 4, 3, "i32"),
    Case("si8", "sm_80", (128, 128, 64), 4, 3, "i32", True),
    Case("tf32", "sm_80", (128, 128, 32), 4, 3),
    Case("f64", "sm_80", (64, 64, 16), 4, 3, "f64"),
)


def steps(opcodes: list[str], case: Case, warps: int) -> float:
    """Tiles along K that a loop's tensor-core instructions of one warp multiply."""
    done = 0
    for text in opcodes:
        words = text.split(".")
        shape = next((SHAPES[w] for w in words if w in SHAPES), None)
        if shape is None:
            m, n, k = map(int, next(w for w in words if w.count("x") == 2).split("x"))
            shape = m // 4, n, k  # a quarter of a warpgroup's
        done += shape[0] * shape[1] * shape[2]
    m, n, k = case.tile
    return done * warps / (m * n * k)


def measured(name: str, case: Case, ptx: str, warps: int | None = None) -> Row:
    """What a kernel's machine code has. `warps`: those that multiply; else all of the block."""
    code = assemble(ptx, case.target)
    ((entry, info),) = code.entries.items()
    sass = disassemble(code.cubin)
    every = next(own for function, own in instructions(sass).items() if function == entry)
    loop = main_loop(sass, entry)
    texts = [one.text for one in loop.instructions if one.opcode in TENSOR]
    opcodes = [next(w for w in text.split() if w.split(".")[0] in TENSOR) for text in texts]
    if warps is None:
        found = re.search(r"\.(?:max|req)ntid\s+(\d+)", ptx)
        warps = int(found[1]) // 32 if found else case.warps
    turns = steps(opcodes, case, warps)
    inside = {one.address for one in loop.instructions}
    first = min(inside)
    kinds = loop.kinds
    stores = Counter(
        re.sub(r"\.(E|EF|SYS|STRONG|GPU|U|CONSTANT|16|M88)\b", "", word)
        for one in every
        if one.opcode in ("STG", "UTMASTG", "STS", "STSM")
        for word in one.text.split()
        if word.startswith(one.opcode)
    )
    return {
        "product": case.product,
        "kernel": name,
        "registers": info.registers,
        "spills": info.spill_stores + info.spill_loads,
        "before": sum(one.address < first for one in every),
        "step": len(loop.instructions) / turns,
        "after": sum(one.address > first and one.address not in inside for one in every),
        "tensor": kinds["tensor"] / turns,
        "share": kinds["tensor"] / len(loop.instructions),
        "loads": (kinds["ldmatrix"] + kinds["shared"]) / turns,
        "copies": (kinds["cp.async"] + kinds["tma"]) / turns,
        "numbers": (kinds["integer"] + kinds["uniform"]) / turns,
        "waits": ", ".join(dict.fromkeys(loop.waits)) or "mbarrier",
        "stores": ", ".join(f"{count} {what}" for what, count in stores.most_common(2)),
        "words": dict(Counter(kind_of(one.opcode) for one in loop.instructions)),
    }


COLUMNS = (
    Column("product", "product"),
    Column("kernel", "kernel"),
    Column("registers", "regs", "d"),
    Column("spills", "spilled", "d"),
    Column("before", "before", "d"),
    Column("step", "a step", ".1f"),
    Column("after", "behind", "d"),
    Column("share", "share", ".3f"),
    Column("loads", "loads", ".1f"),
    Column("copies", "copies", ".1f"),
    Column("numbers", "integers", ".1f"),
    Column("waits", "waits"),
    Column("stores", "stores"),
)


def rows_of(case: Case, triton: Worker | None, others: dict[str, Path]) -> list[Row]:
    """Ours and the neighbours'."""
    kernel = fragir.compile(case.program(), target=case.target)
    rows = [measured("fragir", case, kernel.ptx)]
    if case.target == "sm_90a":
        for words in (", roles", ", roles, cluster = 2 : i64"):
            kernel = fragir.compile(replace(case, extra=words).program(), target=case.target)
            multiplying = kernel.block[0] // 32 - 4  # one warpgroup fetches
            rows.append(measured(f"fragir{words}", case, kernel.ptx, multiplying))
    if triton is not None:
        kinds = ("pointers", "descriptors") if case.target == "sm_90a" else ("pointers",)
        for kind in ("scaled",) if case.scaled else kinds:
            if kind == "descriptors" and case.turned:
                continue
            answer = triton.ask(case.triton(kind))
            if "error" in answer:
                print(f"  Triton, {kind}: {answer['error']}", file=sys.stderr)
                continue
            rows.append(measured(f"Triton, {kind}", case, answer["ptx"], case.warps))
    if case == F16:
        rows += [measured(name, case, file.read_text("utf-8"), 8) for name, file in others.items()]
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--ptx", metavar="NAME=FILE", action="append", default=[])
    options = parser.parse_args()
    pairs = [given.partition("=") for given in options.ptx]
    others = {name: Path(file) for name, _, file in pairs}
    triton = worker(TRITON_LOOPS, not (options.alone or options.quick))
    table = Table(
        "Instructions of a warp in SASS: before the main loop, a step of it, behind it",
        COLUMNS,
        note="`share`: of the main loop's instructions those of the tensor cores. What fetches for"
        " others (roles) is not counted in a step, but in `before` or `behind`.",
    )
    for case in CASES[: 1 if options.quick else None]:
        print(case.product, file=sys.stderr)
        table.rows += rows_of(case, triton, others)
    if triton is not None:
        triton.close()
    report = Report("main_loops", command(options), machine(["fragir", "xdsl"]), [table])
    present(report, options)


if __name__ == "__main__":
    main()
