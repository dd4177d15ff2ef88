"""Which elements of which buffer arrive in A, B and C of every tensor-core instruction.

The bytes of a fragment are followed to where they were loaded from (`provenance.py`) and put in the
places that the ISA's formulas give them (`maps.py`). What arrives should be a matrix: an origin, a
step from row to row and one from column to column, transposes included. What does not belong to it
is reported. Computed data has no origin and is left out; A and B whose K comes in one and the same
other order are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.fragments.fit import TORN, UNKNOWN, Fit, Places, fit, permutation
from fragir.emulator.checks.fragments.provenance import Provenance, numbers_of
from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.shadow import PlaneDecoder
from fragir.emulator.instructions.warp_matrix import RegisterRows, operation, whole_warps
from fragir.emulator.machine.issues import WARPGROUP, Issue
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.machine.machine import Machine
from fragir.emulator.numbers.types import I64
from fragir.emulator.program.program import Program
from fragir.emulator.report import FragmentUse
from fragir.emulator.tensor_cores import Mma
from fragir.emulator.tensor_cores.fragment import Fragment
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.code import Terminator
    from fragir.emulator.machine.transfers import Copy, Transfer

KIND = "fragment"

#: operand -> the axes of its fragment in the order product, row, column
_AXES: dict[tuple[str, int], tuple[int, ...]] = {
    ("A", 2): (1, 0),
    ("B", 2): (0, 1),
    ("C", 2): (0, 1),
    ("A", 3): (1, 2, 0),
    ("B", 3): (1, 0, 2),
    ("C", 3): (0, 1, 2),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pattern of origins is: one fit per product, and the order of K where it is one."""

    fits: tuple[Fit, ...]
    order: tuple[int, ...] | None
    places: tuple[Places, ...]  # relative to the smallest number
    good: bool  # every fit is consistent


@dataclass(frozen=True, slots=True)
class Operand:
    """One register operand of a group of mma, or of a wgmma."""

    name: str
    fragment: Fragment
    reads: list[Any]  # one `RegisterRows` a plane


