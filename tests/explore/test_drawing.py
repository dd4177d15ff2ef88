"""What the page draws is what `fragir.draw` draws, and what the table says: asked in node."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from fragir import isa
from fragir.draw.grid import Grid
from fragir.draw.layouts import (
    COLOURS,
    conversion_drawing,
    hardware_drawing,
    is_of_registers,
    layout_drawing,
)
from fragir.draw.memory import memory_drawing
from fragir.errors import FragirError
from fragir.explore.document import tables
from fragir.isa.descriptors import describe
from fragir.isa.layout_texts import read_layout
from fragir.isa.model import BITS, Instruction
from fragir.isa.operand_tiles import operand_tiles
from fragir.isa.provenance import provenance
from fragir.isa.query import View
from fragir.isa.selection import selected_layout
from fragir.layout import Layout
from tests.draw.test_pictures import MEMORY, REGISTERS
from tests.explore.engine import ask
from tests.explore.test_logic import PAIRS, ROWS, A, read

Question = dict[str, Any]


@lru_cache(maxsize=1)
def data() -> dict[str, Any]:
    return tables()


def asked(questions: list[Question]) -> list[Any]:
    """The values of answers; the table is sent once."""
    for number, question in enumerate(questions):
        question["data"] = "before" if number else data()
    answers = ask(questions)
    for question, answer in zip(questions, answers, strict=True):
        question.pop("data")
        assert "value" in answer, (question, answer)
    return [answer["value"] for answer in answers]


def drawn(grid: Grid) -> dict[str, Any]:
    """A grid of Python's as the page says it."""
    cells = [[[cell.label, cell.shade, cell.mark] for cell in row] for row in grid.rows]
    return {"rowName": grid.row_name, "colName": grid.col_name, "cells": cells}


def test_matrices_and_lanes() -> None:
    rng = random.Random(5)
    questions: list[Question] = []
    expected: list[tuple[Grid, ...]] = []
    for text in (*REGISTERS, *MEMORY):
        layout = read(text)
        colour, bits = rng.choice(COLOURS), rng.choice((None, 8, 16, 32))
        if not is_of_registers(layout):
            colour, bits = "lane", None
        views = ("matrix", "hardware") if is_of_registers(layout) else ("matrix",)
        for view in views:
            draw = layout_drawing if view == "matrix" else hardware_drawing
            questions.append({"ask": "draw", "text": text, "view": view})
            questions[-1] |= {"colour": colour, "bits": bits}
            expected.append(draw(layout, (), colour, bits).grids)
    assert len(questions) > 60
    for question, found, grids in zip(questions, asked(questions), expected, strict=True):
        assert found == [drawn(grid) for grid in grids], question


def test_memory_by_banks() -> None:
    cases = [
        ("row [64:128] col [64:2] dims (byte)", None, A),
        ("row [8:^144 8:1024] col [64:2] dims (byte)", None, A),
        ("row [16:144] col [64:2] dims (byte)", None, ROWS),
        ("row [8:^72 8:512] col [64:1]", 16, ROWS),
        ("row [64:64] col [64:1]", 8, A),
        ("row [7:80] col [5:16] dims (byte)", None, None),
        ("index [24:3]", 8, None),
    ]
    questions: list[Question] = [
        {"ask": "draw", "text": text, "view": "memory", "bits": bits, "access": access}
        for text, bits, access in cases
    ]
    for (text, bits, access), found in zip(cases, asked(questions), strict=True):
        reader = None if access is None else read(access)
        grids = memory_drawing(read(text), (), bits, reader).grids
        assert found == [drawn(grid) for grid in grids], text


def test_conversions_before_and_after() -> None:
    pairs = [(a, b) for a, b, _ in PAIRS]
    questions: list[Question] = [{"ask": "moved", "from": a, "to": b} for a, b in pairs]
    for (a, b), found in zip(pairs, asked(questions), strict=True):
        source, target = read(a), read(b)
        assert isinstance(source, Layout)
        assert isinstance(target, Layout)
        picture = conversion_drawing(source, target)
        assert found["grids"] == [drawn(grid) for grid in picture.grids]
        told = dict(picture.facts)["elements"]
        ways = ("stay where they are", "change their register", "change their lane")
        ways += ("change their warp",)
        counts = [(count, way) for count, way in zip(found["counts"], ways, strict=True) if count]
        assert told == ", ".join(f"{count} {way}" for count, way in counts)


