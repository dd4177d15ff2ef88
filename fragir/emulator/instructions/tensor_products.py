"""tcgen05.mma: operands, and what it does when it is its turn (PTX ISA 9.1, section 9.7.16.10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.tensor_memory import (
    SharedOperand,
    address_parts,
    all_chunks,
    assume,
    blocks_of,
    shifted_rows,
    statement_of,
)
from fragir.emulator.machine.lanes import LANES, Mask, Row, Select, Step
from fragir.emulator.machine.tensor_work import (
    ProductPart,
    TensorRegion,
    TensorStatement,
    TensorWork,
)
from fragir.emulator.numbers.types import I64, U8, U32, Bools
from fragir.emulator.report import EmulationError
from fragir.emulator.tensor_cores import shared_matrices
from fragir.emulator.tensor_cores.shared_matrices import CHUNK
from fragir.emulator.tensor_cores.tcgen05 import (
    ProductForm,
    TensorProduct,
    kept_columns,
    read_product,
    zeroed_columns,
)
from fragir.emulator.tensor_cores.tensor_places import (
    metadata_places,
    scale_columns,
    scale_places,
)
from fragir.errors import FragirError
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine

_NIBBLES = np.arange(8, dtype=np.uint32) * 4


@dataclass(frozen=True, slots=True)
class Addresses:
    """(lane, column) in tensor memory; None of what is not there."""

    d: tuple[int, int]
    a: tuple[int, int] | None
    metadata: tuple[int, int] | None
    scales: tuple[tuple[int, int], tuple[int, int]] | None


@dataclass(frozen=True, slots=True)
class Extras:
    """What an instruction has beside A, B and the descriptor.

    `accumulates`: whether D is read; `masked`: the lanes of each block that are not written;
    `shift`: scale-input-d; `zeroed`: columns of B that count as zero.
    """

    accumulates: bool
    masked: tuple[Bools, ...] | None
    shift: int
    zeroed: Bools | None


class IssuedProduct:
    """One tcgen05.mma that has been issued, by a lane, for a block or the two of a pair."""

    def __init__(
        self,
        machine: Machine,
        form: TensorStatement,
        product: TensorProduct,
        lane: int,
        at: Addresses,
        a: int | None,
        b: int,
        extras: Extras,
    ) -> None:
        self.machine, self.form, self.product, self.lane = machine, form, product, lane
        self.at, self.extras = at, extras
        self.blocks = blocks_of(machine, lane, product.form.group)
        shared: list[SharedOperand] = []
        self.left = None
        if a is not None:
            self.left = self._operand("A", a, product.a, product.kept, product.rows, 0)
            shared.append(self.left)
        self.right = self._operand("B", b, product.b, product.k, product.columns, 1)
        shared.append(self.right)
        self.base = self._base("D", at.d)
        self.base_a = 0 if at.a is None else self._base("A", at.a)
        self.chunks = all_chunks(shared)

    def _operand(
        self, name: str, word: int, element: str, depth: int, extent: int, which: int
    ) -> SharedOperand:
        product = self.product
        turned = product.mn_major[which]
        bits = product.bits
        outer, along = (depth, extent) if turned else (extent, depth)
        return SharedOperand(
            self.machine, self.form, name, word, self.blocks, self.lane,
            outer=outer, inner=-(-along * bits // (8 * CHUNK)), mn_major=turned,
            width=max(bits // 8, 1),
        )  # fmt: skip

    def _base(self, name: str, at: tuple[int, int]) -> int:
        """The lane that rows begin at: 0, or 16 of layouts C and F."""
        lane = at[0]
        legal = (0, 16) if self.product.banks.name in ("C", "F") else (0,)
        if lane not in legal:
            text = f"{name} begins at lane {lane} of tensor memory, and "
            text += f"must at {' or '.join(map(str, legal))} (layout {self.product.banks.name})"
            self.machine.tensor.say(self.form, text, self.lane)
        return lane % 32 if lane % 32 in legal else 0

    # -- where it is -------------------------------------------------------------------------------

    def regions(self) -> tuple[tuple[TensorRegion, ...], tuple[TensorRegion, ...]]:
        """(what it writes, what it reads) of tensor memory."""
        product, at = self.product, self.at
        writes: list[TensorRegion] = []
        reads: list[TensorRegion] = []
        every = np.arange(128, dtype=np.int64)
        for block in self.blocks:
            for lanes in product.banks.lanes:
                d = TensorRegion(block, lanes + self.base, at.d[1], product.d_columns)
                writes.append(d)
                if self.extras.accumulates:
                    reads.append(d)
                if at.a is not None:
                    rows = lanes + self.base_a
                    reads.append(TensorRegion(block, rows, at.a[1], product.a_columns))
            if at.metadata is not None:
                first = at.metadata[1] + (product.selector & ~1)
                count = 2 if product.metadata_columns == 1 else product.metadata_columns
                reads.append(TensorRegion(block, every, first, count))
            if at.scales is not None:
                extents = product.rows, product.n // (2 if self._halved else 1)
                for place, rows, byte in zip(at.scales, extents, product.first, strict=True):
                    count = scale_columns(rows, byte, product.blocks)
                    reads.append(TensorRegion(block, every, place[1], count))
        return tuple(writes), tuple(reads)

    @property
    def _halved(self) -> bool:
        """Whether the scales of B lie in halves of the lanes."""
        return self.product.form.group == 2 and self.product.m == 128

    # -- when it is its turn -----------------------------------------------------------------------

    def parts(self, shared: U8, words: U32, real: U32) -> Iterator[ProductPart]:
        """See `TensorWork.parts`."""
        product, at, extras = self.product, self.at, self.extras
        count = range(len(self.blocks))
        right = np.concatenate([self._codes(self.right, shared, i, 1) for i in count], axis=1)
        if extras.zeroed is not None:
            right[:, extras.zeroed] = 0
        columns = slice(at.d[1], at.d[1] + product.d_columns)
        for index, block in enumerate(self.blocks):
            cells = words[block]
            from_shared = None if self.left is None else self._codes(self.left, shared, index, 0)
            scales = self._scales(cells, is_real=words is real)
            for bank, lanes in enumerate(product.banks.lanes):
                left = self._tensor_a(cells, lanes) if from_shared is None else from_shared
                if product.form.shifted:
                    left = np.ascontiguousarray(shifted_rows(left.T).T)
                part = slice(bank * product.d_columns, (bank + 1) * product.d_columns)
                rows = lanes + self.base
                before = cells[rows, columns]
                c = before if extras.accumulates else np.zeros_like(before)
                if product.d == "f16":
                    c = c & np.uint32(0xFFFF)
                if extras.shift and extras.accumulates and words is real:
                    c = self._scaled_down(c)
                yield ProductPart(
                    product,
                    block,
                    rows,
                    columns,
                    left,
                    right[:, part],
                    c,
                    self._kept(real[block], lanes),
                    None if scales is None else (scales[0], scales[1][part]),
                    before,
                    None if extras.masked is None else extras.masked[index][rows],
                    extras.shift,
                )

    def _codes(self, operand: SharedOperand, shared: U8, index: int, which: int) -> U32:
        """A or B of a block, `[k, m or n]`."""
        product = self.product
        element, turned = (product.a, product.b)[which], product.mn_major[which]
        data = operand.chunks(shared, index)
        bits = product.packed_bits(element)
        found = shared_matrices.elements(data, bits, mn_major=turned, padded=product.bits == 8)
        extent = product.rows if which == 0 else product.columns
        return found[:, :extent]

    def _tensor_a(self, cells: U32, lanes: I64) -> U32:
        """A in tensor memory, `[k, m]`: the copy in a bank's lanes."""
        product, at = self.product, self.at
        assert at.a is not None
        words = np.ascontiguousarray(
            cells[lanes + self.base_a, at.a[1] : at.a[1] + product.a_columns]
        )
        if product.bits == 4:
            codes = (words[:, :, None] >> _NIBBLES & np.uint32(15)).reshape(len(words), -1)
        else:
            codes = words.view(f"u{product.bits // 8}").astype(np.uint32)
            bits = product.packed_bits(product.a)
            codes = codes >> np.uint32(2) & np.uint32(15) if bits == 4 else codes
            codes = codes & np.uint32(63) if bits == 6 else codes
        return np.ascontiguousarray(codes.T)

    def _kept(self, cells: U32, lanes: I64) -> I64 | None:
        product, at = self.product, self.at
        if at.metadata is None:
            return None
        rows = (lanes + self.base_a).tobytes()
        chunks = product.k // product.chunk
        lane, column, bit = metadata_places(rows, chunks, product.selector)
        words = cells[lane, column + at.metadata[1]]
        nibbles = (words >> bit.astype(np.uint32) & np.uint32(15)).astype(np.int64)
        found, legal = kept_columns(product, nibbles)
        if not legal.all():
            row, chunk = (int(x) for x in np.argwhere(~legal)[0])
            text = f"the metadata of row {row}, chunk {chunk} is {int(nibbles[row, chunk]):#06b}, "
            text += "which means nothing"
            self.machine.tensor.say(self.form, text, self.lane, "operand")
        return found

    def _scales(self, cells: U32, *, is_real: bool) -> tuple[U32, U32] | None:
        product, at = self.product, self.at
        if at.scales is None:
            return None
        found: list[U32] = []
        extents = product.rows, product.n
        for which, (rows, byte) in enumerate(zip(extents, product.first, strict=True)):
            halved = which == 1 and self._halved
            lane, column, bit = scale_places(rows, byte, product.blocks, halved=halved)
            words = cells[lane, column + at.scales[which][1]]
            codes = words >> bit.astype(np.uint32) & np.uint32(0xFF)
            if is_real and (codes != codes[0]).any():
                copy, row, _ = (int(x) for x in np.argwhere(codes != codes[0])[0])
                text = f"the copies of the scales of {'AB'[which]} differ: row {row} in the lanes "
                text += f"of copy {copy}"
                self.machine.tensor.say(self.form, text, self.lane, "operand")
            found.append(codes[0])
        return found[0], found[1]

    def _scaled_down(self, c: U32) -> U32:
        """C * 2^-shift, towards zero where it is subnormal."""
        kind, bits = ("f2", "u2") if self.product.d == "f16" else ("f4", "u4")
        with np.errstate(invalid="ignore"):
            values = c.astype(bits).view(kind).astype(np.float64)
            exact = np.ldexp(values, -self.extras.shift)
            near = exact.astype(kind)
            over = np.abs(near.astype(np.float64)) > np.abs(exact)
            found = np.where(over, np.nextafter(near, np.zeros_like(near)), near)
        assume(self.machine, "scale-d")
        return np.ascontiguousarray(found).view(bits).astype(np.uint32)


