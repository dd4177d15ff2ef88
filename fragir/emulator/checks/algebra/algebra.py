"""Which function of its inputs a kernel computes, followed through its run.

The machine runs as ever: control flow, comparisons and rounding are its own. Beside it floats that
are made of inputs are elements of two fields (`fragir.algebra`): instructions that move bytes move
them, arithmetic of floats is arithmetic of elements, read from the texts of the opcodes. Where bits
of elements are used for something else, nothing can be said: those places are `opaque`.

    followed = follow([(a, "f16", x), (b, "f16", w)])
    run(ptx, "gemm", arguments=[a, b, c], checks=[followed], ...)
    followed.output(c, "f32")

Elements lie beside the caller's arrays, so several launches may follow each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fragir.algebra.numpy_door import Values
from fragir.algebra.values import NONE, ROUNDS
from fragir.emulator.checks.algebra.atomics import AtomicSums
from fragir.emulator.checks.algebra.expressions import Evaluator, NoMeaningError, is_arithmetic
from fragir.emulator.checks.algebra.matrices import MatrixElements, is_finite
from fragir.emulator.checks.algebra.numbers import (
    PLANES,
    ElementNumbers,
    ElementTable,
    byte_numbers,
    element_bits,
    size_of,
)
from fragir.emulator.checks.hooks import Hooks, with_steps_ahead
from fragir.emulator.instructions.alu import sequence
from fragir.emulator.instructions.computed import value
from fragir.emulator.instructions.convert import ELEMENTS, element_width
from fragir.emulator.machine.lanes import Mask, Select, Step, active, store
from fragir.emulator.numbers.types import (
    DTYPES,
    I64,
    U8,
    Array,
    Bools,
    address_of,
    bytes_of,
    width_of,
)
from fragir.emulator.values.facts import facts
from fragir.emulator.values.language import BOOL, FLOATS, Computation
from fragir.errors import FragirError
from fragir.ptx import tree
from fragir.ptx.opcodes.row import Logic, Moves

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.machine.tensor_work import TensorWork
    from fragir.emulator.machine.transfers import Copy, Issue, Transfer
    from fragir.emulator.program.dataflow import Roles
    from fragir.emulator.program.program import Program
    from fragir.ptx.opcodes.row import Opcode

#: Arrays of elements: one, its format, and what they are, in its shape.
Inputs = Sequence[tuple[Array, str, Values]]
#: What moves bytes, whole or to and from memory, and is done to the numbers as it is.
_MOVED = ("load", "store", "fill", "store fragment", "shuffle", "results")


class Followed:
    """A check that follows elements, to be given to `run`; what it has seen afterwards.

    `opaque`, `compared`, `rounded`: lines of the PTX at which bits of elements were used as
    something else, elements were compared or chosen by their numbers, whole numbers were made.
    """

    def __init__(self, inputs: Inputs, rounds: int = ROUNDS) -> None:
        self.rounds = rounds
        self.opaque: Counter[int] = Counter()
        self.compared: Counter[int] = Counter()
        self.rounded: Counter[int] = Counter()
        self.table = ElementTable(rounds)
        #: By the address of an array's bytes: numbers, a row a plane, and what the bytes were.
        self.beside: dict[int, tuple[U8, U8]] = {}
        self._arrays = [array for array, _, _ in inputs]
        for array, form, values in inputs:
            if not array.flags.c_contiguous or array.shape[: values.ndim - 1] != values.shape[:-1]:
                raise FragirError(f"an array of {array.shape} does not hold values {values.shape}")
            if size_of(form) * values.size > array.nbytes:
                raise FragirError(
                    f"an array of {array.nbytes} bytes does not hold {values.size} of {form}"
                )
            whole = np.zeros((PLANES, array.nbytes), np.uint8)
            self.table.number(values, form, whole)
            self.beside[address_of(array)] = whole, bytes_of(array).copy()

    def __repr__(self) -> str:
        seen = f"{len(self.compared)} lines compare elements, {len(self.opaque)} use their bits"
        return f"<elements of {len(self._arrays)} arrays; {seen}>"

    def __call__(self, machine: Machine, program: Program) -> Algebra:
        return Algebra(machine, program, self)

    def output(self, array: Array, form: str, shape: Sequence[int] | None = None) -> Values:
        """The elements of an array after the run; those that nothing has computed are constants."""
        shape = array.shape if shape is None else tuple(shape)
        size, count = size_of(form), int(np.prod(shape))
        data = bytes_of(array)[: size * count]
        if len(data) < size * count:
            raise FragirError(f"an array of {array.nbytes} bytes does not hold {count} of {form}")
        planes = np.zeros((PLANES, len(data)), np.uint8)
        self.bring(address_of(array), data, planes)
        dtype = np.dtype(f"u{size}")
        looked = self.table.look([p.view(dtype) for p in planes], data.view(dtype), form)
        if looked.broken is not None:
            self.opaque[0] += int(looked.broken.sum())
        return looked.values.reshape(shape)

    # -- beside the caller's memory ----------------------------------------------------------------

    def bring(self, start: int, data: U8, planes: Sequence[U8] | U8) -> None:
        """The numbers of bytes at an address, which hold what `data` says, where they are known."""
        for at, (numbers, before) in self.beside.items():
            low, high = max(at, start), min(at + len(before), start + len(data))
            if low >= high:
                continue
            here, there = slice(low - start, high - start), slice(low - at, high - at)
            same = data[here] == before[there]
            for plane, row in zip(planes, numbers, strict=True):
                plane[here] = np.where(same, row[there], plane[here])

    def keep(self, start: int, data: U8, planes: Sequence[U8]) -> None:
        """The numbers of bytes at an address after a launch."""
        for at, (_, before) in list(self.beside.items()):
            if start <= at and at + len(before) <= start + len(data):
                del self.beside[at]  # all of it is known better now
        self.beside[start] = np.stack([p.copy() for p in planes]), data.copy()


def follow(inputs: Inputs, rounds: int = ROUNDS) -> Followed:
    """Follows the elements of arrays through the launches that are given this check.

    `inputs`: C-contiguous arrays, as they are given to `run`, the format of their elements ("f32",
    "bf16", "e4m3", ...), and what they are. Other arrays hold what their bits say.
    """
    return Followed(inputs, rounds)


class Algebra(Hooks):
    def __init__(self, machine: Machine, program: Program, followed: Followed) -> None:
        super().__init__(machine, program)
        self.followed = followed
        self.numbers = ElementNumbers(machine, program, followed.table, self._beside)
        self.matrices = MatrixElements(machine, self.numbers, self._opaque)
        self.atomics = AtomicSums(machine, self.numbers, self._opaque)
        for address, data, planes in self._hosted():
            followed.bring(address, data, planes)

    def _hosted(self) -> Iterator[tuple[int, U8, list[U8]]]:
        """Of buffers that stand for a caller's memory: its address, bytes and numbers."""
        for buffer in self.machine.memory.buffers:
            address = self.machine.hosts.get(buffer.start)
            if address is not None:
                part = slice(buffer.start, buffer.start + buffer.size)
                planes = [p.memory.globals.bytes[part] for p in self.numbers.planes]
                yield address, self.machine.memory.globals.bytes[part], planes

    def _beside(self) -> list[list[U8]]:
        return [list(numbers) for numbers, _ in self.followed.beside.values()]

    def on_launch_end(self) -> None:
        for address, data, planes in self._hosted():
            self.followed.keep(address, data, planes)

    # -- what happens ------------------------------------------------------------------------------

    def on_wave_start(self) -> None:
        self.numbers.reset()

    def on_copy_complete(self, copy: Copy) -> None:
        for plane in self.numbers.planes:
            copy.move(plane.memory)

    def on_transfer_execute(self, transfer: Transfer) -> None:
        if transfer.reduction is not None:
            self.atomics.transfer(transfer, transfer.reduction)
            return
        for plane in self.numbers.planes:
            transfer.move(plane.memory)

    def on_wgmma_execute(self, item: Issue) -> None:
        self._finish = self.matrices.wgmma(item)

    def on_wgmma_complete(self, item: Issue) -> None:
        self._finish()

    def on_tensor_execute(self, work: TensorWork) -> None:
        self.matrices.tensor(work)

    # -- decoding ----------------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        ins = group[0]
        row = d.program.opcode(ins)
        if row.bits == "matrix":
            return self.matrices.mma(d, group, step)
        if row.bits == "wgmma":
            return step
        each = self.numbers.flow.of(ins)
        if row.bits == "atomic":
            return self.atomics.step(d, ins, step)
        if (computed := self._computed(d, ins, row)) is not None:
            return computed(step)
        if row.bits in _MOVED:
            return self._before(self.numbers.steps(d, ins), step)
        if row.bits == "load fragment":  # by its stride
            return self._before(self.numbers.repeated(d, ins, (2,)), step)
        if row.bits == "store later":
            return step  # as the copy of one that it is
        if row.bits in ("tensor load", "tensor store"):
            return self._before(self.numbers.repeated(d, ins), step)
        if row.bits == "tensor":
            return step
        before = self.numbers.steps(d, ins)
        if isinstance(facts(row).bits, Moves | Logic) and before:
            return self._before(before, step)
        return self._before([*self._seen(ins, row, each), *before], step)

    def wrap_terminator(
        self, d: Decoder, instruction: tree.Instruction, terminator: Terminator
    ) -> Terminator:
        if d.program.opcode(instruction).ends != "call":
            return terminator
        return with_steps_ahead(self.numbers.arguments(d, instruction), terminator)

    @staticmethod
    def _before(before: Sequence[Step], step: Step) -> Step:
        return sequence([*before, step]) if before else step

    # -- what is said ------------------------------------------------------------------------------

    def _line(self, ins: tree.Instruction) -> int:
        return self.program.error("", ins.at).line or 0

    def _opaque(self, ins: tree.Instruction | None) -> None:
        self.followed.opaque[0 if ins is None else self._line(ins)] += 1

    def _seen(self, ins: tree.Instruction, row: Opcode, each: Roles) -> list[Step]:
        """Elements that go into what is neither arithmetic of floats nor moves them."""
        asks = bool(each.written) and all(r.width == 1 for r in each.written)
        registers = [r for r in each.read if r in self.numbers.tracked and r not in each.addresses]
        rows = [[p.row(r) for p in self.numbers.planes] for r in registers]
        if not rows or row.access or row.asynchronous:
            return []
        counter = self.followed.compared if asks else self.followed.opaque
        line, warps = self._line(ins), self.machine.warps

        def run(sel: Select, mask: Mask) -> None:
            on = active(sel, mask, warps)
            for planes in rows:
                if self._has_data([p[sel] for p in planes], on):
                    counter[line] += 1
                    return

        return [run]

    def _has_data(self, words: Sequence[Array], on: Bools) -> bool:
        """Whether some byte in these lanes is of an element that depends on data."""
        some = np.logical_or.reduce([w != 0 for w in words]) & on
        if not some.any():
            return False
        ids = byte_numbers([np.ascontiguousarray(w[some]).view(np.uint8) for w in words])
        return self.numbers.table.has_data(ids >> 3)

    # -- arithmetic --------------------------------------------------------------------------------

    def _computed(
        self, d: Decoder, ins: tree.Instruction, row: Opcode
    ) -> Callable[[Step], Step] | None:
        """How to put elements around a step; None where it is no arithmetic of floats."""
        if row.step == "convert to pair" or row.step == "convert packed":
            return self._converted(d, ins)
        if not isinstance(row.decode, str) or isinstance(facts(row).bits, Moves | Logic):
            return None
        what = value(d.program.opcodes.find(ins.opcode, len(ins.operands)), d.count(ins))
        node = what.results["d"]
        if not is_arithmetic(node):
            return None
        return self._evaluated(d, ins, what, wider=row.wider)

    def _evaluated(
        self, d: Decoder, ins: tree.Instruction, what: Computation, wider: bool
    ) -> Callable[[Step], Step]:
        node = what.results["d"]
        numbers, line, warps = self.numbers, self._line(ins), self.machine.warps
        reads: dict[str, tuple[Array, list[Array], str]] = {}
        for name, operand in what.operands.items():
            real = d.source(ins, operand.place, operand.kind, wider)
            planes = numbers.wide_sources(d, ins, operand.place, operand.kind, wider)
            reads[name] = real, planes, operand.type
        kind = what.kinds["d"]
        form = "f32" if node.type == "tf32" else node.type
        outs = numbers.wide_targets(d, ins, kind, wider)
        out = d.wide_target(ins, ins.operands[0], kind) if wider else d.target(ins, 0, kind)

        def around(step: Step) -> Step:
            def run(sel: Select, mask: Mask) -> None:
                on = active(sel, mask, warps)
                results: list[tuple[Values, Evaluator]] = []
                for part in range(what.elements):
                    operands = self._operands(ins, reads, sel, on, part if what.packed else 0)
                    evaluator = Evaluator(operands, form)
                    try:
                        results.append((evaluator.value(node), evaluator))
                    except NoMeaningError:
                        raise AssertionError(f"{ins.mnemonic} is no arithmetic") from None
                step(sel, mask)
                if out is None:
                    return
                ids: list[I64] = []
                for part, (found, evaluator) in enumerate(results):
                    if evaluator.compared:
                        self.followed.compared[line] += 1
                    bits = element_bits(out[sel], form, part)
                    found = found.moved(lambda x, shape=bits.shape: np.broadcast_to(x, shape))
                    keep = is_finite(bits, form) & on
                    if evaluator.rounded is not None and (evaluator.rounded & on).any():
                        self.followed.rounded[line] += 1
                        keep &= ~evaluator.rounded
                    ids.append(self._named(found, bits, form, keep))
                self._store(ids, form, outs, sel, mask)

            return run

        return around

    def _operands(
        self,
        ins: tree.Instruction,
        reads: Mapping[str, tuple[Array, list[Array], str]],
        sel: Select,
        on: Bools,
        part: int,
    ) -> dict[str, Values | Bools]:
        found: dict[str, Values | Bools] = {}
        for name, (real, planes, kind) in reads.items():
            bits = np.broadcast_to(real[sel], on.shape)
            words = [np.broadcast_to(p[sel], on.shape) for p in planes]
            if kind == BOOL:
                found[name] = bits.astype(np.bool_)
                continue
            if kind not in FLOATS:  # a whole number
                if self._has_data(words, on):
                    self._opaque(ins)
                found[name] = Values.of(bits, self.followed.rounds)
                continue
            looked = self.numbers.look(words, element_bits(bits, kind, part), kind, part)
            if looked.broken is not None and (looked.broken & on).any():
                self._opaque(ins)
            found[name] = looked.values
        return found

    def _named(self, found: Values, bits: Array, form: str, keep: Bools) -> I64:
        """ElementNumbers for results; what depends on no data and is exact is what its bits say."""
        constant = ~found.data
        if constant.any():
            plain = self.numbers.plain(bits, form)
            exact = (found.p == plain.p) & ((found.q == plain.q) | (found.q == NONE))
            keep = keep & ~(constant & np.logical_and.reduce(exact, -1))
        return self.numbers.name(found, form, keep)

    def _store(
        self, ids: Sequence[I64], form: str, outs: Sequence[Array | None], sel: Select, mask: Mask
    ) -> None:
        dtype = next((out.dtype for out in outs if out is not None), None)
        if dtype is None:
            return
        unsigned = np.dtype(f"u{dtype.itemsize}")
        for out, word in zip(outs, self.numbers.words(ids, form, unsigned), strict=True):
            if out is not None:
                store(out.view(unsigned), sel, mask, word)
        self.numbers.collect()

    def _converted(self, d: Decoder, ins: tree.Instruction) -> Callable[[Step], Step] | None:
        """cvt of two values at a time: from two registers, or from the halves of one."""
        words = [w for w in ins.opcode[1:] if w in DTYPES]
        scaled = any(w.startswith("scaled") for w in ins.opcode)
        if len(words) != 2 or scaled or "rs" in ins.opcode or words[0].endswith("x4"):
            return None
        into, kind = words
        form = ELEMENTS[into]
        given = 2 if kind == "f32" else 1
        source = "f32" if kind == "f32" else ELEMENTS.get(kind, "")
        if min(element_width(form), element_width(source) if source != "f32" else 32) < 8:
            return None
        if "s2f6" in (form, source) or "ue8m0" in (form, source):
            return None
        numbers, warps = self.numbers, self.machine.warps
        reads = [
            (
                d.source(ins, i, f"u{width_of(kind)}", True),
                numbers.wide_sources(d, ins, i, f"u{width_of(kind)}", True),
            )
            for i in range(1, 1 + given)
        ]
        outs = numbers.wide_targets(d, ins, f"u{width_of(into)}", True)
        out = d.wide_target(ins, ins.operands[0], f"u{width_of(into)}")

        def around(step: Step) -> Step:
            def run(sel: Select, mask: Mask) -> None:
                on = active(sel, mask, warps)
                parts = [(reads[-1], 0), (reads[0], 2 - given)]  # the last operand is the low one
                values: list[Values] = []
                for (real, planes), part in parts:
                    bits = element_bits(np.broadcast_to(real[sel], on.shape), source, part)
                    own = [np.broadcast_to(p[sel], on.shape) for p in planes]
                    looked = numbers.look(own, bits, source, part)
                    if looked.broken is not None and (looked.broken & on).any():
                        self._opaque(ins)
                    found = looked.values
                    if "relu" in ins.opcode:
                        found = found.where(found.real > 0, 0.0)
                    values.append(found)
                step(sel, mask)
                if out is None:
                    return
                ids: list[I64] = []
                for part, found in enumerate(values):
                    bits = element_bits(out[sel], form, part)
                    finite = np.isfinite(numbers.plain(bits, form).real)
                    ids.append(self._named(found, bits, form, finite & on))
                self._store(ids, form, outs, sel, mask)

            return run

        return around