class Fragments(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.origins = Provenance(machine, program)
        self._decoder: Decoder | None = None
        self._said: set[tuple[int, str]] = set()
        self._verdicts: dict[tuple[Any, ...], Verdict | None] = {}
        self._uses: dict[tuple[Any, ...], FragmentUse] = {}

    def on_wave(self) -> None:
        self.origins.reset()

    def on_copy_complete(self, copy: Copy) -> None:
        for plane in self.origins.planes:
            copy.move(plane.memory)

    def on_transfer_complete(self, transfer: Transfer) -> None:
        if transfer.into is not None:
            for plane in self.origins.planes:
                transfer.move(plane.memory)

    # -- decoding --------------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        self._decoder = d
        before: list[Step] = []
        if group[0].opcode[0] == "mma":
            before += self._mma(d, group)
        for ins in group:
            if ins.opcode[0] != "wgmma":
                before += self.origins.steps(d, ins)
        if not before:
            return step

        def run(sel: Any, mask: Mask) -> None:
            for one in before:
                one(sel, mask)
            step(sel, mask)

        return run

    def wrap_terminator(
        self, d: Decoder, instruction: tree.Instruction, terminator: Terminator
    ) -> Terminator:
        if instruction.opcode[0] != "call":
            return terminator
        before = self.origins.arguments(d, instruction)

        def run(sel: Any, mask: Mask) -> int | None:
            for one in before:
                one(sel, mask)
            return terminator(sel, mask)

        return run

    def _mma(self, d: Decoder, group: Sequence[tree.Instruction]) -> list[Step]:
        op = operation(d, group[0])
        assert isinstance(op, Mma)
        operands: list[Operand] = []
        fragments = (op.plan.a, op.plan.b, op.plan.c)
        for index, (name, fragment) in enumerate(zip("ABC", fragments, strict=True), 1):
            roles = [self.origins.flow.of(i).operands[index] for i in group]
            if not any(r in self.origins.tracked for found in roles for r in found):
                continue
            vectors = [d.vector(i.operands[index]) for i in group]
            reads = [
                RegisterRows(PlaneDecoder(d, plane), group, vectors, fragment.width)
                for plane in self.origins.planes
            ]
            operands.append(Operand(name, fragment, reads))
        scales = self._scale_steps(d, group, op) if op.scales else []
        if not operands:
            return scales
        pairs = op.plan.metadata is None

        def run(sel: Any, mask: Mask) -> None:
            sel = whole_warps(sel, mask)
            warps = np.arange(self.machine.warps)[sel]
            found = [
                self._examine(o.name, o.fragment, [r.read(sel) for r in o.reads]) for o in operands
            ]
            for number, ins in enumerate(group):
                part = slice(number * len(warps), (number + 1) * len(warps))
                self._judge(d, ins, operands, [(v[part], b[part]) for v, b in found], warps, pairs)

        return [*scales, run]

    # -- scales ----------------------------------------------------------------------------------

    def _scale_steps(self, d: Decoder, group: Sequence[tree.Instruction], op: Mma) -> list[Step]:
        """SFA `[row, block of K]` and SFB `[block, column]`: a byte each, of the lanes chosen."""
        steps: list[Step] = []
        planes = self.origins.planes
        for ins in group:
            used = self.origins.flow.of(ins).operands
            for name, index in (("SFA", len(ins.operands) - 4), ("SFB", len(ins.operands) - 2)):
                if not any(r in self.origins.tracked for r in used[index]):
                    continue
                rows = [PlaneDecoder(d, plane).source(ins, index, "u32") for plane in planes]
                chosen = d.vector(ins.operands[index + 1])
                byte, thread = (d.program.constant_or_none(e) or 0 for e in chosen)
                select = byte, thread
                steps.append(partial(self._scales, d, ins, op, name, rows, select))
        return steps

    def _scales(
        self,
        d: Decoder,
        ins: tree.Instruction,
        op: Mma,
        name: str,
        rows: Sequence[Any],
        select: tuple[int, int],
        sel: Any,
        mask: Mask,
    ) -> None:
        left = name == "SFA"
        parts = [op.scale_codes(row[sel], select, left=left).astype(np.int64) for row in rows]
        numbers: I64 = np.zeros_like(parts[0])  # [rows, blocks, warps]
        for k, part in enumerate(parts):
            numbers |= part << 8 * k
        warps = np.arange(self.machine.warps)[sel]
        for index, warp in enumerate(warps):
            one = numbers[..., index]
            if not one.any():
                continue
            base = int(one[one > 0].min())
            places = np.where(one > 0, (one - base) * 8, UNKNOWN)
            places = places if left else places.T
            key = (name, "scales", places.shape, places.tobytes())
            if key not in self._verdicts:
                self._verdicts[key] = _verdict(name, [places])
            verdict = self._verdicts[key]
            assert verdict is not None
            self._note(d, ins, name, 8, [verdict], [verdict.good], np.array([base], np.int64))
            if not verdict.good and (id(ins), name) not in self._said:
                self._said.add((id(ins), name))
                self._elsewhere(d, ins, name, verdict, base, int(warp), "the selected byte")

    # -- patterns --------------------------------------------------------------------------------

    def _examine(
        self, name: str, fragment: Fragment, words: Sequence[Any]
    ) -> tuple[list[Verdict | None], I64]:
        """(verdict, smallest number) of every instance; None where nothing is known."""
        count, instances = words[0].shape[:2]
        size = max(fragment.bits // 8, 1)
        firsts = np.stack([numbers_of(words, b) for b in range(0, fragment.width // 8, size)])
        huge = np.iinfo(np.int64).max
        base: I64 = np.where(firsts > 0, firsts, huge).min(axis=(0, 1, 3))
        relative = np.where(firsts > 0, firsts - base[:, None], -1)
        relative = np.ascontiguousarray(relative.transpose(2, 0, 1, 3))
        verdicts: list[Verdict | None] = []
        same = (relative == relative[:1]).reshape(instances, -1).all(axis=1)
        first: Verdict | None = None
        for index in range(instances):
            if base[index] == huge:
                verdicts.append(None)
                continue
            if index and same[index]:
                verdicts.append(first)
                continue
            key = (name, id(fragment), count, relative[index].tobytes())
            if key not in self._verdicts:
                whole = np.stack(
                    [
                        numbers_of([w[:, index] for w in words], b)
                        for b in range(fragment.width // 8)
                    ]
                )
                places = _places(fragment, whole, int(base[index]))
                self._verdicts[key] = _verdict(name, _grids(name, fragment, places))
            verdict = self._verdicts[key]
            verdicts.append(verdict)
            if not index:
                first = verdict
        return verdicts, base

    def _judge(
        self,
        d: Decoder,
        ins: tree.Instruction,
        operands: Sequence[Operand],
        found: Sequence[tuple[list[Verdict | None], I64]],
        warps: Any,
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
            self._note(d, ins, operand.name, operand.fragment.bits, verdicts, fine, bases)
            if all(fine) or (id(ins), operand.name) in self._said:
                continue
            index = fine.index(False)
            verdict = verdicts[index]
            assert verdict is not None
            self._complain(d, ins, operand, verdict, int(bases[index]), int(warps[index]))

    def _note(
        self,
        d: Decoder,
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
                buffer, offset = self.origins.buffer(low)
                if use is None:
                    where = d.program.error("", ins.at)
                    use = self._uses[key] = FragmentUse(
                        where.line, ins.mnemonic, name, each.shape, bits, buffer, offset, offset,
                        each.rows, each.columns, fine[index],
                    )  # fmt: skip
                    self.machine.report.fragments.append(use)
                if use.buffer == buffer:
                    use.first = min(use.first, offset)
                    use.last = max(use.last, offset + high - low)
                use.count += end - index
            index = end

    # -- messages --------------------------------------------------------------------------------

    def _complain(
        self,
        d: Decoder,
        ins: tree.Instruction,
        operand: Operand,
        verdict: Verdict,
        base: int,
        warp: int,
    ) -> None:
        self._said.add((id(ins), operand.name))
        fragment = operand.fragment
        product = next(i for i, f in enumerate(verdict.fits) if not f.consistent)
        each, places = verdict.fits[product], verdict.places[product]
        word: I64 = _grids(operand.name, fragment, fragment.word.astype(np.int64))[product]
        huge = np.int64(np.iinfo(np.int64).max)
        slot = np.where(each.outliers, word, huge)
        # The lowest register of the lowest lane that holds a wrong element.
        lanes = np.where(each.outliers, word % fragment.lanes, np.int64(fragment.lanes))
        slot = np.where(lanes == lanes.min(), slot, huge)
        chosen = (word == slot.min()) & each.outliers
        wrong = [(int(r), int(c)) for r, c in np.argwhere(chosen)]
        register, lane = divmod(int(slot.min()), fragment.lanes)
        total, known = int(each.outliers.sum()), int((places != UNKNOWN).sum())
        origin, offset = self.origins.buffer(base - 1 + each.base // 8)
        element = f"{operand.name}[0,0] is byte {offset} of {origin}"
        there = [int(places[p]) for p in wrong]
        holds = self._holds(operand.name, each, there, base)
        message = (
            f"lane {lane} register {register} of {operand.name} should hold "
            f"{span(operand.name, wrong)}, holds {holds}; {element}, a row is {each.rows // 8} "
            f"bytes on, a column {each.columns // 8}; {total} of {known} elements are wrong"
        )
        flat = warp * LANES + lane
        self.report(d, ins, KIND, message, lane=flat, subject=operand.name)

    def _holds(self, name: str, each: Fit, places: list[int], base: int) -> str:
        if any(p == TORN for p in places):
            return "bytes that are no neighbours in memory"
        found = [each.coordinates(p) for p in places]
        inside = [f for f in found if f is not None]
        if len(inside) == len(found):
            return span(name, inside)
        buffer, offset = self.origins.buffer(base - 1 + places[0] // 8)
        return f"byte {offset} of {buffer}"

    # -- wgmma -----------------------------------------------------------------------------------

    def on_wgmma_execute(self, item: Issue) -> None:
        form, d = item.form, self._decoder
        assert d is not None
        op, count = form.op, len(item.warps)
        files = [plane.machine.files[32] for plane in self.origins.planes]
        warps = item.warps[:, None] + np.arange(WARPGROUP)
        if form.a is not None:
            words = [f[form.a[:, None, None], warps].reshape(-1, count, 4 * LANES) for f in files]
            operand = Operand("A", op.plan.a, [])
            found = self._examine("A", op.plan.a, words)
            self._judge(d, form.instruction, [operand], [found], item.warps, False)
        for name, descriptors in (("A", item.a), ("B", item.b)):
            if descriptors is not None and op.plan.bits >= 8:
                self._shared(d, item, name, descriptors)
        if item.scale.any():
            words = [f[form.d[:, None, None], warps].reshape(-1, count, 4 * LANES) for f in files]
            found = self._examine("C", op.plan.d, words)
            kept = [v if s else None for v, s in zip(found[0], item.scale, strict=True)]
            operand = Operand("C", op.plan.d, [])
            self._judge(d, form.instruction, [operand], [(kept, found[1])], item.warps, False)
        for file in files:
            file[form.d[:, None, None], warps] = 0

    def _shared(self, d: Decoder, item: Issue, name: str, descriptors: Any) -> None:
        """An operand in shared memory."""
        form, memory = item.form, self.machine.memory
        home = self.machine.block_of[item.warps].astype(np.int64) * memory.shared_stride
        transposed = bool(form.options.get(f"transpose_{name.lower()}", False))
        codes: list[Any] = []
        for plane in self.origins.planes:
            chunks = plane.memory.shared.bytes.reshape(-1, 16)

            def read(addresses: Any, chunks: Any = chunks) -> Any:
                at = addresses.astype(np.int64) + home[:, None]
                return chunks[np.minimum(at >> 4, len(chunks) - 1)]

            codes.append(
                form.op.read_operand(descriptors, read, left=name == "A", transposed=transposed)
            )
        size = form.op.plan.bits // 8
        whole = np.stack([numbers_of(codes, b) for b in range(size)])  # [bytes, G, k, m or n]
        for group, warp in enumerate(item.warps):
            numbers = whole[:, group]
            if not numbers[0].any():
                continue
            base = int(numbers[numbers > 0].min())
            relative = np.where(numbers > 0, numbers - base, -1)
            key = (name, "shared", numbers.shape, relative.tobytes())
            if key not in self._verdicts:
                places = _whole(relative, 0)
                self._verdicts[key] = _verdict(name, [places if name == "B" else places.T])
            verdict = self._verdicts[key]
            bases = np.array([base], np.int64)
            fine = [verdict is None or verdict.good]
            self._note(d, form.instruction, name, form.op.plan.bits, [verdict], fine, bases)
            told = (id(form.instruction), name) in self._said
            if verdict is None or verdict.good or told:
                continue
            self._said.add((id(form.instruction), name))
            self._elsewhere(d, form.instruction, name, verdict, base, int(warp), "shared memory")

    def _elsewhere(
        self,
        d: Decoder,
        ins: tree.Instruction,
        name: str,
        verdict: Verdict,
        base: int,
        warp: int,
        where: str,
    ) -> None:
        """An operand of which no register is to blame."""
        each = verdict.fits[0]
        r, c = (int(x) for x in np.argwhere(each.outliers)[0])
        holds = self._holds(name, each, [int(verdict.places[0][r, c])], base)
        origin, offset = self.origins.buffer(base - 1 + each.base // 8)
        message = (
            f"{where} should hold {name}[{r},{c}] where it holds {holds}; {name}[0,0] is "
            f"byte {offset} of {origin}, a row is {each.rows // 8} bytes on, a column "
            f"{each.columns // 8}; {int(each.outliers.sum())} elements are wrong"
        )
        self.report(d, ins, KIND, message, lane=warp * LANES, subject=name)


def _whole(relative: I64, low: Any) -> Places:
    """Bit addresses of elements from the numbers of their bytes `[bytes, ...]` (-1: unknown)."""
    first = relative[0]
    places = np.where(first >= 0, first * 8 + low, UNKNOWN)
    for byte in range(1, len(relative)):
        follows = relative[byte] == first + byte
        unknown = (first < 0) & (relative[byte] < 0)
        places = np.where(follows & (first >= 0), places, np.where(unknown, UNKNOWN, TORN))
        first = np.where(places == TORN, -1, first)
    return places


def _places(fragment: Fragment, numbers: I64, base: int) -> Places:
    """Bit addresses, relative to number `base`, of the elements of one instance: flat.

    `numbers`: those of every byte of the registers, `[bytes, count, lanes]`.
    """
    relative = np.where(numbers > 0, numbers - base, -1)
    flat = relative.reshape(len(relative), -1)
    shift = fragment.shift.astype(np.int64)
    size = max(fragment.bits // 8, 1)
    parts = np.stack([flat[shift // 8 + b, fragment.word] for b in range(size)])
    return _whole(parts, shift % 8)


def _grids(name: str, fragment: Fragment, flat: I64) -> list[I64]:
    """Values of the elements as matrices `[row, column]`, one per product."""
    axes = _AXES[name, len(fragment.extents)]
    full = flat.reshape(fragment.extents).transpose(axes)
    return [full] if full.ndim == 2 else list(full)


def _verdict(name: str, grids: Sequence[Places]) -> Verdict | None:
    fits = tuple(fit(g) for g in grids)
    order = None
    if len(grids) == 1 and name in "AB":
        order = permutation(grids[0], 1 if name == "A" else 0)
    return Verdict(fits, order, tuple(grids), all(f.consistent for f in fits))


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
