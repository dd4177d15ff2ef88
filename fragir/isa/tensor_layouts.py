"""Where `tcgen05.mma` and `tcgen05.cp` find and put what in tensor memory, as layouts.

Tensor memory has 128 lanes of 512 columns of 32 bits in every CTA (PTX ISA 9.2, section 9.7.16.1).
A layout maps `lane` and `column`, counted from an operand's address, `cta` where a pair of CTAs
works together, and the place within the 32 bits (`element`, `byte` or `nibble`, low to high) to
the matrix. D of 128 x 256, and of 64 rows, whose every second 16 lanes hold nothing:

>>> print(accumulator(128, 256))
lane [128:(1,0)] column [256:(0,1)]
>>> print(accumulator(64, 32))
lane [16:(1,0) 2:(0,0) 4:(16,0)] column [32:(0,1)] where lane/16%2==0

What a warp's registers hold of it, by `tcgen05.ld` of whole lanes (`read_by`):

>>> from fragir.isa import lookup
>>> load = lookup("tcgen05.ld.sync.aligned.32x32b.x64.b32")
>>> print(read_by(accumulator(128, 256), load, column=64))
warp [4:(32,0)] lane [32:(1,0)] element [64:(0,1)] offset (0,64)

A layout of D has a letter (section 9.7.16.10.5), which follows from the rows that a CTA has:

| rows | | banks |
|---|---|---|
| 128 | A (pairs of CTAs), D | row m in lane m |
| 64 | C (pairs, sparse), F | row m in lane 32 (m / 16) + m % 16 |
| 64 | B (pairs), E (`.ws`) | halves of the columns in lanes m and m + 64 |
| 32 | G (`.ws`) | quarters of the columns in lanes m, m + 32, m + 64, m + 96 |

A in tensor memory lies in the lanes of D's rows; where D has banks, each has a copy. Scale factors
(section 9.7.16.10.7) have a copy in each group of 32 lanes; sparse metadata (section 9.7.16.10.8)
lie in the lanes of their rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from fragir.errors import FragirError
from fragir.isa.selection import selected_layout
from fragir.layout import Axis, Condition, Layout, Mode, compose
from fragir.layout.modes import WARP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fragir.isa.model import Instruction

LANES = 128
COLUMNS = 512
HALF = 16  # lanes of a warp that layouts C and F, and the 16-lane shapes of ld and st use
HARDWARE = ("cta", "lane", "column")


def warp_lanes(warp: int) -> range:
    """The lanes that a warp may touch by `tcgen05.ld` and `.st`: by its number in the warpgroup.

    >>> warp_lanes(6)
    range(64, 96)
    """
    first = warp % 4 * WARP
    return range(first, first + WARP)


class Arrangement(NamedTuple):
    """How rows lie in lanes: the letter of D's layout, rows of a CTA, copies of a row's lanes."""

    letter: str
    rows: int
    banks: int = 1

    @property
    def spread(self) -> bool:
        """Whether 16 lanes of each 32 hold nothing."""
        return self.banks * self.rows < LANES


@cache
def arrangement(m: int, *, group: int = 1, ws: bool = False, sparse: bool = False) -> Arrangement:
    """That of a product of `m` rows by `group` CTAs; FragirError where there is none."""
    pair = group == 2
    match m // group:
        case 128:
            return Arrangement("A" if pair else "D", 128)
        case 64 if ws or (pair and not sparse):
            return Arrangement("E" if ws else "B", 64, 2)
        case 64:
            return Arrangement("C" if pair else "F", 64)
        case 32 if ws:
            return Arrangement("G", 32, 4)
        case rows:
            raise FragirError(f"no product of tcgen05 has {rows} rows in a CTA")


def _axis(name: str, *modes: tuple[int, tuple[int, ...]]) -> Axis:
    return Axis(name, tuple(Mode(size, stride) for size, stride in modes if size != 1))


def _ctas(group: int, step: tuple[int, ...]) -> tuple[Axis, ...]:
    return (_axis("cta", (2, step)),) if group == 2 else ()


def _lanes(how: Arrangement, bank: int) -> tuple[Axis, tuple[Condition, ...]]:
    """The axis of lanes; the next bank begins `bank` columns on."""
    if not how.spread:
        return _axis("lane", (how.rows, (1, 0)), (how.banks, (0, bank))), ()
    lane = _axis("lane", (HALF, (1, 0)), (2, (0, 0)), (how.rows // HALF, (HALF, 0)))
    return lane, (Condition("lane", HALF, 2, 0),)


@cache
def accumulator(
    m: int, n: int, *, group: int = 1, ws: bool = False, sparse: bool = False
) -> Layout:
    """D: (cta, lane, column) -> (row, col). An f16 is in bits 15:0 of its column."""
    how = arrangement(m, group=group, ws=ws, sparse=sparse)
    columns = n // how.banks
    lane, where = _lanes(how, columns)
    axes = (*_ctas(group, (how.rows, 0)), lane, _axis("column", (columns, (0, 1))))
    return Layout(axes, where=where)


@cache
def multiplicand(
    m: int, k: int, bits: int, *, group: int = 1, ws: bool = False, sparse: bool = False
) -> Layout:
    """A in tensor memory: (cta, lane, column, element) -> (row, col), `k` columns of A.

    `bits`: what an element takes; of a sparse product `k` counts the kept elements. Every bank has
    a copy: bank i multiplies the i-th part of D's columns.
    """
    how = arrangement(m, group=group, ws=ws, sparse=sparse)
    lane, where = _lanes(how, 0)
    per = 32 // bits
    column, element = _axis("column", (k // per, (0, per))), _axis("element", (per, (0, 1)))
    return Layout((*_ctas(group, (how.rows, 0)), lane, column, element), where=where)


@cache
def metadata(
    m: int,
    chunks: int,
    *,
    selector: int = 0,
    group: int = 1,
    ws: bool = False,
) -> Layout:
    """Sparse metadata: (cta, lane, column, nibble) -> (row, chunk along K).

    8 `chunks` (16-bit types and tf32): half a row's in a column, the halves of rows 8 lanes apart;
    of two columns the `selector` chooses one. 16 chunks: a row's in two columns of its lane.
    """
    if chunks == 8 and selector not in (0, 1):
        raise FragirError(f"which metadata the selector {selector} names is not known", hint="0, 1")
    how = arrangement(m, group=group, ws=ws, sparse=True)
    dims = ("row", "chunk")
    cta = _ctas(group, (how.rows, 0))
    lane, where = _lanes(how, 0)
    if chunks != 8:
        column, nibble = _axis("column", (chunks // 8, (0, 8))), _axis("nibble", (8, (0, 1)))
        return Layout((*cta, lane, column, nibble), dims, where=where)
    # Lane 8 of each 16 has the other chunks; row 8 of each 16 the other half-word.
    low = ((8, (1, 0)), (2, (0, 4)))
    if how.spread:
        lane = _axis("lane", *low, (2, (0, 0)), (how.rows // HALF, (HALF, 0)))
    else:
        lane = _axis("lane", *low, (how.rows // HALF, (HALF, 0)), (how.banks, (0, 0)))
    column, nibble = _axis("column", (2, (0, 0))), _axis("nibble", (4, (0, 1)), (2, (8, 0)))
    chosen = Condition("column", 1, 2, selector)
    return Layout((*cta, lane, column, nibble), dims, where=(*where, chosen))


# -- scale factors ---------------------------------------------------------------------------------


@cache
def scale_factors(
    rows: int,
    blocks: int,
    *,
    first: int = 0,
    of: str = "a",
    group: int = 1,
    halved: bool = False,
) -> Layout:
    """Scale factors: (cta, lane, column, byte) -> (row, block), of B (block, col).

    `rows`: of A that a CTA has, or all columns of B; `blocks`: scales of one along K; `first`: the
    scale factor id. `halved`: those of B where two CTAs have M = 128. Places beyond the last row
    or block of a group that is not full are padding. FragirError where no layout says it: then
    `scale_places` does.
    """
    if blocks in (3, 6) and first:
        raise FragirError(
            f"{blocks} scales of a row from byte {first} on are split between columns, which is no "
            "layout of digits",
            hint="`fragir.isa.tensor_layouts.scale_places` has their places",
        )
    held = rows // 2 if halved else rows
    whole = LANES if blocks > 4 else WARP
    if halved and held % whole and (blocks > 4 or WARP % held):
        raise FragirError(
            f"the halves of {rows} rows of scales do not fill groups of {whole} rows, which is no "
            "layout of digits",
            hint="`fragir.isa.tensor_layouts.scale_places` has their places",
        )

    def at(row: int, block: int) -> tuple[int, int]:
        return (row, block) if of == "a" else (block, row)

    where: list[Condition] = []
    within = held if WARP % held == 0 else WARP
    lanes = [(within, at(1, 0)), (WARP // within, (0, 0))]
    if within < WARP:
        where.append(Condition("lane", within, WARP // within, 0))
    lanes += [(2, (0, 0)), (2, at(held, 0))] if halved else [(4, (0, 0))]
    groups = -(-held // WARP)
    columns = [(groups, at(WARP, 0))]
    if blocks > 4:  # of K = 96: the next four bytes are as many columns on as 128 rows have
        groups = 4 * -(-held // LANES)
        columns = [(groups, at(WARP, 0)), (2, at(0, 4))]
    count = 4 if blocks > 4 else blocks
    bytes_ = [(count, at(0, 1))]
    if 4 % count == 0 and count < 4:
        bytes_.append((4 // count, (0, 0)))
        where.append(Condition("byte", count, 4 // count, first // count))
    cta = _ctas(group, at(rows, 0) if of == "a" else (0, 0))
    dims = ("row", "block") if of == "a" else ("block", "col")
    axes = (*cta, _axis("lane", *lanes), _axis("column", *columns), _axis("byte", *bytes_))
    return Layout(axes, dims, where=tuple(where))


def scale_places(
    rows: int, blocks: int, *, first: int = 0, halved: bool = False
) -> NDArray[np.int64]:
    """int64 [copies, rows, blocks, 3]: lane, column and byte of every scale factor.

    As `scale_factors`, of whatever rows and blocks; all copies must hold the same.
    """
    import numpy as np

    held = rows // 2 if halved else rows
    copies = 2 if halved else 4
    copy, row, block = np.ogrid[:copies, :rows, :blocks]
    block = block + first
    lane = row % held % WARP + WARP * copy + (LANES // 2 * (row // held) if halved else 0)
    column = row % held // WARP + block // 4 * 4 * -(-held // LANES)
    return np.stack(np.broadcast_arrays(lane, column, block % 4), axis=-1)


# -- copies ----------------------------------------------------------------------------------------


class CopyForm(NamedTuple):
    """A shape of `tcgen05.cp`: its multicast, rows and 32-bit words of the source; the lanes.

    `lanes`: (size, rows on) of each digit of the lane; `every` n-th lane alone, where not 1.
    """

    shape: str
    multicast: str
    rows: int
    words: int
    lanes: tuple[tuple[int, int], ...]
    every: int = 1


COPIES: tuple[CopyForm, ...] = (
    CopyForm("128x256b", "", 128, 8, ((128, 1),)),
    CopyForm("4x256b", "", 4, 8, ((32, 0), (4, 1)), 32),
    CopyForm("128x128b", "", 128, 4, ((128, 1),)),
    CopyForm("64x128b", "warpx2::02_13", 64, 4, ((64, 1), (2, 0))),
    CopyForm("64x128b", "warpx2::01_23", 64, 4, ((32, 1), (2, 0), (2, 32))),
    CopyForm("32x128b", "warpx4", 32, 4, ((32, 1), (4, 0))),
)
DECOMPRESSIONS = ("b8x16.b6x16_p32", "b8x16.b4x16_p64")
"""Elements of 6 or 4 bits become bytes; 16 of them begin at every 16 bytes of the source."""


@cache
def copied(shape: str, multicast: str = "", *, decompressed: bool = False) -> Layout:
    """What `tcgen05.cp` puts where: (lane, column) -> (row, word) of the source.

    `decompressed`: (lane, column, byte) -> (row, element), four bytes a column.
    """
    form = next((f for f in COPIES if (f.shape, f.multicast) == (shape, multicast)), None)
    if form is None:
        legal = ", ".join(f".{f.shape}{f'.{f.multicast}' if f.multicast else ''}" for f in COPIES)
        name = f".{shape}{f'.{multicast}' if multicast else ''}"
        raise FragirError(f"tcgen05.cp has no shape {name}", hint=f"one of {legal}")
    lane = _axis("lane", *((size, (step, 0)) for size, step in form.lanes))
    where = () if form.every == 1 else (Condition("lane", 1, form.every, 0),)
    if decompressed:
        axes = lane, _axis("column", (form.words, (0, 4))), _axis("byte", (4, (0, 1)))
        return Layout(axes, ("row", "element"), where=where)
    return Layout((lane, _axis("column", (form.words, (0, 1)))), ("row", "word"), where=where)


# -- registers -------------------------------------------------------------------------------------


def read_by(
    held: Layout, load: Instruction, *, lane: int = 0, column: int = 0, offset: int = 0
) -> Layout:
    """Which thread gets which element: (cta, warp, lane, element) -> the dimensions of `held`.

    `held` is a layout of tensor memory, `load` a `tcgen05.ld` or `.st`, executed by four warps,
    each at its own 32 lanes; `lane` (0, or 16 of the shapes with 16 lanes) and `column` are added
    to the address, `offset` is the split offset of 16x32bx2. Element counts what registers hold,
    low to high: of `held` with several to a column also those.
    """
    if load.family not in ("tcgen05.ld", "tcgen05.st", "tcgen05.ld.red"):
        raise FragirError(
            f"{load.mnemonic} does not access tensor memory", hint="tcgen05.ld and .st do"
        )
    registers = selected_layout(load, "registers", offset=offset)
    whole = load.form.shape == "32x32b"
    if lane not in ((0,) if whole else (0, HALF)):
        raise FragirError(
            f"{load.form.shape} begins at lane 0{'' if whole else ' or 16'} of a warp's, "
            f"not at {lane}"
        )
    where = _where_threads(held, whole, lane)
    inner = _addresses(held, registers, lane, column)
    try:
        found = compose(replace(held, where=()), inner)
    except FragirError as error:
        raise FragirError(
            f"{load.mnemonic} at lane {lane}, column {column} reads what is none of these "
            f"{held.size('column')} columns",
            hint="take fewer registers, or another column",
        ) from error
    return replace(found, where=where)


def _where_threads(held: Layout, whole: bool, lane: int) -> tuple[Condition, ...]:
    """The predicate of `held`, of lanes of tensor memory, as one of threads."""
    if not held.where:
        return ()
    if [c for c in held.where if (c.axis, c.divisor) != ("lane", HALF)]:
        raise FragirError("what only some columns or bytes hold is not shown in registers")
    if whole:  # a thread has the lane of its own number
        return held.where
    if lane != HALF * held.where[0].value:
        raise FragirError(f"lanes {lane} to {lane + HALF - 1} of a warp's hold nothing")
    return ()


def _addresses(held: Layout, registers: Layout, lane: int, column: int) -> Layout:
    """(cta, warp, lane, element) -> the axes of `held`."""
    names = held.names
    inside = [name for name in names if name not in HARDWARE]
    per = held.size(inside[0]) if inside else 1

    def at(**steps: int) -> tuple[int, ...]:
        return tuple(steps.get(name, 0) for name in names)

    def moved(axis: Axis) -> list[tuple[int, tuple[int, ...]]]:
        return [(m.size, at(lane=m.stride[0], column=m.stride[1])) for m in axis.modes]

    axes = [_axis("cta", (2, at(cta=1)))] if "cta" in names else []
    axes.append(_axis("warp", (4, at(lane=WARP))))
    axes.append(_axis("lane", *moved(registers.axis("lane"))))
    first = [(per, at(**{inside[0]: 1}))] if inside else []
    axes.append(_axis("element", *first, *moved(registers.axis("element"))))
    return Layout(tuple(axes), names, at(lane=lane, column=column))
