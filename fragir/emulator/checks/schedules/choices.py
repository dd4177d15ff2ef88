"""Instructions whose outcome is up to the schedule, whatever orders the accesses of a program.

Where a program has none of them, races with nothing and keeps the rules of `generations`, every
schedule of its launch executes the same instructions with the same operands, and ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.races.clocks import STRONG_WORDS, is_ordering
from fragir.emulator.program.dataflow import Dataflow, dataflow
from fragir.emulator.program.entities import Register
from fragir.emulator.program.flow import targets
from fragir.emulator.report import OpenSchedule, Schedules
from fragir.ptx import tree
from fragir.ptx.visit import walk

if TYPE_CHECKING:
    from fragir.emulator.program.entities import Placed
    from fragir.emulator.program.program import Program
    from fragir.ptx.opcodes.row import Opcode

#: Special registers that differ from run to run.
MOVING = frozenset(
    (
        *("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"),
        *("%smid", "%nsmid", "%warpid", "%nwarpid", "%gridid"),
    )
)
FLOATS = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f64"))
_NEGATIONS = frozenset(("setp", "selp", "mov", "and", "or", "not"))

#: What a verdict for every schedule takes for granted; the ISA has no sentence for the first.
ASSUMPTIONS = {
    "wgmma-joins": "a product of a warpgroup that is done has been issued by all of its warps",
    "float-sums": "atomic sums of floats differ in their last bits by the order of their terms",
}


class OpenChoices(Hooks):
    """Says in the report for which schedules a run speaks."""

    def on_launch_end(self) -> None:
        program = self.program
        found = [OpenSchedule(self._line(at), why) for at, why in choices(program)]
        self.machine.report.schedules = Schedules(found, assumptions(program))

    def _line(self, at: int) -> int | None:
        return self.program.error("", self.program.code[at].ins.at).line


def assumptions(program: Program) -> list[str]:
    """The names in `ASSUMPTIONS` that concern a program."""
    rows = list(program.rows())
    found: list[str] = []
    if any(row.bits == "wgmma" for row, _ in rows):
        found.append("wgmma-joins")
    if any(_adds_floats(row, words) for row, words in rows):
        found.append("float-sums")
    return found


def _adds_floats(row: Opcode, words: tuple[str, ...]) -> bool:
    return row.access == "atomic" and "add" in words and not FLOATS.isdisjoint(words)


def choices(program: Program) -> Iterator[tuple[int, str]]:
    """(position, why) of instructions whose outcome is up to the schedule, in their order."""
    flow = dataflow(program)
    used = Counter[Register]()
    for each in flow.roles:
        used.update(each.read if each.guard is None else (*each.read, each.guard))
    hands_on = any(
        is_ordering(row, words) and row.fence != "initialisations" for row, words in program.rows()
    )
    for at, placed in enumerate(program.code):
        why = _choice(program, flow, used, at, placed, hands_on)
        if why:
            yield at, why


def _choice(
    program: Program,
    flow: Dataflow,
    used: Counter[Register],
    at: int,
    placed: Placed,
    hands_on: bool,
) -> str:
    ins, row = placed.ins, program.opcode(placed.ins)
    words = ins.opcode
    if row.takes_cluster:
        return "the work that a cluster gets"
    if row.access == "atomic" and any(used[r] for r in flow.roles[at].written):
        return "the result of an atomic says who came first"
    if row.access == "load" and not STRONG_WORDS.isdisjoint(words):
        return "a strong load sees what another thread has written by then"
    if row.access == "atomic" and hands_on:
        return "fences order what was before an atomic after those that came first"
    if row.name == "activemask":
        return "which lanes go together"
    if row.step == "wait for phase":
        return "" if is_poll(program, flow, at) else "an mbarrier is looked at once"
    for operand in ins.operands:
        for node in walk(operand):
            if isinstance(node, tree.Name) and node.text in MOVING:
                return f"{node.text} differs from run to run"
    return ""


def is_poll(program: Program, flow: Dataflow, at: int) -> bool:
    """Whether what follows a look at an mbarrier goes back to it as long as that fails."""
    known = set(flow.roles[at].written)
    for here in range(at + 1, min(at + 4, len(program.code))):
        placed, each = program.code[here], flow.roles[here]
        if program.opcode(placed.ins).ends == "branch":
            return each.guard in known and _goes_back(program, here, at)
        if placed.ins.opcode[0] not in _NEGATIONS or not known.intersection(each.read):
            return False
        known.update(each.written)
    return False


def _goes_back(program: Program, branch: int, to: int) -> bool:
    """`@!p bra POLL`, or `@p bra DONE; bra POLL`: either way leads back, or a jump behind it."""

    def ways(at: int) -> list[int]:
        placed = program.code[at]
        return targets(program, placed.ins, placed.scope)

    goes = [*ways(branch), branch + 1]
    for way in list(goes):
        if branch < way < len(program.code):
            ins = program.code[way].ins
            if program.opcode(ins).ends == "branch" and ins.guard is None:
                goes += ways(way)
    return any(way <= to for way in goes)
