"""tcgen05 beside its products: allocation, ld, st, cp, shift, commit, waits (PTX ISA 9.1, 9.7.16).

A ld has its registers when it is issued; that what it reads stays until it is complete, the checks
see. A st writes when it is issued, for the same reason. cp and shift wait in the queue of products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.alu import Decode, nothing
from fragir.emulator.instructions.bulk import check_mask, shared_address
from fragir.emulator.instructions.register_rows import RegisterRows, outputs, whole_warps
from fragir.emulator.machine.lanes import LANES, Mask, Row, Select, Step
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.machine.state import PARKED
from fragir.emulator.machine.tensor_work import (
    TensorAccess,
    TensorCommit,
    TensorRegion,
    TensorStatement,
    TensorWork,
)
from fragir.emulator.numbers.types import I64, U8, U32, Array
from fragir.emulator.report import EmulationError
from fragir.emulator.tensor_cores import shared_matrices
from fragir.emulator.tensor_cores.shared_matrices import CHUNK, MatrixFields, chunk_addresses
from fragir.emulator.tensor_cores.tensor_places import (
    PARTITION,
    SHAPES,
    copy_shape,
    register_places,
)
from fragir.emulator.values.reals import extreme
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator

_ALL = np.arange(128, dtype=np.int64)


def statement_of(d: Decoder) -> TensorStatement:
    """The statement that is decoded now, as it stands in the program."""
    where = d.program.error("", d.placed.ins.at)
    return TensorStatement(d.placed.ins, (where.file, where.line, where.col))


def group_of(words: tuple[str, ...]) -> int:
    return 2 if "cta_group::2" in words else 1


def address_parts(address: int) -> tuple[int, int]:
    """(lane, column) of an address in tensor memory."""
    return address >> 16 & 0x7F, address & 0xFFFF


def blocks_of(machine: Machine, lane: int, group: int) -> tuple[int, ...]:
    """The resident blocks that an instruction of a lane is for."""
    block = int(machine.block_of[lane // LANES])
    return (block,) if group == 1 else machine.tensor.pair(block)


# -- allocation ------------------------------------------------------------------------------------


def allocation_terminator(
    d: Decoder,
    ins: tree.Instruction,
    at: int,
    gather: Callable[[int, Select, Array], tuple[Select, Mask] | None],
) -> Terminator:
    """alloc, dealloc and relinquish_alloc_permit, which a warp may have to wait at.

    It comes back to the instruction, at position `at`, in the next round.
    """
    machine, form = d.machine, statement_of(d)
    name, group = ins.opcode[1], group_of(ins.opcode)
    place = d.place(ins, 0, d.space(ins)) if name == "alloc" else None
    address = d.source(ins, 0, "u32") if name == "dealloc" else None
    count = d.source(ins, 1, "u32") if name != "relinquish_alloc_permit" else None

    def uniform(row: Row | None, warp: int, what: str) -> int:
        if row is None:
            return 0
        values = row[np.array([warp])]
        if (values != values[0, 0]).any():
            raise EmulationError(f"{what} must be the same in all threads of the warp")
        return int(values[0, 0])

    def one(warp: int) -> bool:
        """Whether a warp may go on."""
        lane, block = warp * LANES, int(machine.block_of[warp])
        columns = uniform(count, warp, "the number of columns")
        start = uniform(address, warp, "the address")
        tensor, short = machine.tensor, name.partition("_")[0]
        found = tensor.meet(form, short, warp, group, (columns, start))
        if found is None:
            return False
        blocks = blocks_of(machine, lane, group)
        if found is True:
            found = 0
            if name == "alloc":
                first = tensor.allocate(form, blocks, columns, group, lane)
                if first is None:
                    return False
                found = first
            elif name == "dealloc":
                tensor.free(form, blocks, start, columns, lane)
            else:
                for each in blocks:
                    tensor.block(each).relinquished = form
            if group == 2:
                tensor.grant(short, block, found)
        if place is not None:
            _write_address(machine, ins, place, warp, found)
        machine.progress = True
        return True

    def run(sel: Select, mask: Mask) -> int | None:
        if mask is not None:
            left = gather(at, sel, mask)
            if left is None:
                return None
            sel, mask = left
            _check_whole(machine, form, sel, mask)
        warps = np.arange(machine.warps)[whole_warps(sel, mask)]
        try:
            waiting = [warp for warp in warps.tolist() if not one(warp)]
        except EmulationError as error:
            error.warp = int(warps[0]) if error.warp is None else error.warp
            raise
        if not waiting:
            return at + 1
        key = machine.key
        lanes = np.ones(key[sel].shape, np.bool_) if mask is None else mask
        stays = np.isin(np.arange(machine.warps)[sel], waiting)[:, None]
        key[sel] = np.where(lanes, np.where(stays, at | PARKED, at + 1), key[sel])
        return None

    return run


def _check_whole(machine: Machine, form: TensorStatement, sel: Select, mask: Mask) -> None:
    """A finding where lanes of the warp have left, or gone by."""
    if mask is None:
        return
    born = machine.thread_ids()[sel] < machine.threads
    absent = born & ~mask & mask.any(axis=1, keepdims=True)
    if absent.any():
        lane = int(machine.lane_ids[sel][absent][0])
        text = f"lane {lane % LANES} does not execute this with the rest of its warp"
        machine.tensor.say(form, text, lane, "divergent")


def _write_address(
    machine: Machine, ins: tree.Instruction, place: MemoryOperand, warp: int, first: int
) -> None:
    """A weak store by the first lane of the warp."""
    from fragir.emulator.machine.events import Access

    sel = np.array([warp])
    mask = np.zeros((1, LANES), np.bool_)
    mask[0, 0] = True
    address = place.at(sel, mask)
    lanes = machine.lane_ids[sel][mask]
    access = Access("store", ins, place.space, address, 4, lanes, sel, mask, machine.memory)
    for hook in machine.hooks:
        hook.on_access(access)
        hook.on_tensor_address(access)
    value = np.array([first], np.uint32)
    machine.memory.save(place.space, address, sel, mask, 4, 1, value)


# -- ld and st -------------------------------------------------------------------------------------


class _Window:
    """The cells of a ld or st of any warp."""

    def __init__(self, d: Decoder, ins: tree.Instruction, index: int) -> None:
        words = ins.opcode
        self.machine, self.form = d.machine, statement_of(d)
        self.place = d.place(ins, index, "tensor")
        self.shape = next(w for w in words if w in SHAPES)
        self.count = next(int(w[1:]) for w in words if w[0] == "x" and w[1:].isdigit())
        self.packed = "pack::16b" in words or "unpack::16b" in words
        half = 0
        if self.shape == "16x32bx2":
            half = d.literal(ins, index + 1) or 0
        self.lane, self.column = register_places(self.shape, self.count, self.packed, half)
        self.loads = words[1] == "ld"

    @property
    def registers(self) -> int:
        return SHAPES[self.shape].registers * self.count

    def of(self, warp: int) -> TensorAccess:
        """Of a warp, checked; its own partition, whatever the address says of that."""
        machine = self.machine
        values = self.place.at(np.array([warp]), None)
        if (values != values[0, 0]).any():
            raise EmulationError("the address must be the same in all threads of the warp")
        lane, column = address_parts(int(values[0, 0]))
        own = warp % machine.warps_per_block % 4
        rest = lane % PARTITION
        if rest and (SHAPES[self.shape].lanes == PARTITION or rest != 16):
            legal = "0" if SHAPES[self.shape].lanes == PARTITION else "0 or 16"
            raise EmulationError(
                f"lane {lane} is no start of .{self.shape}: {legal} of 32", kind="tensor-memory"
            )
        if lane // PARTITION != own:
            text = f"lane {lane} is of another warp; this one reaches lanes {own * PARTITION} to "
            text += f'{own * PARTITION + PARTITION - 1}. PTX ISA, tcgen05.ld, tcgen05.st: "{_OWN}"'
            machine.tensor.say(self.form, text, warp * LANES, severity="letter")
        lanes = self.lane + (own * PARTITION + rest)
        columns = self.column + column
        if int(self.column.min()) + column < 0:
            raise EmulationError("the second half begins below column 0", kind="out-of-bounds")
        return TensorAccess(self.form, warp, self.loads, lanes, columns)


#: Of the access restrictions; machines take the warp's own lanes, whatever the address says.
_OWN = "A lane of the Tensor Memory can be accessed by a single warp in the warpgroup."


def _accesses(window: _Window, sel: Select, mask: Mask) -> tuple[Select, list[TensorAccess]]:
    machine = window.machine
    sel = whole_warps(sel, mask)
    found: list[TensorAccess] = []
    for warp in np.arange(machine.warps)[sel].tolist():
        try:
            access = window.of(warp)
            if not machine.tensor.plain:
                machine.tensor.check_access(access)
        except EmulationError as error:
            error.warp = warp if error.warp is None else error.warp
            raise
        for hook in machine.hooks:
            hook.on_tensor_access(access)
        found.append(access)
    return sel, found


def _load(d: Decoder, ins: tree.Instruction) -> Step:
    reduces = "red" in ins.opcode
    window = _Window(d, ins, 2 if reduces else 1)
    vector = d.vector(d.operand(ins, 0))
    if len(vector) != window.registers:
        raise d.error(ins, f"{ins.mnemonic} has {window.registers} registers, not {len(vector)}")
    _, write = outputs(d, [ins], [vector], 32)
    machine = d.machine
    reduced = _reduction(d, ins) if reduces else None

    def run(sel: Select, mask: Mask) -> None:
        sel, accesses = _accesses(window, sel, mask)
        words = machine.tensor.words
        found = np.stack(
            [words[int(machine.block_of[one.warp])][one.lanes, one.columns] for one in accesses],
            axis=1,
        )
        if window.packed:
            low = found & np.uint32(0xFFFF)
            found = low[::2] | low[1::2] << np.uint32(16)
        write(sel, found)
        if reduced is not None:
            reduced(sel, found)
        machine.report.statistics.loaded["tensor"] += found.nbytes

    return run


def _reduction(d: Decoder, ins: tree.Instruction) -> Callable[[Select, U32], None]:
    """The register of .red: the least or greatest of what each lane has loaded."""
    kind = ins.opcode[-1]
    out = d.target(ins, 1, "u32")
    greatest = "max" in ins.opcode
    if d.machine.tensor.plain:  # marks of all

        def join(sel: Select, found: U32) -> None:
            if out is not None:
                out[sel] = np.bitwise_or.reduce(found, axis=0)

        return join
    magnitude = np.uint32(0x7FFFFFFF if "abs" in ins.opcode else 0xFFFFFFFF)
    pair = extreme("f32", greatest, "NaN" in ins.opcode) if kind == "f32" else None

    def run(sel: Select, found: U32) -> None:
        if out is None:
            return
        if pair is None:
            values = found.view(np.int32 if kind == "s32" else np.uint32)
            least = np.maximum if greatest else np.minimum
            out[sel] = least.reduce(values, axis=0).view(np.uint32)
            return
        result = found[0] & magnitude
        for each in found[1:]:
            result = pair(result, each & magnitude)
        out[sel] = result

    return run


def _store(d: Decoder, ins: tree.Instruction) -> Step:
    window = _Window(d, ins, 0)
    vector = d.vector(ins.operands[-1])
    if len(vector) != window.registers:
        raise d.error(ins, f"{ins.mnemonic} has {window.registers} registers, not {len(vector)}")
    rows = RegisterRows(d, [ins], [vector], 32)
    machine = d.machine

    def run(sel: Select, mask: Mask) -> None:
        sel, accesses = _accesses(window, sel, mask)
        values = rows.read(sel)
        if window.packed:
            halves = np.stack([values & np.uint32(0xFFFF), values >> np.uint32(16)], axis=1)
            values = halves.reshape(-1, *values.shape[1:])
        words = machine.tensor.words
        for index, one in enumerate(accesses):
            words[int(machine.block_of[one.warp])][one.lanes, one.columns] = values[:, index]
        machine.report.statistics.stored["tensor"] += values.nbytes
        machine.progress = True

    return run


# -- cp and shift ----------------------------------------------------------------------------------


class SharedOperand:
    """Chunks that a matrix descriptor names, in the shared memory of some blocks: `[outer, inner]`
    positions of each."""

    def __init__(
        self,
        machine: Machine,
        form: TensorStatement,
        what: str,
        word: int,
        blocks: tuple[int, ...],
        lane: int,
        *,
        outer: int,
        inner: int,
        mn_major: bool = False,
        width: int = 1,
    ) -> None:
        fields, memory = MatrixFields.read(word), machine.memory
        if fields.problem:
            raise _refuse(lane, f"the descriptor {word:#018x} of {what}: {fields.problem}")
        if mn_major and width == 4 and fields.swizzle != 1:
            text = f"the descriptor {word:#018x} of {what}: an MN-major matrix of tf32 is swizzled "
            raise _refuse(lane, text + "by 128 bytes in atoms of 32")
        if fields.absolute:
            raise EmulationError("an absolute leading offset (K = 96) is not emulated")
        at = chunk_addresses(word, outer, inner, mn_major=mn_major, width=width).astype(np.int64)
        most = int(at.max(initial=0))
        if at.size and most + CHUNK > memory.shared_size:
            text = f"it reads {what} at {most}; the block has {memory.shared_size} ({fields})"
            raise _refuse(lane, text, "out-of-bounds")
        self.at = [at + block * memory.shared_stride for block in blocks]
        if memory.poisoned:
            for positions in self.at:
                try:
                    memory.check_poison(memory.shared, positions, CHUNK)
                except AccessFault as fault:
                    text = f"it reads {what} here: {fault.reason} ({fields})"
                    raise _refuse(lane, text, fault.kind) from None

    def chunks(self, shared: U8, index: int) -> U8:
        """`[outer, inner, 16]` of a block."""
        return shared.reshape(-1, CHUNK)[self.at[index] >> 4]


def _refuse(lane: int, text: str, kind: str = "operand") -> EmulationError:
    error = EmulationError(text, kind=kind)
    error.warp, error.lane = lane // LANES, lane % LANES
    return error


def all_chunks(operands: list[SharedOperand]) -> I64:
    """The positions of all of them."""
    flat = [at.ravel() for operand in operands for at in operand.at]
    return np.concatenate(flat) if flat else np.zeros(0, np.int64)


def _copy(d: Decoder, ins: tree.Instruction) -> Step:
    words = ins.opcode
    machine, form, group = d.machine, statement_of(d), group_of(words)
    to, source = d.place(ins, 0, "tensor"), d.source(ins, 1, "u64")
    name = next(w for w in words if w[0].isdigit())
    shape = copy_shape(name, next((w for w in words if w.startswith("warpx")), ""))
    bits = 4 if "b4x16_p64" in words else 6 if "b6x16_p32" in words else 0

    def issue(lane: int, address: int, word: int) -> None:
        blocks = blocks_of(machine, lane, group)
        first, column = address_parts(address)
        operand = SharedOperand(
            machine, form, "the source", word, blocks, lane,
            outer=shape.rows, inner=shape.words // 4,
        )  # fmt: skip
        if first and not (name == "4x256b" and first % 32 == 31):
            machine.tensor.say(form, f"the destination begins at lane {first}, not at 0", lane)
        base = first if name == "4x256b" else 0
        regions = tuple(
            TensorRegion(block, (lanes + base) % 128, column, shape.words)
            for block in blocks
            for lanes in shape.lanes
        )

        def move(shared: U8, cells: U32) -> None:
            for index, block in enumerate(blocks):
                data = operand.chunks(shared, index)
                if bits:
                    data = shared_matrices.decompressed(data, bits)
                rows = np.ascontiguousarray(data).view(np.uint32).reshape(shape.rows, -1)
                for region in regions:
                    if region.block == block:
                        region.put(cells, rows)

        kind = ("refresh" if name == "4x256b" else "cp",)
        chunks = all_chunks([operand])
        work = TensorWork(form, lane, group, kind, move, None, regions, (), chunks)
        machine.tensor.issue(work)

    def step(sel: Select, mask: Mask) -> None:
        each = (get(machine.lane_ids, sel, mask), to.at(sel, mask), get(source, sel, mask))
        for lane, address, word in zip(*(one.ravel().tolist() for one in each), strict=True):
            issue(lane, address, word)

    return step


def _shift(d: Decoder, ins: tree.Instruction) -> Step:
    machine, form, group = d.machine, statement_of(d), group_of(ins.opcode)
    to = d.place(ins, 0, "tensor")
    width = 8

    def issue(lane: int, address: int) -> None:
        blocks = blocks_of(machine, lane, group)
        first, column = address_parts(address)
        if first % PARTITION:
            machine.tensor.say(form, f"lane {first} is no multiple of 32", lane)
        regions = tuple(TensorRegion(block, _ALL, column, width) for block in blocks)

        def move(shared: U8, cells: U32) -> None:
            for region in regions:
                region.put(cells, shifted_rows(region.of(cells)))

        nobody = np.zeros(0, np.int64)
        work = TensorWork(form, lane, group, ("shift",), move, None, regions, regions, nobody)
        assume(machine, "shift")
        machine.tensor.issue(work)

    def step(sel: Select, mask: Mask) -> None:
        each = get(machine.lane_ids, sel, mask), to.at(sel, mask)
        for lane, address in zip(*(one.ravel().tolist() for one in each), strict=True):
            issue(lane, address)

    return step


def shifted_rows(rows: Array) -> Array:
    """Each row takes the next one's place in its partition of 32, whose last row stays."""
    parts = rows.reshape(-1, PARTITION, *rows.shape[1:])
    return np.concatenate([parts[:, 1:], parts[:, -1:]], axis=1).reshape(rows.shape)


