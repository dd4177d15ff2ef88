"""Bytes moved inside of a lane: a linear map in layers of two-input byte permutes.

A map takes every byte of an output word, for every thread, to a byte of an input word, linearly
over F2. Let k be the number of independent ways in which the byte and the thread change the input
*word*, q_1 u_1 + ... + q_k u_k. Layer i makes of the words T the words

    T_i[w](byte) = T_(i-1)[w + q_i(byte, thread) u_i](byte)

with one `prmt`, or `selp` where whole words are chosen, for each word. Output words share the words
between, so that as many words as there are outputs are made in each layer. Moves of bytes inside of
words are part of the first and of the last layer's selectors. With k = 0 a word is renamed or
permuted once. Numbers of threads are linear everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fragir.layout.f2 import Span, image, kernel, rank
from fragir.layout.planning.building import Builder
from fragir.layout.planning.program import Linear


@dataclass(frozen=True, slots=True)
class LocalMap:
    """For each bit of an output's word, byte and thread the element of the source that it adds.

    An element is `word << inside | unit`, with 2^inside units (bytes for 8 bits, halves for 16) in
    a word. `unit` may be shorter than `inside`: then the other units of outputs are not used.
    """

    inside: int
    word: tuple[int, ...]
    unit: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...]
    start: int = 0

    @property
    def threads(self) -> tuple[int, ...]:
        """The columns of the thread."""
        return self.lane + self.warp

    @property
    def choices(self) -> int:
        """k: how many independent bits choose the input word."""
        return rank(c >> self.inside for c in self.unit + self.threads)

    def emit(self, builder: Builder, inputs: Callable[[int], int]) -> list[int]:
        """The outputs, of the input words that `inputs` says."""
        return _Emission(self, builder, inputs).outputs()


def steps(k: int, outputs: int, reach: int) -> int:
    """How many steps a map of rank k takes whose 2^outputs words come of 2^reach words.

    Layers that stay among the words of the outputs make as many words as there are outputs; the
    words that the others need are a tree.
    """
    if not k:
        return 0
    inside = max(0, min(outputs, reach) + k - reach)
    return (inside + (1 << k - inside) - 1) << outputs


class _Emission:
    """One map on its way into a program."""

    def __init__(self, local: LocalMap, builder: Builder, inputs: Callable[[int], int]) -> None:
        b = local.inside
        self._b, self._mask = b, (1 << b) - 1
        self._builder, self._inputs = builder, inputs
        unused = (1 << bit for bit in range(len(local.unit), b))
        self._map = local = replace(local, unit=(*local.unit, *unused))
        self._shift, self._apart = self._shifted()
        words = [
            (column ^ image(local.unit, shift)) >> b
            for column, shift in zip(local.word, self._shift, strict=True)
        ]
        self._word = [0 if bit in self._apart else w for bit, w in enumerate(words)]
        self._directions = self._ordered()
        self._k = len(self._directions)
        self._coordinates = Span(self._directions)
        self._back = Span()
        for bit, word in enumerate(self._word):
            if bit not in self._apart:
                self._back.add(word, 1 << bit)
        for direction in self._directions:
            self._back.add(direction)

    def outputs(self) -> list[int]:
        """All output words; those of bits that change no word of the inputs apart."""
        local = self._map
        found = [0] * (1 << len(local.word))
        mask = sum(1 << bit for bit in self._apart)
        part = mask
        while True:
            base = local.start ^ image(local.word, part)
            made: dict[tuple[int, int], int] = {}
            for output in range(len(found)):
                if output & mask == part:
                    found[output] = self._output(base, output & ~mask, made)
            if not part:
                return found
            part = part - 1 & mask

    def _shifted(self) -> tuple[list[int], set[int]]:
        """For each word bit the units that are renamed with it, and bits for which none helps.

        Word bits that read one word apart in units are told apart by the units: output `word'`
        holds its unit y at y + shift, and all outputs then read different words.
        """
        local, b = self._map, self._b
        shift = [0] * len(local.word)
        apart: set[int] = set()
        reached = Span()
        late = [bit for bit, column in enumerate(local.word) if not reached.add(column >> b)]
        for bit in late:
            for unit, column in enumerate(local.unit):
                if reached.add((local.word[bit] ^ column) >> b):
                    shift[bit] = 1 << unit
                    break
            else:
                apart.add(bit)
        return shift, apart

    def _ordered(self) -> list[int]:
        """The ways in which the word changes, those among the outputs' words last."""
        local, b = self._map, self._b
        ways = list(Span(c >> b for c in local.unit + local.threads))
        words = [w for bit, w in enumerate(self._word) if bit not in self._apart]
        meeting = [image(ways, vector >> len(words)) for vector in kernel(words + ways)]
        span = Span(meeting)
        return [way for way in ways if span.add(way)] + meeting

    def _output(self, base: int, output: int, made: dict[tuple[int, int], int]) -> int:
        word, shift = image(self._word, output), image(self._shift, output)
        return self._layer(base, self._k, word, shift, made, output)

    def _layer(
        self,
        base: int,
        layer: int,
        word: int,
        shift: int,
        made: dict[tuple[int, int], int],
        output: int = 0,
    ) -> int:
        """The word of a layer: `word` is its place, `shift` renames the units of an output."""
        if not self._k:
            unit = (base ^ image(self._map.word, output)) & self._mask
            columns = (self._map.unit, self._map.lane, self._map.warp)
            one = self._inputs(word ^ base >> self._b)
            return self._choose(one, one, unit, 0, [[c & self._mask for c in s] for s in columns])
        if layer == 0:
            return self._inputs(word ^ base >> self._b)
        key = (layer, word)
        last = layer == self._k
        if not last and key in made:
            return made[key]
        one = self._layer(base, layer - 1, word, 0, made)
        other = self._layer(base, layer - 1, word ^ self._directions[layer - 1], 0, made)
        start = 0
        if layer == 1:
            start = base & self._mask ^ self._place(word)
        found = self._choose(one, other, start, shift, self._columns(layer))
        if not last:
            made[key] = found
        return found

    def _place(self, word: int) -> int:
        """The unit that the output of a word starts at."""
        output = self._back.solve(word)
        assert output is not None
        shift = image(self._shift, output)
        return (image(self._map.word, output) ^ image(self._map.unit, shift)) & self._mask

    def _columns(self, layer: int) -> list[list[int]]:
        """What units, lanes and warps change in a layer: which word (high bit), which unit."""
        found: list[list[int]] = []
        for side in (self._map.unit, self._map.lane, self._map.warp):
            columns: list[int] = []
            for bit, column in enumerate(side):
                ways = self._coordinates.solve(column >> self._b) or 0
                chosen = (ways >> layer - 1 & 1) << self._b
                if layer == 1:
                    chosen |= column & self._mask ^ self._place(image(self._directions, ways & ~1))
                elif side is self._map.unit:
                    chosen |= 1 << bit
                columns.append(chosen)
            found.append(columns)
        return found

    def _choose(
        self, one: int, other: int, start: int, shift: int, columns: Sequence[Sequence[int]]
    ) -> int:
        """A word whose unit y, in every thread, is a unit of one of two words.

        Units are numbers of `inside` bits with the choice of the word above them.
        """
        return choose(self._builder, self._b, one, other, start, shift, columns)


