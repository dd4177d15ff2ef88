"""Plans as programs: what one thread does with 32-bit words, in order, as data.

A fragment of elements is a list of words: elements of 8 or 16 bits lie in a word lowest first,
elements of 64 bits are two words, the low one first. Words are numbered: first those that a
program is given, then one for every step. What differs from thread to thread is a `Lanewise`
number. Shared memory is not of this kind; `fragir.layout.planning.shared` has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from fragir.layout.f2 import image


@dataclass(frozen=True, slots=True)
class Linear:
    """A number that every thread has: `start`, with a column added (xor) for each bit of the
    thread's lane and warp that is set. Bits without a column add nothing.
    """

    start: int
    lane: tuple[int, ...] = ()
    warp: tuple[int, ...] = ()

    def __call__(self, lane: int, warp: int) -> int:
        lane, warp = lane & (1 << len(self.lane)) - 1, warp & (1 << len(self.warp)) - 1
        return self.start ^ image(self.lane, lane) ^ image(self.warp, warp)

    @property
    def constant(self) -> bool:
        """Whether all threads have the same number."""
        return not any(self.lane) and not any(self.warp)


@dataclass(frozen=True, slots=True)
class LaneTable:
    """A number that every thread has: `values[warp][lane]`; one row stands for all warps."""

    values: tuple[tuple[int, ...], ...]

    def __call__(self, lane: int, warp: int) -> int:
        return self.values[warp % len(self.values)][lane]

    @property
    def constant(self) -> bool:
        """Whether all threads have the same number."""
        return len({value for row in self.values for value in row}) == 1


Lanewise: TypeAlias = Linear | LaneTable


@dataclass(frozen=True, slots=True)
class Permute:
    """`prmt`: byte i of the result is the byte of (a, b) that nibble i of the selector names."""

    a: int
    b: int
    selector: Lanewise


@dataclass(frozen=True, slots=True)
class Select:
    """`selp`: b in threads whose number is `value`, a in the others."""

    a: int
    b: int
    number: Lanewise
    value: int = 1


@dataclass(frozen=True, slots=True)
class Shuffle:
    """`shfl.sync`: the word `a` of another lane of the warp.

    `lane` is the lane read from; for a butterfly (`flip` is not None) it is the own one ^ `flip`.
    """

    a: int
    lane: Lanewise
    flip: int | None = None


@dataclass(frozen=True, slots=True)
class Transpose:
    """`movmatrix.m8n8.trans.b16`: a matrix of 8 by 8 halves that lies across the warp."""

    a: int


Step: TypeAlias = Permute | Select | Shuffle | Transpose
NAMES = {Permute: "prmt", Select: "selp", Shuffle: "shfl", Transpose: "movmatrix"}


@dataclass(frozen=True)
class WordProgram:
    """The steps of every thread; `outputs` are the numbers of the words that come out."""

    inputs: int
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Instructions of one thread by name."""
        return dict(Counter(NAMES[type(step)] for step in self.steps))


# -- building --------------------------------------------------------------------------------------
# Programs put together: word by word, one after another, side by side.


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

    def interned(self, number: Lanewise) -> Lanewise:
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
        return _needed_steps(WordProgram(self.inputs, tuple(self._steps), tuple(outputs)))


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


