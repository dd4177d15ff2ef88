"""Layouts of tensor memory against the ISA's formulas, and against the emulator's own maps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir import isa
from fragir.emulator.tensor_cores import tensor_places
from fragir.errors import FragirError
from fragir.isa import tensor_layouts
from fragir.isa.descriptors import decode_instruction, instruction_faults
from fragir.isa.layout_texts import read_layout
from fragir.isa.tensor_layouts import read_by, scale_factors, scale_places, warp_lanes
from fragir.isa.tensor_names import TensorMma, tensor_operation
from fragir.isa.tensor_products import KINDS, SHAPES, depths
from fragir.layout import Layout
from fragir.ptx.opcodes.table import OPCODES

# (letter, rows of a CTA, CTAs, .ws, sparse), from section 9.7.16.10.5.
LETTERS = [
    ("A", 128, 2, False, False),
    ("A", 128, 2, False, True),
    ("B", 64, 2, False, False),
    ("C", 64, 2, False, True),
    ("D", 128, 1, False, False),
    ("D", 128, 1, False, True),
    ("D", 128, 1, True, False),
    ("E", 64, 1, True, False),
    ("E", 64, 1, True, True),
    ("F", 64, 1, False, False),
    ("F", 64, 1, False, True),
    ("G", 32, 1, True, False),
    ("G", 32, 1, True, True),
]


def d_place(letter: str, rows: int, m: int, n: int, width: int) -> tuple[int, int, int]:
    """(cta, lane, column) of element (m, n) of a D of `width` columns, by its layout's letter."""
    cta, m = divmod(m, rows)
    match letter:
        case "A" | "D":
            return cta, m, n
        case "C" | "F":
            return cta, 32 * (m // 16) + m % 16, n
        case "B" | "E":
            return cta, m + 64 * (n // (width // 2)), n % (width // 2)
        case _:
            return cta, m + 32 * (n // (width // 4)), n % (width // 4)


def held(layout: Layout) -> dict[tuple[int, ...], list[dict[str, int]]]:
    """Point -> its slots, by name; axes that a layout lacks are 0."""
    names = layout.names
    base = {"cta": 0, "lane": 0, "column": 0}
    return {
        point: [{**base, **dict(zip(names, slot, strict=True))} for slot in slots]
        for point, slots in layout.holders.items()
    }


@pytest.mark.parametrize(("letter", "rows", "group", "ws", "sparse"), LETTERS)
@pytest.mark.parametrize("n", [8, 48, 64, 128])
def test_d(letter: str, rows: int, group: int, ws: bool, sparse: bool, n: int) -> None:
    if (ws and n < 64) or (group == 2 and n % 16):
        pytest.skip("no such N")
    m = rows * group
    ways: dict[str, Any] = {"group": group, "ws": ws, "sparse": sparse}
    assert tensor_layouts.arrangement(m, **ways).letter == letter
    layout = tensor_layouts.accumulator(m, n, **ways)
    found = held(layout)
    assert set(found) == set(product(range(m), range(n))), "every element"
    for (row, col), slots in found.items():
        (slot,) = slots
        wanted = d_place(letter, rows, row, col, n)
        assert (slot["cta"], slot["lane"], slot["column"]) == wanted
    emulated = tensor_places.banks(rows, group=group, separate=ws, sparse=sparse)
    assert emulated.name == letter
    part = n // len(emulated.lanes)
    for row, col in product(range(rows), range(n)):
        (slot,) = found[row, col]
        assert slot["lane"] == emulated.lanes[col // part][row]
        assert slot["column"] == col % part


@pytest.mark.parametrize(("letter", "rows", "group", "ws", "sparse"), LETTERS)
@pytest.mark.parametrize("bits", [4, 8, 16, 32])
def test_a(letter: str, rows: int, group: int, ws: bool, sparse: bool, bits: int) -> None:
    """A lies in the lanes of D's rows, in each bank; element k in bit k w % 32 of column k w/32."""
    m, k = rows * group, 256 // bits
    layout = tensor_layouts.multiplicand(m, k, bits, group=group, ws=ws, sparse=sparse)
    found = held(layout)
    copies = {"B": 2, "E": 2, "G": 4}.get(letter, 1)
    assert len(found) == m * k
    for (row, col), slots in found.items():
        lanes = sorted(slot["lane"] for slot in slots)
        first = d_place(letter, rows, row, 0, 4)[1]
        assert lanes == [first + rows * copy for copy in range(copies)]
        for slot in slots:
            assert slot["cta"] == row // rows
            assert slot["column"] * 32 + slot["element"] * bits == col * bits
    assert layout.size("column") == 8


def test_bad_arrangements() -> None:
    for m, ways in ((256, {}), (32, {}), (64, {"group": 2})):
        with pytest.raises(FragirError, match="no product of tcgen05"):
            tensor_layouts.accumulator(m, 64, **ways)


# -- scale factors and metadata --------------------------------------------------------------------


def scale_slots(rows: int, blocks: int, first: int, halved: bool) -> Counter[tuple[int, ...]]:
    """Every (row, block, lane, column, byte), by section 9.7.16.10.7."""
    found: Counter[tuple[int, ...]] = Counter()
    for r, j in product(range(rows), range(blocks)):
        b = first + j
        if halved:
            half, n = divmod(r, rows // 2)
            for rep in range(2):
                lane = 64 * half + 32 * rep + n % 32
                column = n // 32 + b // 4 * 4 * (-(-rows // 2 // 128) or 1)
                found[r, j, lane, column, b % 4] += 1
            continue
        for rep in range(4):
            column = r // 32 + b // 4 * 4 * -(-rows // 128)
            found[r, j, r % 32 + 32 * rep, column, b % 4] += 1
    return found


SCALES = [
    *((1, first) for first in range(4)),
    (2, 0),
    (2, 2),
    (4, 0),
    (3, 0),
    (6, 0),
]


@pytest.mark.parametrize(("blocks", "first"), SCALES)
@pytest.mark.parametrize("rows", [8, 16, 24, 32, 64, 96, 128, 136, 256])
@pytest.mark.parametrize("of", ["a", "b"])
def test_scales(blocks: int, first: int, rows: int, of: str) -> None:
    """As the formula; padding is beyond the rows and blocks that there are."""
    layout = scale_factors(rows, blocks, first=first, of=of)
    wanted = scale_slots(rows, blocks, first, False)
    found: Counter[tuple[int, ...]] = Counter()
    for point, slots in held(layout).items():
        row, block = point if of == "a" else point[::-1]
        if row >= rows or block >= blocks:
            continue
        for slot in slots:
            found[row, block, slot["lane"], slot["column"], slot["byte"]] += 1
    assert found == wanted


@pytest.mark.parametrize("rows", [16, 32, 64, 128, 256])
@pytest.mark.parametrize(("blocks", "first"), [(1, 3), (2, 0), (4, 0), (6, 0)])
def test_halved_scales(rows: int, blocks: int, first: int) -> None:
    if blocks > 4 and rows < 256:
        with pytest.raises(FragirError, match="do not fill groups of 128 rows"):
            scale_factors(rows, blocks, of="b", group=2, halved=True)
        return
    layout = scale_factors(rows, blocks, first=first, of="b", group=2, halved=True)
    for cta in range(2):
        found: Counter[tuple[int, ...]] = Counter()
        for (block, row), slots in held(layout).items():
            for slot in slots:
                if slot["cta"] == cta and block < blocks and row < rows:
                    found[row, block, slot["lane"], slot["column"], slot["byte"]] += 1
        assert found == scale_slots(rows, blocks, first, True), "each CTA has all of them"


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 32).map(lambda x: 8 * x),
    way=st.sampled_from([*SCALES, (3, 1), (3, 3), (6, 2)]),
    halved=st.booleans(),
)
def test_places_of_scales(rows: int, way: tuple[int, int], halved: bool) -> None:
    """The array has what the layout has, and what no layout says; and is the emulator's."""
    blocks, first = way
    rows = -(-rows // 16) * 16 if halved else rows
    places = scale_places(rows, blocks, first=first, halved=halved)
    found: Counter[tuple[int, ...]] = Counter()
    for copy, row, block in np.ndindex(*places.shape[:3]):
        found[row, block, *map(int, places[copy, row, block])] += 1
    assert found == scale_slots(rows, blocks, first, halved)
    lane, column, bit = tensor_places.scale_places(rows, first, blocks, halved=halved)
    assert (np.stack((lane, column, bit // 8), axis=-1) == places).all()


def test_scales_that_no_layout_says() -> None:
    for ways in ({"blocks": 3, "first": 1}, {"blocks": 6, "first": 2}):
        with pytest.raises(FragirError, match="split between columns"):
            scale_factors(128, **ways)
    with pytest.raises(FragirError, match="halves of 48 rows of scales"):
        scale_factors(48, 1, halved=True, of="b")


@pytest.mark.parametrize(("letter", "rows", "group", "ws", "sparse"), [x for x in LETTERS if x[4]])
@pytest.mark.parametrize(("chunks", "selector"), [(8, 0), (8, 1), (16, 0)])
def test_metadata(
    letter: str, rows: int, group: int, ws: bool, sparse: bool, chunks: int, selector: int
) -> None:
    """Section 9.7.16.10.8: by the lane p of a row of A, in each bank."""
    assert sparse
    m = rows * group
    layout = tensor_layouts.metadata(m, chunks, selector=selector, group=group, ws=ws)
    found = held(layout)
    assert set(found) == set(product(range(m), range(chunks)))
    copies = {"E": 2, "G": 4}.get(letter, 1)
    for (row, chunk), slots in found.items():
        places = {(s["cta"], s["lane"], s["column"], 4 * s["nibble"]) for s in slots}
        wanted: set[tuple[int, ...]] = set()
        for copy in range(copies):
            p = d_place(letter, rows, row, 0, 4)[1] + rows * copy
            if chunks == 8:
                lane = (p & ~31) | (p & 16) | p % 8 | 8 * (chunk // 4)
                place = lane, selector, 16 * (p % 16 // 8) + 4 * (chunk % 4)
            else:
                place = p, chunk // 8, 4 * (chunk % 8)
            wanted.add((row // rows, *place))
        assert places == wanted
    lanes = np.array([d_place(letter, rows, row, 0, 4)[1] for row in range(rows)])
    emulated = tensor_places.metadata_places(lanes.tobytes(), chunks, selector)
    for row, chunk in product(range(rows), range(chunks)):
        at = tuple(int(part[row, chunk]) for part in emulated)
        assert at in {(s["lane"], s["column"], 4 * s["nibble"]) for s in found[row, chunk]}


def test_unknown_selectors() -> None:
    with pytest.raises(FragirError, match="selector 2 names is not known"):
        tensor_layouts.metadata(128, 8, selector=2)


# -- copies ----------------------------------------------------------------------------------------

# Shape and multicast -> the lanes of row r of the source (9.7.16.9.2, with the help of CUTLASS).
COPIES: dict[tuple[str, str], Callable[[int], list[int]]] = {
    ("128x256b", ""): lambda r: [r],
    ("4x256b", ""): lambda r: [32 * r],
    ("128x128b", ""): lambda r: [r],
    ("64x128b", "warpx2::02_13"): lambda r: [r, r + 64],
    ("64x128b", "warpx2::01_23"): lambda r: [r % 32 + 64 * (r // 32) + x for x in (0, 32)],
    ("32x128b", "warpx4"): lambda r: [r + 32 * x for x in range(4)],
}


@pytest.mark.parametrize(("shape", "multicast"), COPIES)
def test_copies(shape: str, multicast: str) -> None:
    found = held(tensor_layouts.copied(shape, multicast))
    rows, words = int(shape.partition("x")[0]), 8 if shape.endswith("256b") else 4
    assert set(found) == set(product(range(rows), range(words)))
    emulated = tensor_places.copy_shape(shape, multicast)
    assert (emulated.rows, emulated.words) == (rows, words)
    for (row, word), slots in found.items():
        lanes = COPIES[shape, multicast](row)
        assert sorted((s["lane"], s["column"]) for s in slots) == [(x, word) for x in lanes]
        assert sorted(int(part[row]) for part in emulated.lanes) == lanes
    narrow = held(tensor_layouts.copied(shape, multicast, decompressed=True))
    assert set(narrow) == set(product(range(rows), range(4 * words)))
    for (row, element), slots in narrow.items():
        assert {(s["column"], s["byte"]) for s in slots} == {divmod(element, 4)}
        assert sorted(s["lane"] for s in slots) == COPIES[shape, multicast](row)


def test_refused_copies() -> None:
    for name in ("128x256b.warpx4", "64x128b", "32x128b", "16x128b"):
        with pytest.raises(FragirError, match=r"tcgen05.cp has no shape"):
            tensor_operation(f"tcgen05.cp.{name}")


# -- registers -------------------------------------------------------------------------------------


def test_warps_reach_their_lanes() -> None:
    assert [list(warp_lanes(w)) for w in (0, 3, 4, 7)] == [
        list(range(32 * (w % 4), 32 * (w % 4) + 32)) for w in (0, 3, 4, 7)
    ]


SHAPES_OF_LD = [s for s in tensor_places.SHAPES if s != "16x32bx2"]


@pytest.mark.parametrize("shape", SHAPES_OF_LD)
@pytest.mark.parametrize(("letter", "rows", "group", "ws", "sparse"), LETTERS)
@pytest.mark.parametrize("packed", [False, True])
def test_which_thread_gets_which_element(
    shape: str, letter: str, rows: int, group: int, ws: bool, sparse: bool, packed: bool
) -> None:
    """D by tcgen05.ld: as the emulator's registers and the formula of D say, one by one."""
    n, column = 256 if letter == "G" else 128, 8
    ways: dict[str, Any] = {"group": group, "ws": ws, "sparse": sparse}
    d = tensor_layouts.accumulator(rows * group, n, **ways)
    pack = ".pack::16b" if packed else ""
    load = isa.lookup(f"tcgen05.ld.sync.aligned.{shape}.x2{pack}.b32")
    spread = letter in "CF"
    places = {d_place(letter, rows, m, c, n): (m, c) for m in range(rows) for c in range(n)}
    for lane in (0,) if shape == "32x32b" or spread else (0, 16):
        found = read_by(d, load, lane=lane, column=column)
        at_lane, at_column = tensor_places.register_places(shape, 2, packed)
        points = found.array()
        points = points[0] if group == 2 else points
        for warp, thread, element in product(range(4), range(32), range(found.size("element"))):
            where = int(at_lane[element, thread]), int(at_column[element, thread])
            place = 0, 32 * warp + lane + where[0], column + where[1]
            assert tuple(points[warp, thread, element]) == places.get(place, (-1, -1))


def test_halves_of_a_split_shape() -> None:
    """16x32bx2: threads 16 to 31 have the same lanes, `offset` columns on."""
    d = tensor_layouts.accumulator(64, 64)
    load = isa.lookup("tcgen05.ld.sync.aligned.16x32bx2.x4.b32")
    found = read_by(d, load, column=8, offset=32)
    at_lane, at_column = tensor_places.register_places("16x32bx2", 4, False, 32)
    for warp, thread, element in product(range(4), range(32), range(4)):
        lane, column = int(at_lane[element, thread]), int(at_column[element, thread])
        wanted = 16 * warp + lane, 8 + column
        assert found(warp=warp, lane=thread, element=element) == wanted


def test_elements_within_a_column_follow_each_other_in_registers() -> None:
    """A of 8-bit types, stored by st: four elements a register."""
    a = tensor_operation("tcgen05.mma.m128n64k32.e4m3").operand("a").layout
    store = isa.lookup("tcgen05.st.sync.aligned.32x32b.x8.b32")
    found = read_by(a, store)
    for warp, lane, element in product(range(4), (0, 7, 31), range(32)):
        assert found(warp=warp, lane=lane, element=element) == (32 * warp + lane, element)


def test_refused_reads() -> None:
    d = tensor_layouts.accumulator(128, 64)
    whole = isa.lookup("tcgen05.ld.sync.aligned.32x32b.x128.b32")
    with pytest.raises(FragirError, match="none of these 64 columns"):
        read_by(d, whole)
    with pytest.raises(FragirError, match="begins at lane 0 of a warp's, not at 16"):
        read_by(d, isa.lookup("tcgen05.ld.sync.aligned.32x32b.x4.b32"), lane=16)
    half = isa.lookup("tcgen05.ld.sync.aligned.16x64b.x4.b32")
    with pytest.raises(FragirError, match="lanes 16 to 31 of a warp's hold nothing"):
        read_by(tensor_layouts.accumulator(64, 64), half, lane=16)
    with pytest.raises(FragirError, match="does not access tensor memory"):
        read_by(d, isa.lookup("movmatrix.sync.aligned.m8n8.trans.b16"))


# -- names -----------------------------------------------------------------------------------------


def products() -> list[TensorMma]:
    """One of every kind, M, form and pair of CTAs; least and largest N; every type of A."""
    found: list[TensorMma] = []
    for rule in SHAPES:
        for kind, m, n, sparse in product(rule.kinds, rule.m, {rule.n[0], rule.n[-1]}, rule.sparse):
            rules = KINDS[kind]
            ways = [(v, t) for v, types in rules.scales.items() for t in types] or [(0, "")]
            for k, (vector, scale), a in product(
                depths(kind, sparse=sparse), ways, list(rules.types)
            ):
                b, d = next(iter(rules.types)), rules.results[-1]
                found.append(
                    TensorMma(kind, m, n, k, d, a, b, scale, vector, rule.group, rule.ws, sparse)
                )
    return found


def test_names_are_read_back() -> None:
    every = products()
    assert len(every) > 300
    for wanted in every:
        assert tensor_operation(wanted.name) == wanted
        words = wanted.name.split(".")
        shape = next(i for i, word in enumerate(words) if word[0] == "m" and word[1].isdigit())
        opcode = OPCODES.find(tuple(words[:shape]))
        assert not opcode.problem or "is not emulated" in opcode.problem, wanted.name


def test_descriptors_of_names() -> None:
    """The descriptor that a name has says the name again."""
    for found in products():
        fields = decode_instruction(found.descriptor, found.kind)
        ways: dict[str, Any] = {"cta_group": found.group, "ws": found.ws}
        assert not list(instruction_faults(found.descriptor, found.kind, **ways))
        said = fields["m"], fields["n"], fields["a"], fields["b"], bool(fields["sparse"])
        assert said == (found.m, found.n, found.a, found.b, found.sparse)
        assert fields.get("scale", "") == found.scale
        assert bool(fields.get("k96")) == (found.k == 96)


def test_every_operand_of_every_product() -> None:
    """Shapes, extents and columns; what lies where they say is tested above."""
    for found in products():
        kept = found.k // 2 if found.sparse else found.k
        for name, operand in found.operands.items():
            if operand.tiles:
                assert {tile.shared.major for tile in operand.tiles} <= {"k", "mn"}
                continue
            if name == "sfb" and (found.group, found.m) == (2, 128) and found.n % 64:
                with suppress(FragirError):  # the halves need not fill groups of 32 lanes
                    _ = operand.layout
                continue
            layout = operand.layout
            assert all(x <= y for x, y in zip(operand.shape, layout.shape, strict=True)), name
            assert layout.size("lane") == 128
            if name in ("d", "a", "e"):
                assert operand.shape == layout.shape
        assert found.operand("a").shape == (found.m, kept)
        if found.blocks:
            scales = found.operand("sfa")
            assert scales.chunk * found.blocks == found.k
            assert scales.shape == (found.m, found.blocks)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            "tcgen05.mma.m128n256k16.f16",
            "tcgen05.mma.cta_group::1.kind::f16.m128n256k16.f32.f16.f16",
        ),
        (
            "tcgen05.mma.m256n64k32.e4m3.e2m1",
            "tcgen05.mma.cta_group::2.kind::f8f6f4.m256n64k32.f32.e4m3.e2m1",
        ),
        (
            "tcgen05.mma.sp.ws.m64n64k64.s8",
            "tcgen05.mma.ws.sp.cta_group::1.kind::i8.m64n64k64.s32.s8.s8",
        ),
        (
            "tcgen05.mma.kind::mxf4nvf4.block16.m128n64k64.e2m1",
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n64k64."
            "f32.e2m1.e2m1.ue4m3",
        ),
        (
            "tcgen05.mma.block_scale.block32.m128n64k32.e4m3",
            "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X.m128n64k32."
            "f32.e4m3.e4m3.ue8m0",
        ),
    ],
)
def test_what_may_be_left_out(text: str, name: str) -> None:
    assert tensor_operation(text).name == name
    assert str(read_layout(f"{text}:d")) == str(tensor_operation(name).operand("d").layout)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tcgen05.mma.m48n64k16.f16", "no M = 48"),
        ("tcgen05.mma.m128n64k32.f16", "no K = 32 .K is 16"),
        ("tcgen05.mma.m128n64k16", "names no product"),
        ("tcgen05.mma.m128n64k16.f64", "no tcgen05.mma multiplies f64"),
        ("tcgen05.mma.kind::tf32.m128n64k8.f16", "A of kind tf32"),
        ("tcgen05.mma.m128n64k16.f16.bf16.bf16", "D of kind f16 with bf16"),
        ("tcgen05.mma.cta_group::3.m128n64k16.f16", "cta_group::3 is none"),
        ("tcgen05.mma.wsp.m128n64k16.f16", ".wsp is no word"),
        ("tcgen05.mma.kind::mxf4.scale_vec::4X.m128n64k64.e2m1", "has no scale_vec::4X"),
        ("tcgen05.mma.kind::f16.block_scale.m128n64k16.f16", "no block scales"),
    ],
)
def test_refused_names(text: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        tensor_operation(text)


def test_ids_and_selectors_are_beside_the_name() -> None:
    found = tensor_operation("tcgen05.mma.kind::mxf8f6f4.m128n64k32.e4m3")
    assert isinstance(found, TensorMma)
    other = replace(found, sfa_id=3).operand("sfa").layout
    assert {slot["byte"] for slots in held(other).values() for slot in slots} == {3}
