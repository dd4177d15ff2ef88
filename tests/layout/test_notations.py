"""Layouts in the texts of others: the same function as the project says that wrote the text.

`golden/triton_layouts.json` are Triton's own bases of its encodings, `golden/cute_traits.json` the
thread-value layouts of CUTLASS; each file names its source.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from fragir import isa
from fragir.errors import FragirError
from fragir.isa.layout_texts import digit_layout, read_layout
from fragir.layout import (
    Layout,
    LayoutChain,
    LayoutError,
    Swizzle,
    from_cute,
    from_printed,
    from_ttg,
    merged,
    permuted,
    subtile,
    to_cute,
    to_printed,
    to_ttg,
    transposed,
    write_layout,
)
from fragir.layout.distribution import dims_of
from fragir.layout.modes import Point

GOLDEN = Path(__file__).parent / "golden"
TRITON: list[Any] = json.loads((GOLDEN / "triton_layouts.json").read_text())["cases"]
TRAITS: dict[str, Any] = json.loads((GOLDEN / "cute_traits.json").read_text())
AXES = {"register": "element", "lane": "lane", "warp": "warp", "block": "block"}


def held(one: Layout, bits: dict[str, int]) -> Point | None:
    return one(**{axis: bits.get(axis, 0) for axis in one.names})


@pytest.mark.parametrize("part", range(5))
def test_an_encoding_has_tritons_bases(part: int) -> None:
    for case in TRITON[part::5]:
        check_bases(case)


def check_bases(case: Any) -> None:
    found = from_ttg(case["type"])
    assert isinstance(found, Layout)
    bases, rank = case["bases"], len(case["shape"])
    if "offset" in bases:
        at = case["at"]
        for bit, point in enumerate(bases["offset"]):
            inner = case["split"][at + 1]
            whole = (*point[:at], point[at] * inner + point[at + 1], *point[at + 2 :])
            assert found(**dict(zip(dims_of(rank), whole, strict=True))) == (1 << bit,)
        return
    rng = random.Random(str(case["type"]))
    for name, points in bases.items():
        assert found.sizes.get(AXES[name], 1) == 1 << len(points)
        for bit, point in enumerate(points):
            assert held(found, {AXES[name]: 1 << bit}) == tuple(point)
    for _ in range(4):  # and it is linear: any slot is the exclusive or of its bits
        at = {AXES[name]: rng.randrange(1 << len(points)) for name, points in bases.items()}
        point = (0,) * rank
        for name, points in bases.items():
            for bit, basis in enumerate(points):
                if at[AXES[name]] >> bit & 1:
                    point = tuple(x ^ y for x, y in zip(point, basis, strict=True))
        assert held(found, {axis: n for axis, n in at.items() if axis in found.names}) == point


@pytest.mark.parametrize("part", range(2))
def test_what_is_written_for_triton_is_read_back(part: int) -> None:
    for case in TRITON[part::12]:
        check_written(case)


def check_written(case: Any) -> None:
    found = from_ttg(case["type"])
    assert isinstance(found, Layout)
    shape = tuple(case["shape"])
    again = from_ttg(to_ttg(found), shape)
    assert again.equivalent(found)
    if "offset" not in case["bases"]:
        assert from_printed(to_printed(found)).equivalent(found)


def _rows(shape: list[int], type_: str) -> list[isa.Instruction]:
    name = "mma.sync.aligned.m{}n{}k{}.".format(*shape)
    found = [row for row in isa.instructions() if row.mnemonic.startswith(name)]
    return [row for row in found if row.operands["a"].element == type_]


@pytest.mark.parametrize("trait", TRAITS["mma"], ids=lambda t: "x".join(map(str, t["shape"])))
def test_an_atom_of_cute_is_the_tables_row(trait: Any) -> None:
    m, n, k = trait["shape"]
    rows = [row for row in _rows([m, n, k], trait["type"]) if row.operands["a"].layout is not None]
    assert rows
    theirs = (
        from_cute(trait["a"], (m, k)),
        from_cute(trait["b"], (n, k), dims=("col", "row")),
        from_cute(trait["c"], (m, n)),
    )
    for row in rows:
        a, b, c = (row.operands[name].layout for name in "abc")
        assert a is not None
        assert b is not None
        assert c is not None
        ours = (a, permuted(b, ("col", "row")), c)
        assert all(one.equivalent(own) for one, own in zip(theirs, ours, strict=True))


@pytest.mark.parametrize("n", [8, 16, 24, 64, 96, 192, 256])
def test_an_accumulator_of_wgmma_is_cutes_and_tritons(n: int) -> None:
    row = isa.lookup(f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16").operands["d"].layout
    assert row is not None
    text = TRAITS["wgmma"]["c"].format(blocks=n // 8)
    assert from_cute(text, (64, n)).equivalent(row)
    mma = (
        "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], "
        f"instrShape = [16, {n}, 16]}}>"
    )
    triton = from_ttg(mma, (64, n))
    assert isinstance(triton, Layout)
    assert merged(triton, "lane", ("lane", "warp")).equivalent(row)


@pytest.mark.parametrize(("k", "type_"), [(8, "tf32"), (16, "f16"), (32, "e4m3")])
def test_a_register_operand_of_wgmma_is_cutes(k: int, type_: str) -> None:
    name = f"wgmma.mma_async.sync.aligned.m64n32k{k}.f32.{type_}.{type_}"
    row = isa.lookup(name).operands["a"].layout
    assert row is not None
    assert from_cute(TRAITS["wgmma"]["a"][str(k)], (64, k)).equivalent(row)


# The rows of mma.sync that Triton has: the type, K and how many neighbours a lane holds.
DOTS = [
    ("f16", 16, 2),
    ("bf16", 16, 2),
    ("tf32", 8, 1),
    ("s8", 32, 4),
    ("e4m3", 32, 4),
    ("s4", 64, 8),
]


@pytest.mark.parametrize(("type_", "k", "width"), DOTS)
def test_an_operand_of_mma_is_tritons(type_: str, k: int, width: int) -> None:
    mma = (
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], "
        "instrShape = [16, 8]}>"
    )
    rows = _rows([16, 8, k], type_)
    assert rows
    for row in rows:
        for index, (name, shape) in enumerate({"a": (16, k), "b": (k, 8)}.items()):
            dot = f"#ttg.dot_op<{{opIdx = {index}, parent = {mma}, kWidth = {width}}}>"
            layout = row.operands[name].layout
            assert layout is not None
            assert from_ttg(dot, shape).equivalent(layout)
        layout = row.operands["d"].layout
        assert layout is not None
        assert from_ttg(mma, (16, 8)).equivalent(layout)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "#ttg.padded_shared<[8:+1] {offset = [[0, 1], [0, 2], [2, 0], [4, 0], [1, 0]], "
            "block = []}>",
            # the example in Triton's documentation: rows 0, 2, p, 4, 6, p, 1, 3, p, 5, 7
            {0: 0, 2: 4, 4: 9, 6: 13, 1: 18, 3: 22, 5: 27, 7: 31},
        ),
        (
            "#ttg.padded_shared<[2:+1, 4:+2] {order = [1, 0], shape = [4, 2]}>",
            # e0 e1 p0 e2 e3 p1 p2 p3 e4 e5 p4 e6 e7
            {0: 0, 1: 3, 2: 8, 3: 11},
        ),
    ],
)
def test_padding_follows_every_so_many_elements(text: str, expected: dict[int, int]) -> None:
    found = from_ttg(text)
    for row, place in expected.items():
        assert found(row=row, col=0) == (place,)
        assert found(row=row, col=1) == (place + 1,)


def test_names_of_encodings_may_be_defined_before() -> None:
    text = (
        "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], "
        "instrShape = [16, 8]}>\n#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>\n"
        "tensor<32x16xf16, #dot>"
    )
    assert str(from_ttg(text)) == "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)] " + (
        "warp [2:(16,0)]"
    )


def test_old_spellings_of_blocks() -> None:
    old = (
        "#triton_gpu.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = "
        "[4, 1], order = [1, 0], CTAsPerCGA = [1, 2], CTASplitNum = [1, 2], CTAOrder = [1, 0]}>"
    )
    new = (
        "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = "
        "[4, 1], order = [1, 0], CGALayout = [[0, 1]]}>"
    )
    found = from_ttg(new, (64, 64))
    assert isinstance(found, Layout)
    assert from_ttg(old, (64, 64)).equivalent(found)
    assert found.sizes["block"] == 2


# CuTe


def cute(shape: str, index: int) -> int:
    """CuTe's `(a,b):(s,t)` at an index, by its definition; no nesting."""
    sizes, strides = ([int(n) for n in part.strip("()").split(",")] for part in shape.split(":"))
    total = 0
    for size, stride in zip(sizes, strides, strict=True):
        total += index % size * stride
        index //= size
    return total


