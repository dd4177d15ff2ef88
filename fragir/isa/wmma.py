"""Fragments of `wmma`, which PTX leaves opaque: where ptxas places them from sm_75 on.

They are those of the `mma` instructions that ptxas makes of a `wmma.mma`, 8 rows or columns beside
each other as its shape has more (read off machine code; PTX ISA 9.2, section 9.7.14.4, says only
that fragments are of the same shape and type). So they are no contract: what they say holds for
today's ptxas, within one program compiled for one target.

>>> print(wmma_fragment("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "a").layout)
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]
>>> wmma_fragment("wmma.load.b.sync.aligned.col.m16n16k8.tf32", "b").element
'tf32'
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from fragir.errors import FragirError
from fragir.isa import fragments
from fragir.isa.model import BITS, per_register
from fragir.isa.spelling import is_shape, mnk
from fragir.layout import Axis, Layout, Mode

_BIG = ("m16n16k16", "m32n8k16", "m8n32k16")
# The type of A -> its shapes, and the types of C and D.
SHAPES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(("f16",), (_BIG, ("f16", "f32"))),
    **dict.fromkeys(("bf16",), (_BIG, ("f32",))),
    **dict.fromkeys(("s8", "u8"), (_BIG, ("s32",))),
    "tf32": (("m16n16k8",), ("f32",)),
    "f64": (("m8n8k4",), ("f64",)),
    **dict.fromkeys(("s4", "u4"), (("m8n8k32",), ("s32",))),
    "b1": (("m8n8k128",), ("s32",)),
}
_HALF_REGISTERS = 8  # f16's A and B have always so many, in copies where the shape needs fewer


class WmmaFragment(NamedTuple):
    """An operand of a wmma: its type, the matrix's extent, (lane, element) -> (row, col)."""

    operand: str
    element: str
    shape: tuple[int, int]
    layout: Layout
    copies: int = 1
    """How often its registers follow each other, all with the same elements."""

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.shape))
        return f"<wmma operand {self.operand}: {size} {self.element}, {self.layout}>"


def is_wmma(text: str) -> bool:
    """Whether a text begins as the mnemonic of a wmma."""
    return text.strip().startswith("wmma.")


@lru_cache(maxsize=256)
def wmma_fragment(mnemonic: str, operand: str) -> WmmaFragment:
    """The fragment of operand a, b, c or d of a `wmma.mma`, or that of a `.load` or `.store`.

    FragirError where there is no such instruction or operand.
    """
    words = mnemonic.strip().split(".")
    shapes = [word for word in words if is_shape(word)]
    types = [word for word in words if word in BITS]
    does = words[1:3]
    if words[0] != "wmma" or len(shapes) != 1 or not types or does[:1] not in _DOES:
        raise FragirError(
            f"{mnemonic!r} is no wmma", hint="as in wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"
        )
    own = ("a", "b", "c", "d") if does[0] == "mma" else (does[1],)
    if operand not in own:
        raise FragirError(f"{mnemonic} has no operand {operand!r}", hint=f"it has {', '.join(own)}")
    a, element = _types(mnemonic, does, types, operand)
    _check_shape(mnemonic, shapes[0], a, element, operand)
    m, n, k = mnk(shapes[0])
    if operand == "a":
        layout, shape = _a(m, k, element), (m, k)
    elif operand == "b":
        layout, shape = _b(k, n, element), (k, n)
    else:
        layout, shape = _c(m, n), (m, n)
    copies = 1
    if element == "f16" and operand in "ab":
        copies = _HALF_REGISTERS * 2 // layout.size("element")
    return WmmaFragment(operand, element, shape, layout, copies)


_DOES = (["mma"], ["load"], ["store"])


def _types(mnemonic: str, does: list[str], types: list[str], operand: str) -> tuple[str, str]:
    """The type of A, "" where it is not said, and that of the operand."""
    if does[0] != "mma":
        return (types[0] if operand in "ab" else ""), types[0]
    if len(types) == 2:  # D and C; A and B are f16
        named = {"d": types[0], "c": types[1], "a": "f16", "b": "f16"}
    elif len(types) == 4:
        named = dict(zip("dabc", types, strict=True))
    else:
        raise FragirError(
            f"{mnemonic!r} is no wmma.mma", hint="it has the types of D and C, or all"
        )
    return named["a"], named[operand]


def _check_shape(mnemonic: str, shape: str, a: str, element: str, operand: str) -> None:
    fitting = [
        results
        for first, (shapes, results) in SHAPES.items()
        if shape in shapes and a in ("", first)
    ]
    if not fitting or (operand in "cd" and not any(element in results for results in fitting)):
        raise FragirError(f"{mnemonic}: there is no wmma of this shape and these types")


def _axis(name: str, *modes: tuple[int, tuple[int, int]]) -> Axis:
    return Axis(name, tuple(Mode(size, step) for size, step in modes if size != 1))


def _a(m: int, k: int, element: str) -> Layout:
    p = per_register(element)
    lane = _axis("lane", (4, (0, p)), (8, (1, 0)))
    rows = (m // 8, (8, 0))
    if p == 2:  # two registers of 8 rows, then those of the other 8 columns
        inner, outer = (2, (8, 0)) if m > 8 else (1, (0, 0)), (m // 16 or 1, (16, 0))
        return Layout((lane, _axis("element", (2, (0, 1)), inner, (2, (0, 8)), outer)))
    if element == "tf32":
        return Layout((lane, _axis("element", rows, (k // 4, (0, 4)))))
    return Layout((lane, _axis("element", (p, (0, 1)), rows)))


def _b(k: int, n: int, element: str) -> Layout:
    p = per_register(element)
    lane = _axis("lane", (4, (p, 0)), (8, (0, 1)))
    cols = (n // 8, (0, 8))
    if p == 2 and n == 32:
        modes = (2, (1, 0)), (2, (0, 8)), (2, (8, 0)), (2, (0, 16))
        return Layout((lane, _axis("element", *modes)))
    if p == 2:
        return Layout((lane, _axis("element", (2, (1, 0)), (2, (8, 0)), cols)))
    if element == "tf32":
        return Layout((lane, _axis("element", (k // 4, (4, 0)), cols)))
    return Layout((lane, _axis("element", (p, (1, 0)), cols)))


def _c(m: int, n: int) -> Layout:
    if (m, n) == (8, 32):  # the product of the transposes, m32n8
        lane = _axis("lane", (4, (2, 0)), (8, (0, 1)))
        return Layout((lane, _axis("element", (2, (1, 0)), (4, (0, 8)))))
    if m == 32:
        lane = _axis("lane", (4, (0, 2)), (8, (1, 0)))
        return Layout((lane, _axis("element", (2, (0, 1)), (4, (8, 0)))))
    return fragments.accumulator(m, n)
