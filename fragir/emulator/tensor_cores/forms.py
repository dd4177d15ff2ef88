"""What tensor-core instructions have in common: their words, which go together, their registers.

Which words go together on which target is rows of text, and what is asked of a statement, in order
(`Forms`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.tensor_cores.arithmetic import TargetName, abilities
from fragir.errors import FragirError

# -- words -----------------------------------------------------------------------------------------

#: The types, and the bits that an element of each takes; narrower floats take a byte.
BITS = {"f64": 64, "f32": 32, "tf32": 32, "s32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4} | {
    "b1": 1, **dict.fromkeys("s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1 ue8m0 ue4m3".split(), 8)
}  # fmt: skip
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


@dataclass(frozen=True, slots=True)
class Mnemonic:
    """`types`, `layouts`: in order. `flags`: everything else.

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
    """Sorts the words of an opcode that has a row (`fragir/ptx/opcodes/matrices.py`)."""
    shape, layouts, types, flags = "", list[str](), list[str](), set[str]()
    kind, vector = "-", ""
    extents = (0, 0, 0)
    for word in opcode[1:]:
        head, _, tail = word.partition("::")
        if found := _SHAPE.fullmatch(word):
            shape, extents = word, (int(found[1]), int(found[2]), int(found[3]))
        elif word in ("row", "col"):
            layouts.append(word)
        elif word in BITS:
            types.append(word)
        elif head == "kind":
            kind = tail
        elif head == "scale_vec":
            vector = tail
        elif head == "sp":
            flags |= {"sp", *(["ordered"] if tail else [])}
        else:
            flags.add(word)
    return Mnemonic(
        opcode, shape, *extents, tuple(layouts), tuple(types), frozenset(flags), kind, vector
    )


#: A form: by column the words that it allows.
Row: TypeAlias = Mapping[str, frozenset[str]]
#: Words of which a statement must have one, and words of which it must lack one, else.
_Term: TypeAlias = tuple[frozenset[str], frozenset[str]]

_LINE = re.compile(r"(.*)=>(.*?)! (.*?)(?: ! (.*))?")


class _Question(NamedTuple):
    """A line: `when` all of these hold, all of `needs` must, and rows be left by `columns`."""

    when: tuple[_Term, ...]
    needs: tuple[_Term, ...]
    columns: tuple[str, ...]
    why: str
    hint: str | None


def _terms(texts: Iterable[str]) -> tuple[_Term, ...]:
    return tuple(
        (frozenset(re.findall(r"(?<![^|])[^|!]+", text)), frozenset(re.findall(r"!([^|]+)", text)))
        for text in texts
    )


def _hold(terms: tuple[_Term, ...], said: frozenset[str]) -> bool:
    return all(not there.isdisjoint(said) or not lacking <= said for there, lacking in terms)


class Forms:
    """`rows`: a line a form, each with the words, between `|`, that its `columns` allow.

    `questions`: lines `when => needs ! why ! way out`. `when` and `needs` are terms that all hold:
    alternatives, between `|`, of what the statement says, does not say (`!`), or what its target
    has. A term of `needs` that is a column chooses the rows whose words those of the statement are
    among; `target` those that its target has one of.
    """

    def __init__(self, columns: str, rows: str, questions: str) -> None:
        self.columns, self._rows, self._questions = columns.split(), rows, questions

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        lines = ([frozenset(w.split("|")) for w in s.split()] for s in self._rows.split("\n"))
        return tuple(dict(zip(self.columns, line, strict=True)) for line in lines if line)

    @cached_property
    def questions(self) -> tuple[_Question, ...]:
        found: list[_Question] = []
        for line in self._questions.strip().splitlines():
            match = _LINE.fullmatch(line.strip())
            assert match, line
            needs = match[2].split()
            columns = tuple(word for word in needs if word in self.columns)
            terms = _terms(word for word in needs if word not in columns)
            found.append(_Question(_terms(match[1].split()), terms, columns, match[3], match[4]))
        return tuple(found)

    def find(self, words: Mnemonic, target: TargetName, **names: str) -> Row:
        """The first row left. `names`: what the statement says, by column and for texts.

        Raises FragirError where a question is not answered.
        """
        names |= {
            "kind": words.kind,
            "shape": words.shape,
            "layout": ".".join(words.layouts),
            "target": target.name,
        }
        said = words.flags | abilities(target) | {f"{key}:{each}" for key, each in names.items()}
        left = self.rows
        for question in self.questions:
            if not _hold(question.when, said):
                continue
            rows = left
            for column in question.columns:
                if column == "target":
                    rows = [row for row in rows if not said.isdisjoint(row[column])]
                else:
                    given = frozenset(names[column].split())
                    rows = [row for row in rows if given <= row[column]]
            if not rows or not _hold(question.needs, said):
                names["least"] = min((x for row in left for x in row.get("target", ())), default="")
                hint = question.hint and question.hint.format(**names)
                raise words.refuse(question.why.format(**names), hint)
            left = tuple(rows)
        return left[0]


# -- registers -------------------------------------------------------------------------------------

RegisterWords: TypeAlias = npt.NDArray[np.unsignedinteger]  # u32, or u64 for 64-bit registers


@dataclass(frozen=True, slots=True)
class Settings:
    """What the bits depend on besides the target.

    `ptxas`: version of the assembler whose lowering is imitated where the hardware has no such
    instruction (fp8 mma.sync on sm_90 and sm_100: PTX is assembled by the driver, so its result
    can change with the driver).
    """

    ptxas: tuple[int, int] = (13, 2)


@dataclass(frozen=True, slots=True)
class OperandRegisters:
    """One register operand: `count` registers a lane, each `width` (32 or 64) bits."""

    count: int
    width: int = 32

    @property
    def dtype(self) -> type[np.uint32] | type[np.uint64]:
        return np.uint64 if self.width == 64 else np.uint32


@dataclass(frozen=True, slots=True)
class TensorOp:
    """A decoded tensor-core instruction; see the subclasses in `fragir.emulator.tensor_cores`.

    `opcode`: the words of the mnemonic as given. `target`: the `.target` it was decoded for.
    """

    opcode: tuple[str, ...]
    target: str

    @property
    def mnemonic(self) -> str:
        return ".".join(self.opcode)
