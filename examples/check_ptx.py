"""PTX that nobody compiled: run on the CPU, changed as a tree, and its faults found.

examples/hand_written.ptx is right. Each fault below is one change of its syntax tree; the
emulator says where it shows, with the PTX line, warp, lane and address.

    python examples/check_ptx.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from fragir.emulator import EmulationError, Report, run
from fragir.ptx import parse, transform, tree, write

FILE = Path(__file__).with_name("hand_written.ptx")
Change = Callable[[tree.Node], tree.Node | None]


def without_barrier(node: tree.Node) -> tree.Node | None:
    """The warps no longer wait for each other's rows."""
    barrier = isinstance(node, tree.Instruction) and node.opcode[0] == "bar"
    return None if barrier else node


def swapped_registers(node: tree.Node) -> tree.Node | None:
    """ldmatrix fills registers 1 and 2 of A the wrong way round."""
    if not isinstance(node, tree.Instruction) or node.opcode[0] != "ldmatrix":
        return node
    registers = node.operands[0]
    assert isinstance(registers, tree.Vector)
    first, second, third, fourth = registers.elements
    vector = replace(registers, elements=(first, third, second, fourth))
    return replace(node, operands=(vector, *node.operands[1:]))


def too_far(node: tree.Node) -> tree.Node | None:
    """C's second rows are stored 16 rows too low."""
    if isinstance(node, tree.Integer) and node.text == "256":
        return replace(node, text="1024")
    return node


CHANGES: tuple[tuple[str, Change | None], ...] = (
    ("as it stands", None),
    ("without bar.sync", without_barrier),
    ("registers 1 and 2 of A swapped", swapped_registers),
    ("C stored past its end", too_far),
)


def judge(ptx: str) -> tuple[Report | None, list[str], bool]:
    """What every check says, and whether C is A B."""
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (32, 16)).astype(np.float16)
    b = rng.integers(-4, 5, (8, 16)).astype(np.float16)
    c = np.zeros((32, 8), np.float32)
    try:
        report = run(ptx, block=(64,), arguments=[a, b, c], check=True, fragments=True)
    except EmulationError as error:
        return None, [str(error)], False
    right = np.array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))
    return report, [f"line {f.line}: {f.kind}: {f.message}" for f in report.findings], right


def main() -> None:
    module = parse(FILE.read_text(), FILE.name)
    for name, change in CHANGES:
        ptx = write(module if change is None else transform(module, change))
        report, said, right = judge(ptx)
        print(f"{name}: the result is {'right' if right else 'wrong'}")
        if change is None and report is not None:
            for use in report.fragments:
                print(
                    f"  line {use.line}: {use.operand} is {use.buffer} from byte {use.first} on, "
                    f"a row {use.row_stride // 8} bytes on, a column {use.column_stride // 8}"
                )
        for words in said:
            print(f"  {words}")
        if bool(said) != (change is not None):
            raise SystemExit("FAIL: not what the example promises")


if __name__ == "__main__":
    main()
