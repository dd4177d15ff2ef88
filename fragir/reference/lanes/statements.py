"""The meaning of `ptx.op`: statements whose opcode is known here, by their words.

A meaning gets what stands at each operand: a value of every thread, or a number of the statement.
Whatever it does not know (an opcode, a modifier, a type), it refuses by None; then the result may
be anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from xdsl.ir import Attribute

from fragir.dialects import ptx
from fragir.dialects.ptx.statement import read
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import Array, type_name
from fragir.reference.lanes.registers import from_words, words_of
from fragir.reference.lanes.threads import BlockThreads

_PLACE = re.compile(r"(!?)\$(\d+)")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?")


class StatementInput(NamedTuple):
    """What an instruction reads."""

    value: Bounded
    type: Attribute | None
    """None of a number."""

    def words(self) -> tuple[Array, Array] | None:
        """[threads] of 32-bit numbers without a sign, and where they are certain; None where it is
        no single register of 32 bits.
        """
        if self.type is None:
            return self.value.value & 0xFFFFFFFF, self.value.bound == 0
        if ptx.registers(self.type) != 1 or ptx.register_bits(self.type) != 32:
            return None
        found, known = words_of(self.value, type_name(self.type))
        return found[:, 0], known[:, 0]


class Executed(NamedTuple):
    """A statement while it is executed."""

    threads: BlockThreads
    words: tuple[str, ...]
    """The opcode's."""
    operands: Sequence[StatementInput]
    """What is read, in order."""
    results: Sequence[Attribute]

    def from_words(self, words: Array, known: Array, result: int = 0) -> Bounded:
        """32-bit numbers as a result."""
        type_ = self.results[result]
        shape = self.threads.shape(type_)
        return from_words(words[:, None] & 0xFFFFFFFF, known[:, None], type_name(type_), shape)

    def read(self) -> list[tuple[Array, Array]] | None:
        """All operands as 32-bit numbers; None where one is none."""
        found = [operand.words() for operand in self.operands]
        whole = [words for words in found if words is not None]
        return whole if len(whole) == len(found) else None


Given = Sequence[Bounded] | None
Meaning = Callable[[Executed], Given]
MEANINGS_OF_WORDS: dict[str, Meaning] = {}
"""By the first word of the opcode."""


def opcode(*names: str) -> Callable[[Meaning], Meaning]:
    """A decorator that says what opcodes mean."""

    def attached(function: Meaning) -> Meaning:
        MEANINGS_OF_WORDS.update(dict.fromkeys(names, function))
        return function

    return attached


def statement(threads: BlockThreads, op: ptx.InstructionOp) -> None:
    """Executed by the threads whose guard holds; the others keep what `into` says."""
    outside = threads.active
    holds = np.ones(threads.count, bool)
    if op.predicate is not None:
        holds = threads.require_certain(op.predicate, "a guard").astype(bool)
    elif op.inverse is not None:
        holds = ~threads.require_certain(op.inverse, "a guard").astype(bool)
    threads.active = outside & holds
    found = _evaluate(threads, op)
    threads.active = outside
    if found is None:
        threads.make_unknown(op)
        return
    for number, (result, x) in enumerate(zip(op.outputs, found, strict=True)):
        before = op.before[number] if op.before else None
        other = threads.anything(result.type) if before is None else threads[before]
        threads[result] = threads.select(holds, x, other)


def _evaluate(threads: BlockThreads, op: ptx.InstructionOp) -> Given:
    said = read(op.statement.data)
    words = tuple(said.opcode.split("."))
    meaning = MEANINGS_OF_WORDS.get(words[0])
    if meaning is None or len(said.written) != len(op.outputs):
        return None
    operands: list[StatementInput] = []
    texts = said.operands[1:] if op.outputs else said.operands
    for text in texts:
        operand = _operand(threads, op, text)
        if operand is None:
            return None
        operands.append(operand)
    return meaning(Executed(threads, words, operands, [x.type for x in op.outputs]))


def _operand(threads: BlockThreads, op: ptx.InstructionOp, text: str) -> StatementInput | None:
    place = _PLACE.fullmatch(text)
    if place is not None:
        value = op.inputs[int(place[2]) - len(op.outputs)]
        if isinstance(value.type, ptx.PointerType):
            return None
        x = threads[value]
        return StatementInput(Bounded(~x.value, x.bound) if place[1] else x, value.type)
    if _NUMBER.fullmatch(text):
        number = int(text.rstrip("U"), 0)
        return StatementInput(exactly(np.full(threads.count, number, np.int64)), None)
    special = SPECIAL.get(text)
    return None if special is None else StatementInput(exactly(special(threads)), None)


def _power(threads: BlockThreads) -> Array:
    return np.int64(1) << threads.lane


#: Special registers (PTX ISA 9.2, section 10).
SPECIAL: dict[str, Callable[[BlockThreads], Array]] = {
    "%laneid": lambda t: t.lane,
    "%tid.x": lambda t: t.number,
    "%tid.y": lambda t: np.zeros_like(t.number),
    "%tid.z": lambda t: np.zeros_like(t.number),
    "%ntid.x": lambda t: np.full_like(t.number, t.count),
    "%ctaid.x": lambda t: np.full_like(t.number, t.run.block_id[0]),
    "%ctaid.y": lambda t: np.full_like(t.number, t.run.block_id[1]),
    "%ctaid.z": lambda t: np.full_like(t.number, t.run.block_id[2]),
    "%lanemask_eq": _power,
    "%lanemask_lt": lambda t: _power(t) - 1,
    "%lanemask_le": lambda t: 2 * _power(t) - 1,
    "%lanemask_gt": lambda t: 0xFFFFFFFF - (2 * _power(t) - 1),
    "%lanemask_ge": lambda t: 0xFFFFFFFF - (_power(t) - 1),
}
