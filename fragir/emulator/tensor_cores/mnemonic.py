"""The words of a mnemonic, sorted by what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fragir.errors import FragirError

#: The types, and the bits that an element of each takes; narrower floats take a byte.
BITS = {"f64": 64, "f32": 32, "tf32": 32, "s32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4} | {
    "b1": 1, **dict.fromkeys("s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1 ue8m0 ue4m3".split(), 8)
}  # fmt: skip
_SHAPE = re.compile(r"m(\d+)n(\d+)(?:k(\d+))?")
_FLAGS = frozenset(
    "sync aligned satfinite block_scale xor and popc trans mma_async sp rn rz rm rp".split()
)


@dataclass(frozen=True, slots=True)
class Mnemonic:
    """`types`, `layouts`: in order. `flags`: everything that stands alone.

    `kind`, `vector` (of scale_vec): after their `::`; "-" and "" where there is none.
    """

    opcode: tuple[str, ...]
    shape: str
    m: int
    n: int
    k: int
    layouts: tuple[str, ...]
    types: tuple[str, ...]
    flags: frozenset[str]
    kind: str
    vector: str

    @property
    def mnemonic(self) -> str:
        return ".".join(self.opcode)

    def refuse(self, why: str, hint: str | None = None) -> FragirError:
        return FragirError(f"`{self.mnemonic}`: {why}", hint=hint)


def read_words(opcode: tuple[str, ...]) -> Mnemonic:
    """Sorts the words; raises FragirError for one that no tensor-core instruction has."""
    shape, layouts, types, flags = "", list[str](), list[str](), set[str]()
    kind, vector = "-", ""
    extents = (0, 0, 0)
    for word in opcode[1:]:
        head, _, tail = word.partition("::")
        found = _SHAPE.fullmatch(word)
        if found and shape:
            raise FragirError(f"`{'.'.join(opcode)}`: it has one shape, not {shape} and {word}")
        if found:
            shape, extents = word, (int(found[1]), int(found[2]), int(found[3] or 0))
        elif word in ("row", "col"):
            layouts.append(word)
        elif word in BITS:
            types.append(word)
        elif word in _FLAGS:
            flags.add(word)
        elif head == "kind":
            kind = tail
        elif head == "scale_vec":
            vector = tail
        elif word == "sp::ordered_metadata":
            flags |= {"sp", "ordered"}
        else:
            raise FragirError(f"`{'.'.join(opcode)}`: the emulator does not know the word `{word}`")
    for word in ("sync", "aligned"):  # ptxas takes wgmma without .aligned
        if word not in flags and (word, opcode[0]) != ("aligned", "wgmma"):
            raise FragirError(f"`{'.'.join(opcode)}`: the word `{word}` is missing")
    return Mnemonic(
        opcode, shape, *extents, tuple(layouts), tuple(types), frozenset(flags), kind, vector
    )
