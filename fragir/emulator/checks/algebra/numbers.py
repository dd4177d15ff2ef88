"""Elements beside floats: every byte of registers and memory may say which element it is part of.

An element is a row of a table of `Values`; byte j of its float has the number 8 * row + j, so that
instructions that only move bytes move elements, and bytes put together in another way are seen to
be none. Row 0 is nobody's: a byte without a number is what its bits say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fragir.algebra.fields import P, Q, elements
from fragir.algebra.numpy_door import Values
from fragir.algebra.values import NONE
from fragir.emulator.checks.fragments.provenance import ByteOrigins
from fragir.emulator.checks.planes import Plane, PlaneDecoder
from fragir.emulator.machine.lanes import Step
from fragir.emulator.native.fields import element_rows, element_values, mark_rows, move_rows
from fragir.emulator.numbers.rounding import decode
from fragir.emulator.numbers.types import F64, FORMATS, I64, U8, U64, Array, Bools, DType, width_of
from fragir.emulator.values.facts import facts
from fragir.emulator.values.language import FLOATS
from fragir.ptx.opcodes.row import Logic, Moves

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.entities import Register
    from fragir.emulator.program.program import Program
    from fragir.ptx import tree

#: Formats that elements have; tf32 is read as f32.
FORMS = ("", "f16", "bf16", "f32", "f64", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0")
_NUMBER = {name: i for i, name in enumerate(FORMS)} | {"tf32": FORMS.index("f32")}
#: Bytes of an element.
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "tf32": 4, "f64": 8}
_DATA, _DOUBT = 0x80, np.uint32(1 << 31)
PLANES = 4
#: Rows of the table from which on those that nobody names any more are dropped.
_ROOM = 1 << 21
_CHUNK = 1 << 20


def size_of(form: str) -> int:
    return SIZES.get(form, 1)


class Looked(NamedTuple):
    """What stands for some elements; `broken`: bytes of elements that are none together."""

    values: Values
    broken: Bools | None


class ElementTable:
    """Rows of elements in Z/P and Z/Q, `rounds` side by side."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.count = 1
        self.p = np.zeros((1 << 12, rounds), np.uint32)
        self.q = np.zeros((1 << 12, rounds), np.uint32)
        self.flags = np.zeros(1 << 12, np.uint8)

    def add(self, values: Values, form: str) -> I64:
        """The rows of new elements, in their shape."""
        size = values.size
        while self.count + size > len(self.p):
            for name in ("p", "q", "flags"):
                old = getattr(self, name)
                new = np.empty((2 * len(old), *old.shape[1:]), old.dtype)
                new[: self.count] = old[: self.count]
                setattr(self, name, new)
        at = slice(self.count, self.count + size)
        self.p[at] = values.p.reshape(size, -1)
        if values.doubt.any():
            self.p[at] |= np.where(values.doubt, _DOUBT, np.uint32(0)).reshape(size, -1)
        self.q[at] = values.q.reshape(size, -1)
        self.flags[at] = _NUMBER[form] + np.where(values.data, _DATA, 0).ravel()
        self.count += size
        return np.arange(at.start, at.stop, dtype=np.int64).reshape(values.shape)

    def look(self, words: Sequence[Array], bits: Array, form: str, part: int = 0) -> Looked:
        """The elements of a format in words of every plane; `bits` are the real ones.

        `part`: which element of the word, from the low end; `bits` is of that element alone.
        """
        size = size_of(form)
        quick = element_rows(words, size, part, _NUMBER[form], self.flags)
        rows, broken = quick or self._rows(words, size, part, _NUMBER[form])
        if broken is not None and form in ("f32", "bf16"):
            cut = self._cut(words, form, part)
            rows = np.where(broken & (cut > 0), cut, rows)
            broken = broken & (cut == 0)
        values = self.values(rows, decode(bits, FORMATS[form]))
        if broken is not None and not broken.any():
            broken = None
        return Looked(values, broken)

    def values(self, rows: I64, real: F64) -> Values:
        """Rows of the table; of row 0 what the numbers are."""
        quick = element_values((self.p, self.q, self.flags), rows)
        if quick is not None:
            p, q, doubt, data, plain = quick
        else:
            low, q, flags = self.p[rows], self.q[rows].astype(np.uint64), self.flags[rows]
            p, doubt = (low & ~_DOUBT).astype(np.uint64), low >= _DOUBT
            data, plain = flags >= _DATA, bool((rows == 0).any())
        values = Values(p, q, real, doubt, data)
        if plain:
            self._fill(values, rows == 0)
        return values

    def _rows(
        self, words: Sequence[Array], size: int, part: int, form: int
    ) -> tuple[I64, Bools | None]:
        """The same as `element_rows`, by numpy."""
        ids, broken = _together([_part(w, size, part) for w in words], size)
        rows = ids >> 3
        other = (self.flags[rows] & ~np.uint8(_DATA) != form) & (rows > 0)
        if other.any():
            rows = np.where(other, 0, rows)
            broken = other if broken is None else broken | other
        return rows, broken

    @staticmethod
    def _fill(values: Values, plain: Bools) -> None:
        """What has no number is what its bits say."""
        real = np.broadcast_to(values.real, plain.shape)[plain]
        values.p[plain] = elements(real, P)[:, None]
        values.q[plain] = elements(real, Q)[:, None]

    def _cut(self, words: Sequence[Array], form: str, part: int) -> I64:
        """Rows of elements as another format: a bf16 with zeros below it is an f32, and the upper
        half of an f32 is a bf16, rounded towards zero."""
        halves = [_part(w, 2, 2 * part + 1 if form == "f32" else part) for w in words]
        found, _ = _together(halves, 2, first=0 if form == "f32" else 2)
        rows = found >> 3
        other = _NUMBER["bf16" if form == "f32" else "f32"]
        fits = self.flags[rows] & ~np.uint8(_DATA) == other
        if form == "f32":
            fits &= np.logical_and.reduce([_part(w, 2, 2 * part) == 0 for w in words])
        return np.where(fits, rows, 0)

    def has_data(self, rows: I64) -> bool:
        """Whether one of them depends on data."""
        return bool((self.flags[rows] >= _DATA).any())

    def number(self, values: Values, form: str, planes: Sequence[U8] | U8) -> None:
        """Elements one after the other in bytes."""
        rows = self.add(values, form).ravel()
        ids = (8 * rows[:, None] + np.arange(size_of(form))).ravel()
        for k, plane in enumerate(planes):
            plane[: len(ids)] = ids >> 8 * k & 0xFF

    def keep(self, alive: Bools) -> I64:
        """Drops all other rows; where each row is now."""
        rows = np.flatnonzero(alive)
        places = np.zeros(len(alive), np.int64)
        places[rows] = np.arange(len(rows))
        for name in ("p", "q", "flags"):
            old = getattr(self, name)
            old[: len(rows)] = old[rows]
        self.count = len(rows)
        return places


