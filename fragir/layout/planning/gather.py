"""Words made of the bytes of other words of the same thread, by few byte permutes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fragir.layout.planning.program import Linear, Permute, Step, WordProgram

Bytes = tuple[int, ...]
"""The bytes of a word, lowest first, as 4 * number of their word + place in it; fewer than four
where the others do not matter."""


def gathered(inputs: int, wanted: Iterable[Sequence[int]], unit: int) -> WordProgram:
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
