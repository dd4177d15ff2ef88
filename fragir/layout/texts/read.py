"""Any layout's text, whoever wrote it: `read_layout` and `write_layout`.

>>> for text in ("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
...              "cute:((4,8),(2,2)):((2@1,1@0),(1@1,8@0))",
...              "f2:{lane = [[0,2], [0,4], [1,0], [2,0], [4,0]], register = [[0,1], [8,0]]}",
...              "ttg:tensor<16x8xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, "
...              "warpsPerCTA = [1, 1], instrShape = [16, 8]}>>",
...              "formula:row = %laneid / 4 + i / 2 * 8; col = %laneid % 4 * 2 + i % 2 "
...              "for i = {0,..,3}"):
...     print(read_layout(text))
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]

Each notation is recognised without its prefix too. The name of an instruction's operand
(`mma.sync...:a`) is read by `fragir.isa.read_layout`, which reads all of these as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from fragir.errors import check_one_of
from fragir.layout.arguments import require_shape, require_text, takes
from fragir.layout.layout import Layout
from fragir.layout.modes import LayoutError, Point

if TYPE_CHECKING:
    from fragir.layout.chain import LayoutChain

PREFIXES = ("cute", "f2", "formula", "ttg")
NOTATIONS = ("layout", "cute", "f2", "formula", "ttg", "linear")
_PREFIX = re.compile(rf"\s*({'|'.join(PREFIXES)})\s*:\s*")
# How a text of each notation begins where no prefix says it.
_BEGINNINGS = {
    "cute": re.compile(r"\s*(?:\(|_?\d|Sw?<)"),
    "ttg": re.compile(r"\s*(?:#|!ttg\b|tensor\s*<|-\s*[A-Za-z_]\w*\s*(?:=|is\b))"),
    "formula": re.compile(r"\s*[%A-Za-z_][\w.]*\s*(?:=|\n.*=)"),
}
_O = re.compile(r"\bo\b")
_SWIZZLE = re.compile(r"swizzle\s*\(")


def read_layout(text: str, shape: Point | None = None) -> Layout | LayoutChain:
    """The layout of a text in any notation.

    `shape` is the tile's or tensor's, which a CuTe fragment with integer strides and Triton's
    encodings need; a layout that says its own shape is held to it. What is no layout of digits (a
    swizzle over a carrying pitch) is a `LayoutChain`. Raises LayoutError with the column.
    """
    text = require_text(text, "a layout's text")
    if shape is not None:
        shape = require_shape(shape, "the shape")
    prefix = _PREFIX.match(text)
    kind = prefix[1] if prefix else next((k for k, p in _BEGINNINGS.items() if p.match(text)), "")
    start = prefix.end() if prefix and kind != "f2" else 0
    try:
        found = _READERS.get(kind, _own_notation)(text[start:], shape)
    except LayoutError as error:
        if start and error.line == 1 and error.col and error.source is not None:
            error.col += start
            error.source = text.split("\n", 1)[0]
        raise
    if shape is not None and kind in ("", "f2", "formula") and found.shape != shape:
        raise LayoutError(
            f"The layout covers {'x'.join(map(str, found.shape))}, "
            f"but the tile is {'x'.join(map(str, shape))}."
        )
    return found


def _own_notation(text: str, _shape: Point | None) -> Layout | LayoutChain:
    from fragir.layout.shared import SharedLayout

    if _O.search(text):
        return _chain(text)
    if not _SWIZZLE.search(text):
        return Layout.parse(text)
    from fragir.layout.chain import chained

    shared = SharedLayout.parse(text)
    return chained(shared.swizzle, shared.layout)


def _chain(text: str) -> Layout | LayoutChain:
    """`OUTER o INNER` of our own texts and CuTe's swizzles, as a chain prints itself."""
    from fragir.layout.chain import Link, chained
    from fragir.layout.shared import Swizzle
    from fragir.layout.texts.cute import SWIZZLE

    links: list[Link] = []
    for part in _O.split(text):
        swizzle = SWIZZLE.fullmatch(part.strip())
        if swizzle is not None:
            links.append(Swizzle(int(swizzle[1]), int(swizzle[2]), int(swizzle[3])))
        else:
            links.append(Layout.parse(part))
    return chained(*links)


def _cute(text: str, shape: Point | None) -> Layout | LayoutChain:
    from fragir.layout.texts.cute import from_cute

    if _O.search(text) and "[" in text and "smem_ptr" not in text:  # a chain of our own texts
        return _chain(text)
    return from_cute(text, shape)


def _f2(text: str, _shape: Point | None) -> Layout:
    from fragir.layout.linear import LinearLayout
    from fragir.layout.texts.bases import from_bases

    linear = LinearLayout.parse(text)
    return from_bases(linear.axes, linear.dims)


def _formula(text: str, _shape: Point | None) -> Layout:
    from fragir.layout.formula import from_formula

    return from_formula(text)


def _ttg(text: str, shape: Point | None) -> Layout | LayoutChain:
    if text.lstrip().startswith("-"):
        from fragir.layout.texts.bases import from_printed

        return from_printed(text)
    from fragir.layout.texts.ttg import from_ttg

    return from_ttg(text, shape)


_READERS: dict[str, Callable[[str, Point | None], Layout | LayoutChain]] = {
    "cute": _cute,
    "f2": _f2,
    "formula": _formula,
    "ttg": _ttg,
}


@takes(Layout)
def write_layout(layout: Layout, notation: str = "layout", shape: Point | None = None) -> str:
    """The layout in a notation: `layout` (our own), `cute` (with `shape`: points are numbered in
    that tile), `f2`, `formula`, `ttg` (Triton's encoding), `linear` (as Triton prints bases).

    `read_layout` gives the same function back, given the shape; where the notation has no names
    of dimensions, those are the usual ones again. Raises LayoutError where the notation cannot say
    the layout.
    """
    check_one_of(notation, NOTATIONS, "the notation")
    match notation:
        case "layout":
            return str(layout)
        case "cute":
            from fragir.layout.texts.cute import to_cute

            return to_cute(layout, shape, basis=shape is None and layout.rank > 1)
        case "f2":
            from fragir.layout.linear import LinearLayout
            from fragir.layout.texts.bases import bases_of

            return str(LinearLayout(tuple(bases_of(layout)), layout.dims))
        case "formula":
            return layout.formula()
        case "ttg":
            from fragir.layout.texts.ttg_writer import to_ttg

            return to_ttg(layout)
        case _:
            from fragir.layout.texts.bases import to_printed

            return to_printed(layout)