class ElementNumbers(ByteOrigins):
    """The numbers of all bytes of a launch, and the table that they point into."""

    changes_global = True

    def __init__(
        self,
        machine: Machine,
        program: Program,
        table: ElementTable,
        beside: Callable[[], list[list[U8]]],
    ) -> None:
        """`beside`: numbers that lie elsewhere, bytes of each plane; rows that they name stay."""
        self.table, self._beside = table, beside
        self._room = max(_ROOM, 2 * table.count)
        super().__init__(machine, program)

    def _make_planes(self) -> list[Plane]:
        return [Plane(self.machine, 0) for _ in range(PLANES)]

    def _relevant(self) -> set[Register]:
        """Registers that can hold elements: loaded, computed, or moved from such."""
        start = [
            r
            for placed, each in zip(self.program.code, self.flow.roles, strict=True)
            if self._makes(placed.ins)
            for r in each.written
        ]
        return self.flow.closure(start, self._carries, sources=self._sources)

    def _makes(self, ins: tree.Instruction) -> bool:
        row = self.program.opcode(ins)
        if row.bits in _MAKING:
            return True
        return not FLOATS.isdisjoint(floats_of(ins.opcode)) and not isinstance(
            facts(row).bits, Moves | Logic
        )

    # -- elements and their bytes ------------------------------------------------------------------

    def look(self, words: Sequence[Array], bits: Array, form: str, part: int = 0) -> Looked:
        """See `ElementTable.look`."""
        return self.table.look(words, bits, form, part)

    def plain(self, bits: Array, form: str) -> Values:
        """What bits say."""
        return Values.of(decode(bits, FORMATS[form]), self.table.rounds)

    def look_pair(
        self, words: Sequence[Array], low: Array, high: Array, form: str
    ) -> tuple[Looked, Looked]:
        """The two elements of bytes of 4-bit floats, whose rows follow each other."""
        ids, broken = _together([w.astype(np.uint64) for w in words], 1)
        found: list[Looked] = []
        for at, bits in enumerate((low, high)):
            rows = np.where(ids > 0, (ids >> 3) + at, 0)
            values = self.table.values(rows, decode(bits, FORMATS[form]))
            found.append(Looked(values, broken))
        return found[0], found[1]

    def name(self, values: Values, form: str, keep: Bools) -> I64:
        """New numbers for elements, of their lowest bytes; 0 where not `keep`."""
        rows = self.table.add(values, form)
        return np.where(keep, 8 * rows, 0)

    def words(self, parts: Sequence[I64], form: str, dtype: DType) -> list[Array]:
        """Elements of a register by their numbers, from the low end: a word for each plane."""
        size = size_of(form)
        ones, steps = _ONES[size], _STEPS[size]
        found: list[Array] = []
        for k in range(PLANES):
            word: U64 = np.zeros(parts[0].shape, np.uint64)
            for i, ids in enumerate(parts):
                byte = (ids >> 8 * k & 0xFF).astype(np.uint64) * ones
                if k == 0:
                    byte = np.where(ids > 0, byte + steps, byte)
                word |= byte << np.uint64(8 * size * i)
            found.append(word.astype(dtype))
        return found

    # -- room --------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Drops rows that no byte names any more, when there are many."""
        if self.table.count < self._room:
            return
        alive = np.zeros(self.table.count, np.bool_)
        alive[0] = True
        for pieces in self._bytes():
            if mark_rows(pieces, alive):
                continue
            for ids, _ in _chunks(pieces):
                alive[ids >> 3] = True
        places = self.table.keep(alive)
        for pieces in self._bytes():
            if move_rows(pieces, places):
                continue
            for ids, part in _chunks(pieces):
                moved = np.where(ids > 0, 8 * places[ids >> 3] + (ids & 7), 0)
                for k, piece in enumerate(pieces):
                    piece[part] = moved >> 8 * k & 0xFF
        self._room = max(_ROOM, 2 * self.table.count)

    def _bytes(self) -> list[list[Array]]:
        """All that planes hold, as bytes: of each array one a plane."""
        found: list[list[Array]] = []
        for width in self.machine.files:
            if width >= 8:
                rows = [plane.machine.files[width] for plane in self.planes]
                found.append([file.reshape(-1).view(np.uint8) for file in rows])
        found += self._beside()
        for space in ("globals", "shared", "local"):
            found.append([getattr(plane.memory, space).bytes for plane in self.planes])
        if self.planes[0].tensor.is_used:
            cells = [plane.tensor.words for plane in self.planes]
            found.append([words.reshape(-1).view(np.uint8) for words in cells])
        return found

    # -- decoding ----------------------------------------------------------------------------------

    def wide_sources(
        self, d: Decoder, ins: tree.Instruction, index: int, kind: str, wider: bool
    ) -> list[Array]:
        """The rows of an operand in every plane."""
        kind = f"u{width_of(kind)}" if kind != "pred" else kind
        return [PlaneDecoder(d, plane).source(ins, index, kind, wider) for plane in self.planes]

    def wide_targets(
        self, d: Decoder, ins: tree.Instruction, kind: str, wider: bool
    ) -> list[Array | None]:
        """The rows of the first operand in every plane."""
        found: list[Array | None] = []
        for plane in self.planes:
            own = PlaneDecoder(d, plane)
            out = own.wide_target(ins, ins.operands[0], kind) if wider else own.target(ins, 0, kind)
            found.append(out)
        return found

    def repeated(
        self, d: Decoder, ins: tree.Instruction, steering: Sequence[int] = ()
    ) -> list[Step]:
        """An instruction done to the numbers as it is."""
        return self._repeat(d, ins, steering)

    def cleared(self, registers: Sequence[Register]) -> list[Step]:
        return self._clear(registers)


