"""A conversion's `WordProgram` as operations on 32-bit words: one instruction a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.layout.planning.program import Permute, Select, Shuffle, Step, Transpose, WordProgram
from fragir.passes.lowering import lanewise
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.lanes import Hardware

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
        for steps in _alike(program):
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
                selector = ar.value(lanewise.number(ar, hardware, step.selector))
                return ar.insert(ptx.PermuteOp(words[0], words[1], selector)).result
            case Select():
                condition = lanewise.predicate(ar, hardware, step.number, step.value)
                if isinstance(condition, bool):
                    return words[1] if condition else words[0]
                if count == 1:
                    return ar.insert(arith.SelectOp(condition, words[1], words[0])).result
                conditions = ar.splat(condition, count)
                return ar.insert(ptx.SelectOp(conditions, words[1], words[0])).result
            case Shuffle(flip=None):
                lane = ar.value(lanewise.number(ar, hardware, step.lane))
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


def _alike(program: WordProgram) -> Iterator[Sequence[Step]]:
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
