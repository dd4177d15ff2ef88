"""`fragir layout TEXT` and `fragir convert`: answers, documents, refusals, what is imported."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fragir.layout import Layout, from_cute, read_layout
from fragir.layout.planning.planner import plan_conversion
from tests.cli.test_imports import COMMAND, imported, packages
from tests.cli.test_json import validate

Fragir = Callable[..., Any]

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
C = "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]"
CUTE = "cute:((4,8),(2,2)):((32,1),(16,8))"
SWIZZLED = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"


def document(fragir: Fragir, schema: str, *arguments: str) -> Any:
    result = fragir(*arguments)
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    validate(found, schema)
    return found


def test_a_layout_of_registers(fragir: Fragir) -> None:
    found = document(fragir, "layout-text", "layout", C, "--json")
    assert found["axes"] == {"lane": 32, "element": 4}
    assert found["map"][13][3] == [11, 3]
    text = fragir("layout", C, "--type", "f32").out
    assert "16 x 8 (row, col)" in text
    assert "T13:3" in text
    assert "4 of 32 bits" in text


@pytest.mark.parametrize(
    ("text", "tile"),
    [
        (CUTE, ["--tile", "16x8"]),
        (f"{MMA}:d", []),
        ("#frag.mma<m16n8k16.f16, c>", []),
        (f'#frag.layout<"{C}">', []),
        ('#frag.layout<"cute:((4,8),(2,2)):((2@1,1@0),(1@1,8@0))">', []),
        (f'#frag.layout<"{MMA}:d">', []),
        (
            "formula:row = %laneid / 4 + i / 2 * 8; col = %laneid % 4 * 2 + i % 2 for i = {0,..,3}",
            [],
        ),
        ("f2:{lane = [[0,2],[0,4],[1,0],[2,0],[4,0]], register = [[0,1],[8,0]]}", []),
    ],
)
def test_every_notation(fragir: Fragir, text: str, tile: list[str]) -> None:
    assert fragir("layout", text, *tile, "--format", "layout").out == f"{C}\n"
    found = document(fragir, "layout-text-at", "layout", text, *tile, "--at", "11,3", "--json")
    (holder,) = found["holders"]
    assert (holder["lane"], holder["element"]) == (13, 3)


def test_where_an_element_of_memory_stands(fragir: Fragir) -> None:
    text = "row [8:^72 8:512] col [64:1]"  # row 3: (72 ^ 144) ^ 9
    found = document(fragir, "layout-text-at", "layout", text, "--at", "3,9", "--json")
    assert found["holders"] == [{"index": 72 ^ 144 ^ 9}]
    assert fragir("layout", text, "--at", "3,9").out.split() == ["index", "209"]
    refused = fragir("layout", text, "--at", "3,64")
    assert (refused.code, "64x64 coordinates" in refused.err) == (1, True)


def test_questions(fragir: Fragir) -> None:
    arguments = ("layout", f"{WGMMA}:d", "--type", "f32", "--lane", "5", "--element", "3", "--json")
    found = document(fragir, "layout-text-lane", *arguments)
    assert found["elements"] == [
        {"lane": 5, "element": 3, "register": 3, "bits": [0, 31], "point": [9, 3]}
    ]
    spread = ("layout", f"{MMA}:a", "--tile", "64x32", "--warps", "2x2", "--type", "f16")
    assert fragir(*spread, "--at", "20,3").out.splitlines() == [
        "warp  lane  element  register  bits",
        "   0    17        9         4  31:16",
        "   2    17        9         4  31:16",
    ]
    memory = document(
        fragir, "layout-text", "layout", f"ttg:{SWIZZLED}", "--tile", "8x64", "--json"
    )
    assert memory["map"][1][0] == [72]
    assert fragir("layout", "index [8:2]", "--at", "6").out.split() == ["index", "3"]


@pytest.mark.parametrize("style", ["svg", "html", "markdown", "csv", "text", "json"])
def test_a_chain_is_shown_too(fragir: Fragir, style: str) -> None:
    result = fragir("layout", "cute:Sw<3,4,3> o 0 o (8,80):(80,1)", "--format", style)
    assert (result.code, result.err) == (0, "")
    assert "231" in result.out


@pytest.mark.parametrize("style", ["cute", "f2", "ttg", "linear", "formula"])
def test_translation(fragir: Fragir, style: str) -> None:
    text = fragir("layout", C, "--format", style).out
    assert read_layout(text, (16, 8) if style == "ttg" else None).equivalent(Layout.parse(C))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([MMA, "--lane", "3"], 2, "Missing argument 'OPERAND'"),
        ([MMA, "--format", "svg"], 2, "Missing argument 'OPERAND'"),
        (["tcgen05.mma.m128n256k16.f16"], 2, "Missing argument 'OPERAND'"),
        (["m16n8k17.f16", "a"], 1, "there is no instruction"),
        ([C, "--selector", "1"], 2, "are of instructions"),
        ([MMA, "a", "--tile", "16x16"], 2, "write MNEMONIC:OPERAND"),
        ([MMA, "a", "--format", "ttg"], 2, "MNEMONIC:OPERAND"),
        ([C, "--tile", "16"], 1, "covers 16x8"),
        ([C, "--tile", "16xx"], 2, "not of the form MxN"),
        ([C, "--warps", "2"], 1, "says its own warps"),
        ([f"{MMA}:a", "--warps", "2"], 1, "needs the tile"),
        ([f"{WGMMA}:d", "--warps", "2", "--tile", "64x64"], 1, "four warps below each other"),
        ([C, "--type", "f17"], 1, "there is no type f17"),
        ([C, "--at", "16,0"], 1, "its shape is 16x8"),
        ([C, "--lane", "32"], 1, "lanes are 0 to 31"),
        (["row [8:1]", "--lane", "3"], 1, "no axis lane"),
        (["cute:(4,8):(1,x)"], 1, "<layout>:1:15: 'x' is not part"),
        (["ttg:" + SWIZZLED], 1, "any shape"),
        (["#frag.mma<m16n8k16.f17, a>"], 1, "no mma multiplies f17"),
        (["#frag.grid<1>"], 1, "is no layout"),
        (["lane [65536:1] element [65536:65536]"], 1, "cannot be read"),
        (["row [512:512] col [512:1]"], 1, "cannot be read"),
        (["cute:Sw<3,4,3> o 0 o (8,80):(80,1)", "--format", "cute"], 1, "no other notation"),
    ],
)
def test_refusals(fragir: Fragir, arguments: list[str], code: int, message: str) -> None:
    result = fragir("layout", *arguments)
    assert result.code == code
    assert message in result.err
    assert "Traceback" not in result.err
    as_json = fragir("layout", *arguments, "--json")
    if "--format" not in arguments:
        assert as_json.code == code or as_json.code == 0
        assert json.loads(as_json.out)


# fragir convert


def test_a_conversion_by_shuffles(fragir: Fragir) -> None:
    tile = ("--type", "e4m3", "--tile", "64x64", "--warps", "4")
    arguments = ("convert", "--from", f"{FP8}:d", "--to", f"{FP8}:a", *tile)
    found = document(fragir, "convert", *arguments, "--json")
    plan = plan_conversion(Layout.parse(found["from"]), Layout.parse(found["to"]), 8)
    assert (found["way"], found["moves"]) == ("shuffles", "lanes")
    assert {s["op"]: s["count"] for s in found["steps"]} == plan.counts
    assert found["cost"]["shuffles"] == 8
    assert found["cost"]["total"] == plan.cost >= found["lower_bound"] > 0
    table = fragir(*arguments).out
    assert "shuffle a word between lanes" in table
    assert "no program has fewer than 8 shuffles" in table


def test_a_conversion_through_shared_memory(fragir: Fragir) -> None:
    rows = "warp [4:(0,16)] lane [8:(8,0) 4:(0,1)] element [8:(1,0) 4:(0,4)]"
    ends = ("--from", f"{MMA}:d", "--to", rows, "--type", "f16", "--tile", "64x64", "--warps", "4")
    found = document(fragir, "convert", "convert", *ends, "--json")
    assert [step["op"] for step in found["steps"]] == ["stmatrix.x4.trans", "bar.sync", "ld.128"]
    assert (found["cost"]["barriers"], found["cost"]["scratch"]) == (1, 8192)
    assert (found["cost"]["store_passes"], found["cost"]["load_passes"]) == (16, 16)
    older = document(fragir, "convert", "convert", *ends, "--target", "sm_80", "--json")
    assert "stmatrix.x4.trans" not in {step["op"] for step in older["steps"]}
    assert "only shared memory reaches them" in fragir("convert", *ends).out


@pytest.mark.parametrize(
    ("source", "target", "way"),
    [
        (C, C, "nothing"),
        (C, "lane [4:(0,2) 8:(1,0)] element [2:(8,0) 2:(0,1)]", "bytes"),
        (
            f"{WGMMA}:d",
            "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [8:(0,8) 2:(8,0) 2:(0,1)]",
            "b",
        ),
        ("lane [32:(1,0)] element [6:(0,1)]", "lane [32:(0,3)] element [2:(0,1)]", None),
        (
            "lane [32:(1,0)] element [96:(0,1)]",
            "lane [32:(0,3)] element [32:(1,0) 3:(0,1)]",
            "elements",
        ),
    ],
)
def test_other_ways(fragir: Fragir, source: str, target: str, way: str | None) -> None:
    result = fragir("convert", "--from", source, "--to", target, "--type", "f16", "--json")
    found = json.loads(result.out)
    if way is None:
        validate(found, "error")
        assert result.code == 1
        return
    assert result.code == 0
    validate(found, "convert")
    assert found["way"].startswith(way)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--from", C, "--type", "f16"], 2, "--to"),
        (["--from", C, "--to", "row [16:8] col [8:1]", "--type", "f16"], 1, "has the axis row"),
        (["--from", C, "--to", "warp [2:(0,0)] " + C, "--type", "f16"], 1, "lanes"),
        (["--from", C, "--to", C, "--type", "f16", "--target", "sm_1"], 1, "sm_1"),
        (["--from", C, "--to", C, "--type", "x"], 1, "there is no type x"),
        (
            ["--from", "cute:Sw<3,4,3> o 0 o (8,80):(80,1)", "--to", C, "--type", "f16"],
            1,
            "no layout of digits",
        ),
        (["--from", "lane [32:", "--to", C, "--type", "f16"], 1, "<layout>:1:7"),
    ],
)
def test_refused_conversions(fragir: Fragir, arguments: list[str], code: int, message: str) -> None:
    result = fragir("convert", *arguments)
    assert result.code == code
    assert message in result.err
    assert fragir("convert", *arguments, "--json").code == code


def test_nothing_heavy_is_imported() -> None:
    texts = (["layout", C], ["layout", CUTE, "--tile", "16x8"], ["layout", f"{MMA}:d"])
    for arguments in texts:
        assert not packages(imported([*COMMAND, *arguments])) & {"xdsl", "numpy", "lark", "rich"}
    conversion = ["convert", "--from", C, "--to", C, "--type", "f16", "--json"]
    assert not packages(imported([*COMMAND, *conversion])) & {"xdsl", "numpy", "lark", "rich"}
    assert from_cute("(4,8):(1@0,1@1)").shape == (4, 8)


def test_the_ir_takes_any_notation() -> None:
    from xdsl.parser import Parser

    from fragir.errors import FragirError
    from fragir.plugins import FragirContext

    memdesc = f"!ttg.memdesc<64x64xf16, {SWIZZLED}, #ttg.shared_memory, mutable>"
    text = f'memref<64x64xf16, #frag.layout<"{memdesc}">, #frag.shared>'
    parsed = str(Parser(FragirContext(), text).parse_type())
    assert '#frag.layout<"row [8:^72 8:512] col [64:1]">' in parsed
    chain = '#frag.layout<"cute:Sw<3,4,3> o 0 o (8,80):(80,1)">'
    with pytest.raises(Exception, match="no layout of digits: Mode 8:80 of axis row") as caught:
        Parser(FragirContext(), chain).parse_attribute()
    assert not isinstance(caught.value, FragirError)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("m16n8k16.f16", MMA),
        ("m64n128k16.bf16", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"),
        ("m8n8k4.f16.row", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"),
    ],
)
def test_a_short_name_in_either_case(fragir: Fragir, short: str, long: str) -> None:
    """As `#frag.mma<m16n8k16.f16, a>` has it, and as matrices are called."""
    assert fragir("layout", short, "A").out == fragir("layout", long, "a").out


@pytest.mark.parametrize("name", ["m16n8k16.f16", "m64n128k16.bf16"])
def test_all_operands(fragir: Fragir, name: str) -> None:
    """Each as it is shown alone."""
    found = json.loads(fragir("layout", name, "--json").out)
    validate(found, "layout-all")
    operands = [one["operand"] for one in found["operands"]]
    assert {"a", "b", "d"} <= set(operands)
    for one in found["operands"]:
        assert one == json.loads(fragir("layout", found["mnemonic"], one["operand"], "--json").out)
    text = fragir("layout", name).out
    for one in operands:
        assert f"{found['mnemonic']}, operand {one}\n" in text
        assert fragir("layout", name, one).out in text
