"""Undefined bits under arithmetic, logic and moves between registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.definedness.causes import DEFINED, numbers, ranks
from fragir.emulator.checks.definedness.registers import (
    Undefined,
    lanes_of,
    logic,
    ones_where,
    spread_to_parts,
)
from fragir.emulator.checks.planes import PlaneDecoder, later
from fragir.emulator.instructions.alu import sequence
from fragir.emulator.machine.lanes import LANES, Mask, Row, Select, Step, store
from fragir.emulator.numbers.types import Array, Bools
from fragir.emulator.values.facts import facts
from fragir.ptx import tree
from fragir.ptx.opcodes.row import Logic, Moves

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.program.dataflow import Roles
    from fragir.emulator.program.entities import Register


class Computing:
    def __init__(self, undefined: Undefined) -> None:
        self.undefined, self.plane = undefined, undefined.plane

    def steps(
        self, d: Decoder, ins: tree.Instruction, each: Roles, data: list[Register]
    ) -> list[Step]:
        """`data`: the registers that are read, but for addresses."""
        outs = [r for r in each.written if r in self.undefined.tracked]
        sources = [r for r in data if r in self.undefined.tracked]
        row = d.program.opcode(ins)
        told = facts(row)
        same = told.cancels and len({*each.operands[1:]}) == 1
        if not outs:
            return []
        if not sources or same:
            return self.undefined.clear(outs)
        step = later(d, lambda: sequence(self._steps(d, ins, each, sources, outs)))
        causes = self.undefined.causes
        if isinstance(told.bits, Moves) and row.together:
            origins = causes.repeat(d, ins)
        else:
            origins = causes.spread(sources, outs, told.bits == "warp")
        return self.undefined.if_doubtful([origins, step], sources, outs)

    def _steps(
        self,
        d: Decoder,
        ins: tree.Instruction,
        each: Roles,
        sources: list[Register],
        outs: list[Register],
    ) -> list[Step]:
        told = facts(d.program.opcode(ins)).bits
        plane = PlaneDecoder(d, self.plane)
        if isinstance(told, Moves):
            return self._move(plane, ins, each, outs, told.steering)
        if isinstance(told, Logic):
            table = d.literal(ins, 4) if told.table is None else told.table
            if table is not None:
                return [self._logic(d, plane, ins, table & 0xFF, told.operands)]
        rows = [self.plane.row(r) for r in sources]
        targets = [self.plane.row(r) for r in outs]
        if told == "halves":
            return [self._pair(ins, each)]
        parts = lanes_of(ins, [r.width for r in (*each.read, *each.written)])
        together = told == "warp"

        def run(sel: Select, mask: Mask) -> None:
            chosen: list[Array] = [row[sel] for row in rows]
            if together:
                bad = spread_to_parts(chosen, 1, np.bool_)
                bad = bad if mask is None else bad & mask
                chosen = [np.repeat(bad.any(axis=1, keepdims=True), LANES, axis=1)]
            for target in targets:
                store(target, sel, mask, spread_to_parts(chosen, parts, target.dtype))

        return [run]

    def _move(
        self,
        plane: PlaneDecoder,
        ins: tree.Instruction,
        each: Roles,
        outs: list[Register],
        steering: tuple[int, ...],
    ) -> list[Step]:
        repeat = plane.repeat(ins, steering)
        if deciding := [r for i in steering for r in each.operands[i]]:
            repeat = sequence([repeat, self._decided(ins, deciding)])
        controls = self.undefined.rows(r for i in steering for r in each.operands[i])
        if not controls:
            return [repeat]
        targets = [self.plane.row(r) for r in outs]

        def run(sel: Select, mask: Mask) -> None:
            bad: Bools = spread_to_parts([row[sel] for row in controls], 1, np.bool_)
            repeat(sel, mask)
            if bad.any():
                for target in targets:
                    ones = ones_where(bad, target.dtype)
                    store(target, sel, bad if mask is None else bad & mask, ones)

        return [run]

    def _decided(self, ins: tree.Instruction, registers: Sequence[Register]) -> Step:
        def run(sel: Select, mask: Mask) -> None:
            self.undefined.note_decided(ins, registers)

        return run

    def _logic(
        self, d: Decoder, plane: PlaneDecoder, ins: tree.Instruction, table: int, count: int
    ) -> Step:
        kind = ins.opcode[-1]
        values = [d.source(ins, i, kind) for i in range(1, count + 1)]
        undefined = [plane.source(ins, i, kind) for i in range(1, count + 1)]
        out = plane.target(ins, 0, kind)
        assert out is not None
        decided = self._decided(ins, self.undefined.flow.of(ins).read)

        def run(sel: Select, mask: Mask) -> None:
            parts = [u[sel] for u in undefined]
            if not any(p.any() for p in parts):
                store(out, sel, mask, 0)
                return
            decided(sel, mask)
            store(out, sel, mask, logic(table, [v[sel] for v in values], parts))

        return run

    def _pair(self, ins: tree.Instruction, each: Roles) -> Step:
        target = self.plane.row(each.written[0])
        half = target.dtype.itemsize * 4
        sides: list[Callable[[Select], Array | np.bool_]] = []
        for operand in each.operands[1:3]:
            rows = self.undefined.rows(operand)

            def bad(sel: Select, rows: list[Row] = rows) -> Array | np.bool_:
                return spread_to_parts([r[sel] for r in rows], 1, np.bool_) if rows else np.False_

            sides.append(bad)
        dtype = target.dtype.type
        ones = (1 << half) - 1

        def run(sel: Select, mask: Mask) -> None:
            high, low = (side(sel) for side in sides)
            value = high * dtype(ones << half) | low * dtype(ones)
            store(target, sel, mask, value)

        return run


def chosen_steps(
    undefined: Undefined, conditions: Iterable[Register], written: Iterable[Register]
) -> list[Step]:
    """What is written, where a tensor core's results leave a condition undefined.

    Behind what else happens to it.
    """
    read = [r for r in conditions if r in undefined.tracked]
    out = [r for r in written if r in undefined.tracked]
    if not read or not out:
        return []
    causes = undefined.causes

    def run(sel: Select, mask: Mask) -> None:
        for condition in read:
            bad = undefined.row(condition)[sel] != 0
            bad = bad if mask is None else bad & mask
            if not bad.any():
                continue
            found = ranks(causes.row(condition)[sel])
            bad &= found != DEFINED
            for register in out:
                row, cause = undefined.row(register), causes.row(register)
                store(row, sel, bad, ones_where(bad, row.dtype))
                store(cause, sel, bad, numbers(found, cause.dtype))

    return [causes.when_known(run)]
