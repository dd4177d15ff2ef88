"""Words made of the bytes of other words of the same thread, by few byte permutes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fragir.layout.planning.program import Linear, Permute, Program, Step

Byte = tuple[int, int]
"""A byte of a word: the word's number and its place, the lowest 0."""

Wanted = Sequence[Byte | None]
"""The bytes of a word, lowest first; None where any will do."""


def gathered(inputs: int, wanted: Iterable[Wanted]) -> Program:
    """The program whose outputs are the words wanted, of the bytes of its inputs.

    A word that is an input costs nothing, one of two words a permute. One of three or four is made
    of halves of two words each; two halves of the same two words are made by one permute, so that
    a transposition of 4 by 4 bytes takes 8.
    """
    words = [tuple(bytes_) for bytes_ in wanted]
    steps: list[Step] = []
    made: dict[tuple[Byte | None, ...], int] = {}

    def permute(bytes_: tuple[Byte | None, ...]) -> int:
        """The number of a word of bytes that come of two words at most."""
        used = list(dict.fromkeys(byte[0] for byte in bytes_ if byte))
        first = used[0] if used else 0
        if all(byte is None or byte == (first, place) for place, byte in enumerate(bytes_)):
            return first
        if bytes_ not in made:
            a, b = first, used[-1]
            nibbles = [
                place if byte is None else byte[1] + 4 * (byte[0] != a)
                for place, byte in enumerate(bytes_)
            ]
            selector = sum(nibble << 4 * place for place, nibble in enumerate(nibbles))
            steps.append(Permute(a, b, Linear(selector)))
            made[bytes_] = inputs + len(steps) - 1
        return made[bytes_]

    halves = _halves(words)
    where: dict[tuple[Byte, ...], tuple[tuple[Byte | None, ...], int]] = {}
    for group in halves:
        row: tuple[Byte | None, ...] = tuple(byte for half in group for byte in half)
        for half in group:
            where[half] = row, row.index(half[0])
    outputs: list[int] = []
    for bytes_ in words:
        parts = _parts(bytes_)
        if len(parts) == 1:
            outputs.append(permute(bytes_))
            continue
        moved: dict[Byte, Byte] = {}
        for half in parts:
            if len({word for word, _ in half}) == 1:
                moved.update((byte, byte) for byte in half)
                continue
            row, start = where[half]
            word = permute(row)
            moved.update((byte, (word, start + place)) for place, byte in enumerate(half))
        outputs.append(permute(tuple(byte and moved[byte] for byte in bytes_)))
    return Program(inputs, tuple(steps), tuple(outputs))


def _parts(bytes_: Wanted) -> list[tuple[Byte, ...]]:
    """The bytes by the words they come of: all of them, or two halves of two words each."""
    present = list(dict.fromkeys(byte for byte in bytes_ if byte))
    used = sorted({word for word, _ in present})
    if len(used) <= 2:
        return [tuple(present)]
    return [tuple(b for b in present if b[0] in pair) for pair in (used[:2], used[2:])]


def _halves(words: Iterable[Wanted]) -> list[list[tuple[Byte, ...]]]:
    """The halves that need a permute, those of the same two words in twos."""
    found: dict[tuple[int, ...], list[tuple[Byte, ...]]] = {}
    for bytes_ in words:
        parts = _parts(bytes_)
        if len(parts) == 1:
            continue
        for half in parts:
            used = tuple(sorted({word for word, _ in half}))
            group = found.setdefault(used, [])
            if len(used) == 2 and half not in group:
                group.append(half)
    groups: list[list[tuple[Byte, ...]]] = []
    for group in found.values():
        for half in group:
            last = groups[-1] if groups else []
            fits = sum(map(len, last)) + len(half) <= 4
            same = last and {w for w, _ in last[0]} == {w for w, _ in half}
            if fits and same:
                last.append(half)
            else:
                groups.append([half])
    return groups
