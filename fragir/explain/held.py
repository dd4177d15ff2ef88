"""What a tile, an operand or a register held: bits of lanes as the matrix that they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from fragir.errors import FragirError, check_kind
from fragir.layout import Layout

if TYPE_CHECKING:
    from fragir.emulator.numbers.types import Array

NATIVE = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
"""Element types whose values numpy has as such; of other floats they are given as f32."""
_SHOWN = 4
Numbers = npt.NDArray[np.int64]


class HeldAt(NamedTuple):
    """Where a lane holds an element."""

    warp: int
    lane: int
    element: int

    def __str__(self) -> str:
        return f"W{self.warp} T{self.lane}:{self.element}"


class Disagreement(NamedTuple):
    """Two slots that should hold the same element, and their values."""

    point: tuple[int, ...]
    first: HeldAt
    second: HeldAt
    values: tuple[float | int, float | int]

    def __str__(self) -> str:
        at = ",".join(map(str, self.point))
        a, b = self.values
        return f"[{at}] is {a} in {self.first}, {b} in {self.second}"


@dataclass(frozen=True, eq=False)
class HeldValue:
    """A tile, an operand or a register at a place of a run, as a matrix.

    `matrix` has the `shape` and the values of `element` (a PTX name): in numpy's type where there
    is one, else as float32, and integers narrower than a byte as int8 or uint8. `bits` are their
    patterns. `known` says which elements a lane held that came there. `slots` [..., 3] are warp,
    lane and element of the first holder of each, -1 where there is none. `disagreements`: slots
    that should hold the same and did not, of which `matrix` has the first. `layout` is None where
    each lane has its own value: then the shape is (warps, 32). `ptx_line` is where it was looked
    at, `times` how often that was executed by the lane that came most often, `notes` what else
    there is to say.
    """

    name: str
    element: str
    shape: tuple[int, ...]
    matrix: Array
    bits: npt.NDArray[np.uint64]
    known: npt.NDArray[np.bool_]
    slots: npt.NDArray[np.int64]
    layout: Layout | None
    ptx_line: int
    block: tuple[int, int, int]
    occurrence: int | None
    times: int
    disagreements: tuple[Disagreement, ...] = ()
    notes: tuple[str, ...] = ()

    def slot(self, *point: int) -> HeldAt | None:
        """Who held an element; None where nobody did."""
        warp, lane, element = (int(n) for n in self.slots[point])
        return None if warp < 0 else HeldAt(warp, lane, element)

    def __repr__(self) -> str:
        size = "x".join(map(str, self.shape)) or "one"
        when = "last" if self.occurrence is None else f"execution {self.occurrence}"
        return f"<{self.name}: {size} {self.element} at PTX line {self.ptx_line}, {when}>"


def collect_matrix(
    layout: Layout,
    shape: tuple[int, ...],
    element: str,
    codes: npt.NDArray[np.uint64],
    there: npt.NDArray[np.bool_],
    first_warp: int = 0,
) -> tuple[
    npt.NDArray[np.uint64], npt.NDArray[np.bool_], npt.NDArray[np.int64], list[Disagreement]
]:
    """Elements [warp, lane, element] as a matrix: bits, which are known, holders, contradictions.

    `there` [warp, lane, element]: who holds anything. Warps count from `first_warp` of a block; a
    layout of fewer warps or lanes than there are is repeated, as the compiler does.
    """
    points = points_of(layout, *codes.shape).reshape(-1, len(shape))
    where: Numbers = np.flatnonzero(there.reshape(-1) & (points[:, 0] >= 0))
    flat: Numbers = points[where] @ np.array([prod(shape[d + 1 :]) for d in range(len(shape))])
    order = np.argsort(flat, kind="stable")
    flat, where = flat[order], where[order]
    values = codes.reshape(-1)[where]
    holders = np.stack(np.unravel_index(where, codes.shape), -1)
    holders[:, 0] += first_warp
    owned, starts, group = np.unique(flat, return_index=True, return_inverse=True)
    bits, known = np.zeros(prod(shape), np.uint64), np.zeros(prod(shape), np.bool_)
    slots = np.full((prod(shape), 3), -1, np.int64)
    bits[owned], known[owned], slots[owned] = values[starts], True, holders[starts]
    said: list[Disagreement] = []
    for at in np.flatnonzero(values != values[starts][group]):
        first = starts[group[at]]
        point = tuple(int(x) for x in points[where[at]])
        pair = decode_elements(values[[first, at]], element)
        one, other = (HeldAt(*map(int, holders[n])) for n in (first, at))
        said.append(Disagreement(point, one, other, (pair[0].item(), pair[1].item())))
    return bits.reshape(shape), known.reshape(shape), slots.reshape(*shape, 3), said


def points_of(layout: Layout, warps: int, lanes: int, elements: int) -> npt.NDArray[np.int64]:
    """The point of every slot [warp, lane, element, dimension]; -1 where a slot holds none."""
    table = layout.array()
    warp, lane, element = np.ogrid[:warps, :lanes, :elements]
    known = {"warp": warp, "lane": lane, "thread": 32 * warp + lane, "element": element}
    if layout.sizes.get("lane", 1) > lanes:  # a warpgroup's, as the ISA counts
        known["lane"] = 32 * warp + lane
    index = tuple(known[axis.name] % axis.size for axis in layout.axes)
    found = table[np.broadcast_arrays(*index)] if index else table
    return np.broadcast_to(found, (warps, lanes, elements, table.shape[-1]))


def each_slot(known: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The slots of values that lanes have for themselves, [warp, lane] or [warp, lane, element]."""
    where = np.moveaxis(np.indices(known.shape), 0, -1)
    slots = np.zeros((*known.shape, 3), np.int64)
    slots[..., : known.ndim] = where
    slots[~known] = -1
    return slots