def chain_programs(first: WordProgram, second: WordProgram) -> WordProgram:
    """One program on the outputs of another."""
    words = list(first.outputs)
    steps = list(first.steps)
    for step in second.steps:
        words.append(first.inputs + len(steps))
        steps.append(_renumber_step(step, words))
    return _needed_steps(
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
            made = _renumber_step(step, group)
            group.append(inputs + len(steps))
            steps.append(made)
    return tuple(steps), words


def repeat_program(
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


def _renumber_step(step: Step, words: Sequence[int]) -> Step:
    match step:
        case Permute(a, b, selector):
            return Permute(words[a], words[b], selector)
        case Select(a, b, number, value):
            return Select(words[a], words[b], number, value)
        case Shuffle(a, lane, flip):
            return Shuffle(words[a], lane, flip)
        case Transpose(a):
            return Transpose(words[a])


def _needed_steps(program: WordProgram) -> WordProgram:
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
            steps.append(_renumber_step(step, words))
    return WordProgram(
        program.inputs, tuple(steps), tuple(words[output] for output in program.outputs)
    )


# -- gather ----------------------------------------------------------------------------------------
# Words made of the bytes of other words of the same thread, by few byte permutes.

Bytes = tuple[int, ...]
"""The bytes of a word, lowest first, as 4 * number of their word + place in it; fewer than four
where the others do not matter."""


def gather_words(inputs: int, wanted: Iterable[Sequence[int]], unit: int) -> WordProgram:
    """The program whose outputs are the words wanted, of elements of its inputs.

    Elements have `unit` bytes (1, 2 or 4) and are numbered through all inputs, lowest first; a
    word with less of them than it could hold has them lowest.

    A word that is an input costs nothing, one of two words a permute. One of three or four is made
    of halves of two words each; two halves of the same two words are made by one permute, so that
    a transposition of 4 by 4 bytes takes 8.
    """
    per = 4 // unit
    words = list(wanted)
    if per == 1:
        return WordProgram(inputs, (), tuple(word[0] for word in words))
    steps: list[Step] = []
    made: dict[Bytes, int] = {}

    def permute(bytes_: Bytes) -> int:
        """The number of a word of bytes that come of two words at most."""
        first = bytes_[0] & ~3
        if all(byte == first + place for place, byte in enumerate(bytes_)):
            return first >> 2
        if bytes_ not in made:
            other = next((byte for byte in bytes_ if byte & ~3 != first), first)
            selector = 0
            for place, byte in enumerate(bytes_):
                selector |= (byte & 3 | (byte & ~3 != first) << 2) << 4 * place
            steps.append(Permute(first >> 2, other >> 2, Linear(selector)))
            made[bytes_] = inputs + len(steps) - 1
        return made[bytes_]

    halves: dict[Bytes, Bytes] | None = None
    outputs: list[int] = []
    for word in words:
        first = word[0]
        if first % per == 0 and all(e == first + place for place, e in enumerate(word)):
            outputs.append(first // per)
            continue
        bytes_ = _bytes(word, unit)
        parts = _parts(bytes_)
        if not parts:
            outputs.append(permute(bytes_))
            continue
        if halves is None:
            halves = _halves(_bytes(other, unit) for other in words)
        moved = {byte: byte for byte in bytes_}
        for half in parts:
            row = halves.get(half)
            if row is not None:
                number = permute(row)
                moved.update((byte, 4 * number + row.index(byte)) for byte in half)
        outputs.append(permute(tuple(moved[byte] for byte in bytes_)))
    return WordProgram(inputs, tuple(steps), tuple(outputs))


def _bytes(word: Sequence[int], unit: int) -> Bytes:
    return tuple(element * unit + byte for element in word for byte in range(unit))


def _parts(bytes_: Bytes) -> Sequence[Bytes]:
    """Two halves of the bytes, of two words each; nothing where two words are all."""
    used = sorted({byte >> 2 for byte in bytes_})
    if len(used) <= 2:
        return ()
    present = dict.fromkeys(bytes_)
    return [tuple(b for b in present if b >> 2 in pair) for pair in (used[:2], used[2:])]


def _halves(words: Iterable[Bytes]) -> dict[Bytes, Bytes]:
    """For every half of a word that needs a permute of its own the bytes that this makes.

    Two halves of the same two words share one.
    """
    groups: dict[tuple[int, ...], list[Bytes]] = {}
    for half in dict.fromkeys(half for bytes_ in words for half in _parts(bytes_)):
        used = tuple(sorted({byte >> 2 for byte in half}))
        if len(used) == 2:
            groups.setdefault(used, []).append(half)
    rows: dict[Bytes, Bytes] = {}
    for group in groups.values():
        open_: list[Bytes] = []
        for half in group:
            open_.append(half)
            full = sum(map(len, open_)) > 2 or half is group[-1]
            if full and sum(map(len, open_)) <= 4:
                row = tuple(byte for part in open_ for byte in part)
                rows.update(dict.fromkeys(open_, row))
                open_ = []
            elif full:
                rows.update((part, part) for part in open_)
                open_ = []
    return rows
