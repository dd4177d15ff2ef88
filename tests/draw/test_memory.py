"""Memory by banks: cells stand where the layout says, collisions are those that there are."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from fragir.draw.layouts import conversion_drawing
from fragir.draw.memory import addresses_of, banks_drawing, memory_drawing, passes_of
from fragir.draw.svg import svg
from fragir.errors import FragirError
from fragir.isa.layout_texts import read_layout
from fragir.layout import Layout
from tests.draw.reading import pictures

A = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32:a"
PLAIN = "row [64:128] col [64:2] dims (byte)"
SWIZZLED = "row [8:^144 8:1024] col [64:2] dims (byte)"
PADDED = "row [16:144] col [64:2] dims (byte)"


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        (SWIZZLED, None),
        (PADDED, 16),
        ("row [8:^72 8:512] col [64:1]", 16),
        ("cute:Sw<3,4,3> o 0 o (8,80):(80,1)", 16),
        ("row [16:32] col [32:1]", 8),
    ],
)
def test_elements_stand_at_their_bytes(text: str, bits: int | None) -> None:
    layout = read_layout(text)
    places, unit = addresses_of(layout, bits)
    (picture,) = pictures(svg(memory_drawing(layout, bits=bits), full=True))
    for slot, byte in places.items():
        label, note, _ = picture.cells[byte // 128, byte % 128 // unit]
        assert label == ",".join(map(str, slot))
        assert f"byte {byte}, bank {byte // 4 % 32}\n" in note
    held = sum(label != "-" for label, _, _ in picture.cells.values())
    assert held == len(places)


@pytest.mark.parametrize(
    ("text", "bits", "bytes_"),
    [(SWIZZLED, None, 1), ("row [16:34] col [16:1]", 16, 2), ("index [24:3]", 8, 1)],
)
def test_a_colour_is_a_bank(text: str, bits: int | None, bytes_: int) -> None:
    layout = read_layout(text)
    (picture,) = pictures(svg(banks_drawing(layout, bits=bits), full=True))
    for slot, point in layout.slots():
        assert point is not None
        at = slot if len(slot) == 2 else (0, *slot)
        assert picture.cells[at][0] == str(point[0])
        assert picture.cells[at][2] == f"fr-{point[0] * bytes_ // 4 % 32}"


@pytest.mark.parametrize(
    ("text", "passes"),
    [(PLAIN, 32), (SWIZZLED, 4), (PADDED, 4), ("row [16:48] col [16:2] dims (byte)", 4)],
)
def test_passes(text: str, passes: int) -> None:
    """Counted here once more: a bank gives one word of 4 bytes a pass."""
    layout, access = read_layout(text), read_layout(A)
    total = 0
    for register in range(4):
        wanted: defaultdict[int, set[int]] = defaultdict(set)
        for lane in range(32):
            for half in (0, 1):
                point = access(lane=lane, element=2 * register + half)
                assert point is not None
                found = layout(row=point[0], col=point[1])
                assert found is not None
                wanted[found[0] // 4 % 32].add(found[0] // 4)
        total += max(map(len, wanted.values()))
    assert total == passes
    places, unit = addresses_of(layout, None)
    assert sum(one.passes for one in passes_of(layout, access, places, unit)) == total


def test_who_collides_is_framed() -> None:
    picture = svg(memory_drawing(read_layout(PLAIN), access=read_layout(A)))
    assert picture.count('class="fr-mark"') == 64  # 8 rows in the same four banks
    assert "read by lane 5, a conflict" in picture
    free = svg(memory_drawing(read_layout(SWIZZLED), access=read_layout(A)))
    assert 'class="fr-mark"' not in free
    assert "one pass over the banks" in free


@pytest.mark.parametrize(
    ("text", "bits", "message"),
    [
        (A, None, "does not say where elements stand"),
        ("row [8:64] col [64:1]", None, "counts elements"),
        ("row [8:64] col [64:1]", 4, "elements of 4 bits"),
    ],
)
def test_what_is_no_memory(text: str, bits: int | None, message: str) -> None:
    with pytest.raises(FragirError, match=message):
        memory_drawing(read_layout(text), bits=bits)


def test_an_access_that_does_not_fit() -> None:
    with pytest.raises(FragirError, match="does not fit the memory"):
        memory_drawing(read_layout("row [8:64] col [8:2] dims (byte)"), access=read_layout(A))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (A, "lane [2:(0,8) 16:(1,0)] element [8:(0,1)]"),
        (
            "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16:d",
            "warp [4:(16,0)] lane [4:(0,6) 8:(1,0)] element [6:(0,1) 2:(8,0)]",
        ),
        (
            "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
            "lane [8:(1,0) 4:(0,2)] element [2:(8,0) 2:(0,1)]",
        ),
    ],
)
def test_a_conversion_shows_where_elements_come_from(source: str, target: str) -> None:
    old, new = read_layout(source), read_layout(target)
    assert isinstance(old, Layout)
    assert isinstance(new, Layout)
    before, after = pictures(svg(conversion_drawing(old, new), full=True))
    assert (before.title, after.title[:5]) == ("before", "after")
    assert before.cells.keys() == after.cells.keys()
    for at, (label, note, colour) in after.cells.items():
        first = re.search(r"from lane (\d+)(?: of warp (\d+))?, element (\d+)", note)
        assert first is not None
        lane, warp, element = (int(x or 0) for x in first.groups())
        thread = {"lane": lane + 32 * warp * ("warp" not in old.names)}
        here = {"warp": warp} if "warp" in old.names else {}
        assert old(**thread, **here, element=element) == at
        assert colour == f"fr-{lane % 32}"
        numbers = dict(re.findall(r"([WT:])(\d+)", label))
        place = {"lane": int(numbers["T"]), "element": int(numbers[":"])}
        over = {"warp": int(numbers.get("W", 0))} if "warp" in new.names else {}
        assert new(**place, **over) == at