#: What gives registers that can hold elements, whatever its types are.
_MAKING = ("load", "load fragment", "tensor load", "results", "atomic", "matrix", "wgmma")


def floats_of(words: Sequence[str]) -> set[str]:
    """The formats among an opcode's words; packed types are those of their elements."""
    return {w.split("x")[0] if w[-2:] in ("x2", "x4") else w for w in words}


_ONES = {n: np.uint64(int.from_bytes(bytes([1] * n), "little")) for n in (1, 2, 4, 8)}
_STEPS = {n: np.uint64(int.from_bytes(bytes(range(n)), "little")) for n in (1, 2, 4, 8)}
_MASKS = {n: np.uint64((1 << 8 * n) - 1) for n in (1, 2, 4, 8)}


def element_bits(bits: Array, form: str, part: int) -> Array:
    """One element of registers, from the low end."""
    size = size_of(form)
    whole = bits.view(np.dtype(f"u{bits.dtype.itemsize}"))
    if whole.dtype.itemsize > size:
        whole = whole >> whole.dtype.type(8 * size * part)
    return whole.astype(np.dtype(f"u{size}"))


def byte_numbers(pieces: Sequence[U8]) -> I64:
    """The numbers of bytes, from those of every plane."""
    ids: I64 = np.zeros(pieces[0].shape, np.int64)
    for k, piece in enumerate(pieces):
        ids |= piece.astype(np.int64) << 8 * k
    return ids


