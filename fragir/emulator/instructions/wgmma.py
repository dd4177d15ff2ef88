"""wgmma: asynchronous, with groups (PTX ISA 9.2, section 9.7.15).

A wgmma executes when a wait names its group: it reads its operands then. From issue to that moment
its accumulator and its A registers may not be touched by anything but wgmma with the same
accumulator. Registers that other instructions wrote must pass a `wgmma.fence` before a wgmma uses
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.register_rows import operation, whole_warps
from fragir.emulator.machine.lanes import Mask, Select, Step
from fragir.emulator.machine.transfers import WARPGROUP, Issue, WgmmaStatement, expand
from fragir.emulator.numbers.types import Array
from fragir.emulator.report import EmulationError
from fragir.emulator.tensor_cores import Wgmma
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder


def registers_of(d: Decoder, operands: Iterable[tree.Operand]) -> npt.NDArray[np.intp]:
    """The rows of the 32-bit file that operands name."""
    named = (r for operand in operands for r in d.registers(operand))
    return np.array(sorted({r.index for r in named if r.width == 32}), np.intp)


# -- decoding --------------------------------------------------------------------------------------


def _rows(
    d: Decoder, ins: tree.Instruction, elements: Sequence[tree.Operand], count: int
) -> npt.NDArray[np.intp]:
    if len(elements) != count:
        raise d.error(ins, f"{ins.mnemonic} has {count} registers here, not {len(elements)}")
    rows = [d.register(ins, e) for e in elements]
    if any(r.width != 32 for r in rows):
        raise d.error(ins, f"{ins.mnemonic} needs 32-bit registers here")
    return np.array([r.index for r in rows], np.intp)


def _mma(d: Decoder, ins: tree.Instruction) -> Step:
    op = operation(d, ins)
    assert isinstance(op, Wgmma)
    machine = d.machine
    if machine.warps_per_block % WARPGROUP:
        raise d.error(
            ins, f"wgmma needs whole warpgroups; the block has {machine.warps_per_block} warps"
        )
    a_operand = d.operand(ins, 1)
    a_rows = None
    if isinstance(a_operand, tree.Vector):
        a_rows = _rows(d, ins, a_operand.elements, op.a.count)
    rest = list(range(3, d.count(ins)))
    options: dict[str, Any] = {}
    meta = None
    immediates = (2 if op.scales_inputs else 0) + (
        0 if not op.transposes else 1 if a_rows is not None else 2
    )
    wanted = 1 + immediates + (2 if op.e is not None else 0)
    if len(rest) != wanted:
        raise d.error(ins, f"{ins.mnemonic} takes {3 + wanted} operands, not {d.count(ins)}")
    if op.e is not None:
        meta = d.source(ins, rest.pop(0), "u32")
        selector = d.literal(ins, rest.pop(0))
        if selector not in op.selectors:
            raise d.error(ins, f"the sparsity selector must be one of {list(op.selectors)}")
        options["selector"] = selector
    scale = d.source(ins, rest.pop(0), "pred")
    values = [d.literal(ins, i) for i in rest]
    if op.scales_inputs:
        for name, value in zip(("scale_a", "scale_b"), values, strict=False):
            if value not in (1, -1):
                raise d.error(ins, "imm-scale must be 1 or -1")
            options[name] = value
        values = values[2:]
    if op.transposes:
        names = ["transpose_b"] if a_rows is not None else ["transpose_a", "transpose_b"]
        for name, value in zip(names, values, strict=True):
            if value not in (0, 1):
                raise d.error(ins, "imm-trans must be 0 or 1")
            options[name] = bool(value)
    where = d.program.error("", ins.at)
    into = _rows(d, ins, d.vector(d.operand(ins, 0)), op.d.count)
    names = {
        d.register(ins, e).index: e.text
        for operand in ins.operands[:2]
        for e in (d.vector(operand) if operand is not a_operand or a_rows is not None else ())
        if isinstance(e, tree.Name)
    }
    form = WgmmaStatement(
        op, into, a_rows, options, (where.file, where.line, where.col), ins, names
    )
    a = None if a_rows is not None else d.source(ins, 1, "u64")
    b = d.source(ins, 2, "u64")

    def run(sel: Select, mask: Mask) -> None:
        warps = np.arange(machine.warps)[whole_warps(sel, mask)]
        first = warps[::WARPGROUP]
        if not np.array_equal(expand(first), warps) or (first % WARPGROUP).any():
            raise EmulationError(
                "the four warps of the warpgroup are not all here", kind="divergent"
            )

        def uniform(row: Array, what: str) -> Array:
            value = row[warps].reshape(len(first), -1)
            if (value != value[:, :1]).any():
                raise EmulationError(f"{what} must be the same in all threads of the warpgroup")
            return value[:, 0].copy()

        machine.wgmma.issue(
            Issue(
                form,
                first,
                machine.wgmma.committed[first].copy(),
                None if a is None else uniform(a, "the descriptor of A"),
                uniform(b, "the descriptor of B"),
                uniform(scale, "scale-d"),
                None if meta is None else meta[warps].reshape(1, len(first), WARPGROUP, 32).copy(),
            )
        )

    return run


def _fence(d: Decoder, ins: tree.Instruction) -> Step:
    machine = d.machine
    return lambda sel, mask: machine.wgmma.fence(whole_warps(sel, mask))


def _commit(d: Decoder, ins: tree.Instruction) -> Step:
    machine = d.machine
    return lambda sel, mask: machine.wgmma.commit(whole_warps(sel, mask))


def _wait(d: Decoder, ins: tree.Instruction) -> Step:
    machine, newest = d.machine, d.literal(ins, 0)
    if newest is None or newest < 0:
        raise d.error(ins, "wgmma.wait_group needs a constant")
    number = newest
    return lambda sel, mask: machine.wgmma.wait(whole_warps(sel, mask), number)


STEPS: dict[str, Decode] = {
    "wgmma": _mma,
    "wgmma fence": _fence,
    "commit wgmma": _commit,
    "wait for wgmma": _wait,
}
