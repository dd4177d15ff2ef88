"""Programs put together: word by word, one after another, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fragir.layout.planning.program import (
    Lanewise,
    Linear,
    Permute,
    Select,
    Shuffle,
    Step,
    Transpose,
    WordProgram,
)


class Builder:
    """Steps as they are asked for; what was made before is not made again.

    A word is a number; what would only name another word is that word.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self._steps: list[Step] = []
        self._made: dict[tuple[int, int, int], int] = {}
        self._numbers: dict[tuple[int, tuple[int, ...], tuple[int, ...]], Linear] = {}
        self._known: dict[Lanewise, Lanewise] = {}

    def number(self, start: int, lane: tuple[int, ...], warp: tuple[int, ...]) -> Linear:
        """A number of every thread; the same object for the same number."""
        key = (start, lane, warp)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = Linear(start, lane, warp)
        return found

    def known(self, number: Lanewise) -> Lanewise:
        """The same object for the same number, however it was made."""
        return self._known.setdefault(number, number)

    def permute(self, a: int, b: int, selector: Lanewise) -> int:
        """Bytes of two words, as `prmt` takes them."""
        key = (a, b, id(selector))
        return self._made.get(key) or self._step(key, Permute(a, b, selector))

    def select(self, a: int, b: int, number: Lanewise) -> int:
        """`b` where the number is one, `a` where it is zero."""
        if a == b:
            return a
        key = (a, b, id(number))
        return self._made.get(key) or self._step(key, Select(a, b, number))

    def shuffle(self, a: int, lane: Lanewise) -> int:
        """The word of another lane."""
        key = (a, -1, id(lane))
        found = self._made.get(key)
        if found is None:
            flip = _flip(lane)
            if flip == 0:
                return a
            found = self._step(key, Shuffle(a, lane, flip))
        return found

    def transpose(self, a: int) -> int:
        """The word after the warp's matrix of halves is transposed."""
        key = (a, -2, 0)
        return self._made.get(key) or self._step(key, Transpose(a))

    def _step(self, key: tuple[int, int, int], step: Step) -> int:
        """The word that a step makes; numbers in keys stay alive in `_numbers` or the step."""
        word = self._made[key] = self.inputs + len(self._steps)
        self._steps.append(step)
        return word

    def program(self, outputs: Iterable[int]) -> WordProgram:
        """What was asked for, less what no output needs."""
        return _needed(WordProgram(self.inputs, tuple(self._steps), tuple(outputs)))


def _flip(lane: Lanewise) -> int | None:
    """What a lane reads as its own number ^ something; None where it is no such thing."""
    if isinstance(lane, Linear) and lane.lane == OWN and not any(lane.warp):
        return lane.start
    return None


OWN = (1, 2, 4, 8, 16)
"""The columns of a lane's own number."""


def renaming(inputs: int, outputs: Iterable[int]) -> WordProgram:
    """The program without a step."""
    return WordProgram(inputs, (), tuple(outputs))


def chained(first: WordProgram, second: WordProgram) -> WordProgram:
    """One program on the outputs of another."""
    words = list(first.outputs)
    steps = list(first.steps)
    for step in second.steps:
        words.append(first.inputs + len(steps))
        steps.append(_renumbered(step, words))
    return _needed(
        WordProgram(first.inputs, tuple(steps), tuple(words[output] for output in second.outputs))
    )


def side_by_side(
    program: WordProgram, sources: Sequence[Sequence[int]]
) -> tuple[tuple[Step, ...], list[list[int]]]:
    """The steps of a program done once for each of `sources`, its inputs among all words; and for
    each time its words' numbers. A step stands beside its kind, so that what takes long overlaps.
    """
    inputs = sum(map(len, sources))
    words = [list(group) for group in sources]
    steps: list[Step] = []
    for step in program.steps:
        for group in words:
            made = _renumbered(step, group)
            group.append(inputs + len(steps))
            steps.append(made)
    return tuple(steps), words


def repeated(
    program: WordProgram, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> WordProgram:
    """A program done several times with other words, all with the same numbers of lanes.

    Its inputs are the words `sources[i]` of a fragment, its outputs become the words `targets[i]`
    of another.
    """
    steps, words = side_by_side(program, sources)
    placed = {
        place: group[output]
        for group, places in zip(words, targets, strict=True)
        for output, place in zip(program.outputs, places, strict=True)
    }
    inputs = sum(map(len, sources))
    return WordProgram(inputs, steps, tuple(placed[place] for place in sorted(placed)))


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
    match step:
        case Permute(a, b, selector):
            return Permute(words[a], words[b], selector)
        case Select(a, b, number, value):
            return Select(words[a], words[b], number, value)
        case Shuffle(a, lane, flip):
            return Shuffle(words[a], lane, flip)
        case Transpose(a):
            return Transpose(words[a])


def _needed(program: WordProgram) -> WordProgram:
    used = set(program.outputs)
    for number in reversed(range(len(program.steps))):
        if program.inputs + number in used:
            used.update(takes(program.steps[number]))
    if all(number in used for number in range(program.inputs, program.inputs + len(program.steps))):
        return program
    words = list(range(program.inputs))
    steps: list[Step] = []
    for number, step in enumerate(program.steps, program.inputs):
        words.append(program.inputs + len(steps))
        if number in used:
            steps.append(_renumbered(step, words))
    return WordProgram(
        program.inputs, tuple(steps), tuple(words[output] for output in program.outputs)
    )
