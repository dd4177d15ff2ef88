"""What is said of fragments: which matrix arrives where, and what of it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.fragments.patterns import TORN, UNKNOWN, AffineFit, Verdict, grids
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, Array
from fragir.emulator.report import FragmentUse
from fragir.emulator.tensor_cores.maps import Fragment
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.register_rows import RegisterRows
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program

KIND = "fragment"


@dataclass(frozen=True, slots=True)
class MatrixOperand:
    """One register operand of a group of mma, or of a wgmma."""

    name: str
    fragment: Fragment
    reads: list[RegisterRows]  # one `RegisterRows` a plane


def overlaps(use: FragmentUse) -> bool:
    """Whether elements share bits of memory, though no line is one for all (a broadcast)."""
    if not use.row_stride or not use.column_stride:
        return False
    rows, columns = (np.arange(count) for count in use.shape)
    places = np.sort((rows[:, None] * use.row_stride + columns * use.column_stride).ravel())
    return bool((np.diff(places) < use.bits).any())


class Reports:
    """`found`: `Hooks.found` of the check; `buffer`: (name, offset) of a byte of global memory."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        found: Callable[..., object],
        buffer: Callable[[int], tuple[str, int]],
    ) -> None:
        self.machine, self.program, self._found, self.buffer = machine, program, found, buffer
        self._said: set[tuple[int, str]] = set()
        self._uses: dict[tuple[Hashable, ...], FragmentUse] = {}

    def judge(
        self,
        ins: tree.Instruction,
        operands: Sequence[MatrixOperand],
        found: Sequence[tuple[list[Verdict | None], I64]],
        warps: Array,
        pairs: bool,
    ) -> None:
        orders = {
            o.name: [None if v is None else v.order for v in f[0]]
            for o, f in zip(operands, found, strict=True)
        }
        for operand, (verdicts, bases) in zip(operands, found, strict=True):
            other = orders.get({"A": "B", "B": "A"}.get(operand.name, "")) if pairs else None
            fine = [
                v is None or v.good or (other is not None and v.order is not None and v.order == o)
                for v, o in zip(verdicts, other or [None] * len(verdicts), strict=True)
            ]
            self.note(ins, operand.name, operand.fragment.bits, verdicts, fine, bases)
            if all(fine) or (id(ins), operand.name) in self._said:
                continue
            index = fine.index(False)
            verdict = verdicts[index]
            assert verdict is not None
            self._complain(ins, operand, verdict, int(bases[index]), int(warps[index]))

    def note(
        self,
        ins: tree.Instruction,
        name: str,
        bits: int,
        verdicts: Sequence[Verdict | None],
        fine: Sequence[bool],
        bases: I64,
    ) -> None:
        """Add to the list of what arrives where."""
        index = 0
        while index < len(verdicts):
            verdict = verdicts[index]
            end = index + 1
            while end < len(verdicts) and verdicts[end] is verdict and fine[end] == fine[index]:
                end += 1
            if verdict is not None:
                each = verdict.fits[0]
                key = (id(ins), name, each.rows, each.columns, fine[index])
                origin = bases[index:end] - 1 + each.base // 8
                low, high = int(origin.min()), int(origin.max())
                use = self._uses.get(key)
                buffer, offset = self.buffer(low)
                if use is None:
                    where = self.program.error("", ins.at)
                    use = self._uses[key] = FragmentUse(
                        where.line, ins.mnemonic, name, each.shape, bits, buffer, offset, offset,
                        each.rows, each.columns, fine[index],
                    )  # fmt: skip
                    self.machine.report.fragments.append(use)
                    if use.consistent and overlaps(use):
                        self._remark(ins, use)
                if use.buffer == buffer:
                    use.first = min(use.first, offset)
                    use.last = max(use.last, offset + high - low)
                use.count += end - index
            index = end

    def _remark(self, ins: tree.Instruction, use: FragmentUse) -> None:
        """The lines of a matrix share bytes: a leading dimension that is too small looks so."""
        large = 0 if abs(use.row_stride) >= abs(use.column_stride) else 1
        steps = abs(use.row_stride), abs(use.column_stride)
        length = (use.shape[1 - large] - 1) * steps[1 - large] + use.bits
        line = ("row", "column")[large]
        text = (
            f"{use.mnemonic}: the {line}s of {use.operand} overlap in memory: each has "
            f"{length / 8:g} bytes, and the next begins {steps[large] / 8:g} bytes behind its "
            f"start; {use.operand}[0,0] is byte {use.first} of {use.buffer}"
        )
        self._found(
            self.program, ins.at, KIND, text, subject=f"{use.operand} overlaps", severity="remark"
        )

    # -- messages --------------------------------------------------------------------------------

    def _complain(
        self,
        ins: tree.Instruction,
        operand: MatrixOperand,
        verdict: Verdict,
        base: int,
        warp: int,
    ) -> None:
        self._said.add((id(ins), operand.name))
        fragment = operand.fragment
        product = next(i for i, f in enumerate(verdict.fits) if not f.consistent)
        each, places = verdict.fits[product], verdict.places[product]
        word: I64 = grids(operand.name, fragment, fragment.word.astype(np.int64))[product]
        huge = np.int64(np.iinfo(np.int64).max)
        slot = np.where(each.outliers, word, huge)
        # The lowest register of the lowest lane that holds a wrong element.
        lanes = np.where(each.outliers, word % fragment.lanes, np.int64(fragment.lanes))
        slot = np.where(lanes == lanes.min(), slot, huge)
        chosen = (word == slot.min()) & each.outliers
        wrong = [(int(r), int(c)) for r, c in np.argwhere(chosen)]
        register, lane = divmod(int(slot.min()), fragment.lanes)
        total, known = int(each.outliers.sum()), int((places != UNKNOWN).sum())
        origin, offset = self.buffer(base - 1 + each.base // 8)
        element = f"{operand.name}[0,0] is byte {offset} of {origin}"
        there = [int(places[p]) for p in wrong]
        holds = self._holds(operand.name, each, there, base)
        message = (
            f"lane {lane} register {register} of {operand.name} should hold "
            f"{span(operand.name, wrong)}, holds {holds}; {element}, a row is {each.rows // 8} "
            f"bytes on, a column {each.columns // 8}; {total} of {known} elements are wrong"
        )
        flat = warp * LANES + lane
        self._report(ins, operand.name, message, flat)

    def _holds(self, name: str, each: AffineFit, places: list[int], base: int) -> str:
        if any(p == TORN for p in places):
            return "bytes that are no neighbours in memory"
        found = [each.coordinates(p) for p in places]
        inside = [f for f in found if f is not None]
        if len(inside) == len(found):
            return span(name, inside)
        buffer, offset = self.buffer(base - 1 + places[0] // 8)
        return f"byte {offset} of {buffer}"

    def elsewhere(
        self,
        ins: tree.Instruction,
        name: str,
        verdict: Verdict,
        base: int,
        warp: int,
        where: str,
    ) -> None:
        """Say of an operand, once, what is wrong with it where no register is to blame."""
        if verdict.good or (id(ins), name) in self._said:
            return
        self._said.add((id(ins), name))
        each = verdict.fits[0]
        r, c = (int(x) for x in np.argwhere(each.outliers)[0])
        holds = self._holds(name, each, [int(verdict.places[0][r, c])], base)
        origin, offset = self.buffer(base - 1 + each.base // 8)
        message = (
            f"{where} should hold {name}[{r},{c}] where it holds {holds}; {name}[0,0] is "
            f"byte {offset} of {origin}, a row is {each.rows // 8} bytes on, a column "
            f"{each.columns // 8}; {int(each.outliers.sum())} elements are wrong"
        )
        self._report(ins, name, message, warp * LANES)

    def _report(self, ins: tree.Instruction, name: str, message: str, lane: int) -> None:
        self._found(self.program, ins.at, KIND, message, lane=lane, subject=name)


def span(name: str, elements: Sequence[tuple[int, int]]) -> str:
    """`A[1,10..11]` for neighbours in a row, `A[2..3,5]` in a column, else the single elements."""
    rows, columns = [e[0] for e in elements], [e[1] for e in elements]

    def run(values: list[int]) -> bool:
        return all(b - a == 1 for a, b in pairwise(values))

    if len(elements) == 1:
        return f"{name}[{rows[0]},{columns[0]}]"
    if len(set(rows)) == 1 and run(columns):
        return f"{name}[{rows[0]},{columns[0]}..{columns[-1]}]"
    if len(set(columns)) == 1 and run(rows):
        return f"{name}[{rows[0]}..{rows[-1]},{columns[0]}]"
    return " ".join(f"{name}[{r},{c}]" for r, c in elements)