@pytest.mark.parametrize("swizzle", [(3, 4, 3), (3, 3, 3), (1, 4, 3), (2, 0, -3)])
@pytest.mark.parametrize("plain", ["(8,64):(64,1)", "(8,80):(80,1)", "(6,24):(24,1)"])
def test_a_swizzled_layout(plain: str, swizzle: tuple[int, int, int]) -> None:
    for offset in (0, 8, 192):
        check_swizzled(plain, swizzle, offset)


def check_swizzled(plain: str, swizzle: tuple[int, int, int], offset: int) -> None:
    bits, base, shift = swizzle
    found = from_cute(f"Sw<{bits},{base},{shift}> o {offset} o {plain}")
    permute = Swizzle(bits, base, shift)
    rows, cols = map(int, plain.partition(":")[0].strip("()").split(","))
    for row in range(rows):
        for col in range(cols):
            expected = permute(offset + cute(plain, row + rows * col))
            assert found(row=row, col=col) == (expected,)
    if plain == "(8,64):(64,1)" and offset == 0:
        assert isinstance(found, Layout)
        assert from_cute(to_cute(found)) == found
    if isinstance(found, LayoutChain):
        again = read_layout(str(found))
        assert found.equivalent(again)
        assert found.array().tolist() == [
            [list(found(row=row, col=col) or ()) for col in range(cols)] for row in range(rows)
        ]


