"""Undefined bits under mma, wmma.mma, wgmma and tcgen05: by the rows and columns that depend on
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.definedness.causes import DEFINED, Cause, numbers, ranks
from fragir.emulator.checks.definedness.registers import Undefined
from fragir.emulator.checks.planes import Plane, PlaneDecoder, later
from fragir.emulator.instructions.products import Products, products
from fragir.emulator.instructions.register_rows import whole_warps
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.machine.transfers import WARPGROUP, Issue, expand
from fragir.emulator.numbers.types import I64, U8, U32, Array
from fragir.emulator.program.entities import Register
from fragir.emulator.tensor_cores import descriptor
from fragir.emulator.tensor_cores.forms import RegisterWords
from fragir.emulator.tensor_cores.maps import Fragment, Metadata
from fragir.emulator.tensor_cores.mma import Mma, scale_lanes
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.events import Access
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.tensor_work import TensorWork


# -- elements --------------------------------------------------------------------------------------
# Which elements of D depend on undefined elements of A, B and C, and on which operand's.
#
# D[i, j] is undefined where an element of row i of A, of column j of B, or C[i, j] is: also where
# the other factor is zero, for the undefined one may be an infinity. Of a sparse A the metadata
# says which elements of B row i is multiplied with. A scale, and a row's metadata, counts as an
# element of its row or column. Arrays hold ranks (`causes.py`), and the warps run along the last
# dimension.

#: The rank of an operand in every warp: asked, with the elements that have no older cause (any
#: dimensions, warps last), where there are such.
Root = Callable[[Array], U8]
_LAST = np.uint8(DEFINED)


def element_ranks(undefined: Array, older: U8 | None, root: Root) -> U8 | None:
    """The ranks of elements; None where all are defined. `older`: what they are made of."""
    if not undefined.any():
        return None
    known: Array = np.full(undefined.shape, _LAST) if older is None else older
    fresh: Array = undefined & (known == _LAST)
    found = np.where(undefined, known, _LAST)
    return np.where(fresh, root(fresh), found) if fresh.any() else found


def of_registers(
    fragment: Fragment, bits: RegisterWords, causes: RegisterWords | None, root: Root
) -> U8 | None:
    """A matrix in registers `[count, W, lanes]`: `[*extents, W]`."""
    if not bits.any():
        return None
    older = None
    if causes is not None:
        words = ranks(causes).transpose(0, 2, 1).reshape(-1, bits.shape[1])
        older = words[fragment.word].reshape(*fragment.extents, -1)
    return element_ranks(fragment.load(bits) != 0, older, root)


def of_metadata(
    metadata: Metadata, selector: int, bits: RegisterWords, causes: RegisterWords | None, root: Root
) -> U8 | None:
    """The rows of a sparse A by their metadata, a register `[1, W, lanes]`: `[m, W]`."""
    lane, nibble = metadata.place(selector)
    undefined = bits[0][:, lane] >> (4 * nibble).astype(np.uint32) & np.uint32(0xF) != 0
    older = None if causes is None else ranks(causes[0])[:, lane].transpose(2, 1, 0)
    found = element_ranks(undefined.transpose(2, 1, 0), older, root)
    return None if found is None else found.min(axis=0)


def of_scales(
    op: Mma,
    select: tuple[int, int],
    bits: RegisterWords,
    causes: RegisterWords | None,
    root: Root,
    *,
    rows: bool,
) -> U8 | None:
    """Rows of A or columns of B by their scales, a register `[1, W, 32]`: `[m or n, W]`."""
    op.check_scales(select, rows=rows)
    byte, thread = select
    lanes = scale_lanes(thread, rows=rows)
    read = np.uint32((1 << 8 * op.plan.scale_blocks) - 1)
    undefined = (bits[0][:, lanes] >> np.uint32(8 * byte) & read != 0).T
    older = None if causes is None else ranks(causes[0])[:, lanes].T
    return element_ranks(undefined, older, root)


def as_registers(fragment: Fragment, found: U8) -> tuple[RegisterWords, RegisterWords]:
    """A matrix `[*extents, W]` as undefined bits and as causes of registers `[count, W, lanes]`."""
    dtype = np.uint64 if fragment.width == 64 else np.uint32
    bits = fragment.store(np.where(found != _LAST, dtype(fragment.mask), dtype(0)))
    flat = found.reshape(-1, found.shape[-1])
    least = np.minimum.reduce([flat[part] for part in fragment.parts])
    words = least.reshape(fragment.count, fragment.lanes, -1).transpose(0, 2, 1)
    return bits, numbers(words, dtype)


def product(
    extents: tuple[int, ...],
    a: U8 | None,
    b: U8 | None,
    c: U8 | None,
    *,
    rows: U8 | None = None,
    columns: U8 | None = None,
    kept: I64 | None = None,
) -> U8 | None:
    """D `[(product,) m, n, W]`; None where all is defined.

    `a`: `[k, (product,) m, W]`, `b`: `[k, (product,) n, W]`, `c`: like D; `rows`, `columns`: what
    else they depend on; `kept`: the row of B that every element of a sparse A `[K/2, m, W]` meets.
    """
    parts: list[Array] = [] if c is None else [c]
    for along_rows in (None if a is None else a.min(axis=0), rows):
        if along_rows is not None:
            parts.append(along_rows[..., None, :])
    if b is not None and kept is not None:
        met = (np.take_along_axis(b, which[:, None, :], axis=0) for which in kept)
        parts.append(reduce(np.minimum, met))
    elif b is not None:
        parts.append(b.min(axis=0)[..., None, :, :])
    if columns is not None:
        parts.append(columns[None])
    if not parts:
        return None
    warps = parts[0].shape[-1]
    found = np.full((*extents, warps), _LAST)
    for part in parts:
        np.minimum(found, part, out=found)
    return found


#: Where mma and wgmma have the metadata of a sparse A.
_METADATA = {"mma": 4, "wgmma": 3}


class Matrices:
    def __init__(self, machine: Machine, undefined: Undefined) -> None:
        self.machine, self.undefined = machine, undefined
        self.flow, self.plane, self.causes = undefined.flow, undefined.plane, undefined.causes

    # -- mma and wmma.mma --------------------------------------------------------------------------

    def mma(self, d: Decoder, group: Sequence[tree.Instruction]) -> list[Step]:
        read = [r for i in group for r in self.flow.of(i).read if r in self.undefined.tracked]
        written = [r for i in group for r in self.flow.of(i).written if r in self.undefined.tracked]
        if not read and not written:
            return []
        files = self.plane.machine.files
        looked_at, cleared = _by_width(read), _by_width(written)
        computed = later(d, lambda: self._products(d, group))

        def run(sel: Select, mask: Mask) -> None:
            if any(files[w][rows][:, sel].any() for w, rows in looked_at.items()):
                computed(sel, mask)
                return
            warps = np.arange(self.machine.warps)[whole_warps(sel, mask)]
            for width, rows in cleared.items():
                files[width][rows[:, None], warps] = 0

        return self.undefined.if_doubtful([run], read, written)

    def _products(self, d: Decoder, group: Sequence[tree.Instruction]) -> Step:
        """What a run of mma with undefined operands does."""
        bits = products(PlaneDecoder(d, self.plane), group)
        causes = products(PlaneDecoder(d, self.causes.plane), group)
        op, plan, first = bits.op, bits.op.plan, group[0]
        sparse, at = plan.metadata is not None, _METADATA["mma"]
        real = d.source(first, at, "u32") if sparse else None
        named = {
            "a": 1,
            "b": 2,
            "c": 3,
            "e": at,
            "sfa": at + 2 * sparse,
            "sfb": at + 2 + 2 * sparse,
        }

        def run(sel: Select, mask: Mask) -> None:
            sel = whole_warps(sel, mask)
            warps = np.arange(self.machine.warps)[sel]

            def ranked_by(
                of: Callable[..., U8 | None], letter: str, read: Callable[[Products], Array]
            ) -> U8 | None:
                """Of an operand: `read` its registers of either plane, `[count, W, 32]`."""
                undefined = read(bits)
                known = read(causes) if self.causes.known else None
                root = partial(self._root, letter, group, named[letter], warps, undefined, known)
                return of(undefined, known, root)

            def matrix(letter: str, fragment: Fragment) -> U8 | None:
                def read(of: Products) -> Array:
                    return of.sources[letter].read(sel)[: fragment.count]

                return ranked_by(partial(of_registers, fragment), letter, read)

            def word(of: Callable[..., U8 | None], letter: str) -> U8 | None:
                def read(of: Products) -> Array:
                    return of.words[letter][sel][None]

                return ranked_by(of, letter, read)

            a, b, c = (matrix(x, f) for x, f in (("a", plan.a), ("b", plan.b), ("c", plan.c)))
            rows = columns = kept = None
            if plan.metadata is not None and real is not None:
                selector = bits.fixed["selector"]
                rows = word(partial(of_metadata, plan.metadata, selector), "e")
                kept = plan.metadata.columns(real[sel], selector)
            if op.scales:
                scales = {
                    x: partial(of_scales, op, bits.fixed[f"select_{x}"], rows=x == "a")
                    for x in "ab"
                }
                scaled = word(scales["a"], "sfa")
                rows = (
                    scaled if rows is None else rows if scaled is None else np.minimum(rows, scaled)
                )
                columns = word(scales["b"], "sfb")
            found = product(plan.d.extents, a, b, c, rows=rows, columns=columns, kept=kept)
            if sparse and b is not None:
                for ins in group:
                    self.undefined.note_decided(ins, self.flow.of(ins).operands[at])
            if found is None:
                count = op.d.count, len(group) * len(warps), LANES
                bits.write(sel, np.zeros(count, op.d.dtype))
                return
            for plane, words in zip((bits, causes), as_registers(plan.d, found), strict=True):
                plane.write(sel, words)

        return run

    # -- wgmma -------------------------------------------------------------------------------------

    def wgmma(self, item: Issue) -> None:
        form = item.form
        op, roles = form.op, self.flow.of(form.instruction)
        doubtful = self.undefined.doubtful & self.undefined.bits((*roles.read, *roles.written))
        shared = self._shared_operands(item)
        if shared is None:
            return  # the wgmma itself reports it
        a, b = shared
        if not doubtful and a is None and b is None:
            return
        c = rows = kept = None
        plan = op.plan
        if doubtful:
            a = (
                a
                if form.a is None
                else self._register_ranks(item, "a", form.a, partial(of_registers, plan.a))
            )
            c = self._register_ranks(item, "c", form.d, partial(of_registers, plan.d))
        if plan.metadata is not None and item.meta is not None:
            selector = form.options["selector"]
            kept = plan.metadata.columns(item.meta.reshape(len(item.warps), -1), selector)
            held = roles.operands[_METADATA["wgmma"]]
            if doubtful and held:
                at = np.array([r.index for r in held], np.intp)
                rows = self._register_ranks(
                    item, "e", at, partial(of_metadata, plan.metadata, selector)
                )
        if kept is not None and b is not None:
            self.undefined.note_decided(form.instruction, roles.operands[_METADATA["wgmma"]])
        found = product(plan.d.extents, a, b, c, rows=rows, kept=kept)
        at = form.d[:, None], expand(item.warps)
        if found is None:
            self.plane.machine.files[32][at] = 0
        else:
            planes = self.plane, self.causes.plane
            for plane, words in zip(planes, as_registers(plan.d, found), strict=True):
                plane.machine.files[32][at] = words.reshape(len(form.d), -1, LANES)
        self.undefined.settle(roles.written)()

    def _register_ranks(
        self, item: Issue, letter: str, rows: npt.NDArray[np.intp], of: Callable[..., U8 | None]
    ) -> U8 | None:
        """Of an operand in registers."""
        form, groups, every = item.form, len(item.warps), expand(item.warps)

        def words(plane: Plane) -> Array:
            found = plane.machine.files[32][rows[:, None], every]
            return found.reshape(len(rows), groups, WARPGROUP * LANES)

        undefined = words(self.plane)
        if letter == "c":
            undefined = np.where(item.scale[:, None], undefined, np.uint32(0))
        known = words(self.causes.plane) if self.causes.known else None
        at = {"c": 0, "a": 1, "e": _METADATA["wgmma"]}[letter]
        root = partial(self._root, letter, [form.instruction], at, item.warps, undefined, known)
        return of(undefined, known, root)

    def _shared_operands(self, item: Issue) -> tuple[U8 | None, U8 | None] | None:
        """Of A and B in shared memory, `[k, m or n, G]`; None where they lie beyond it."""
        form = item.form
        transposes = {k: v for k, v in form.options.items() if k.startswith("transpose")}
        at = form.op.shared_addresses(item.a, item.b, **transposes).astype(np.int64)
        memory = self.plane.memory
        home = self.machine.block_of[item.warps].astype(np.int64) * memory.shared_stride
        if at.size and int(at.max()) + 16 > memory.shared_size:
            return None
        if not memory.shared.bytes.reshape(-1, 16)[(at + home[:, None]) >> 4].any():
            return None, None
        return (
            None if item.a is None else self._shared_ranks(item, home, item.a, "a"),
            self._shared_ranks(item, home, item.b, "b"),
        )

    def _shared_ranks(self, item: Issue, home: Array, words: Array, letter: str) -> U8 | None:
        ins, op, bits = item.form.instruction, item.form.op, item.form.op.plan.bits
        turned = bool(item.form.options.get(f"transpose_{letter}", False))
        at = op.addresses(words, left=letter == "a", transposed=turned)
        chunks = (at.astype(np.int64) + home[:, None, None]) >> 4

        def elements(plane: Plane, size: int) -> Array:
            data = plane.memory.shared.bytes.reshape(-1, 16)[chunks]
            return descriptor.elements(data, size, transposed=turned).transpose(1, 2, 0)

        older = None
        if self.causes.known:
            older = ranks(elements(self.causes.plane, max(bits, 8)), max(bits // 8, 1))
            older = older if bits >= 8 else older.repeat(8, axis=0)

        def find() -> Cause:
            bad = self.plane.memory.shared.bytes.reshape(-1, 16)[chunks].any(axis=-1)
            group, *chunk = (int(x) for x in np.argwhere(bad)[0])
            address = int(at[(group, *chunk)])
            said = descriptor.descriptor_text(int(words[group]))
            name, what = (
                f"shared memory at {address}",
                f"an operand of wgmma ({letter.upper()}'s {said})",
            )
            count = LANES * WARPGROUP
            return Cause(ins, name, what, int(item.warps[group]), 0, count, address)

        def root(fresh: Array) -> U8:
            return np.full(len(item.warps), self.causes.rank(ins, letter, find), np.uint8)

        return element_ranks(elements(self.plane, bits) != 0, older, root)

    # -- both --------------------------------------------------------------------------------------

    def _root(
        self,
        letter: str,
        group: Sequence[tree.Instruction],
        at: int,
        warps: npt.NDArray[np.intp],
        undefined: Array,
        known: Array | None,
        fresh: Array,
    ) -> U8:
        """The ranks of operand `at` of instructions, by instruction and warp: see `elements.Root`.

        `undefined`, `known`: bits and causes of its registers. `warps`: those of each
        instruction, the first of each warpgroup of a wgmma.
        """
        each = len(warps)

        def find(number: int) -> Cause:
            part = slice(number * each, (number + 1) * each)
            bad = undefined[:, part] != 0
            if known is not None:
                bad &= known[:, part] == 0
            which, row, lane = (int(x) for x in np.argwhere(bad)[0])
            ins = group[number]
            operand = ins.operands[at]
            element = operand.elements[which] if isinstance(operand, tree.Vector) else operand
            name = element.text if isinstance(element, tree.Name) else "a register"
            what, count = f"an operand of {ins.opcode[0]}", int(bad[which].sum())
            return Cause(ins, name, what, int(warps[row]) + lane // LANES, lane % LANES, count)

        some = fresh.reshape(-1, len(group), each).any(axis=(0, 2))
        found = np.zeros(len(group), np.uint8)
        for number in np.flatnonzero(some).tolist():
            found[number] = self.causes.rank(group[number], letter, partial(find, number))
        return np.repeat(found, each)


def _by_width(registers: Sequence[Register]) -> dict[int, npt.NDArray[np.intp]]:
    return {
        width: np.array(sorted({r.index for r in registers if r.width == width}), np.intp)
        for width in sorted({r.width for r in registers})
    }


# -- tensor memory ---------------------------------------------------------------------------------
# What is allocated is undefined, and so is what comes of it.

_UNDEFINED = np.uint32(0xFFFFFFFF)


def spread_marks(
    a: U32,
    b: U32,
    c: U32,
    kept: I64 | None = None,
    scales: tuple[U32, U32] | None = None,
) -> U32:
    """All ones in D where anything of its row of A, its column of B or its C is not zero."""
    some = np.bitwise_or.reduce
    marks = c | some(a, axis=0)[:, None]
    marks |= some(b, axis=0)[None] if kept is None else some(b[kept], axis=0)
    if scales is not None:
        marks |= some(scales[0], axis=1)[:, None] | some(scales[1], axis=1)[None]
    return np.where(marks != 0, _UNDEFINED, np.uint32(0))


class TensorBits:
    """A word that depends on anything undefined is undefined as a whole; no cause is kept."""

    def __init__(self, machine: Machine, undefined: Undefined) -> None:
        self.machine, self.undefined = machine, undefined
        self.plane, self.causes = undefined.plane, undefined.causes

    def allocate(self, block: int, first: int, count: int) -> None:
        columns = slice(first, first + count)
        self.plane.tensor.words[block][:, columns] = _UNDEFINED
        self.causes.plane.tensor.words[block][:, columns] = 0

    def define(self, access: Access) -> None:
        """tcgen05.alloc writes an address to shared memory."""
        for arena, at, _ in access.parts():
            if arena is self.machine.memory.shared:
                for position in at.ravel().tolist():
                    self.plane.memory.shared.bytes[position : position + access.size] = 0

    def execute(self, work: TensorWork) -> None:
        shared, words = self.plane.memory.shared.bytes, self.plane.tensor.words
        dirty = shared.reshape(-1, 16)[work.shared >> 4].any()
        dirty = dirty or any(region.of(words).any() for region in work.reads)
        if not dirty and work.whole:
            for region in work.writes:
                region.put(words, 0)
        else:
            work.run(shared, words, self.machine.tensor.words, spread_marks)
        for region in work.writes:
            region.put(self.causes.plane.tensor.words, 0)

    def moved(self, d: Decoder, ins: tree.Instruction, written: Sequence[Register]) -> Step:
        """ld and st: the same on undefined bits."""
        step = self.undefined.repeat(d, ins)
        look = self.undefined.settle(written)

        def run(sel: Select, mask: Mask) -> None:
            step(sel, mask)
            look()

        return run