def test_what_an_element_goes_into() -> None:
    """An element of A goes into those of D that are computed from it, by `provenance`."""
    rng = random.Random(9)
    questions: list[Question] = []
    expected: list[list[Any]] = []
    for family in ("mma", "mma.sp", "wgmma", "movmatrix", "ldmatrix"):
        found = rng.choice([i for i in isa.instructions() if i.family == family])
        result = "d" if "d" in found.operands else "registers"
        points = sorted(View.of(found, result).layout.holders)
        if len(points) > 600:
            points = [p for p in points if max(p) < 16]
        made = {point: provenance(found, point).sources for point in points}
        for name, operand in found.operands.items():
            if name in (result, "a-shared") or not operand.shape:
                continue
            at = tuple(rng.randrange(min(n, 16)) for n in operand.shape)
            into = [
                p for p, made_of in made.items() if (name, at) in {s[:2] for s in _keys(made_of)}
            ]
            questions.append(
                {"ask": "feeds", "mnemonic": found.mnemonic, "operand": name, "point": at}
            )
            expected.append([result, {*into}, {*points}])
    for question, answer, (result, into, known) in zip(
        questions, asked(questions), expected, strict=True
    ):
        assert answer[0] == result
        told = {tuple(point) for point in answer[1]}
        assert told & known == into, question


def _keys(sources: Any) -> list[tuple[str, Any]]:
    return [(source.operand, source.point) for source in sources]


def test_half_split_offsets() -> None:
    names = [
        f"tcgen05.{kind}.sync.aligned.16x32bx2.x{n}{flag}.b32"
        for kind, n, flag in (("ld", 1, ""), ("ld", 8, ".pack::16b"), ("st", 4, ""))
    ]
    questions: list[Question] = [
        {
            "ask": "operand",
            "mnemonic": name,
            "operand": "registers",
            "immediates": {"offset": offset},
        }
        for name in names
        for offset in (0, 1, 17)
    ]
    for question, value in zip(questions, asked(questions), strict=True):
        found = isa.lookup(question["mnemonic"])
        view = View.of(found, "registers", offset=question["immediates"]["offset"])
        points = [list(point) for _, point in view.layout.slots() if point is not None]
        assert value["points"] == points, question


def test_immediates_are_those_that_are_legal() -> None:
    """Exactly the offered selectors are taken by Python."""
    scaled = [i for i in isa.instructions() if "sfa" in i.operands]
    sparse = [i for i in isa.instructions() if "e" in i.operands]
    rng = random.Random(4)
    chosen = [*rng.sample(scaled, 6), *rng.sample(sparse, 6)]
    questions: list[Question] = [
        {"ask": "immediates", "mnemonic": i.mnemonic, "operand": name}
        for i in chosen
        for name in ("e", "sfa", "sfb")
        if name in i.operands
    ]
    for question, value in zip(questions, asked(questions), strict=True):
        found, name = isa.lookup(question["mnemonic"]), question["operand"]
        for immediate, offered in value.items():
            legal: list[int] = []
            for number in range(6):
                try:
                    selected_layout(found, name, **{immediate: number})
                except FragirError:
                    continue
                legal.append(number)
            assert offered == legal, question


