"""Shared memory as lines of 32 banks: which element stands where, who reads it, who collides.

Shared memory has 32 banks of 4 bytes; a line of 128 bytes is one word of each. An access takes as
many passes as one bank has different words to give to lanes that are served together: 32 lanes of
4 bytes, 16 of 8, 8 of 16 (`fragir.layout.shared.wavefronts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fragir.draw.grid import Cell, Drawing, Grid, Point
from fragir.draw.layouts import LARGEST, AnyLayout, standing_drawing
from fragir.errors import FragirError
from fragir.layout.chain import chained
from fragir.layout.shared import BANK_BYTES, BANKS, wavefronts

LINE = BANK_BYTES * BANKS
_WIDTHS = (16, 8, 4, 2, 1)
_TOGETHER = {16: 8, 8: 16}


@dataclass(frozen=True, slots=True)
class Pass:
    """What lanes that are served together do with one instruction.

    `addresses` are the first bytes of the lanes `first`, `first + 1`, ...; `passes` how often the
    banks are asked, where once would do for all.
    """

    element: int
    first: int
    addresses: tuple[int, ...]
    width: int
    passes: int

    def words(self) -> Iterator[tuple[int, int]]:
        """(lane, number of a word) of every word that is wanted."""
        for lane, address in enumerate(self.addresses, self.first):
            last = (address + self.width - 1) // BANK_BYTES
            for word in range(address // BANK_BYTES, last + 1):
                yield lane, word

    def colliding(self) -> set[int]:
        """The numbers of the words that share a bank with another one."""
        by_bank: dict[int, set[int]] = {}
        for _, word in self.words():
            by_bank.setdefault(word % BANKS, set()).add(word)
        return {word for words in by_bank.values() if len(words) > 1 for word in words}


def addresses_of(layout: AnyLayout, bits: int | None) -> tuple[dict[Point, int], int]:
    """The byte at which every coordinate of a layout of memory stands, and the bytes of an element.

    A layout whose dimension is `byte` says it; one that counts elements needs their `bits`. Raises
    FragirError for a layout of registers, and for elements of less than a byte.
    """
    if len(layout.dims) != 1 or {"lane", "element"} & {*layout.names}:
        raise FragirError(
            f"{layout} does not say where elements stand in memory",
            hint="a layout of memory goes from row and col to a byte, or to the number of one",
        )
    sizes = layout.sizes.values()
    count = 1
    for size in sizes:
        count *= size
    if count > LARGEST:
        raise FragirError(f"a drawing of {count} cells cannot be read")
    points = {slot: point[0] for slot, point in layout.slots() if point is not None}
    if layout.dims[0] != "byte":
        if bits is None:
            raise FragirError(
                f"the layout counts elements ({layout.dims[0]}), not bytes",
                hint="--type says how wide an element is",
            )
        if bits % 8:
            raise FragirError(f"elements of {bits} bits are drawn two to a byte: --type s8")
        return {slot: place * bits // 8 for slot, place in points.items()}, bits // 8
    if bits is not None and bits % 8 == 0:
        return points, bits // 8
    ordered = sorted(set(points.values()))
    return points, min((b - a for a, b in pairwise(ordered)), default=1)


def banks_drawing(
    layout: AnyLayout, facts: tuple[tuple[str, str], ...] = (), bits: int | None = None
) -> Drawing:
    """The matrix view coloured by banks: elements of one colour cannot be had at once.

    (Unless they stand in one word.) Raises FragirError as `addresses_of` does.
    """
    places, _ = addresses_of(layout, bits)
    return standing_drawing(
        layout, facts, lambda slot: places[slot] // BANK_BYTES % BANKS, "; a colour is a bank"
    )


def memory_drawing(
    layout: AnyLayout,
    facts: tuple[tuple[str, str], ...] = (),
    bits: int | None = None,
    access: AnyLayout | None = None,
) -> Drawing:
    """The memory view: a line of 128 bytes a row; with `access`, which lanes read what.

    `access` is a layout of registers over the same matrix. Shown is the instruction whose lanes
    collide most, coloured by lane; words that share a bank with another are framed.
    """
    places, unit = addresses_of(layout, bits)
    if access is None:
        key = f"a cell is the {', '.join(layout.names)} that stands there; a line has 128 bytes"
        return Drawing(str(layout), facts, key, (_lines(layout.names, places, unit, {}, set()),))
    found = passes_of(layout, access, places, unit)
    worst = max(found, key=lambda one: one.passes)
    readers: dict[int, list[int]] = {}
    for lane, address in enumerate(worst.addresses, worst.first):
        for byte in range(address, address + worst.width, unit):
            readers.setdefault(byte, []).append(lane)
    total, least = sum(one.passes for one in found), len(found)
    told = (
        *facts,
        ("access", str(access)),
        ("instructions", f"{8 * worst.width} bits a lane"),
        ("passes", f"{total} of a warp, {least} without conflicts"),
    )
    last = worst.element + worst.width // unit - 1
    held = f"elements {worst.element} to {last}" if last > worst.element else f"element {last}"
    key = (
        f"T5 reads this with {held}: {_times(worst.passes)} over the banks; "
        f"all its accesses take {_times(total)}, {least} without conflicts"
    )
    grid = _lines(layout.names, places, unit, readers, worst.colliding())
    return Drawing(f"{access} reads {layout}", told, key, (grid,))


def _times(passes: int) -> str:
    return "one pass" if passes == 1 else f"{passes} passes"


def passes_of(
    layout: AnyLayout, access: AnyLayout, places: Mapping[Point, int], unit: int
) -> list[Pass]:
    """What warp 0 does to read its fragment, by the widest accesses that its elements allow."""
    try:
        joined = chained(layout, access)
    except FragirError as error:
        raise FragirError(
            f"the access does not fit the memory: {error.message}",
            hint=f"it holds a matrix whose dimensions are {', '.join(layout.names)}",
        ) from error
    sizes = joined.sizes
    lanes, elements = min(32, sizes.get("lane", 1)), sizes.get("element", 1)
    scale = 1 if layout.dims[0] == "byte" else unit

    def place(lane: int, element: int) -> int | None:
        known = {"lane": lane, "element": element}
        point = joined(**{name: known.get(name, 0) for name in joined.names})
        return None if point is None else point[0] * scale

    table = [[place(lane, element) for lane in range(lanes)] for element in range(elements)]
    width = next(w for w in _WIDTHS if _are_neighbours(table, unit, w))
    step = max(1, width // unit)
    together = _TOGETHER.get(width, 32)
    found: list[Pass] = []
    for element in range(0, elements, step):
        for first in range(0, lanes, together):
            given = [x for x in table[element][first : first + together] if x is not None]
            if given:
                times = wavefronts(given, width)
                found.append(Pass(element, first, tuple(given), width, times))
    if not found:
        raise FragirError(f"no lane of {access} holds anything")
    return found


def _are_neighbours(table: Sequence[Sequence[int | None]], unit: int, width: int) -> bool:
    """Whether all lanes find so many bytes of neighbouring elements side by side and aligned."""
    step = width // unit
    if step == 0:
        return width == 1
    if step * unit != width or len(table) % step:
        return width == unit
    for start in range(0, len(table), step):
        for column in zip(*table[start : start + step], strict=True):
            head = column[0]
            if head is None:
                if any(place is not None for place in column):
                    return False
            elif head % width or column != tuple(head + unit * i for i in range(step)):
                return False
    return True


def _lines(
    names: tuple[str, ...],
    places: Mapping[Point, int],
    unit: int,
    readers: Mapping[int, list[int]],
    colliding: set[int],
) -> Grid:
    """Lines of 128 bytes; a cell is an element."""
    at: dict[int, list[Point]] = {}
    for slot, place in places.items():
        at.setdefault(place, []).append(slot)
    last = max(places.values()) // LINE + 1
    lines = sorted({byte // LINE for byte in readers}) if readers else range(last)
    across = max(1, LINE // unit)
    rows = tuple(
        tuple(
            _cell(names, at.get(byte, []), byte, line, col, unit, readers, colliding)
            for col, byte in enumerate(range(line * LINE, line * LINE + across * unit, unit))
        )
        for line in lines
    )
    return Grid(f"a column is {unit} bytes, a bank 4", "line", "at", rows, names)


def _cell(
    names: tuple[str, ...],
    slots: Sequence[Point],
    byte: int,
    line: int,
    col: int,
    unit: int,
    readers: Mapping[int, list[int]],
    colliding: set[int],
) -> Cell:
    bank, word = byte // BANK_BYTES % BANKS, byte // BANK_BYTES
    held = "\n".join(", ".join(f"{n} {x}" for n, x in zip(names, s, strict=True)) for s in slots)
    note = f"byte {byte}, bank {bank}\n{held or 'nothing'}"
    if not slots:
        return Cell(line, col, "-", note, None)
    label = ",".join(map(str, slots[0]))
    if not readers:
        shade = slots[0][-2] * 4 if len(slots[0]) > 1 else bank
        return Cell(line, col, label, note, shade, slots[0])
    lanes = readers.get(byte, [])
    if not lanes:
        return Cell(line, col, label, note, None, slots[0])
    mark = word in colliding
    more = "+" if len(lanes) > 1 else ""
    who = f"read by lane {', '.join(map(str, lanes))}" + (", a conflict" if mark else "")
    return Cell(line, col, f"T{lanes[0]}{more} {label}", f"{note}\n{who}", lanes[0], None, mark)