def test_a_swizzle_of_bytes_over_elements() -> None:
    """GMMA's atoms of 128 bytes for f16: rows of 64 elements, the bytes swizzled."""
    found = from_cute("Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)")
    for row in range(8):
        for col in range(64):
            assert found(row=row, col=col) == (Swizzle(3, 4, 3)(2 * (row * 64 + col)) // 2,)


def test_basis_strides() -> None:
    c = from_cute("((4,8),(2,2)):((2@1,1@0),(1@1,8@0))")
    assert c == from_cute("((4,8),(2,2)):((32,1),(16,8))", (16, 8))
    assert isinstance(c, Layout)
    assert to_cute(c, basis=True) == "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))"
    assert from_cute("(16,8):(1@0,1@1) o 0 o ((4,8),(2,2)):((32,1),(16,8))") == c
    # E<0,1>{} is printed 1@1@0: the second part of the first coordinate
    nested = from_cute("(4,(2,3)):(1@0@0,(1@1@0,1@1))")
    assert nested.dims == ("row_0", "row_1", "col")
    assert nested(lane=3, element=5) == (3, 1, 2)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("cute:(8,?):(1,8)", "known when the kernel runs", 9),
        ("cute:(8,4):(-1,8)", "not negative", 13),
        ("cute:Sw<3,4,3> o 0", "ends in shape:stride", 18),
        ("cute:Sw<4,4,3> o (8,8):(8,1)", "onto themselves", 6),
        ("cute:Sw<3,0,3> o smem_ptr[16b](unset) o (8,8):(8,1)", "parts of elements", 6),
        ("cute:(8,4):(1@0,2)", "part of it or of a number", 17),
        ("ttg:#ttg.blocked<{sizePerThread = [1, 4]}>", "has no field order", 5),
        ("ttg:#ttg.blocked<{sizePerThread = [1, 4], order = [1, 1]}>", "names each of the 2", 43),
        ("ttg:#ttg.blocked<{sizePerThread [1, 4]}>", "Expected '='", 33),
        ("ttg:#mma", "is no attribute of Triton's", 5),
        ("ttg:#ttg.amd_mfma<{version = 3}>", "is not read", 5),
        ("ttg:#ttg.nvidia_mma<{versionMajor = 5}>", "Version 5", 22),
        ("ttg: - lane=2 -> (0)", "next bit of lane is 1", 6),
        ("ttg: - lane=1 -> (4)\nwhere out dims are: [dim0 (size 4)]", "not inside", 6),
        ("lane [4:(0,2)", "a mode such as", 14),
        ("formula:row = ", "", 14),
    ],
)
def test_errors_point_at_the_place(text: str, message: str, column: int) -> None:
    with pytest.raises(LayoutError) as caught:
        read_layout(text, (16, 8) if "#" in text else None)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.col) == (1, column)
    assert caught.value.source == text.split("\n", 1)[0]


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("cute:((4,8),2):((32,1),16)", (16, 8, 2, 2), "needs names"),
        ("lane [4:(0,2) 8:(1,0)] element [2:(0,1)]", (16, 8), "covers 8x8"),
        ("ttg:tensor<24x8xf16, #B>", None, "cuts mode"),
        ("ttg:tensor<96x8xf16, #B>", None, "no multiple"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32:x", None, "no operand"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f17.f32:a", None, "m16n8k16"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16:b", None, "shared memory"),
    ],
)
def test_what_cannot_be_meant(text: str, shape: tuple[int, ...] | None, message: str) -> None:
    blocked = (
        "#ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], "
        "order = [0, 1]}>"
    )
    with pytest.raises(Exception, match=message):
        read_layout(text.replace("#B", blocked), shape)


