"""Programs put together: word by word, one after another, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fragir.layout.planning.program import (
    Lanewise,
    Linear,
    Permute,
    Program,
    Select,
    Shuffle,
    Step,
    Transpose,
)

KEEP = 0x3210
"""The selector that takes the first word as it is."""


class Builder:
    """Steps as they are asked for; what was made before is not made again.

    A word is a number; what would only name another word is that word.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self._steps: dict[Step, int] = {}

    def permute(self, a: int, b: int, selector: Linear) -> int:
        """Bytes of two words, as `prmt` takes them."""
        if selector.constant:
            if selector.start == KEEP:
                return a
            if selector.start == KEEP ^ 0x4444:
                return b
        return self.step(Permute(a, b, selector))

    def select(self, a: int, b: int, number: Linear) -> int:
        """`b` where the number is one, `a` where it is zero."""
        if number.start:
            a, b, number = b, a, replace(number, start=0)
        return a if a == b or number.constant else self.step(Select(a, b, number))

    def shuffle(self, a: int, lane: Linear) -> int:
        """The word of another lane."""
        butterfly = lane.lane == OWN and not any(lane.warp)
        if butterfly and not lane.start:
            return a
        return self.step(Shuffle(a, lane, lane.start if butterfly else None))

    def transpose(self, a: int) -> int:
        """The word after the warp's matrix of halves is transposed."""
        return self.step(Transpose(a))

    def step(self, step: Step) -> int:
        """The word that a step makes."""
        return self._steps.setdefault(step, self.inputs + len(self._steps))

    def program(self, outputs: Iterable[int]) -> Program:
        """What was asked for, less what no output needs."""
        return _needed(Program(self.inputs, tuple(self._steps), tuple(outputs)))


OWN = (1, 2, 4, 8, 16)
"""The columns of a lane's own number."""


def renaming(inputs: int, outputs: Iterable[int]) -> Program:
    """The program without a step."""
    return Program(inputs, (), tuple(outputs))


def chained(first: Program, second: Program) -> Program:
    """One program on the outputs of another."""
    words = list(first.outputs)
    steps = list(first.steps)
    for step in second.steps:
        words.append(first.inputs + len(steps))
        steps.append(_renumbered(step, words))
    return _needed(
        Program(first.inputs, tuple(steps), tuple(words[output] for output in second.outputs))
    )


def repeated(
    program: Program, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Program:
    """A program done several times with other words, all with the same numbers of lanes.

    Its inputs are the words `sources[i]` of a fragment, its outputs become the words `targets[i]`
    of another. A step stands beside its kind, so that what takes long overlaps.
    """
    inputs = sum(map(len, sources))
    words = [list(group) for group in sources]
    steps: list[Step] = []
    for step in program.steps:
        for group in words:
            made = _renumbered(step, group)
            group.append(inputs + len(steps))
            steps.append(made)
    placed = {
        place: group[output]
        for group, places in zip(words, targets, strict=True)
        for output, place in zip(program.outputs, places, strict=True)
    }
    return Program(inputs, tuple(steps), tuple(placed[place] for place in sorted(placed)))


def lanewise(step: Step) -> Lanewise | None:
    """The number that a step takes of every thread."""
    match step:
        case Permute(selector=number) | Select(number=number):
            return number
        case Shuffle(lane=number, flip=None):
            return number
        case Shuffle() | Transpose():
            return None


def takes(step: Step) -> tuple[int, ...]:
    """The words that a step reads."""
    if isinstance(step, Permute | Select):
        return (step.a, step.b)
    return (step.a,)


def _renumbered(step: Step, words: Sequence[int]) -> Step:
    if isinstance(step, Permute | Select):
        return replace(step, a=words[step.a], b=words[step.b])
    return replace(step, a=words[step.a])


def _needed(program: Program) -> Program:
    used = set(program.outputs)
    for number in reversed(range(len(program.steps))):
        if program.inputs + number in used:
            used.update(takes(program.steps[number]))
    words = list(range(program.inputs))
    steps: list[Step] = []
    for number, step in enumerate(program.steps, program.inputs):
        words.append(program.inputs + len(steps))
        if number in used:
            steps.append(_renumbered(step, words))
    return Program(program.inputs, tuple(steps), tuple(words[output] for output in program.outputs))
