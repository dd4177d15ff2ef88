"""`fragir instructions`, `layout` and `descriptor`: answers, documents, refusals, start-up."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser
from math import prod
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fragir import isa
from fragir.isa.query import View
from fragir.layout import from_formula

Fragir = Callable[..., Any]

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16"
SCALED = (
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
)
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
LDMATRIX = "ldmatrix.sync.aligned.m8n8.x4.trans.b16"

_DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text()
SCHEMAS: dict[str, dict[str, Any]] = {
    schema["$id"]: schema
    for schema in map(json.loads, re.findall(r"^```json\n(.*?)^```", _DOCUMENT, re.M | re.S))
}


def document(fragir: Fragir, schema: str, *arguments: str, code: int = 0) -> Any:
    """The JSON of a command, which agrees with a schema of docs/json.md."""
    result = fragir(*arguments)
    assert result.code == code, result.err
    found = json.loads(result.out)
    body = {key: value for key, value in SCHEMAS[schema].items() if key != "$id"}
    validator: Any = jsonschema.Draft202012Validator(body)
    validator.validate(found)
    return found


# instructions ------------------------------------------------------------------------------------


def test_the_whole_table(fragir: Fragir) -> None:
    found = document(fragir, "instructions", "instructions", "--json")
    assert len({entry["mnemonic"] for entry in found}) == len(found)
    assert len(found) == sum(1 for i in isa.instructions() if not i.refused)
    assert all(isa.lookup(entry["mnemonic"]).mnemonic == entry["mnemonic"] for entry in found)
    assert all(isa.lookup(a).mnemonic == e["mnemonic"] for e in found for a in e["aliases"])
    mma = next(entry for entry in found if entry["mnemonic"] == MMA)
    assert mma["registers"]["a"] == {"count": 4, "type": "b32", "class": "fragment"}
    assert mma["variants"] == ["registers"]
    wgmma = next(entry for entry in found if entry["mnemonic"] == WGMMA)
    assert wgmma["variants"] == ["registers", "descriptor"]
    assert wgmma["registers"]["b"] == {"count": 1, "type": "b64", "class": "descriptor"}
    assert wgmma["targets"] == {"sm_90a": "8.0"}


def test_a_target_and_a_pattern(fragir: Fragir) -> None:
    found = document(
        fragir, "instructions", "instructions", "--target", "sm_90", "--only", "*e4m3*", "--json"
    )
    assert found
    assert {entry["lowering"]["sm_90"] for entry in found} == {"emulated"}
    assert "e4m3" in found[0]["mnemonic"]
    text = fragir("instructions", "--target", "sm_90", "--only", "*e4m3*")
    assert len(text.out.splitlines()) == len(found) + 1
    assert text.err == f"{len(found)} instructions\n"


def test_what_is_refused(fragir: Fragir) -> None:
    found = document(fragir, "instructions", "instructions", "--refused", "--json")
    assert {"bf16", "tf32"} <= {isa.lookup(e["mnemonic"]).types.a for e in found}
    assert all("D is left as it was" in entry["refused"] for entry in found)
    assert "D is left" in fragir("instructions", "--refused").out


def test_an_unknown_target(fragir: Fragir) -> None:
    assert "no target" in fragir("instructions", "--target", "sm_81").err


# layout ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mnemonic", "operand", "shape", "lanes", "elements"),
    [
        (MMA, "a", [16, 16], 32, 8),
        (MMA, "b", [16, 8], 32, 4),
        (SPARSE, "a", [16, 16], 32, 8),
        (SPARSE, "e", [16, 8], 32, 8),
        (WGMMA, "d", [64, 24], 128, 12),
        (WGMMA, "a", [64, 16], 128, 8),
        (SCALED, "sfa", [16, 2], 32, 4),
        (SCALED, "sfb", [2, 8], 32, 4),
        (SCALED, "a", [16, 64], 32, 32),
        (QUAD, "c", [8, 8, 4], 32, 8),
        (LDMATRIX, "registers", [8, 8, 4], 32, 8),
        (LDMATRIX, "addresses", [8, 1, 4], 32, 1),
        ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "a", [16, 256], 32, 128),
        ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32", "b", [32, 8], 32, 8),
        ("movmatrix.sync.aligned.m8n8.trans.b16", "d", [8, 8], 32, 2),
    ],
)
def test_maps(
    fragir: Fragir, mnemonic: str, operand: str, shape: list[int], lanes: int, elements: int
) -> None:
    found = document(fragir, "layout", "layout", mnemonic, operand, "--format", "json")
    assert (found["shape"], found["lanes"], found["elements"]) == (shape, lanes, elements)
    assert (len(found["map"]), {len(lane) for lane in found["map"]}) == (lanes, {elements})
    layout = View.of(isa.lookup(mnemonic), operand).layout
    for lane, element in ((0, 0), (9, elements - 1), (lanes - 1, elements // 2)):
        point = layout(lane=lane, element=element)
        assert found["map"][lane][element] == (None if point is None else list(point))
    held = {tuple(point) for lane in found["map"] for point in lane if point is not None}
    assert len(held) == prod(shape)


def test_selectors(fragir: Fragir) -> None:
    """Selector 1 of metadata: the lanes with t / 2 == 1 (PTX ISA 9.2, section 9.7.14.6)."""
    arguments = ("layout", SPARSE, "e", "--format", "json")
    first = document(fragir, "layout", *arguments)["map"]
    second = document(fragir, "layout", *arguments, "--selector", "1")["map"]
    supply = [[lane for lane in range(32) if m[lane][0] is not None] for m in (first, second)]
    assert [{lane % 4 for lane in lanes} for lanes in supply] == [{0, 1}, {2, 3}]
    assert second[2] == first[0]
    scale = ("layout", SCALED, "sfb", "--format", "json", "--byte", "2", "--thread", "3")
    held = document(fragir, "layout", *scale)["map"]
    assert held[7] == [None, None, [0, 1], [1, 1]]
    assert held[6] == [None] * 4
    assert fragir("layout", SPARSE, "e", "--selector", "2").code == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((MMA, "a", "--selector", "1"), "operand e"),
        ((SPARSE, "a", "--selector", "1"), "operand e"),
        ((SCALED, "a", "--byte", "2"), "operand sfa or sfb"),
        ((MMA, "d", "--output", "0,0", "--thread", "1"), "operand sfa or sfb"),
        ((MMA, "a", "--offset", "4"), "16x32bx2"),
    ],
)
def test_selectors_of_other_operands(fragir: Fragir, arguments: tuple[str, ...], word: str) -> None:
    """An immediate that has no say over what is asked is refused, not ignored."""
    result = fragir("layout", *arguments)
    assert (result.code, result.out) == (1, "")
    assert word in result.err


def test_logical(fragir: Fragir) -> None:
    """Two packed columns make a chunk of f16, as the metadata's nibbles count them."""
    packed = document(fragir, "layout", "layout", SPARSE, "a", "--format", "json")
    chunks = document(fragir, "layout", "layout", SPARSE, "a", "--logical", "--format", "json")
    assert chunks["shape"] == [16, 8]
    assert chunks["map"] == [[[r, c // 2] for r, c in lane] for lane in packed["map"]]
    assert "no chunks" in fragir("layout", MMA, "a", "--logical").err


def test_split_offset(fragir: Fragir) -> None:
    mnemonic = "tcgen05.ld.sync.aligned.16x32bx2.x2.b32"
    arguments = ("layout", mnemonic, "registers", "--offset", "16", "--format", "json")
    found = document(fragir, "layout", *arguments)
    assert found["map"][3] == [[3, 0], [3, 1]]
    assert found["map"][19] == [[3, 16], [3, 17]]


def test_at(fragir: Fragir) -> None:
    found = document(fragir, "layout-at", "layout", MMA, "a", "--at", "9,3", "--json")
    assert found["holders"] == [{"lane": 5, "element": 3, "register": 1, "bits": [16, 31]}]
    scale = document(fragir, "layout-at", "layout", SCALED, "sfb", "--at", "1,2", "--json")
    assert scale["holders"] == [{"lane": 8, "element": 1, "register": 0, "bits": [8, 15]}]
    narrow = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32"
    byte = document(fragir, "layout-at", "layout", narrow, "b", "--at", "1,0", "--json")
    assert byte["holders"][0]["bits"] == [10, 13]  # e2m1 stands in bits 5:2 of its byte
    assert "its shape is 16x16" in fragir("layout", MMA, "a", "--at", "16,0").err


def test_lane(fragir: Fragir) -> None:
    found = document(fragir, "layout-lane", "layout", MMA, "d", "--lane", "5", "--json")
    assert [e["point"] for e in found["elements"]] == [[1, 2], [1, 3], [9, 2], [9, 3]]
    arguments = ("layout", MMA, "d", "--lane", "5", "--element", "2", "--json")
    one = document(fragir, "layout-lane", *arguments)
    assert one["elements"] == [found["elements"][2]]
    nothing = document(fragir, "layout-lane", "layout", SPARSE, "e", "--lane", "3", "--json")
    assert nothing["elements"][0]["point"] is None
    assert fragir("layout", MMA, "d", "--lane", "32").code == 1
    assert fragir("layout", MMA, "d", "--lane", "3", "--element", "4").code == 1


def test_output(fragir: Fragir) -> None:
    found = document(fragir, "layout-output", "layout", MMA, "d", "--output", "3,4", "--json")
    points = [(s["operand"], tuple(s["point"])) for s in found["sources"]]
    assert points == [
        *(("a", (3, k)) for k in range(16)),
        *(("b", (k, 4)) for k in range(16)),
        ("c", (3, 4)),
    ]
    assert found["lanes"] == [12, 13, 14, 15, 16, 17, 18, 19]
    assert found["holders"][0]["lane"] == 14
    shared = document(fragir, "layout-output", "layout", WGMMA, "d", "--output", "3,4", "--json")
    assert {s["operand"] for s in shared["sources"] if not s["holders"]} == {"b"}
    quad = document(fragir, "layout-output", "layout", QUAD, "d", "--output", "1,2,3", "--json")
    assert {tuple(s["point"][2:]) for s in quad["sources"]} == {(3,)}
    moved = ("layout", "movmatrix.sync.aligned.m8n8.trans.b16", "d", "--output", "1,2", "--json")
    assert [s["point"] for s in document(fragir, "layout-output", *moved)["sources"]] == [[1, 2]]


def test_the_row_that_a_matrix_copy_reads(fragir: Fragir) -> None:
    arguments = ("layout", LDMATRIX, "registers", "--output", "3,4,1", "--json")
    found = document(fragir, "layout-output", *arguments)
    assert found["lanes"] == [11]
    assert found["sources"][0]["point"] == [3, 0, 1]


def test_formulas_read_back(fragir: Fragir) -> None:
    result = fragir("layout", WGMMA, "d", "--format", "formula")
    there, back = result.out.strip().split("\n\n")
    layout = View.of(isa.lookup(WGMMA), "d").layout
    assert from_formula(there).equivalent(layout)
    inverse = from_formula(back, dims=("lane", "element"))
    for lane, element in ((0, 0), (77, 5), (127, 11)):
        point = layout(lane=lane, element=element)
        assert point is not None
        assert inverse(row=point[0], col=point[1]) == (lane, element)


def test_operands_in_shared_memory(fragir: Fragir) -> None:
    found = document(fragir, "layout-shared", "layout", WGMMA, "b", "--format", "json")
    assert found["descriptor"] is True
    assert (found["majors"], found["swizzles"]) == (["k", "mn"], [0, 32, 64, 128])
    assert found["canonical"]["k"]["128"]["stride"] == 1024
    narrow = WGMMA.replace("k16.f32.f16.f16", "k32.f32.e4m3.e4m3")
    assert document(fragir, "layout-shared", "layout", narrow, "a-shared", "--json")["majors"] == [
        "k"
    ]
    bits = "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc"
    one = document(fragir, "layout-shared", "layout", bits, "b", "--json")["canonical"]["k"]["0"]
    assert (one["tile"], one["unit_bits"]) == ([8, 32], 8)
    assert "lies in shared memory" in fragir("layout", WGMMA, "b", "--format", "formula").err
    assert "has no map of lanes" in fragir("layout", WGMMA, "b", "--at", "0,0").err
    assert "swizzle (3,4,3)" in fragir("layout", WGMMA, "b").out


def test_tables(fragir: Fragir) -> None:
    """CSV and Markdown hold the same cells as the map."""
    rows = list(csv.DictReader(io.StringIO(fragir("layout", MMA, "b", "--format", "csv").out)))
    assert len(rows) == 32 * 4
    assert rows[5 * 4 + 2] == {
        "lane": "5",
        "element": "2",
        "register": "1",
        "low": "0",
        "high": "15",
        "row": "10",
        "col": "1",
    }
    lines = fragir("layout", MMA, "b", "--format", "markdown").out.splitlines()
    assert lines[2 + 10].split(" | ")[2] == "T5:2"
    text = fragir("layout", QUAD, "d").out
    assert text.count("product") == 5
    empty = fragir("layout", SPARSE, "e", "--format", "csv").out.splitlines()[1 + 3 * 8]
    assert empty == "3,0,0,0,3,,"


class Links(HTMLParser):
    """What a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href")]


def test_pictures(fragir: Fragir) -> None:
    """Every cell is drawn, and a page needs nothing but itself."""
    picture = fragir("layout", MMA, "d", "--format", "svg").out
    root = ElementTree.fromstring(picture)
    cells = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {f"T{lane}:{i}" for lane in range(32) for i in range(4)} <= set(cells)
    page = fragir("layout", SPARSE, "e", "--format", "html").out
    parser = Links()
    parser.feed(page)
    assert parser.found == []
    assert "T0:0" in page


SPELLINGS = [
    ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", LDMATRIX, "registers"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rn", None, "d"),
    ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32.satfinite", None, "a"),
    ("mma.sync.aligned.row.col.m16n8k16.f32.f16.f16.f32", MMA, "a"),
]


@pytest.mark.parametrize(("spelling", "canonical", "operand"), SPELLINGS)
def test_every_spelling_is_answered_with_the_canonical_one(
    fragir: Fragir, spelling: str, canonical: str | None, operand: str
) -> None:
    found = document(fragir, "layout", "layout", spelling, operand, "--format", "json")
    assert found["mnemonic"] == (canonical or isa.lookup(spelling).mnemonic)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([MMA.replace("f16.f16", "f16.bf16"), "a"], "the type is wrong"),
        ([MMA.replace("k16", "k15"), "a"], "the shape is wrong"),
        ([MMA.replace("row.col", "col.col"), "a"], "the layout is wrong"),
        ([MMA.replace("sync.", ""), "a"], ".sync is missing"),
        (["mna.sync.aligned", "a"], "did you mean 'mma'"),
        ([MMA, "e"], "it has a, b, c, d"),
    ],
)
def test_errors_say_which_part_is_wrong(fragir: Fragir, arguments: list[str], words: str) -> None:
    result = fragir("layout", *arguments)
    assert (result.code, result.out) == (1, "")
    assert words in result.err
    found = document(fragir, "error", "layout", *arguments, "--format", "json", code=1)
    assert words in found["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        [MMA, "a", "--at", "1"],
        [MMA, "a", "--at", "1,1", "--lane", "0"],
        [MMA, "a", "--element", "1"],
        [MMA, "a", "--at", "1,1", "--format", "formula"],
        [MMA, "a", "--at", "1,1", "--format", "svg", "--view", "hardware"],
    ],
)
def test_wrong_usage(fragir: Fragir, arguments: list[str]) -> None:
    assert fragir("layout", *arguments).code == 2


# descriptor --------------------------------------------------------------------------------------

TEXT = "mn [8:128 8:1024] k [64:2] dims (byte) swizzle (3,4,3)"


def test_descriptors_from_layouts(fragir: Fragir) -> None:
    tile = ("descriptor", "--layout", "bf16:k:128:64x64", "--start", "1024", "--target", "sm_90a")
    built = document(fragir, "descriptor", *tile, "--json")
    assert built["descriptor"] == "0x4000004000010040"
    assert built["layout"] == TEXT
    text = ("descriptor", "--layout", TEXT, "--type", "bf16", "--target", "sm_90a", "--json")
    assert document(fragir, "descriptor", *text)["descriptor"] == "0x4000004000010000"
    parts = document(
        fragir, "descriptor", "descriptor", "0x4000404000010040", "--target", "sm_100a", "--json"
    )
    assert not parts["faults"]
    hopper = ("descriptor", "0x4000004000010040", "--target", "sm_100a", "--json")
    found = document(fragir, "descriptor", *hopper, code=1)
    assert found["faults"] == ["version (bits 48:46) is 0, but must be 1"]
    assert {f["name"] for f in parts["fields"]} >= {"version", "leading_mode"}


@pytest.mark.parametrize("major", ["k", "mn"])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_every_canonical_layout_is_recognised(fragir: Fragir, major: str, swizzle: int) -> None:
    width = max(swizzle, 16) // 2
    shape = (64, max(16, width) if not swizzle else width) if major == "k" else (128, 32)
    tile = f"f16:{major}:{swizzle}:{shape[0]}x{shape[1]}"
    arguments = ("--target", "sm_90a", "--json")
    built = document(fragir, "descriptor", "descriptor", "--layout", tile, *arguments)
    text = ("descriptor", "--layout", built["layout"], "--type", "f16", *arguments)
    assert document(fragir, "descriptor", *text) == built


def test_instruction_descriptors(fragir: Fragir) -> None:
    fields = [f"--field={field}" for field in ("m=128", "n=256", "a=bf16")]
    arguments = ("descriptor", "--kind", "f16", *fields, "--target", "sm_100a", "--json")
    built = document(fragir, "descriptor-instruction", *arguments)
    assert built["instruction_descriptor"] == "0x08400490"
    assert built["fields"]["b"] == "bf16"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["0x1", "--target", "sm_80"], 1, "no matrix descriptors"),
        (["0x10000000000000000", "--target", "sm_90a"], 1, "no 64-bit descriptor"),
        (["xyz", "--target", "sm_90a"], 2, "is no number"),
        (["--target", "sm_90a"], 2, "give a descriptor"),
        (["--layout", "bf16:k:128:64x63", "--target", "sm_90a"], 1, "no whole core matrices"),
        (["--layout", "f32:mn:0:64x64", "--target", "sm_90a"], 1, "cannot be mn-major"),
        (["--layout", TEXT, "--target", "sm_90a"], 2, "needs --type"),
        (
            ["--layout", TEXT.replace("128", "144"), "--type", "bf16", "--target", "sm_90a"],
            1,
            "no descriptor says",
        ),
        (
            ["--layout", "bf16:k:128:64x64", "--start", "64", "--target", "sm_90a"],
            1,
            "starts at a multiple of 1024",
        ),
        (["0x1", "--kind", "f16", "--target", "sm_90a"], 1, "no tcgen05.mma"),
        (["--kind", "f16", "--field", "n=8", "--target", "sm_100a"], 1, "needs m, a"),
        (["--field", "n=8", "--target", "sm_100a"], 2, "goes with --kind"),
    ],
)
def test_descriptor_refusals(fragir: Fragir, arguments: list[str], code: int, words: str) -> None:
    result = fragir("descriptor", *arguments)
    assert result.code == code
    assert words in result.err


# start-up ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["instructions", "--json"],
        ["layout", WGMMA, "d"],
        ["layout", MMA, "a", "--format", "formula"],
        ["layout", MMA, "d", "--output", "1,2"],
        ["emit", MMA],
        ["emit", MMA, "--as", "cuda"],
        ["descriptor", "0x4000004000010140", "--target", "sm_90a"],
    ],
)
def test_nothing_heavy_is_imported(arguments: list[str]) -> None:
    script = (
        "import sys; from fragir.cli.main import main; main(sys.argv[1:]);"
        "print(*{m.partition('.')[0] for m in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    assert not {"numpy", "lark", "xdsl", "rich"} & set(done.stderr.split())