@pytest.mark.parametrize("notation", ["layout", "cute", "f2", "formula", "ttg", "linear"])
def test_what_is_written_is_read(notation: str) -> None:
    c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
    for one in (c, transposed(c), subtile(c, (0, 0), (8, 8)).layout):
        text = write_layout(one, notation)
        assert read_layout(text, one.shape if notation == "ttg" else None).equivalent(one)
    if notation == "cute":
        assert read_layout(write_layout(c, notation, (16, 16)), (16, 16)).equivalent(c)


def test_the_operand_of_a_tile() -> None:
    text = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32:d"
    assert str(read_layout(text)) == "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]"
    tile = read_layout(text, (32, 16), (2, 1))
    assert tile.shape == (32, 16)
    assert tile.sizes["warp"] == 2


def test_a_chain_says_which_mode_is_in_the_way() -> None:
    chain = read_layout("cute:Sw<3,4,3> o 0 o (8,80):(80,1)")
    assert isinstance(chain, LayoutChain)
    assert "Mode 8:80 of axis row" in chain.reason
    with pytest.raises(FragirError, match="no layout of digits: Mode 8:80 of axis row"):
        digit_layout("cute:Sw<3,4,3> o 0 o (8,80):(80,1)")


@pytest.mark.parametrize(
    "text",
    [
        "row [8:^72 8:512] col [64:1]",
        "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:^(8,3)]",
        "lane [2:(1,3) 4:^(2,6) 4:(2,8)] element [2:^(3,1)] offset (0,4)",
        "lane [2:(0,4) 2:(0,0) 8:(1,0) 4:(16,0)] element [4:(0,1) 2:(8,0)] where lane/2%2==0",
        "lane [4:(0,0) 8:(0,1)] element [2:(1,0) 2:(0,0)] where lane/1%4==0 and element/2%2==0",
    ],
)
def test_formulas_of_flips_and_conditions(text: str) -> None:
    one = Layout.parse(text)
    assert read_layout(one.formula()).equivalent(one)


def test_every_layout_of_the_table_in_every_notation() -> None:
    """Those whose dimensions have the usual names, which the notations leave out."""
    texts = sorted(
        {
            str(operand.layout)
            for row in isa.instructions()
            for operand in row.operands.values()
            if operand.layout is not None and operand.layout.dims == ("row", "col")
        }
    )
    said = dict.fromkeys(("cute", "f2", "ttg", "linear", "formula"), 0)
    for text in texts[::8]:
        one = Layout.parse(text)
        for notation in said:
            try:
                written = write_layout(one, notation)
            except LayoutError:
                continue
            shape = one.shape if notation == "ttg" else None
            assert read_layout(written, shape).equivalent(one), (notation, text)
            said[notation] += 1
    assert said["formula"] == len(texts[::8])
    assert min(said.values()) > len(texts[::8]) // 3
