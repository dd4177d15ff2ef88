"""Coordinates of lanes and warps: a layout's hardware part as index values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from typing import NamedTuple, TypeAlias

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.layout import Axis, Condition, Layout, Mode
from fragir.layout.f2 import image
from fragir.layout.planning.program import LaneTable, Lanewise, Linear
from fragir.layout.planning.registers import LANE_BITS
from fragir.layout.replicas import Holders
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate, Value
from fragir.passes.lowering.layout_arithmetic import (
    LaneOffset,
    PositionRule,
    position,
    position_rule,
    shift_number,
)
from fragir.passes.remarks import ALIGNED

INDEX = IndexType()
ELEMENT = "element"


class Hardware:
    """The thread's place among those that run the same operations: all of a block, unless its
    number and that of its warp are given.
    """

    def __init__(
        self,
        ar: Arithmetic,
        threads: int,
        thread: Value | None = None,
        warp: Value | None = None,
    ):
        self.ar = ar
        self.threads = threads
        self._thread, self._warp = thread, warp

    def special(self, register: str, name: str) -> SSAValue:
        """A special register, read once at the top."""
        return self.ar.pure((register,), (), lambda: ptx.SpecialOp(register), name)

    @property
    def thread(self) -> Value:
        return self.special("tid.x", "tid") if self._thread is None else self._thread

    def axis(self, name: str) -> Value:
        """The value of the axis `thread`, `warp` or `lane`."""
        if name == "thread":
            return self.thread
        if name == "lane":
            thread = self.thread
            return thread if self.threads <= 32 else self.ar.rem(thread, 32, "lane")
        if self._warp is not None and self.threads > 32:
            return self._warp
        return 0 if self.threads <= 32 else self.ar.div(self.thread, 32, "warp")

    def coordinate(self, layout: Layout, dim: int) -> LaneOffset:
        """What lane, warp and thread add to a coordinate of every element.

        Of a layout with exclusive or this differs between elements: see `place`.
        """
        return self.place(layout, dim, 0)[0]

    def place(self, layout: Layout, dim: int, element: int) -> tuple[LaneOffset, int]:
        """The coordinate of one element: what lane, warp and thread tell of it, and a constant.

        Where nothing is exclusive-ored, the constant is that of the layout's offset alone.
        """
        rule, names = _rule(layout, dim, self.threads)
        lanes = [self._lanes(name) for name in names]
        constants = [element if name == ELEMENT else 0 for name in names]
        found = position(
            self.ar, rule, lanes, [0] * len(names), constants, masks_first=not layout.exclusive
        )
        return LaneOffset(self.ar.total(found.terms), found.mask), found.immediate

    def _lanes(self, name: str) -> LaneOffset:
        """The values of an axis; elements are constants."""
        if name == ELEMENT:
            return LaneOffset(0, 0)
        return LaneOffset(
            self.axis(name), (1 << (_extent(name, self.threads) - 1).bit_length()) - 1
        )

    def holds(self, conditions: Sequence[Condition], element: int) -> Predicate:
        """Whether this thread has the element, by a layout's predicate."""
        result: Predicate = True
        for condition in conditions:
            if condition.axis == ELEMENT:
                held: Predicate = condition(element)
            else:
                digit = self.ar.div(self.axis(condition.axis), condition.divisor)
                held = self.ar.compare("eq", self.ar.rem(digit, condition.modulus), condition.value)
            result = self.ar.both(result, held)
        return result

    def speaks(self, holders: Holders, element: int) -> Predicate:
        """Whether this thread, of those who hold an element alike, is the one."""
        result = self.holds(holders.conditions, element)
        for _, inner, outer, apart in holders.overlaps:
            place = self.ar.add(self.coordinate(inner, 0).value, _constant(inner, element))
            number = self.ar.add(self.coordinate(outer, 0).value, _constant(outer, element))
            alone = self.ar.compare("ult", apart - 1, place)
            begins = self.ar.compare("eq", number, 0)
            result = self.ar.both(result, self.ar.either(begins, alone))
        return result


def _constant(layout: Layout, element: int) -> int:
    """Where the first lane of the first warp has an element."""
    zeros = dict.fromkeys(layout.names, 0)
    (place,) = layout(**{**zeros, ELEMENT: element}) or (0,)
    return place