def test_descriptors_and_bytes_of_canonical_layouts() -> None:
    """Every element's byte, and the descriptor of the tile at byte 0."""
    names = [
        ("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16", "b"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", "a-shared"),
        ("wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8", "b"),
        ("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc", "b"),
        ("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", "a-shared"),
    ]
    questions: list[Question] = [
        {"ask": "forms", "mnemonic": name, "operand": operand} for name, operand in names
    ]
    for (name, operand), forms in zip(names, asked(questions), strict=True):
        found = isa.lookup(name).operand(operand)
        tiles = operand_tiles(found)
        assert {(f["major"], f["swizzle"]) for f in forms} == {
            (major, swizzle) for major, per in tiles.items() for swizzle in per
        }
        for form in forms:
            tile = tiles[form["major"]][form["swizzle"]]
            assert int(form["word"], 16) == describe(tile.shared, 0, "sm_90a").word
            layout = read_layout(tile.text)
            bits = min(8, BITS[found.element])
            for r, line in enumerate(form["bytes"]):
                for c, byte in enumerate(line):
                    mn, k = (c, r) if operand == "b" else (r, c)
                    assert layout(mn=mn, k=k * bits // 8) == (byte,)


def test_search() -> None:
    everything = list(isa.instructions())
    filters: list[tuple[dict[str, str], Callable[[Instruction], bool]]] = [
        ({}, lambda i: True),
        ({"q": "m16n8k16 bf16"}, lambda i: {"m16n8k16", "bf16"} <= {*i.mnemonic.split(".")}),
        ({"q": "n256 WGMMA"}, lambda i: i.family.startswith("wgmma") and "n256k" in i.mnemonic),
        ({"q": "sm_75"}, lambda i: "sm_75" in i.targets),
        ({"q": "wgmma*n96*e4m3"}, lambda i: _in_order(i.mnemonic, "wgmma", "n96", "e4m3")),
        ({"q": "nothing of this kind"}, lambda i: False),
        ({"family": "ldmatrix"}, lambda i: i.family == "ldmatrix"),
        ({"target": "sm_89"}, lambda i: "sm_89" in i.targets),
        (
            {"target": "sm_90", "native": "1"},
            lambda i: "sm_90" in i.targets and i.lowering.get("sm_90") == "native",
        ),
        ({"type": "tf32"}, lambda i: "tf32" in i.types),
        ({"shape": "m16n8k8"}, lambda i: ".m16n8k8." in i.mnemonic),
    ]
    questions: list[Question] = [{"ask": "search", "filters": f} for f, _ in filters]
    for (given, fits), found in zip(filters, asked(questions), strict=True):
        assert found == [i.mnemonic for i in everything if fits(i)], given


def _in_order(text: str, *parts: str) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return True


def test_what_filters_offer_leaves_something() -> None:
    given = {"family": "wgmma", "type": "e4m3"}
    names = ("family", "type", "shape", "target")
    questions: list[Question] = [{"ask": "choices", "filters": given, "name": n} for n in names]
    answers = dict(zip(names, asked(questions), strict=True))
    for name in names:
        more: list[Question] = [
            {"ask": "search", "filters": {**given, name: value}} for value, _ in answers[name]
        ]
        counts = [len(found) for found in asked(more)]
        assert counts == [count for _, count in answers[name]]
        assert all(counts)
    assert len(answers["shape"]) == 32  # every n that wgmma has


def test_addresses_come_back() -> None:
    states = [
        {"view": "instructions", "name": "mma.sp::ordered_metadata.sync", "at": "d:3,4"},
        {"view": "layout", "text": "row = %laneid & 3; col = i + 1 # a\nb", "tile": "16x8"},
        {"view": "convert", "from": "Sw<3,4,3> o 0", "to": "100% ü"},
        {"view": "descriptor", "word": "0x4000"},
    ]
    assert asked([{"ask": "address", "state": state} for state in states]) == states


def test_examples_are_layouts() -> None:
    """Each example of the page is drawn, and says what Python says."""
    (examples,) = asked([{"ask": "examples"}])
    questions: list[Question] = []
    expected: list[Any] = []
    for _, text, more in examples["layouts"]:
        tile = tuple(map(int, more["tile"].split("x"))) if "tile" in more else None
        layout = read(text, tile)
        view = more.get("show", "matrix")
        questions.append({"ask": "draw", "text": text, "tile": tile, "view": view})
        questions[-1] |= {"colour": "lane", "access": more.get("access")}
        if view == "memory":
            expected.append(memory_drawing(layout, (), None, read(more["access"])).grids)
        else:
            expected.append(layout_drawing(layout).grids)
    for question, found, grids in zip(questions, asked(questions), expected, strict=True):
        assert found == [drawn(grid) for grid in grids], question
    for _, a, b in examples["conversions"]:
        source, target = read(a), read(b)
        assert isinstance(source, Layout)
        assert isinstance(target, Layout)
        assert conversion_drawing(source, target).grids


def test_own_words_are_read_again() -> None:
    texts = [text for text in REGISTERS if "sync" not in text]
    questions: list[Question] = [{"ask": "own", "text": text} for text in texts]
    told = 0
    for text, own in zip(texts, asked(questions), strict=True):
        if own is None:
            continue
        told += 1
        before, after = read(text), read(own)
        slots = {s: p for s, p in after.slots()}
        assert {s: p for s, p in before.slots()} == slots
        assert before.dims == after.dims
    assert told > 15
