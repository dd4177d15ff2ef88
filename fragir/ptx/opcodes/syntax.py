"""The syntax of an opcode, written as the PTX ISA's syntax boxes write it, and read as ptxas does.

A line is modifiers, a blank, operands:

    {.RND}{.ftz}{.sat}.f32  d, a, b
    .lt|gt{.ftz}.f16|f32    d:pred{|q}, a, b{, c:pred}

`.x|y` is a modifier that must be there, `{.x|y}` one that may; words in capitals are the sets of
`SETS`. Types come in the order of the line, and so do state spaces. All other modifiers come in any
order and between them, as for ptxas. `...` stands for words that the decoder reads itself.

Operands: `d` is written, `d_` too and may be the sink `_`, `d|p` is a pair, `d{|p}` may be one,
`{, c}` may be left out, `{, c?x|y}` is there exactly with one of these modifiers, `[a]` is an
address. `a:pred` says what register an operand has: a type, or the number of one of the line's
types (`a:2`), or `wide`, twice as wide as the type. Left out, `d` has the first type and the others
have the last one.

`...` among them: any number, which the decoder looks at.

`! reason` after the operands: ptxas takes it, and it is not emulated.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, NamedTuple

Words = tuple[str, ...]
_SIDES = (8, 16, 32)
#: Of the buffers that hold an operand of tcgen05.mma from one to the next.
_USES = ("fill", "use", "lastuse", "discard")

SETS: dict[str, str] = {
    "RND": "rn|rz|rm|rp",
    "IRND": "rni|rzi|rmi|rpi",
    "INT": "u16|u32|u64|s16|s32|s64",
    "INT8": "u8|s8|u16|u32|u64|s16|s32|s64",
    "BITS": "b16|b32|b64",
    "NARROWx2": "e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2",
    "NARROWx4": "e4m3x4|e5m2x4|e2m3x4|e3m2x4|e2m1x4",
    "CMP": "eq|ne|lt|le|gt|ge",
    "UCMP": "eq|ne|lt|le|gt|ge|lo|ls|hi|hs",
    "FCMP": "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan",
    "BOOL": "and|or|xor",
    "TRUTH": "u32|s32|f32|f16|bf16",
    "SCOPE": "cta|cluster|gpu|sys",
    "OWN": "shared|shared::cta",
    "SHARED": "shared|shared::cta|shared::cluster",
    "SPACE": "global|local|shared|shared::cta|shared::cluster",
    "VALUE": "b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
    "EVICT1": "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
    "EVICT2": "L2::evict_normal|L2::evict_first|L2::evict_last",
    "AHEAD": "L2::64B|L2::128B|L2::256B",
    "DIM": "1d|2d|3d|4d|5d",
    "TX": "mbarrier::complete_tx::bytes",
    "HINT": "L2::cache_hint",
    "MULTI": "multicast::cluster",
    "PAIR": "cta_group::1|cta_group::2",
    "WIDE": "im2col::w|im2col::w::128",
    "LAYOUT": "row|col",
    "SP": "sp|sp::ordered_metadata",
    "SUM": "f16|f32|f64|s32",
    "FACTOR": "f16|bf16|tf32|f64|s8|u8|s4|u4|e4m3|e5m2",
    "WFACTOR": "bf16|tf32|s8|u8|s4|u4",
    "F8F6F4": "e4m3|e5m2|e3m2|e2m3|e2m1",
    "SF": "ue8m0|ue4m3",
    "MX": "kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4",
    "VEC": "scale_vec::1X|scale_vec::2X|scale_vec::4X",
    # Any; which there are of what types is said where the products are made.
    "SHAPE": "|".join(f"m{m}n{n}k{4 << k}" for m in _SIDES for n in _SIDES for k in range(8)),
    "WGMMA": "|".join(f"m64n{8 * n}k{8 << k}" for n in range(1, 33) for k in range(7)),
    "GLOBAL": "global|shared|shared::cta",
    "MULTI_BITS": "multicast::cluster|multicast::cluster::16b|multicast::cluster::32b",
    "USE_A": "|".join(f"collector::a::{use}" for use in _USES),
    "USE_B": "|".join(f"collector::b::{use}" for use in _USES),
    "USE_BANK": "|".join(f"collector::b{bank}::{use}" for bank in range(4) for use in _USES),
}
_NARROW = "e4m3 e5m2 e2m3 e3m2 e2m1 ue8m0"
TYPES = frozenset(
    (
        "pred b8 b16 b32 b64 b128 u2 u4 u8 u16 u32 u64 s2 s4 s8 s16 s32 s64 f16 f32 f64 "
        "bf16 f16x2 bf16x2 f32x2 u16x2 s16x2 u8x4 s8x4 tf32 s2f6x2 "
        "b1 b2 ue4m3 b8x16 b6x16_p32 b4x16_p64 "
        + " ".join(f"{e} {e}x2 {e}x4" for e in _NARROW.split())
    ).split()
)
ENDLESS = 1 << 16
#: Modifiers that ptxas takes more than once.
REPEATED = frozenset("NaN approx cc relu sat satfinite shiftamt sync uni".split())
#: Words that an opcode whose words nobody reads may have several times.
_MANY = TYPES | frozenset("sync row col".split())
SPACES = frozenset(
    "global shared shared::cta shared::cluster local const param param::entry param::func".split()
)
_ORDERED = (SPACES, TYPES)
_MODIFIER = re.compile(r"\{\.([^}]+)\}|\.([^.{\s]+)")
_OPERAND = re.compile(r"(\{)?(?:^|,)\s*([^,{}]+)\}?")


@dataclass(frozen=True, slots=True, eq=False)
class ModifierSlot:
    """A place for one of some words."""

    words: tuple[str, ...]
    required: bool

    def within(self, words: frozenset[str]) -> bool:
        return words.issuperset(self.words)

    def __str__(self) -> str:
        text = "." + "|".join(self.words)
        return text if self.required else f"{{{text}}}"


class OperandSyntax(NamedTuple):
    """One operand. `kind`: the type of its register as it is written, "" where that follows."""

    name: str
    kind: str
    optional: bool
    #: The modifiers that it goes with.
    needs: frozenset[str] = frozenset()
    #: Whether there may or must be a second result, and whether the first may be left out.
    second: Literal["", "may", "must"] = ""
    spare: bool = False

    @property
    def is_written(self) -> bool:
        return self.name.startswith("d")


@dataclass(frozen=True)
class Line:
    """One line of a syntax box."""

    text: str

    def __str__(self) -> str:
        """With all words of its sets."""
        words = "..." if self.is_open else "".join(map(str, self.slots))
        operands = re.sub(r":\w+|\?[^,}]*", "", self._parts[1]).replace("d_", "d")
        return f"{words} {operands}".rstrip()

    @cached_property
    def is_open(self) -> bool:
        """Whether its words are read by the decoder."""
        return self.text.startswith("...")

    @cached_property
    def slots(self) -> tuple[ModifierSlot, ...]:
        found = _MODIFIER.findall(self._parts[0])
        return tuple(ModifierSlot(_expand(may or must), not may) for may, must in found)

    @cached_property
    def modifiers(self) -> tuple[ModifierSlot, ...]:
        """Those that come in any order."""
        return tuple(s for s in self.slots if not any(s.within(o) for o in _ORDERED))

    @cached_property
    def types(self) -> tuple[ModifierSlot, ...]:
        return tuple(s for s in self.slots if s.within(TYPES))

    @cached_property
    def _sequences(self) -> tuple[tuple[ModifierSlot, ...], ...]:
        """Slots that come in the order of the line: the spaces, the types."""
        return tuple(tuple(s for s in self.slots if s.within(o)) for o in _ORDERED)

    @property
    def known(self) -> tuple[str, ...]:
        """All words that its slots can have."""
        return tuple(w for slot in self.slots for w in slot.words)

    @cached_property
    def _parts(self) -> tuple[str, str, str]:
        """Modifiers, operands, and the reason why it is not emulated."""
        written, _, reason = self.text.partition("!")
        modifiers, _, operands = written.partition(" ")
        if not modifiers.startswith((".", "{.")):
            modifiers, operands = "", written
        if self.is_open:
            modifiers = ""
        return modifiers, operands.strip(), reason.strip()

    @property
    def missing(self) -> str:
        """Why it is not emulated; "" where it is."""
        return self._parts[2]

    @cached_property
    def operands(self) -> tuple[OperandSyntax, ...]:
        text = re.sub(r"\{\|\w+\}", "~", self._parts[1])
        found: list[OperandSyntax] = []
        for may, operand in _OPERAND.findall(text):
            second = "may" if "~" in operand else "must" if "|" in operand.partition("?")[0] else ""
            rest, _, needs = operand.replace("~", "").strip().partition("?")
            name, _, kind = rest.partition(":")
            spare = name.startswith("d_")
            goes = frozenset(_expand(needs)) if needs else frozenset[str]()
            name = name.replace("d_", "d", 1) if spare else name
            found.append(OperandSyntax(name, kind, bool(may), goes, second, spare))
        return tuple(found)

    @cached_property
    def pairs(self) -> bool:
        """Whether its first operand must be two results."""
        return bool(self.operands) and self.operands[0].second == "must"

    def counts(self, words: Iterable[str]) -> range:
        """How many operands there can be with these modifiers."""
        if any(o.name == "..." for o in self.operands):
            return range(ENDLESS)
        given = frozenset(words)
        most = least = 0
        for operand in self.operands:
            there = not operand.needs.isdisjoint(given)
            most += there or not operand.needs
            least += there or not operand.optional
        return range(least, most + 1)

    def read(self, words: Sequence[str], known: Container[str] = ()) -> Reading:
        """The words after the opcode's name, put into slots. `known`: those of all its lines."""
        if self.is_open:
            twice = [w for w in words if words.count(w) > 1 and w not in _MANY]
            return Reading(self, tuple(words), tuple(f".{w} is given twice" for w in twice[:1]))
        taken: dict[ModifierSlot, str] = {}
        problems: list[str] = []
        at = [0] * len(_ORDERED)
        for word in words:
            group = next((g for g, ordered in enumerate(_ORDERED) if word in ordered), None)
            slots = self.modifiers if group is None else self._sequences[group]
            free = [s for s in slots if word in s.words and s not in taken]
            if group is not None:
                passed = self._sequences[group][at[group] :]
                free = [s for s in free if s in passed]
                if free and any(s.required for s in passed[: passed.index(free[0])]):
                    free = []
                if free:
                    at[group] = slots.index(free[0]) + 1
            if free:
                taken[free[0]] = word
            elif problem := self._left_over(word, slots, taken, known):
                problems.append(problem)
        problems += [
            f"it needs one of .{', .'.join(slot.words)}"
            for slot in self.slots
            if slot.required and slot not in taken
        ]
        ordered = tuple(taken[s] for s in self.slots if s in taken)
        types = [taken[s] for s in self.types if s in taken]
        wrong = sum(w in TYPES for w in words) - len(types)
        return Reading(self, ordered, tuple(problems), (len(types) - wrong, -len(problems)))

    def _left_over(
        self,
        word: str,
        slots: Sequence[ModifierSlot],
        taken: Mapping[ModifierSlot, str],
        known: Container[str],
    ) -> str | None:
        """What is wrong with a word that no slot is left for."""
        there = [s for s in slots if word in s.words]
        if not there and word in known:
            return f".{word} does not go with the others"
        if not there:
            return f".{word} is no modifier of {{}}"
        others = [taken[s] for s in there if s in taken]
        if word in others:
            return None if word in REPEATED else f".{word} is given twice"
        if others:
            return f".{others[0]} and .{word} exclude each other"
        return f".{word} does not stand here"


@dataclass(frozen=True, slots=True)
class Reading:
    """The words after an opcode's name by one line: modifiers in the line's order, types last.

    `problems`: why they are none of the line's, `{}` standing for the name; `rank`: how near they
    come, types first.
    """

    line: Line
    words: Words
    problems: tuple[str, ...]
    rank: tuple[int, int] = (0, 0)


@cache
def _expand(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for word in text.split("|"):
        found += SETS[word].split("|") if word in SETS else [word]
    return tuple(dict.fromkeys(found))


@cache
def lines(text: str) -> tuple[Line, ...]:
    """The lines of a syntax box."""
    return tuple(Line(line.strip()) for line in text.splitlines() if line.strip()) or (Line(""),)
