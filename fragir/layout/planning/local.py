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

from fragir.layout.f2 import Subspace, image, kernel, rank
from fragir.layout.planning.program import Builder, Linear


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

    @property
    def steps(self) -> int:
        """How many steps it takes, where no two outputs are the same."""
        b, mask = self.inside, (1 << self.inside) - 1
        if k := self.choices:
            reach = rank(c >> b for c in (*self.word, *self.unit, *self.threads))
            return steps(k, len(self.word), reach)
        units = [column & mask for column in self.unit]
        stays = units == [1 << bit for bit in range(len(units))] and not self.start & mask
        stays = stays and not any(column & mask for column in (*self.word, *self.threads))
        return 0 if stays else 1 << len(self.word)

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
        self._inputs = inputs
        unused = (1 << bit for bit in range(len(local.unit), b))
        self._map = local = replace(local, unit=(*local.unit, *unused))
        self._shift, self._apart = self._renamed_units()
        words = [
            (column ^ image(local.unit, shift)) >> b
            for column, shift in zip(local.word, self._shift, strict=True)
        ]
        self._word = [0 if bit in self._apart else w for bit, w in enumerate(words)]
        self._directions = self._ordered_ways()
        self._coordinates = Subspace(self._directions)
        self._back = Subspace()
        for bit, word in enumerate(self._word):
            if bit not in self._apart:
                self._back.add(word, 1 << bit)
        for direction in self._directions:
            self._back.add(direction)
        layers = range(1, len(self._directions) + 1) or range(1)
        self._layers = {layer: Chooser(builder, b, *self._columns(layer)) for layer in layers}

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

    def _renamed_units(self) -> tuple[list[int], set[int]]:
        """For each word bit the units that are renamed with it, and bits for which none helps.

        Word bits that read one word apart in units are told apart by the units: output `word'`
        holds its unit y at y + shift, and all outputs then read different words.
        """
        local, b = self._map, self._b
        shift = [0] * len(local.word)
        apart: set[int] = set()
        reached = Subspace()
        late = [bit for bit, column in enumerate(local.word) if not reached.add(column >> b)]
        for bit in late:
            for unit, column in enumerate(local.unit):
                if reached.add((local.word[bit] ^ column) >> b):
                    shift[bit] = 1 << unit
                    break
            else:
                apart.add(bit)
        return shift, apart

    def _ordered_ways(self) -> list[int]:
        """The ways in which the word changes, those among the outputs' words last."""
        local, b = self._map, self._b
        ways = list(Subspace(c >> b for c in local.unit + local.threads))
        words = [w for bit, w in enumerate(self._word) if bit not in self._apart]
        meeting = [image(ways, vector >> len(words)) for vector in kernel(words + ways)]
        span = Subspace(meeting)
        return [way for way in ways if span.add(way)] + meeting

    def _output(self, base: int, output: int, made: dict[tuple[int, int], int]) -> int:
        word = image(self._word, output)
        last = len(self._directions)
        if last:
            return self._layer(base, last, word, image(self._shift, output), made)
        unit = (base ^ image(self._map.word, output)) & self._mask
        one = self._inputs(word ^ base >> self._b)
        return self._layers[0](one, one, unit, 0)

    def _layer(
        self, base: int, layer: int, word: int, shift: int, made: dict[tuple[int, int], int]
    ) -> int:
        """A word of a layer: `word` is its place, `shift` renames the units of an output."""
        if layer == 0:
            return self._inputs(word ^ base >> self._b)
        last = layer == len(self._directions)
        if not last and (layer, word) in made:
            return made[layer, word]
        one = self._layer(base, layer - 1, word, 0, made)
        other = self._layer(base, layer - 1, word ^ self._directions[layer - 1], 0, made)
        start = base & self._mask ^ self._place(word) if layer == 1 else 0
        found = self._layers[layer](one, other, start, shift)
        if not last:
            made[layer, word] = found
        return found

    def _place(self, word: int) -> int:
        """The unit that the output of a word starts at."""
        output = self._back.solve(word) or 0
        shift = image(self._shift, output)
        return (image(self._map.word, output) ^ image(self._map.unit, shift)) & self._mask

    def _columns(self, layer: int) -> list[tuple[int, ...]]:
        """What units, lanes and warps change in a layer: which word (high bit), which unit."""
        found: list[tuple[int, ...]] = []
        for side in (self._map.unit, self._map.lane, self._map.warp):
            columns: list[int] = []
            for bit, column in enumerate(side):
                ways = self._coordinates.solve(column >> self._b) or 0
                chosen = (ways >> layer - 1 & 1) << self._b if layer else 0
                if layer <= 1:
                    chosen |= column & self._mask ^ self._place(image(self._directions, ways & ~1))
                elif side is self._map.unit:
                    chosen |= 1 << bit
                columns.append(chosen)
            found.append(tuple(columns))
        return found


class Chooser:
    """Words made of units of two words: unit y is `start` + what y + shift and the thread add.

    A unit is a number of `inside` bits, with the bit above them saying which of the two words.
    """

    def __init__(
        self,
        builder: Builder,
        inside: int,
        unit: Sequence[int],
        lane: Sequence[int],
        warp: Sequence[int],
    ) -> None:
        self._builder, self._inside = builder, inside
        top, mask = 1 << inside, (1 << inside) - 1
        self._units = [image(unit, y) for y in range(top)]
        threads = (*lane, *warp)
        self._stays = self._units == list(range(top)) and not any(c & mask for c in threads)
        self._one = not any(column & top for column in (*unit, *threads))
        self._same = not any(threads)
        self._width = 2 - inside
        shift = inside if self._stays else 0
        factor = 1 if self._stays else 0x1111 << self._width
        self._lane = tuple((column >> shift) * factor for column in lane)
        self._warp = tuple((column >> shift) * factor for column in warp)
        self._known: dict[tuple[int, int], tuple[bool, Linear | None]] = {}

    def __call__(self, one: int, other: int, start: int, shift: int) -> int:
        """The word that is made."""
        known = self._known.get((start, shift))
        if known is None:
            known = self._known[start, shift] = self._number(start, shift)
        swap, number = known
        if swap:
            one, other = other, one
        if number is None:
            return one
        if self._stays and not (start ^ self._units[shift]) & ~(1 << self._inside):
            return self._builder.select(one, other, number)
        return self._builder.permute(one, one if self._one else other, number)

    def _number(self, start: int, shift: int) -> tuple[bool, Linear | None]:
        """Whether the words change places, and the selector; None where it takes the first."""
        b, width = self._inside, self._width
        start ^= self._units[shift]
        swap = bool(start >> b)
        start &= (1 << b) - 1
        if self._stays and not start:
            number = None if self._same else self._builder.number(0, self._lane, self._warp)
            return swap, number
        selector = 0
        for byte in range(4):
            unit = start ^ self._units[byte >> width]
            selector |= (unit << width | byte & (1 << width) - 1) << 4 * byte
        if self._same and selector == KEEP:
            return swap, None
        lane, warp = self._lane, self._warp
        if self._stays:
            factor = 0x1111 << width + b
            lane, warp = (tuple(column * factor for column in side) for side in (lane, warp))
        return swap, self._builder.number(selector, lane, warp)


KEEP = 0x3210
"""The selector that takes the first word as it is."""
