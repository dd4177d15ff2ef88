"""The words of a mnemonic, sorted by what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fragir.errors import FragirError

TYPES = frozenset(
    "f16 bf16 tf32 f32 f64 s32 s8 u8 s4 u4 b1 e4m3 e5m2 e3m2 e2m3 e2m1 ue8m0 ue4m3".split()
)
_SHAPE = re.compile(r"m(\d+)n(\d+)(?:k(\d+))?")
_FLAGS = frozenset(
    "sync aligned satfinite block_scale xor and popc trans mma_async sp rn rz rm rp".split()
)


@dataclass(frozen=True, slots=True)
class Mnemonic:
    """`head`: the first word. `types`, `layouts`: in order. `flags`: everything that stands alone.

    `kind`, `vector` (of scale_vec): after their `::`, or None. `ordered`: ordered_metadata.
    """

    opcode: tuple[str, ...]
    head: str
    shape: str
    m: int
    n: int
    k: int
    layouts: tuple[str, ...]
    types: tuple[str, ...]
    flags: frozenset[str]
    kind: str | None
    vector: str | None
    ordered: bool

    @property
    def mnemonic(self) -> str:
        return ".".join(self.opcode)

    def refuse(self, why: str, hint: str | None = None) -> FragirError:
        return FragirError(f"`{self.mnemonic}`: {why}", hint=hint)


def read_words(opcode: tuple[str, ...]) -> Mnemonic:
    """Sorts the words; raises FragirError for one that no tensor-core instruction has."""
    shape, layouts, types, flags = "", list[str](), list[str](), set[str]()
    kind = vector = None
    ordered = False
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
        elif word in TYPES:
            types.append(word)
        elif word in _FLAGS:
            flags.add(word)
        elif head == "kind":
            kind = tail
        elif head == "scale_vec":
            vector = tail
        elif word == "sp::ordered_metadata":
            ordered = True
            flags.add("sp")
        else:
            raise FragirError(f"`{'.'.join(opcode)}`: the emulator does not know the word `{word}`")
    for word in ("sync", "aligned"):  # ptxas takes wgmma without .aligned
        if word not in flags and (word, opcode[0]) != ("aligned", "wgmma"):
            raise FragirError(f"`{'.'.join(opcode)}`: the word `{word}` is missing")
    return Mnemonic(
        opcode, opcode[0], shape, *extents, tuple(layouts), tuple(types), frozenset(flags), kind,
        vector, ordered,
    )  # fmt: skip
