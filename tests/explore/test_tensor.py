"""Tensor memory in the page: the layouts that Python has, of every product and copy by name."""

from __future__ import annotations

from functools import cache
from typing import Any

from fragir.draw.grid import Grid
from fragir.draw.layouts import hardware_drawing, layout_drawing
from fragir.errors import FragirError
from fragir.explore.document import tables
from fragir.isa.layout_texts import digit_layout
from tests.explore.engine import ask
from tests.isa.test_tensor_layouts import products

COPIES = [
    "tcgen05.cp.cta_group::1.128x256b",
    "tcgen05.cp.4x256b.b8x16.b6x16_p32",
    "tcgen05.cp.64x128b.warpx2::01_23",
    "tcgen05.cp.cta_group::2.32x128b.warpx4",
]
BY = [
    "tcgen05.mma.m128n256k16.f16:d by tcgen05.ld.sync.aligned.32x32b.x64.b32 at 0,64",
    "tcgen05.mma.m64n64k16.f16:d by tcgen05.ld.sync.aligned.16x256b.x2.b32 at 0,16",
    "tcgen05.mma.m64n64k16.f16:d by tcgen05.ld.sync.aligned.32x32b.x2.b32",
    "tcgen05.mma.m128n64k16.f16:d by tcgen05.ld.sync.aligned.16x64b.x2.pack::16b.b32 at 16,0",
    "tcgen05.mma.cta_group::2.m128n64k32.e4m3:a by tcgen05.st.sync.aligned.32x32b.x8.b32",
]
REFUSED = [
    "tcgen05.mma.m48n64k16.f16:d",
    "tcgen05.mma.m128n64k17.f16:d",
    "tcgen05.mma.m128n64k16:d",
    "tcgen05.mma.m128n64k16.f16:b",
    "tcgen05.mma.m128n64k16.f16:sfa",
    "tcgen05.mma.wsp.m128n64k16.f16:d",
    "tcgen05.mma.kind::mxf4.scale_vec::4X.m128n64k64.e2m1:d",
    "tcgen05.mma.m128n64k16.f16.bf16.bf16:d",
    "tcgen05.cp.1x1b:d",
    "tcgen05.mma.m128n64k16.f16:d by tcgen05.ld.sync.aligned.32x32b.x4.b32 at 16,0",
    "tcgen05.mma.m64n64k16.f16:d by tcgen05.ld.sync.aligned.16x64b.x4.b32 at 16,0",
    "tcgen05.mma.m64n64k16.f16:d by nothing",
]


@cache
def data() -> dict[str, Any]:
    return tables()


def known(texts: list[str], *, whole: bool = False) -> list[Any]:
    (answer,) = ask([{"ask": "known", "texts": texts, "data": data(), "whole": whole}])
    return answer["value"]


def own(text: str) -> str | None:
    """Python's text, None where no layout says it."""
    try:
        return str(digit_layout(text))
    except FragirError:
        return None


def test_every_operand() -> None:
    texts = [f"{name}:d" for name in COPIES]
    for found in products():
        for name, operand in found.operands.items():
            if not operand.tiles:
                texts.append(f"{found.name}:{name}")
    answers = known(texts)
    for text, answer in zip(texts, answers, strict=True):
        wanted = own(text)
        assert (None if isinstance(answer, dict) else answer) == wanted, text


def test_in_registers() -> None:
    for text, answer in zip(BY, known(BY, whole=True), strict=True):
        layout = digit_layout(text)
        assert answer["axes"] == [list(item) for item in layout.sizes.items()]
        points = [None if point is None else list(point) for _, point in layout.slots()]
        assert answer["points"] == points


def test_what_is_refused() -> None:
    for text, answer in zip(REFUSED, known(REFUSED), strict=True):
        assert own(text) is None
        assert answer["error"], text


def labels(grids: tuple[Grid, ...]) -> list[list[list[str]]]:
    return [[[cell.label for cell in row] for row in grid.rows] for grid in grids]


def test_pictures() -> None:
    """Labels and views are those of `fragir layout`."""
    texts = [
        "tcgen05.mma.m64n16k16.f16:d",
        "tcgen05.mma.m256n16k16.f16:d",
        "tcgen05.mma.kind::mxf4.m128n32k64.e2m1:sfa",
    ]
    questions: list[dict[str, Any]] = [
        {"ask": "draw", "text": text, "view": view, "colour": "lane", "data": "before"}
        for text in texts
        for view in ("matrix", "hardware")
    ]
    questions[0]["data"] = data()
    answers = iter(ask(questions))
    for text in texts:
        layout = digit_layout(text)
        for drawn in (layout_drawing(layout), hardware_drawing(layout)):
            found = next(answers)["value"]
            shown = [[[cell[0] for cell in row] for row in grid["cells"]] for grid in found]
            assert shown == labels(drawn.grids)