def _part(word: Array, size: int, part: int) -> U64:
    """Some bytes of words."""
    whole = word.astype(np.uint64)
    if word.dtype.itemsize > size:
        whole = whole >> np.uint64(8 * size * part) & _MASKS[size]
    return whole


def _together(words: Sequence[U64], size: int, first: int = 0) -> tuple[I64, Bools | None]:
    """The number of the lowest byte where all are bytes of one element, in their order.

    0 where they are not; and where there are numbers that do not fit, None where nowhere.
    `first`: which byte of its element the lowest has to be.
    """
    low = np.uint64(0xFF)
    ones, steps = _ONES[size], _STEPS[size]
    total = words[0] & low
    fits = words[0] == total * ones + steps
    some = words[0] != 0
    for k, word in enumerate(words[1:], 1):
        byte = word & low
        fits &= word == byte * ones
        some |= word != 0
        total = total | byte << np.uint64(8 * k)
    fits &= total & np.uint64(7) == first
    ids = total.astype(np.int64) - first
    fits &= ids > 0
    bad = some & ~fits
    return np.where(fits, ids, 0), bad if bad.any() else None


def _chunks(pieces: list[Array]) -> Iterator[tuple[I64, slice]]:
    """The numbers of bytes, some of them at a time, where there are any."""
    for start in range(0, len(pieces[0]), _CHUNK):
        part = slice(start, start + _CHUNK)
        ids = byte_numbers([piece[part] for piece in pieces])
        if ids.any():
            yield ids, part


assert int(NONE) < 1 << 31  # what the table's u32 holds
