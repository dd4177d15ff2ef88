"""The steps of instructions: by the text of their row, or by the name of its step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fragir.emulator.instructions import (
    access,
    addresses,
    async_copy,
    async_store,
    atomics,
    barriers,
    collective,
    computed,
    convert,
    launch_control,
    products,
    tensor_map_changes,
    tensor_memory,
    tensor_products,
    video,
    warp_matrix,
    wgmma,
)
from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.computed import encode
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.instructions.straight_rows import Encode, NoStraightCode, StraightDecoder
from fragir.emulator.machine.lanes import Step
from fragir.emulator.machine.straight import Ending, StraightCode
from fragir.emulator.native import straight as native
from fragir.emulator.native.straight import StraightFunctions
from fragir.emulator.program.entities import Placed
from fragir.emulator.program.flow import targets
from fragir.ptx import tree
from fragir.ptx.opcodes.row import Found
from fragir.ptx.opcodes.table import register as register
from fragir.ptx.tree import Instruction

#: By the name of a row's step: what makes it, and the operations of straight runs that it is.
STEPS: dict[str, Decode] = {
    **access.STEPS,
    **addresses.STEPS,
    **async_copy.STEPS,
    **async_store.STEPS,
    **atomics.STEPS,
    **barriers.STEPS,
    **collective.STEPS,
    **convert.STEPS,
    **launch_control.STEPS,
    **products.STEPS,
    **tensor_map_changes.STEPS,
    **tensor_memory.STEPS,
    **tensor_products.STEPS,
    **video.STEPS,
    **warp_matrix.STEPS,
    **wgmma.STEPS,
}
RUNS: dict[str, Encode] = {
    **access.RUNS,
    **addresses.RUNS,
    **collective.RUNS,
    **convert.RUNS,
}


def decode_step(d: Decoder, ins: tree.Instruction) -> Step:
    """The step of an instruction, its words in the order of its row, without its guard."""
    found = d.program.opcodes.find(ins.opcode, len(ins.operands))
    row = found.opcode
    if row is None or not (row.step or row.decode):
        raise d.error(ins, found.problem or f"{ins.mnemonic} is no step")
    if found.words != ins.opcode:
        ins = replace(ins, opcode=found.words)
    if isinstance(row.decode, str):
        return computed.decode(d, ins, found)
    decode = STEPS[row.step] if row.decode is None else row.decode
    step: Step = decode(d, ins)
    return step


def step_of(d: Decoder, placed: Placed) -> Step:
    """Decode one instruction, without its guard."""
    d.placed = placed
    return decode_step(d, placed.ins)


# -- straight --------------------------------------------------------------------------------------
# Which instructions the compiled library executes in straight-line runs, and as what.
#
# Those whose row says what they compute are the operation that has the same expression; other rows
# have an encoder beside their decoder. It gives up with `NoStraightCode` where a word or an operand
# is not covered; then the instruction's step runs.


class StraightEncoder:
    """Encodes the instructions of one program, by position.

    `watched` says whether an instruction uses registers of some wgmma, `polling` are the branches
    back of loops that poll; `involved`: of what checks leave to runs, see the method.
    """

    def __init__(
        self,
        decoder: Decoder,
        functions: StraightFunctions,
        watched: Callable[[Instruction], bool],
        polling: set[int],
        involved: Callable[[Instruction], int],
    ) -> None:
        self.decoder = StraightDecoder(decoder)
        self.functions, self.watched = functions, watched
        self.polling, self._involved = polling, involved

    def codes(self, at: int) -> list[StraightCode] | None:
        """The operations of the instruction at a position; None where its step has to run."""
        d = self.decoder
        d.placed = placed = d.program.code[at]
        ins = placed.ins
        found = d.program.opcodes.find(ins.opcode, len(ins.operands))
        if self.watched(ins) or id(ins) in d.wrapped:
            return None
        guard = ins.guard
        if found.words != ins.opcode:
            ins = replace(ins, opcode=found.words)
        try:
            codes = self._encode(ins, found)
            if guard is not None:
                for code in codes:
                    code.guard = d.guard(ins)
        except NoStraightCode:
            return None
        if id(placed.ins) in d.watched:
            for code in codes:
                code.watched = at if code.kind >= native.LOAD else -1
        known = self.functions.numbers
        return codes if all(not c.function or c.function in known for c in codes) else None

    def involved(self, at: int) -> int:
        """The registers that checks look at where one of them is in doubt, as bits."""
        ins = self.decoder.program.code[at].ins
        return self._involved(ins) if id(ins) in self.decoder.watched else 0

    def _encode(self, ins: Instruction, found: Found) -> list[StraightCode]:
        row = found.opcode
        if row is not None and isinstance(row.decode, str):
            return encode(self.decoder, ins, found)
        run = None if row is None else RUNS.get(row.step)
        if run is None:
            raise NoStraightCode
        return run(self.decoder, ins)

    def ending(self, at: int) -> Ending:
        """How the terminator at a position ends its block, where the library can look at it."""
        d = self.decoder
        d.placed = placed = d.program.code[at]
        ins, ends = placed.ins, d.program.opcode(placed.ins).ends
        if id(ins) in d.wrapped:
            return Ending()
        if ends == "barrier" and ins.guard is None and self._is_for_everybody(ins):
            return Ending(native.BARRIER)
        if ends != "branch" or len(ins.operands) != 1 or at in self.polling:
            return Ending()
        (to,) = targets(d.program, ins, placed.scope)
        if ins.guard is None:
            return Ending(native.JUMP, to)
        return Ending(native.BRANCH, to, d.guard(ins))

    def _is_for_everybody(self, ins: Instruction) -> bool:
        """A barrier of the whole block, which stops nobody where all of them come together."""
        d = self.decoder
        words = [w for w in ins.opcode[1:] if w not in ("cta", "aligned")]
        if words != ["sync"] or d.literal(ins, 0) is None:
            return False
        threads = d.machine.warps_per_block * native.LANES
        return d.count(ins) == 1 or d.literal(ins, 1) == threads
