"""A conversion's `WordProgram` as operations on 32-bit words: one instruction a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation, SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.layout.planning.program import Permute, Select, Shuffle, Step, Transpose, WordProgram
from fragir.passes.lowering import lane_coordinates
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.lane_coordinates import Hardware

FEW = 3  # steps that are written one by one; more are one operation on vectors


class ProgramLowering:
    """Writes the steps of programs for the threads of one block."""

    def __init__(self, ar: Arithmetic, hardware: Hardware):
        self.ar, self.hardware = ar, hardware

    def run(self, program: WordProgram, words: Sequence[SSAValue]) -> list[SSAValue]:
        """The words that come out, from those that go in."""
        known = self.words(program, words)
        return [known[output] for output in program.outputs]

    def words(self, program: WordProgram, words: Sequence[SSAValue]) -> list[SSAValue]:
        """All words by their numbers: those that go in, and what every step makes."""
        assert len(words) == program.inputs
        known = list(words)
        for steps in _alike_runs(program):
            if len(steps) <= FEW:
                known += [self._step(step, known) for step in steps]
            else:
                known += self._steps(steps, known)
        return known

    def _steps(self, steps: Sequence[Step], known: Sequence[SSAValue]) -> list[SSAValue]:
        """Steps that differ in their words only, as one operation."""
        packed = {
            column: self.ar.insert(ptx.PackOp([known[word] for word in column])).result
            for column in dict.fromkeys(_columns(steps))
        }
        operands = [packed[column] for column in _columns(steps)]
        result = self._operation(steps[0], operands, len(steps))
        return list(self.ar.insert(ptx.UnpackOp(result)).scalars)

    def _step(self, step: Step, known: Sequence[SSAValue]) -> SSAValue:
        if not isinstance(step, Transpose):
            return self._operation(step, [known[word] for (word,) in _columns([step])], 1)
        return self._steps([step], known)[0]

    def _operation(self, step: Step, words: Sequence[SSAValue], count: int) -> SSAValue:
        """What one step, or `count` alike, does with scalars or vectors of words."""
        ar, hardware = self.ar, self.hardware
        match step:
            case Permute():
                selector = ar.value(lane_coordinates.number(ar, hardware, step.selector))
                return ar.insert(ptx.PermuteOp(words[0], words[1], selector)).result
            case Select():
                condition = lane_coordinates.predicate(ar, hardware, step.number, step.value)
                if isinstance(condition, bool):
                    return words[1] if condition else words[0]
                if count == 1:
                    return ar.insert(arith.SelectOp(condition, words[1], words[0])).result
                conditions = ar.splat(condition, count)
                return ar.insert(ptx.SelectOp(conditions, words[1], words[0])).result
            case Shuffle(flip=None):
                lane = ar.value(lane_coordinates.number(ar, hardware, step.lane))
                return ar.insert(ptx.ShuffleOp(words[0], lane)).result
            case Shuffle(flip=int(flip)):
                return ar.insert(ptx.ShuffleXorOp(words[0], flip)).result
            case _:
                return ar.insert(ptx.MovmatrixOp(words[0])).result


def _words(step: Step) -> tuple[int, ...]:
    return (step.a, step.b) if isinstance(step, Permute | Select) else (step.a,)


def _columns(steps: Sequence[Step]) -> list[tuple[int, ...]]:
    """The first words of all steps, then their second ones."""
    return list(zip(*map(_words, steps), strict=True))


def _kind(step: Step) -> object:
    """What must agree for steps to be one operation."""
    match step:
        case Permute():
            return Permute, step.selector
        case Select():
            return Select, step.number, step.value
        case Shuffle():
            return Shuffle, step.lane if step.flip is None else step.flip
        case _:
            return Transpose


def _alike_runs(program: WordProgram) -> Iterator[Sequence[Step]]:
    """Runs of steps that differ in their words only and take none that the run makes."""
    first, steps = 0, program.steps
    for i, (step, after) in enumerate(pairwise((*steps, None))):
        assert step is not None
        made = program.inputs + first
        if (
            after is None
            or _kind(after) != _kind(step)
            or any(word >= made for word in _words(after))
        ):
            yield steps[first : i + 1]
            first = i + 1


# -- convert narrow --------------------------------------------------------------------------------
# Elements of one and four bits with a byte each, and back, for conversions that part bytes.

Binary = Callable[[SSAValue, SSAValue], Operation]

_NIBBLES = 0x0F0F0F0F
_LOWEST = 0x01010101
# bit i of four to the lowest of byte i: no two of the shifted copies meet in those that are kept
_SPREAD = 1 | 1 << 7 | 1 << 14 | 1 << 21
_GATHER = 1 << 28 | 1 << 21 | 1 << 14 | 1 << 7


class Narrow:
    """Takes the words of elements of `bits` apart, and makes them of bytes again."""

    def __init__(self, ar: Arithmetic, bits: int):
        if bits not in (1, 4):
            raise FragirError(f"elements of {bits} bits are not moved one by one")
        self.ar, self.bits = ar, bits

    def bytes_of(self, words: Sequence[SSAValue]) -> list[SSAValue]:
        """Words with a byte for every element, in their order."""
        return [part for word in words for part in self._bytes_apart(word)]

    def words_of(self, bytes_: Sequence[SSAValue]) -> list[SSAValue]:
        """Words of elements from words with a byte for each; the last may not be full."""
        each = 8 // self.bits
        full = [*bytes_, *([bytes_[-1]] * (-len(bytes_) % each))]
        return [self._together(full[first : first + each]) for first in range(0, len(full), each)]

    def _bytes_apart(self, word: SSAValue) -> list[SSAValue]:
        if self.bits == 4:
            low = self._with(arith.AndIOp, word, _NIBBLES)
            high = self._with(arith.AndIOp, self._with(arith.ShRUIOp, word, 4), _NIBBLES)
            return [self._permute(low, high, selector) for selector in (0x5140, 0x7362)]
        found: list[SSAValue] = []
        for shift in range(0, 32, 4):
            low = self._with(arith.ShRUIOp, word, shift) if shift else word
            four = self._with(arith.AndIOp, low, 15)
            spread = self._with(arith.MuliOp, four, _SPREAD)
            found.append(self._with(arith.AndIOp, spread, _LOWEST))
        return found

    def _together(self, parts: Sequence[SSAValue]) -> SSAValue:
        if self.bits == 4:
            low, high = parts
            even, odd = self._permute(low, high, 0x6420), self._permute(low, high, 0x7531)
            return self._op(arith.OrIOp, even, self._with(arith.ShLIOp, odd, 4))
        fours = [
            self._with(arith.ShRUIOp, self._with(arith.MuliOp, part, _GATHER), 28) for part in parts
        ]
        word = fours[0]
        for number, four in enumerate(fours[1:], 1):
            word = self._op(arith.OrIOp, word, self._with(arith.ShLIOp, four, 4 * number))
        return word

    def _permute(self, a: SSAValue, b: SSAValue, selector: int) -> SSAValue:
        return self.ar.insert(ptx.PermuteOp(a, b, self.ar.constant(selector))).result

    def _with(self, make: Binary, word: SSAValue, number: int) -> SSAValue:
        return self._op(make, word, self.ar.literal(IntegerAttr(number, i32)))

    def _op(self, make: Binary, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.ar.insert(make(a, b)).results[0]
