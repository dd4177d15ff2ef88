"""Branches and guards that only choose what registers hold.

Where the ways of a branch come together again, further down, with nothing between but arithmetic on
registers, it is a choice of values: `if (x == 0) y = 1;`. The same is a guard before such an
instruction. Where the condition is made of undefined results of a tensor core, as in the rows
behind a tile's residue, it is no error then, but what is written on the way is undefined.
"""

from __future__ import annotations

from fragir.emulator.program.dataflow import Dataflow, Roles
from fragir.emulator.program.entities import Register
from fragir.emulator.program.flow import targets
from fragir.emulator.program.program import Program
from fragir.emulator.values.facts import facts
from fragir.ptx import tree
from fragir.ptx.opcodes.row import Logic, Moves

#: So many instructions are looked at behind a branch.
_FAR = 256


def arithmetic(program: Program, ins: tree.Instruction, each: Roles) -> bool:
    """Whether an instruction only computes registers from those of its lane."""
    row = program.opcode(ins)
    bits = facts(row).bits
    if not (isinstance(bits, Moves | Logic) or bits in ("mixed", "halves")):
        return False
    elsewhere = (
        *(row.ends, row.together, row.access, row.asynchronous, row.polls, row.fence, row.apart),
        *(row.registers, row.takes_cluster, row.tensor_map, row.stack, each.addresses),
    )
    return bool(each.written) and not any(elsewhere)


class Choices:
    """Those of a program: found once, whatever may be undefined."""

    def __init__(self, program: Program, flow: Dataflow) -> None:
        self.program, self.flow = program, flow
        #: By instruction (its id): the conditions on which it depends whether it is executed.
        self._conditions: dict[int, list[Register]] = {}
        #: By branch: what is written until its ways come together again.
        self._written: dict[int, tuple[Register, ...]] = {}
        for at, (placed, each) in enumerate(zip(program.code, flow.roles, strict=True)):
            if each.guard is None:
                continue
            if program.opcode(placed.ins).name == "bra":
                self._branch(at, each.guard)
            elif arithmetic(program, placed.ins, each):
                self._conditions.setdefault(id(placed.ins), []).append(each.guard)

    @classmethod
    def of(cls, program: Program, flow: Dataflow) -> Choices:
        return program.analyses.once(cls, lambda: cls(program, flow))

    def conditions(self, ins: tree.Instruction) -> list[Register]:
        return self._conditions.get(id(ins), [])

    def written(self, branch: tree.Instruction) -> tuple[Register, ...] | None:
        """None where a branch is more than a choice of values."""
        return self._written.get(id(branch))

    def _branch(self, at: int, condition: Register) -> None:
        code, roles = self.program.code, self.flow.roles
        end = self._to(at)
        between: list[int] = []
        now = at + 1
        while now < end:
            if now - at > _FAR or now >= len(code):
                return
            ins = code[now].ins
            if self.program.opcode(ins).name == "bra":
                if (to := self._to(now)) <= now:
                    return
                end = max(end, to)
            elif not arithmetic(self.program, ins, roles[now]) or condition in roles[now].written:
                return
            else:
                between.append(now)
            now += 1
        if end <= at:
            return
        self._written[id(code[at].ins)] = tuple({r: 0 for n in between for r in roles[n].written})
        for n in between:
            self._conditions.setdefault(id(code[n].ins), []).append(condition)

    def _to(self, at: int) -> int:
        placed = self.program.code[at]
        return targets(self.program, placed.ins, placed.scope)[0]