def assume(machine: Machine, rule: str) -> None:
    """The results rest on a rule that nobody has measured."""
    from fragir.emulator.tensor_cores.tcgen05 import RULES

    text = f"tcgen05: nobody has measured this, it is assumed: {RULES[rule].text}"
    if text not in machine.report.notes:
        machine.report.notes.append(text)


# -- commit ----------------------------------------------------------------------------------------


def _commit(d: Decoder, ins: tree.Instruction) -> Step:
    machine, form, group = d.machine, statement_of(d), group_of(ins.opcode)
    memory = machine.memory
    barrier = d.place(ins, 0, d.space(ins))
    kind = "u32" if "multicast::cluster::32b" in ins.opcode else "u16"
    chosen = d.source(ins, 1, kind) if d.count(ins) > 1 else None

    def step(sel: Select, mask: Mask) -> None:
        address = barrier.at(sel, mask)
        at = shared_address(address) if barrier.space != "shared" else address
        lanes = get(machine.lane_ids, sel, mask).ravel()
        homes = get(memory.shared_home, sel, mask).ravel()
        masks = None if chosen is None else get(chosen, sel, mask).ravel()
        at = memory.locate_shared(at.ravel(), homes, 8)
        stride = memory.shared_stride
        for index, lane in enumerate(lanes.tolist()):
            signals = (int(at[index]),)
            if masks is not None:
                blocks, home = int(masks[index]), int(homes[index])
                check_mask(memory, blocks)
                offset = (int(at[index]) - home) % stride
                ranks = [r for r in range(memory.cluster) if blocks >> r & 1]
                signals = tuple(home + rank * stride + offset for rank in ranks)
            machine.tensor.commit(TensorCommit(form, lane, group, signals))

    return step


def _wait(d: Decoder, ins: tree.Instruction) -> Step:
    """wait::ld, wait::st and the fences: what they order, the checks see."""
    return nothing


STEPS: dict[str, Decode] = {
    "load tensor memory": _load,
    "store tensor memory": _store,
    "copy to tensor memory": _copy,
    "shift tensor memory": _shift,
    "commit tensor work": _commit,
    "wait for tensor memory": _wait,
    "tensor fence": _wait,
}