def unpack_elements(
    words: Sequence[npt.NDArray[np.uint64]], width: int, bits: int
) -> npt.NDArray[np.uint64]:
    """Elements [..., element] of registers of `width` bits, the lowest first."""
    per = max(1, width // bits)
    shifts = (np.arange(per) * bits).astype(np.uint64)
    mask = np.uint64((1 << min(bits, 64)) - 1)
    parts = [(word[..., None] >> shifts) & mask for word in words]
    return np.concatenate(parts, -1)


def decode_elements(codes: npt.NDArray[np.uint64], element: str) -> Array:
    """The values of bit patterns: see `HeldValue.matrix`."""
    if element == "pred":
        return codes.astype(np.bool_)
    if element in NATIVE:
        kind = np.dtype(NATIVE[element])
        return codes.astype(f"u{kind.itemsize}").view(kind)
    if element[0] in "sub" and element[1:].isdigit():
        bits = int(element[1:])
        size = max(8, bits)
        raw = codes.astype(f"u{size // 8}")
        if element[0] != "s":
            return raw
        signed = (raw << np.array(size - bits, raw.dtype)).view(f"i{size // 8}")
        return signed >> np.array(size - bits, signed.dtype)
    from fragir.reference.formats import PER_BYTE, decode, storage

    raw = codes.astype(f"u{storage(element).itemsize}")
    if element in PER_BYTE:
        return decode(raw.reshape(-1, 1), element)[:, 0].reshape(codes.shape).astype(np.float32)
    return decode(raw.reshape(-1), element).reshape(codes.shape).astype(np.float32)


def notes_of(held: HeldValue, why: str = "") -> Iterator[str]:
    """What is to be said of a value that is not all known, or not alike; `why` it is not known."""
    missing = int((~held.known).sum())
    if missing and held.layout is not None:
        why = why or "no lane that holds them came there"
        yield f"{missing} of {held.known.size} elements are not known: {why}"
    if held.disagreements:
        count = len(held.disagreements)
        yield f"{count} copies differ from the first: {several(held.disagreements)}"


def several(texts: Sequence[object], shown: int = _SHOWN) -> str:
    """The first of some, and how many more there are."""
    more = f" and {len(texts) - shown} more" if len(texts) > shown else ""
    return ", ".join(map(str, texts[:shown])) + more


# -- asked -----------------------------------------------------------------------------------------
# Which value of which execution is asked for, as a text: that of `fragir explain --values`.
#
# %acc                  a tile or scalar of the placed level, by its name, the first time
# gemm:%acc@last        of that kernel, the last time
# 72:12@5[1,0]          what is made at line 72, column 12 of the program; the fifth time,
#                       in block (1,0,0)
# 58                    of PTX: the operands of the statement in line 58, as matrices
# 58=bf16/2             those of warp 2, their elements read as bf16
# 58:%r1,%r2=f16x2      registers ahead of it; behind it: 58+:%r1

_FORM = re.compile(
    r"(?:(?P<kernel>[A-Za-z_$][\w$.]*):)?"
    r"(?:%(?P<name>[\w$.\-]+)"
    r"|(?P<line>[0-9]+)(?P<after>\+)?"
    r"(?::(?:(?P<col>[0-9]+)|(?P<registers>%[^@\[/]+))|=(?P<type>\w+))?)"
    r"(?:@(?P<occurrence>[0-9]+|last))?"
    r"(?:\[(?P<block>[0-9]+(?:,[0-9]+){0,2})\])?"
    r"(?:/(?P<warp>[0-9]+))?"
)
_REGISTER = re.compile(r"(%[\w$.]+)(?:=(\w+))?")
_HINT = "write %acc, %acc@last, 72:12@5[1,0], of PTX 58 or 58:%r1,%r2=f16x2"


class RegisterAsked(NamedTuple):
    """A register of PTX, and as what it is read; empty: as its statement does."""

    name: str
    type: str = ""


class ValueAsked(NamedTuple):
    """What is asked for: a `name` (without %), or a `line` (1-based) with what follows it.

    `occurrence` counts executions by a lane from 1 on, None is the last. `block` is a block's place
    in the grid. `where` is the text of the place.
    """

    where: str
    kernel: str | None = None
    name: str | None = None
    line: int = 0
    col: int | None = None
    after: bool = False
    registers: tuple[RegisterAsked, ...] = ()
    type: str = ""
    occurrence: int | None = 1
    block: tuple[int, int, int] = (0, 0, 0)
    warp: int | None = None

    @property
    def when(self) -> str:
        """The execution and the block, in words."""
        which = "the last time" if self.occurrence is None else f"time {self.occurrence}"
        return f"{which}, in block ({','.join(map(str, self.block))})"


def parse_request(text: str | ValueAsked) -> ValueAsked:
    """What a text asks for; FragirError with a way out for one that asks for nothing."""
    if isinstance(text, ValueAsked):
        return text
    check_kind(text, str, "what is asked for is a text")
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise FragirError(f"`{text}` names no value", hint=_HINT)
    found = match.groupdict()
    occurrence = found["occurrence"] or "1"
    if occurrence == "0":
        raise FragirError(f"`{text}`: executions count from 1", hint="@1 is the first")
    if found["line"] is not None and int(found["line"]) == 0:
        raise FragirError(f"`{text}`: lines count from 1", hint=_HINT)
    block = [int(n) for n in (found["block"] or "0").split(",")]
    x, y, z = (*block, 0, 0)[:3]
    registers = tuple(
        _register(part, text) for part in (found["registers"] or "").split(",") if part
    )
    return ValueAsked(
        text.strip().partition("@")[0].partition("[")[0].partition("/")[0],
        found["kernel"],
        found["name"],
        int(found["line"] or 0),
        None if found["col"] is None else int(found["col"]),
        found["after"] is not None,
        registers,
        found["type"] or "",
        None if occurrence == "last" else int(occurrence),
        (x, y, z),
        None if found["warp"] is None else int(found["warp"]),
    )


def _register(text: str, whole: str) -> RegisterAsked:
    match = _REGISTER.fullmatch(text.strip())
    if match is None:
        raise FragirError(f"`{whole}`: `{text}` is no register", hint="write %r1, or %r1=f16x2")
    return RegisterAsked(match[1], match[2] or "")
