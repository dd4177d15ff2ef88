"""Shuffles and votes as operations of straight-line runs, where the text says who takes part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragir.emulator.instructions.straight_rows import (
    Encode,
    NoStraightCode,
    StraightDecoder,
    given,
    only,
)
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.native.straight import SHUFFLE, SHUFFLES, VOTE, VOTES

if TYPE_CHECKING:
    from fragir.ptx.tree import Instruction


def _members(d: StraightDecoder, ins: Instruction) -> None:
    if d.literal(ins, d.count(ins) - 1) is None:
        raise NoStraightCode


def shuffle(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    _members(d, ins)
    only(ins, "shfl", "sync", "b32", *SHUFFLES)
    mode = next(SHUFFLES[w] for w in ins.opcode if w in SHUFFLES)
    first, second = d.pair(d.operand(ins, 0))
    out = given(d.out_of(ins, first, "u32"))
    valid = given(None if second is None else d.out_of(ins, second, "pred"))
    operands = d.sources(ins, ["u32"] * 3)
    return [StraightCode("", operands, out, valid, SHUFFLE, immediate=mode)]


def vote(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    _members(d, ins)
    how = next(w for w in ins.opcode if w in VOTES)
    out = given(d.out(ins, 0, "u32" if how == "ballot" else "pred"))
    return [StraightCode("", d.sources(ins, ["pred"]), out, kind=VOTE, immediate=VOTES[how])]


ENCODERS: dict[str, Encode] = {"shfl": shuffle, "vote": vote}