def _extent(axis: str, threads: int) -> int:
    return {"lane": 32, "warp": max(1, threads // 32), "thread": threads}[axis]


@lru_cache(maxsize=4096)
def _rule(layout: Layout, dim: int, threads: int) -> tuple[PositionRule, tuple[str, ...]]:
    """How one dimension is evaluated, and the axes that it is evaluated at.

    Elements only matter where they are not simply added.
    """
    axes: list[Axis] = []
    for axis in layout.axes:
        if axis.name == ELEMENT and not layout.exclusive:
            continue
        modes = [mode.moving(mode.size, (mode.step[dim],)) for mode in axis.modes]
        if axis.name != ELEMENT:
            # threads beyond the layout's are those at its beginning again
            modes.append(Mode(-(-_extent(axis.name, threads) // axis.size), (0,)))
        axes.append(Axis(axis.name, tuple(modes)))
    found = Layout(tuple(axes), ("index",), (layout.origin[dim],))
    return position_rule(found), tuple(axis.name for axis in axes)


# -- lanewise --------------------------------------------------------------------------------------
# Numbers that differ from thread to thread, computed once at the top of a kernel.
#
# A `Linear` number adds up columns, without carry, for the bits of the thread's number that are
# set. Bits that move by the same distance are taken together: `(thread & mask) << shift`. A pattern
# of several bits that hangs on one bit, as in selectors of prmt, is a product: `(thread >> k & 1) *
# c`. A `LaneTable` becomes a mask of lanes for every bit.

LANES = 1 << LANE_BITS


class Shift(NamedTuple):
    """`(thread & mask) << shift`; a shift below zero goes down."""

    shift: int
    mask: int

    @property
    def cost(self) -> int:
        """Instructions, about: one to shift, one to mask and add."""
        return 1 + (self.shift != 0)

    @property
    def reached_bits(self) -> int:
        """The bits that it may set."""
        return shift_number(self.mask, self.shift)

    @property
    def factor(self) -> int:
        """What `taken` is multiplied by."""
        return 1 << max(0, self.shift)

    def taken_value(self, ar: Arithmetic, hardware: Hardware) -> Value:
        """What is multiplied: masked where it lies, unless it is to go down."""
        return Shift(min(0, self.shift), self.mask).value(ar, hardware)

    def value(self, ar: Arithmetic, hardware: Hardware) -> Value:
        """The term; masked last, and not where the mask would take nothing away."""
        thread, shift = hardware.thread, self.shift
        moved = ar.mul(thread, 1 << shift) if shift >= 0 else ar.div(thread, 1 << -shift)
        every = (1 << (hardware.threads - 1).bit_length()) - 1
        return (
            moved
            if self.reached_bits == shift_number(every, shift)
            else ar.and_(moved, self.reached_bits)
        )


class Pattern(NamedTuple):
    """`(sum of thread >> k for k in bits) & mask, times factor`."""

    bits: tuple[int, ...]
    mask: int
    factor: int

    @property
    def cost(self) -> int:
        """Instructions, about: shifts and sums, one to mask, one to multiply and one to add."""
        return len(self.bits) + (self.bits != (0,)) + 2

    @property
    def reached_bits(self) -> int:
        """The bits that it may set: the product has no carry."""
        return self.mask * self.factor

    def taken_value(self, ar: Arithmetic, hardware: Hardware) -> Value:
        """What is multiplied."""
        return ar.and_(_parity(ar, hardware.thread, self.bits), self.mask)

    def value(self, ar: Arithmetic, hardware: Hardware) -> Value:
        """The term."""
        return ar.mul(self.taken_value(ar, hardware), self.factor)


Terms: TypeAlias = tuple[Shift | Pattern, ...]
"""A sum without carry."""


def number(ar: Arithmetic, hardware: Hardware, given: Lanewise) -> Value:
    """The number of this thread, as an index."""
    given = _simple(given)
    if isinstance(given, LaneTable):
        return _from_table(ar, hardware, given)
    return ar.xor(linear(ar, hardware, given.lane, given.warp), given.start)


def linear(
    ar: Arithmetic, hardware: Hardware, lane: Sequence[int], warp: Sequence[int] = ()
) -> Value:
    """The sum of the columns of this thread's set bits."""
    result: Value = 0
    for term in terms(columns_of(hardware, lane, warp)):
        result = ar.xor(result, term.value(ar, hardware))
    return result


def predicate(ar: Arithmetic, hardware: Hardware, given: Lanewise, value: int) -> Predicate:
    """Whether the number of this thread is `value`."""
    given = _simple(given)
    if isinstance(given, LaneTable):
        chosen = LaneTable(tuple(tuple(int(x == value) for x in row) for row in given.values))
        simple = _simple(chosen)
        if isinstance(simple, Linear):
            return predicate(ar, hardware, simple, 1)
        return ar.compare("ne", _from_table(ar, hardware, chosen), 0)
    columns = columns_of(hardware, given.lane, given.warp)
    wanted = given.start ^ value
    moved = {column for column in columns if column}
    if len(moved) > 1:
        return ar.compare("eq", linear(ar, hardware, given.lane, given.warp), wanted)
    if not moved or wanted not in (0, *moved):  # any order
        return wanted == 0 and not moved
    bits = tuple(k for k, column in enumerate(columns) if column)
    if len(bits) == 1:
        test = ar.and_(hardware.thread, 1 << bits[0])
    else:
        test = ar.and_(_parity(ar, hardware.thread, bits), 1)
    return ar.compare("ne" if wanted else "eq", test, 0)


def columns_of(hardware: Hardware, lane: Sequence[int], warp: Sequence[int]) -> tuple[int, ...]:
    """The columns by the bits of the thread's number in its block."""
    if hardware.threads <= LANES:
        return tuple(lane)
    return (*lane, *(0 for _ in range(LANE_BITS - len(lane))), *warp)


@lru_cache(maxsize=1024)
def terms(columns: tuple[int, ...]) -> Terms:
    """The cheapest terms found: all by shifts, then one pattern after the other where it pays."""
    chosen: Terms = ()
    best = _by_shift(columns)
    for pattern in _patterns(columns):
        left = list(columns)
        for k in pattern.bits:
            for i in range(pattern.mask.bit_length()):
                left[k + i] = 0
        trial = (*_by_shift(left), *chosen, pattern)
        if _cost(trial) < _cost(best):
            best, chosen, columns = trial, (*chosen, pattern), tuple(left)
    return best


def _cost(found: Terms) -> int:
    return sum(term.cost for term in found)


def _by_shift(columns: Sequence[int]) -> Terms:
    masks: dict[int, int] = {}
    for k, column in enumerate(columns):
        for j in range(column.bit_length()):
            if column >> j & 1:
                masks[j - k] = masks.get(j - k, 0) | 1 << k
    return tuple(Shift(shift, mask) for shift, mask in sorted(masks.items()))


def _patterns(columns: Sequence[int]) -> list[Pattern]:
    """Patterns of several bits: neighbouring columns that are one pattern further on each, and
    equal columns of bits that lie apart.
    """
    found: list[Pattern] = []
    taken: set[int] = set()
    for k, column in enumerate(columns):
        if k in taken or column.bit_count() < 2:
            continue
        length = 1
        while k + length < len(columns) and columns[k + length] == column << length:
            product = column * ((2 << length) - 1)
            if product.bit_count() != column.bit_count() * (length + 1):
                break
            length += 1
        if length > 1:
            taken.update(range(k, k + length))
            found.append(Pattern((k,), (1 << length) - 1, column))
        else:
            equal = [i for i, other in enumerate(columns) if other == column and i not in taken]
            taken.update(equal)
            found.append(Pattern(tuple(equal), 1, column))
    return found


def _parity(ar: Arithmetic, value: Value, bits: Sequence[int]) -> Value:
    """A value whose lowest bit is the parity of some bits of another."""
    result: Value = 0
    for k in bits:
        result = ar.xor(result, ar.div(value, 1 << k))
    return result


# --- tables ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _simple(given: Lanewise) -> Lanewise:
    """A table as a linear number where it is one."""
    if isinstance(given, Linear):
        return given
    rows = given.values
    if len(rows) & (len(rows) - 1):
        return given
    start = rows[0][0]
    lane = tuple(rows[0][1 << k] ^ start for k in range(LANE_BITS))
    warp = tuple(rows[1 << k][0] ^ start for k in range(len(rows).bit_length() - 1))
    for w, row in enumerate(rows):
        offset = start ^ image(warp, w)
        if any(value != offset ^ image(lane, number) for number, value in enumerate(row)):
            return given
    return Linear(start, lane, warp)


def _from_table(ar: Arithmetic, hardware: Hardware, table: LaneTable) -> Value:
    """A table's number: what of it is linear as such, the rest from masks of lanes.

    Bits that change in the same threads have one mask; what it says is multiplied.
    """
    straight, masks = _parts(table)
    result = number(ar, hardware, straight)
    for mask, factor in masks:
        held = _of_warp(ar, hardware, mask)
        bit = ar.and_(ar.shift_right(held, hardware.axis("lane")), 1)
        result = ar.xor(result, ar.mul(bit, factor))
    return result


@lru_cache(maxsize=256)
def _parts(table: LaneTable) -> tuple[Linear, tuple[tuple[tuple[int, ...], int], ...]]:
    """The bits of a number that are linear, and for the others (masks by warp, the bits).

    All are counted from the number of the first thread.
    """
    start, rows = table.values[0][0], table.values
    lane, warp = [0] * LANE_BITS, [0] * (len(rows) - 1).bit_length()
    masks: dict[tuple[int, ...], int] = {}
    changed = max(value ^ start for row in rows for value in row)
    for place in range(changed.bit_length()):
        bits = LaneTable(tuple(tuple((v ^ start) >> place & 1 for v in row) for row in rows))
        simple = _simple(bits)
        if isinstance(simple, Linear):
            lane = [c | bit << place for c, bit in zip(lane, simple.lane, strict=True)]
            if simple.warp:
                warp = [c | bit << place for c, bit in zip(warp, simple.warp, strict=True)]
            continue
        mask = tuple(sum(bit << lane for lane, bit in enumerate(row)) for row in bits.values)
        masks[mask] = masks.get(mask, 0) | 1 << place
    return Linear(start, tuple(lane), tuple(warp)), tuple(masks.items())


def _of_warp(ar: Arithmetic, hardware: Hardware, masks: Sequence[int]) -> Value:
    """The mask of this thread's warp: a sum without carry over the sets of its bits.

    A block of more warps than there are masks begins anew.
    """
    if hardware.threads <= LANES or len(set(masks)) == 1:
        return _signed_mask(masks[0])
    count = len(masks)
    width = ((count if count & (count - 1) == 0 else hardware.threads // LANES) - 1).bit_length()
    sums = [masks[w % count] for w in range(1 << width)]
    for k in range(width):  # the coefficients of the products of bits (Moebius transform)
        for w in range(len(sums)):
            if w >> k & 1:
                sums[w] ^= sums[w ^ 1 << k]
    warp, result = hardware.axis("warp"), _signed_mask(sums[0])
    for subset in range(1, len(sums)):
        if not sums[subset]:
            continue
        product: Value = 1
        for k in range(width):
            if subset >> k & 1:
                product = ar.mul(product, ar.and_(ar.div(warp, 1 << k), 1))
        result = ar.xor(result, ar.mul(product, _signed_mask(sums[subset])))
    return result


def _signed_mask(mask: int) -> int:
    """A mask as a number of 32 bits with a sign."""
    return mask - (1 << 32) if mask >> 31 else mask


# -- lane pointers ---------------------------------------------------------------------------------
# Pointers into shared memory that differ from thread to thread as linear numbers do.
#
# A pointer is where the memory begins plus the number. Shared memory begins at a multiple of
# `ALIGNED`, so bits below that may be flipped in a pointer too. Where accesses need several
# pointers that differ so, only one is a sum: its first term is added by the very instruction that
# shifts it, and other terms, and what makes the other pointers, are flipped.


def pointers(
    ar: Arithmetic, hardware: Hardware, base: SSAValue, numbers: Sequence[Linear]
) -> list[tuple[SSAValue, int]]:
    """`base` moved by each of the numbers, which differ in their starts alone: a pointer, and bytes
    to add. What threads may set is in the pointer, the rest of the starts is added.
    """
    lane, warp = numbers[0].lane, numbers[0].warp
    moves = terms(columns_of(hardware, lane, warp))
    reached = _union(term.reached_bits for term in moves)
    flipped = {number.start & reached for number in numbers}
    if len(flipped) == 1 or max(flipped) >= ALIGNED:
        moved = linear(ar, hardware, lane, warp)
        begin = {bits: ar.offset(base, ar.xor(moved, bits)) for bits in sorted(flipped)}
    else:
        pointer = _pointer_moved(ar, hardware, base, moves)
        begin = {bits: (ar.flip(pointer, bits), 0) for bits in sorted(flipped)}
    found: list[tuple[SSAValue, int]] = []
    for number in numbers:
        pointer, more = begin[number.start & reached]
        found.append((pointer, more + (number.start & ~reached)))
    return found


def _pointer_moved(ar: Arithmetic, hardware: Hardware, base: SSAValue, terms: Terms) -> SSAValue:
    """`base` moved by the terms."""
    ordered = sorted(terms, key=_first)
    added = [term for term in ordered if term.reached_bits >= ALIGNED] or ordered[:1]
    bits = [term.reached_bits for term in added]
    if sum(bits) != _union(bits):
        base = ar.offset_whole(base, reduce(ar.xor, (term.value(ar, hardware) for term in added)))
    else:  # no two reach the same bit
        for term in added:
            base = ar.offset_whole(base, term.taken_value(ar, hardware), term.factor)
    for term in ordered:
        if term not in added:
            base = ar.flip(base, term.value(ar, hardware))
    return base


def _first(term: Shift | Pattern) -> tuple[bool, int]:
    """Terms that are multiplied, which an addition does by the way; the highest of them first."""
    return term.factor == 1, -term.reached_bits


def _union(masks: Iterable[int]) -> int:
    bits = 0
    for mask in masks:
        bits |= mask
    return bits
