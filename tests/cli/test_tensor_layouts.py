"""`fragir layout` of products and copies of tcgen05."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Fragir
from tests.cli.test_instructions import document

D = ("layout", "tcgen05.mma.m128n256k16.f16", "d")
LOAD = "tcgen05.ld.sync.aligned.32x32b.x64.b32"
MX = "tcgen05.mma.kind::mxf8f6f4.m128n64k32.e4m3"


def test_who_holds_what(fragir: Fragir) -> None:
    found = document(fragir, "layout-text-at", *D, "--at", "70,65", "--json")
    assert found["holders"] == [{"lane": 70, "column": 65}]
    found = document(fragir, "layout-text-lane", *D, "--lane", "3", "--json")
    assert [e["point"] for e in found["elements"]] == [[3, col] for col in range(256)]
    whole = document(fragir, "layout-text", *D, "--format", "json")
    assert whole["map"][5][9] == [5, 9]


def test_which_thread_gets_what(fragir: Fragir) -> None:
    by = ("--by", LOAD, "--address", "0,64")
    found = document(fragir, "layout-text-at", *D, *by, "--at", "70,65", "--json")
    assert found["holders"] == [
        {"warp": 2, "lane": 6, "element": 1, "register": 1, "bits": [0, 31]}
    ]
    a = (
        "layout",
        "tcgen05.mma.m128n64k32.e4m3",
        "a",
        "--by",
        "tcgen05.st.sync.aligned.32x32b.x8.b32",
    )
    found = document(fragir, "layout-text-at", *a, "--at", "33,6", "--json")
    assert found["holders"] == [
        {"warp": 1, "lane": 1, "element": 6, "register": 1, "bits": [16, 23]}
    ]


def test_pictures(fragir: Fragir) -> None:
    text = fragir(*D)
    assert text.code == 0
    assert "layout D: 128 rows in a CTA" in text.out
    assert "L5:3 is column 3 of lane 5 of tensor memory" in text.out
    for more in ((), ("--by", LOAD), ("--view", "hardware"), ("--at", "1,1")):
        drawn = fragir(*D, *more, "--format", "svg")
        assert (drawn.code, drawn.out[:4]) == (0, "<svg"), drawn.err
    padded = fragir("layout", "tcgen05.mma.kind::mxf4.m128n40k64.e2m1", "sfb")
    assert "places beyond 2 x 40 are padding" in padded.out
    note = fragir("layout", "tcgen05.mma.m128n24k16.f16", "d")
    assert "CuTe refuses it" in note.out


def test_operands_in_shared_memory(fragir: Fragir) -> None:
    found = document(fragir, "layout-shared", "layout", D[1], "b", "--json")
    assert found["majors"] == ["k", "mn"]
    assert set(found["canonical"]["k"]) == {"0", "32", "64", "128", "128/32"}
    assert set(found["canonical"]["mn"]) == {"0", "32", "64", "128"}
    assert fragir("layout", D[1], "b").out.count("dims (byte)") == 9


def test_ids_and_selectors(fragir: Fragir) -> None:
    scales = ("layout", MX, "sfa", "--byte", "2", "--at", "9,0", "--json")
    found = document(fragir, "layout-text-at", *scales)
    assert [(h["lane"], h["byte"]) for h in found["holders"]] == [(9 + 32 * i, 2) for i in range(4)]
    sparse = ("layout", "tcgen05.mma.sp.m128n64k32.f16", "e", "--selector", "1", "--at", "9,5")
    assert fragir(*sparse).out.splitlines()[1].split() == ["9", "1", "5"]


def test_names_as_texts(fragir: Fragir) -> None:
    text = fragir("layout", "tcgen05.mma.m64n32k16.f16:d", "--format", "layout")
    assert text.out == "lane [16:(1,0) 2:(0,0) 4:(16,0)] column [32:(0,1)] where lane/16%2==0\n"
    assert fragir("layout", "tcgen05.mma.m64n32k16.f16:d", "--tile", "64x32").code == 1


def test_wmma(fragir: Fragir) -> None:
    """Its fragments are opaque, but they are somewhere."""
    a = ("layout", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "a")
    found = document(fragir, "layout-text-at", *a, "--at", "9,3", "--json")
    assert found["holders"] == [{"lane": 5, "element": 3, "register": 1, "bits": [16, 31]}]
    shown = fragir(*a).out
    assert "PTX leaves it opaque" in shown
    assert "follow each other 2 times" in shown
    assert fragir(*a, "--byte", "1").code == 1
    assert fragir("layout", a[1], "x").code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["tcgen05.mma.m48n64k16.f16", "d"], 1, "no M = 48"),
        ([D[1], "x"], 1, "has no operand 'x'"),
        ([D[1], "b", "--at", "0,0"], 1, "lies in shared memory"),
        ([D[1], "b", "--format", "svg"], 1, "lies in shared memory"),
        ([D[1], "d", "--at", "0,256"], 1, "its shape is 128x256"),
        ([D[1], "d", "--byte", "1"], 1, "--byte says nothing about operand d"),
        (
            [MX.replace("mxf8f6f4", "mxf4").replace("k32.e4m3", "k64.e2m1"), "sfa", "--byte", "1"],
            1,
            "0, 2",
        ),
        ([D[1], "d", "--by", "mma"], 1, "no instruction 'mma'"),
        ([D[1], "d", "--address", "0,0"], 2, "goes with --by"),
        ([D[1], "d", "--output", "0,0"], 2, "not of tcgen05"),
        (["mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "a", "--by", LOAD], 2, "--by"),
        (["tcgen05.cp.1x1b", "d"], 1, "no shape .1x1b"),
    ],
)
def test_refusals(fragir: Fragir, arguments: list[str], code: int, words: str) -> None:
    found = fragir("layout", *arguments)
    assert found.code == code
    assert words in found.err