# -- decoding --------------------------------------------------------------------------------------


def _mma(d: Decoder, ins: tree.Instruction) -> Step:
    machine, form, what = d.machine, statement_of(d), ProductForm.of(ins.opcode)
    to = d.place(ins, 0, "tensor")
    in_tensor = isinstance(d.operand(ins, 1), tree.Address)
    place_a = d.place(ins, 1, "tensor") if in_tensor else None
    word_a = None if in_tensor else d.source(ins, 1, "u64")
    word_b = d.source(ins, 2, "u64")
    rest = list(range(3, d.count(ins)))
    metadata = d.place(ins, rest.pop(0), "tensor") if what.sparse else None
    descriptor = d.source(ins, rest.pop(0), "u32")
    scales = None
    if what.vector:
        scales = tuple(d.place(ins, rest.pop(0), "tensor") for _ in "ab")
    masks = None
    if not what.separate and rest and isinstance(d.operand(ins, rest[0]), tree.Vector):
        vector = d.vector(d.operand(ins, rest.pop(0)))
        if len(vector) != 4 * what.group:
            raise d.error(ins, f"the mask of lanes has {4 * what.group} registers")
        masks = [d.row(ins, each, "u32") for each in vector]
    accumulates = d.source(ins, rest.pop(0), "pred")
    zero_mask, shift = None, 0
    if rest and what.separate:
        zero_mask = d.source(ins, rest.pop(0), "u64")
    elif rest:
        value = d.literal(ins, rest.pop(0))
        if value is None or not 0 <= value <= 15:
            raise d.error(ins, "scale-input-d is a constant from 0 to 15")
        shift = value
    if rest:
        raise d.error(ins, f"the operands of {ins.mnemonic} are not right")

    def step(sel: Select, mask: Mask) -> None:
        lanes = get(machine.lane_ids, sel, mask).ravel().tolist()

        def values(row: Row | None) -> list[int]:
            return [0] * len(lanes) if row is None else get(row, sel, mask).ravel().tolist()

        def places(place: MemoryOperand | None) -> list[int]:
            return [0] * len(lanes) if place is None else place.at(sel, mask).ravel().tolist()

        read = [values(row) for row in (word_a, word_b, descriptor, accumulates, zero_mask)]
        at = [places(p) for p in (to, place_a, metadata, *(scales or (None, None)))]
        masked = [values(row) for row in masks or ()]
        for index, lane in enumerate(lanes):
            a, b, word, adds, zero = (row[index] for row in read)
            d_at, a_at, meta_at, sfa, sfb = (address_parts(row[index]) for row in at)
            product = _product(what, word, d.target_name, lane)
            off = None
            if masks is not None:
                bits = np.array([row[index] for row in masked], np.uint32).view(np.uint8)
                lanes_off = np.unpackbits(bits, bitorder="little").astype(np.bool_)
                off = tuple(lanes_off.reshape(what.group, 128))
            zeroed = None
            if zero_mask is not None and zero:
                zeroed = zeroed_columns(zero, product.rows, product.n)
            issued = IssuedProduct(
                machine,
                form,
                product,
                lane,
                Addresses(
                    d_at,
                    a_at if in_tensor else None,
                    meta_at if what.sparse else None,
                    (sfa, sfb) if what.vector else None,
                ),
                None if in_tensor else a,
                b,
                Extras(bool(adds), off, shift, zeroed),
            )
            for rule in product.assumed:
                assume(machine, rule)
            writes, reads = issued.regions()
            machine.tensor.issue(
                TensorWork(
                    form,
                    lane,
                    what.group,
                    ("mma", product.m, product.n, product.d, d_at),
                    None,
                    issued.parts,
                    writes,
                    reads,
                    issued.chunks,
                    off is None,
                )
            )

    return step


def _product(form: ProductForm, word: int, target: str, lane: int) -> TensorProduct:
    try:
        return read_product(form, word, target)
    except FragirError as problem:
        error = EmulationError(problem.message, kind="operand")
        error.warp, error.lane = lane // LANES, lane % LANES
        raise error from None


STEPS: dict[str, Decode] = {"tensor product": _mma}
