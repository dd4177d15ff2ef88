"""Which instructions the compiled library executes in straight-line runs, and as what.

An encoder belongs to the first word of an opcode. It reads the operands as the decoder of that
opcode does, and gives up with `NoStraightCode` where a word or an operand is not covered; then the
instruction's step runs, as it does for every opcode without an encoder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fragir.emulator.instructions import straight_access, straight_floating, straight_integer
from fragir.emulator.instructions.floating import KINDS
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.instructions.straight_rows import Encode, NoStraightCode, read
from fragir.emulator.machine.straight import LoopBranch, StraightCode
from fragir.emulator.native.straight import StraightFunctions
from fragir.emulator.program.flow import targets
from fragir.ptx.tree import Instruction

_OTHERS: dict[str, Encode] = {
    **straight_integer.ENCODERS,
    **straight_access.ENCODERS,
    "setp": straight_floating.compare,
    "cvt": straight_floating.convert,
}


class StraightEncoder:
    """Encodes the instructions of one program, by position.

    `watched` says whether an instruction uses registers of some wgmma, `polling` are the branches
    back of loops that poll.
    """

    def __init__(
        self,
        decoder: Decoder,
        functions: StraightFunctions,
        watched: Callable[[Instruction], bool],
        polling: set[int],
    ) -> None:
        self.decoder, self.functions, self.watched = decoder, functions, watched
        self.polling = polling

    def codes(self, at: int) -> list[StraightCode] | None:
        """The operations of the instruction at a position; None where its step has to run."""
        d = self.decoder
        d.placed = placed = d.program.code[at]
        ins = placed.ins
        found = d.program.opcodes.find(ins.opcode, len(ins.operands))
        row = found.opcode
        # A row that a user has registered decodes in another package.
        if row is None or getattr(row.decode, "__module__", "").rpartition(".")[0] != __package__:
            return None
        encode = self._encoder(found.words)
        if encode is None or row.bits == "results" or self.watched(ins):
            return None
        guard = ins.guard
        if found.words != ins.opcode:
            ins = replace(ins, opcode=found.words)
        try:
            codes = encode(d, ins)
            if guard is not None:
                holds = d.row(ins, guard.register, "pred")
                for code in codes:
                    code.guard = read(d, holds, guard.negated)
        except NoStraightCode:
            return None
        known = self.functions.numbers
        return codes if all(not c.function or c.function in known for c in codes) else None

    @staticmethod
    def _encoder(words: tuple[str, ...]) -> Encode | None:
        if words[-1] in KINDS and words[0] in straight_floating.ENCODERS:
            return straight_floating.ENCODERS[words[0]]
        return _OTHERS.get(words[0])

    def branch(self, at: int) -> LoopBranch | None:
        """The branch at a position where it goes to one place, and no loop that polls is closed."""
        d = self.decoder
        d.placed = placed = d.program.code[at]
        ins = placed.ins
        if at in self.polling or d.program.opcode(ins).ends != "branch" or len(ins.operands) != 1:
            return None
        (to,) = targets(d.program, ins, placed.scope)
        if ins.guard is None:
            return LoopBranch(to, None, False)
        row = d.row(ins, ins.guard.register, "pred")
        return LoopBranch(to, row, ins.guard.negated)
