"""Runs of mma: registers and immediates of neighbouring independent products, in one call.

A run of neighbouring mma of one opcode in which none reads what an earlier one writes becomes one
step. A compiled core takes their registers where they are; without one their instances lie one
after the other along the warp axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.register_rows import (
    RegisterRows,
    operation,
    outputs,
    whole_warps,
)
from fragir.emulator.machine.lanes import Mask, Row, Select, Step, number_of
from fragir.emulator.numbers.types import Array
from fragir.emulator.program.entities import constant_or_none
from fragir.emulator.tensor_cores import Mma
from fragir.emulator.tensor_cores.compiled import CompiledMma, FileRows, mma_core
from fragir.emulator.tensor_cores.numpy_core import NumpyMma, numpy_core
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder

#: At most this many instances (instructions times warps) in one call.
FUSED = 4096


def names(operand: tree.Operand) -> set[str]:
    """The register names of a vector operand."""
    elements = operand.elements if isinstance(operand, tree.Vector) else (operand,)
    return {e.text for e in elements if isinstance(e, tree.Name)}


def is_fusible(d: Decoder, group: list[tree.Instruction], nxt: tree.Instruction) -> bool:
    """Whether `nxt` can join the mma of `group` (dense, one opcode, independent)."""
    first = group[0]
    if nxt.opcode != first.opcode or nxt.guard is not None or len(nxt.operands) != 4:
        return False
    if (len(group) + 1) * d.machine.warps > FUSED:
        return False
    written: set[str] = set[str]().union(*(names(i.operands[0]) for i in group))
    reads = set[str]().union(*(names(o) for o in nxt.operands))
    return not written & reads


def mma_group(d: Decoder, group: list[tree.Instruction]) -> Step:
    """One step for a run of independent mma."""
    return products(d, group).run


def products(d: Decoder, group: Sequence[tree.Instruction]) -> Products:
    """A run of independent mma."""
    ins = group[0]
    op = operation(d, ins)
    if not isinstance(op, Mma):
        raise d.error(ins, f"{ins.mnemonic} is not supported")
    for one in group:
        if d.count(one) < 4:
            raise d.error(one, f"{one.mnemonic} takes 4 operands or more, not {d.count(one)}")
    vectors = [[d.vector(i.operands[k]) for i in group] for k in range(4)]
    for vector, wanted, name in zip(vectors, (op.d, op.a, op.b, op.c), "dabc", strict=True):
        for one, elements in zip(group, vector, strict=True):
            if len(elements) != wanted.count:
                raise d.error(
                    one,
                    f"operand {name} of {ins.mnemonic} has {wanted.count} registers, "
                    f"not {len(elements)}",
                )
    return Products(d, group, op, vectors)


class Products:
    """The registers of a run of mma, and what computes it."""

    def __init__(
        self,
        d: Decoder,
        group: Sequence[tree.Instruction],
        op: Mma,
        vectors: Sequence[Sequence[Sequence[tree.Operand]]],
    ) -> None:
        self.machine, self.op, self.count = d.machine, op, len(group)
        self.result, self.write = outputs(d, group, vectors[0], op.d.width)
        widths = (op.a.width, op.b.width, op.c.width)
        self.sources = {
            name: RegisterRows(d, group, vector, width)
            for name, vector, width in zip("abc", vectors[1:], widths, strict=True)
        }
        self.fixed, self.words = _extra(d, group[0], op)
        self.core: CompiledMma | None = None
        self.plain: NumpyMma | None = None
        self.chosen = False
        self.given = [name for name, rows in self.sources.items() if rows.rows is not None]

    def choose(self) -> None:
        """What computes: decided when the run is first executed."""
        places: dict[str, FileRows | None] = {
            name: None if rows.rows is not None else FileRows(rows.file, rows.index)
            for name, rows in self.sources.items()
        }
        result = self.result
        places["d"] = None if result is None else FileRows(result.file, result.index)
        self.core = mma_core(self.op, self.count, **places, **self.fixed)
        if self.core is None:
            self.plain = numpy_core(self.op, **places)
        self.chosen = True

    def run(self, sel: Select, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        if not self.chosen:
            self.choose()
        words = {name: row[sel] for name, row in self.words.items()}
        warps = number_of(sel)
        self.machine.report.statistics.mma += warps * self.count
        jobs = self.machine.jobs
        if self.core is None:
            self._by_numpy(sel, jobs, words)
            return
        arrays = {name: np.ascontiguousarray(self.sources[name].read(sel)) for name in self.given}
        if self.result is not None:
            self.core(sel, jobs, arrays, **words)
            return
        d = self.op.d
        arrays["d"] = np.empty((d.count, self.count * warps, 32), d.dtype)
        self.core(sel, jobs, arrays, **words)
        self.write(sel, arrays["d"])

    def _by_numpy(self, sel: Select, jobs: int, words: dict[str, Array]) -> None:
        if self.plain is not None:
            self.plain(sel, jobs)
            return
        operands = [rows.read(sel) for rows in self.sources.values()]
        options = {**self.fixed, **{name: word[None] for name, word in words.items()}}
        self.write(sel, self.op.execute(*operands, jobs=jobs, **options))


def _extra(d: Decoder, ins: tree.Instruction, op: Mma) -> tuple[dict[str, Any], dict[str, Row]]:
    """Metadata and scales of the forms that have them: immediates, and rows of registers."""
    rest = list(range(4, d.count(ins)))
    wanted = (2 if op.e is not None else 0) + (4 if op.scales else 0)
    if len(rest) != wanted:
        raise d.error(ins, f"{ins.mnemonic} takes {4 + wanted} operands, not {d.count(ins)}")
    fixed: dict[str, Any] = {}
    rows: dict[str, Row] = {}
    if op.e is not None:
        rows["e"] = d.source(ins, rest.pop(0), "u32")
        selector = d.literal(ins, rest.pop(0))
        if selector not in op.selectors:
            raise d.error(ins, f"the sparsity selector must be one of {list(op.selectors)}")
        fixed["selector"] = selector
    if op.scales:
        for side in "ab":
            rows[f"sf{side}"] = d.source(ins, rest.pop(0), "u32")
            chosen = d.vector(d.operand(ins, rest.pop(0)))
            values = [constant_or_none(e) for e in chosen]
            if len(values) != 2 or None in values:
                raise d.error(ins, "scale selectors must be two constants")
            fixed[f"select_{side}"] = tuple(values)
    return fixed, rows


def _mma(d: Decoder, ins: tree.Instruction) -> Step:
    return mma_group(d, [ins])


STEPS: dict[str, Decode] = {
    "mma": _mma,
}