def choose(
    builder: Builder,
    inside: int,
    one: int,
    other: int,
    start: int,
    shift: int,
    columns: Sequence[Sequence[int]],
) -> int:
    """A word of units of two words: unit y is `start` + the columns of y + shift and of the thread.

    A unit is a number of `inside` bits, with the bit above them saying which word.
    """
    of_unit, of_lane, of_warp = columns
    top, mask = 1 << inside, (1 << inside) - 1
    start ^= image(of_unit, shift)
    if start & top:
        one, other, start = other, one, start ^ top
    stays = not start and all(column == 1 << bit for bit, column in enumerate(of_unit))
    if stays and not any(column & mask for column in (*of_lane, *of_warp)):
        lane, warp = (tuple(c >> inside for c in side) for side in (of_lane, of_warp))
        return builder.select(one, other, Linear(0, lane, warp))
    width = 2 - inside
    selector = 0
    for byte in range(4):
        unit = start ^ image(of_unit, byte >> width)
        selector |= (unit << width | byte & (1 << width) - 1) << 4 * byte
    lane, warp = (tuple((c << width) * 0x1111 for c in side) for side in (of_lane, of_warp))
    if not any(column & top for column in (*of_unit, *of_lane, *of_warp)):
        other = one
    return builder.permute(one, other, Linear(selector, lane, warp))
