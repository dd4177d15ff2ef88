"""Undefined bits under mma, wmma.mma and wgmma: by the rows and columns that depend on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.definedness.causes import Cause, ranks
from fragir.emulator.checks.definedness.elements import (
    as_registers,
    of_metadata,
    of_registers,
    of_scales,
    product,
    ranked,
)
from fragir.emulator.checks.definedness.registers import Undefined
from fragir.emulator.checks.planes import PlaneDecoder, later
from fragir.emulator.instructions.products import Products, products
from fragir.emulator.instructions.register_rows import whole_warps
from fragir.emulator.machine.issues import WARPGROUP, Issue, expand
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.numbers.types import U8
from fragir.emulator.program.entities import Register
from fragir.emulator.tensor_cores import descriptor
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine

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

        def run(sel: Any, mask: Mask) -> None:
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

        def run(sel: Any, mask: Mask) -> None:
            sel = whole_warps(sel, mask)
            warps = np.arange(self.machine.warps)[sel]

            def ranked_by(of: Callable[..., U8 | None], letter: str, read: Any) -> U8 | None:
                """Of an operand: `read` its registers of either plane, `[count, W, 32]`."""
                undefined = read(bits)
                known = read(causes) if self.causes.known else None
                root = partial(self._root, letter, group, named[letter], warps, undefined, known)
                return of(undefined, known, root)

            def matrix(letter: str, fragment: Any) -> U8 | None:
                def read(of: Products) -> Any:
                    return of.sources[letter].read(sel)[: fragment.count]

                return ranked_by(partial(of_registers, fragment), letter, read)

            def word(of: Callable[..., U8 | None], letter: str) -> U8 | None:
                def read(of: Products) -> Any:
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
                else self._held(item, "a", form.a, partial(of_registers, plan.a))
            )
            c = self._held(item, "c", form.d, partial(of_registers, plan.d))
        if plan.metadata is not None and item.meta is not None:
            selector = form.options["selector"]
            kept = plan.metadata.columns(item.meta.reshape(len(item.warps), -1), selector)
            held = roles.operands[_METADATA["wgmma"]]
            if doubtful and held:
                at = np.array([r.index for r in held], np.intp)
                rows = self._held(item, "e", at, partial(of_metadata, plan.metadata, selector))
        found = product(plan.d.extents, a, b, c, rows=rows, kept=kept)
        at = form.d[:, None], expand(item.warps)
        if found is None:
            self.plane.machine.files[32][at] = 0
        else:
            planes = self.plane, self.causes.plane
            for plane, words in zip(planes, as_registers(plan.d, found), strict=True):
                plane.machine.files[32][at] = words.reshape(len(form.d), -1, LANES)
        self.undefined.settle(roles.written)()

    def _held(self, item: Issue, letter: str, rows: Any, of: Callable[..., U8 | None]) -> U8 | None:
        """Of an operand in registers."""
        form, groups, every = item.form, len(item.warps), expand(item.warps)

        def words(plane: Any) -> Any:
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
            None if item.a is None else self._shared(item, home, item.a, "a"),
            self._shared(item, home, item.b, "b"),
        )

    def _shared(self, item: Issue, home: Any, words: Any, letter: str) -> U8 | None:
        ins, op, bits = item.form.instruction, item.form.op, item.form.op.plan.bits
        turned = bool(item.form.options.get(f"transpose_{letter}", False))
        at = op.addresses(words, left=letter == "a", transposed=turned)
        chunks = (at.astype(np.int64) + home[:, None, None]) >> 4

        def elements(plane: Any, size: int) -> Any:
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
            said = descriptor.said(int(words[group]))
            name, what = (
                f"shared memory at {address}",
                f"an operand of wgmma ({letter.upper()}'s {said})",
            )
            count = LANES * WARPGROUP
            return Cause(ins, name, what, int(item.warps[group]), 0, count, address)

        def root(fresh: Any) -> U8:
            return np.full(len(item.warps), self.causes.rank(ins, letter, find), np.uint8)

        return ranked(elements(self.plane, bits) != 0, older, root)

    # -- both --------------------------------------------------------------------------------------

    def _root(
        self,
        letter: str,
        group: Sequence[tree.Instruction],
        at: int,
        warps: npt.NDArray[np.intp],
        undefined: Any,
        known: Any,
        fresh: Any,
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
