"""Which instructions the compiled library executes in straight-line runs, and as what.

An encoder belongs to the first word of an opcode. It reads the operands as the decoder of that
opcode does, and gives up with `NoStraightCode` where a word or an operand is not covered; then the
instruction's step runs, as it does for every opcode without an encoder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fragir.emulator.instructions import (
    straight_access,
    straight_floating,
    straight_integer,
    straight_warp,
)
from fragir.emulator.instructions.floating import KINDS
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.instructions.straight_rows import Encode, NoStraightCode, StraightDecoder
from fragir.emulator.machine.straight import Ending, StraightCode
from fragir.emulator.native import straight as native
from fragir.emulator.native.straight import StraightFunctions
from fragir.emulator.program.flow import targets
from fragir.emulator.program.opcode import Opcode
from fragir.ptx.tree import Instruction

_OTHERS: dict[str, Encode] = {
    **straight_integer.ENCODERS,
    **straight_access.ENCODERS,
    **straight_warp.ENCODERS,
    "setp": straight_floating.compare,
    "cvt": straight_floating.convert,
}


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
        self._ours: dict[int, bool] = {}  # by row of the table: whether its decoder is one of ours
        self.polling, self._involved = polling, involved

    def codes(self, at: int) -> list[StraightCode] | None:
        """The operations of the instruction at a position; None where its step has to run."""
        d = self.decoder
        d.placed = placed = d.program.code[at]
        ins = placed.ins
        found = d.program.opcodes.find(ins.opcode, len(ins.operands))
        encode = self._encoder(found.words)
        if encode is None or not self._is_ours(found.opcode) or self.watched(ins):
            return None
        if id(ins) in d.wrapped:
            return None
        guard = ins.guard
        if found.words != ins.opcode:
            ins = replace(ins, opcode=found.words)
        try:
            codes = encode(d, ins)
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

    def _is_ours(self, row: Opcode | None) -> bool:
        """A row that a user has registered decodes in another package."""
        if row is None:
            return False
        found = self._ours.get(id(row))
        if found is None:
            package = getattr(row.decode, "__module__", "").rpartition(".")[0]
            found = self._ours[id(row)] = package == __package__
        return found

    @staticmethod
    def _encoder(words: tuple[str, ...]) -> Encode | None:
        if words[-1] in KINDS and words[0] in straight_floating.ENCODERS:
            return straight_floating.ENCODERS[words[0]]
        return _OTHERS.get(words[0])

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
