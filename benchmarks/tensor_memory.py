"""Products in tensor memory: statements, and the machine code of a step, beside Triton 3.9's.

    python benchmarks/tensor_memory.py [--alone] [--json FILE] [--update PAGE.md]

C = A B of 8192 x 8192 x 8192 for sm_100a, sizes known, the same tile and stages everywhere, tensor
maps of the host's, blocks that go from tile to tile; all of it assembled by the ptxas that fragir
uses. A step is one tile along K, of all warps: what starts products and what fetches for them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from neighbours import Neighbour, Worker, worker
from report import Column, Report, Row, Table, arguments, command, machine, present
from statements import counts, machine_instructions

import fragir
from fragir.toolchain.ptxas import assemble
from fragir.toolchain.sass import disassemble
from fragir.toolchain.sass_loops import TENSOR, MachineLoop, loops

TRITON = Neighbour("Triton", ("triton==3.9.0",), "triton_maps.py")
SIZE, TARGET, WARPS, STAGES = 8192, "sm_100a", 4, 4
SMS = 148
"""Of a B200: the programs of Triton's, which are a constant of its kernel."""


@dataclass(frozen=True)
class Case:
    """A product; `turned`: B is K-major. Types as fragir and as Triton writes them."""

    element: str
    out: str
    names: tuple[str, str]
    tile: tuple[int, int, int]
    bits: int
    turned: bool = False

    @property
    def product(self) -> str:
        order, tile = "NT" if self.turned else "NN", "x".join(map(str, self.tile))
        return f"{self.element} {order}, C {self.out}, {tile}"

    def program(self, cluster: int) -> str:
        """Ours, of blocks alone, as Triton's, or of pairs."""
        a, c = (f"memref<{SIZE}x{SIZE}x{name}>" for name in (self.element, self.out))
        schedule = f"tile = array<i64: {', '.join(map(str, self.tile))}>, stages = {STAGES} : i64"
        schedule += ", pair" if cluster == 2 else ", cluster = 1 : i64"
        b = "%b transposed" if self.turned else "%b"
        return f"""func.func @gemm(%a: {a}, %b: {a}, %c: {c}) {{
  frag.matmul %a, {b} into %c {{{schedule}}} : {a}, {a} into {c}
  func.return
}}
"""

    def request(self, roles: bool) -> dict[str, object]:
        """What Triton is asked for."""
        element, out = self.names
        return {
            "element": element,
            "out": out,
            "tile": self.tile,
            "sizes": [SIZE] * 3,
            "turned": self.turned,
            "roles": roles,
            "programs": SMS,
            "target": 100,
            "warps": WARPS,
            "stages": STAGES,
        }


CASES = (
    Case("f16", "f16", ("fp16", "fp16"), (128, 128, 64), 16),
    Case("f16", "f16", ("fp16", "fp16"), (128, 128, 64), 16, True),
    Case("f16", "f16", ("fp16", "fp16"), (128, 256, 64), 16, True),
    Case("bf16", "bf16", ("bf16", "bf16"), (128, 128, 64), 16),
    Case("f8E4M3FN", "f16", ("fp8e4nv", "fp16"), (128, 128, 128), 8, True),
    Case("tf32", "f32", ("fp32", "fp32"), (128, 128, 32), 32, True),
)


def fetches(loop: MachineLoop) -> int:
    """Its copies from global memory by TMA."""
    return loop.counts["UTMALDG"]


def step(sass: str, case: Case) -> tuple[float, float]:
    """Instructions of a tile along K in all loops that multiply or fetch, and of those that do not
    multiply."""
    working = [one for one in loops(sass) if one.tensor or fetches(one)]
    inner = [one for one in working if not any(other.is_in(one) for other in working)]
    _, _, depth = case.tile
    each = depth * case.bits // 256
    multiplying = sum(len(one.instructions) * each / one.tensor for one in inner if one.tensor)
    # of copies of a step alone one is told how many bytes come
    fetching = sum(
        len(one.instructions) / max(1, sum("ARRIVE.TRANS64" in i.text for i in one.instructions))
        for one in inner
        if not one.tensor
    )
    return multiplying + fetching, fetching


def measured(name: str, case: Case, text: str) -> Row:
    code = assemble(text, TARGET)
    ((entry, info),) = code.entries.items()
    sass = disassemble(code.cubin)
    assert any(opcode in sass for opcode in TENSOR), entry
    whole, fetching = step(sass, case)
    return {
        "product": case.product,
        "compiler": name,
        **counts(text),
        "registers": info.registers,
        "spills": info.spill_stores + info.spill_loads,
        "machine_instructions": machine_instructions(code.cubin),
        "warnings": len(code.warnings),
        "step": whole,
        "fetching": fetching,
    }


def rows(case: Case, triton: Worker | None) -> list[Row]:
    """Ours and Triton's, with what Triton takes of each beside ours."""
    found = [
        measured(name, case, fragir.compile(case.program(cluster), target=TARGET).ptx)
        for name, cluster in (("fragir", 1), ("fragir, pairs of blocks", 2))
    ]
    if triton is not None:
        for words, roles in (("", False), (", roles", True)):
            answer = triton.ask(case.request(roles))
            if "error" in answer:
                print(f"  Triton{words}: {answer['error']}", file=sys.stderr)
                continue
            found.append(measured(f"{TRITON.label}{words}", case, answer["ptx"]))
    ours = found[0]
    for row in found[2:]:
        for key in ("statements", "step"):
            row[f"{key}_ratio"] = ours[key] / row[key]
    return found


def main() -> None:
    options = arguments(__doc__).parse_args()
    options.alone |= options.quick
    triton = worker(TRITON, not options.alone)
    table = Table(
        "Products in tensor memory: statements of PTX, and instructions of SASS a step",
        (
            Column("product", "product"),
            Column("compiler", "compiler"),
            Column("statements", "statements", "d"),
            Column("statements_ratio", "fragir's", ".2f"),
            Column("in_loops", "in loops", "d"),
            Column("registers", "registers", "d"),
            Column("spills", "spill bytes", "d"),
            Column("machine_instructions", "SASS", "d"),
            Column("step", "a step", ".0f"),
            Column("step_ratio", "fragir's", ".2f"),
            Column("fetching", "fetching", ".0f"),
        ),
        note="`fragir's`: what fragir, of blocks alone, takes of that. `fetching`: of a step what a"
        " role that only fetches does.",
    )
    for case in CASES[: 1 if options.quick else None]:
        print(case.product, file=sys.stderr)
        table.rows += rows(case, triton)
    if triton is not None:
        triton.close()
    facts = machine(["fragir", "nvidia-cuda-nvcc"])
    present(Report("tensor-memory", command(options), facts, [table]), options)


if __name__ == "__main__":
    sys.exit(main())
