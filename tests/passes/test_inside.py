"""Accesses that leave their memory for certain are errors where they stand."""

from __future__ import annotations

import pytest

import fragir
from fragir.errors import FragirError

SHARED = "memref<2x16x32xf16, #frag.shared<swizzle = 64>>"
ALLOC = f"%s = memref.alloc() : {SHARED}"


def program(line: str) -> str:
    return f"""func.func @f(%a: memref<16x32xf16>, %v: memref<1x32xf16>, %d: memref<?x?xf16>) {{
  %eight = arith.constant 8 : index
  %minus = arith.constant -1 : index
  %zero = arith.constant 0.0 : f16
  %t = frag.fill %zero : !frag.tile<16x32xf16>
  {ALLOC}
  {line}
  func.return
}}"""


LOAD = "frag.load %a[{}] : memref<16x32xf16> -> !frag.tile<{}xf16>"
STORE = "frag.store %t, %a[{}] : !frag.tile<16x32xf16>, memref<16x32xf16>"
COPY = f"frag.copy %d[{{}}] to %s[{{}}] : memref<?x?xf16> to {SHARED}"
WRONG = [
    ("%x = " + LOAD.format("8, 8", "16x16"), "16 elements from 8 on in dimension 0"),
    ("%x = " + LOAD.format("%eight, 0", "16x32"), "16 elements from 8 on in dimension 0"),
    ("%x = " + LOAD.format("0, -1", "16x16"), "outside of the memory"),
    ("%x = " + LOAD.format("0, %minus", "16x16"), "dimension 1 lie outside of the memory"),
    ("%x = " + LOAD.format("0, 0", "32x32"), "32 elements from 0 on in dimension 0"),
    (
        "%x = frag.load %a[0, 0] transposed : memref<16x32xf16> -> !frag.tile<16x32xf16>",
        "32 elements from 0 on in dimension 0 lie outside of its 16",
    ),
    (
        "%x = frag.load %v[1, 0] broadcast : memref<1x32xf16> -> !frag.tile<16x32xf16>",
        "index 1 in dimension 0 lies outside of its 1",
    ),
    (STORE.format("1, 0"), "16 elements from 1 on"),
    (COPY.format("-1, 0", "0"), "outside of the memory; write `masked`"),
    (COPY.format("0, 0", "2"), "index 2 in dimension 0 lies outside of its 2"),
    (
        f"%m = frag.view %s[2] : {SHARED} -> memref<16x32xf16, #frag.shared<swizzle = 64>>",
        "index 2 in dimension 0 lies outside of its 2",
    ),
]


@pytest.mark.parametrize(("line", "words"), WRONG, ids=range(len(WRONG)))
def test_outside(line: str, words: str) -> None:
    with pytest.raises(FragirError) as caught:
        fragir.compile(program(line), target="sm_80", filename="f.mlir")
    error = caught.value
    assert words in error.sentence
    assert (error.file, error.line) == ("f.mlir", 7)
    assert error.source == "  " + line


@pytest.mark.parametrize(
    "line",
    [
        "%x = " + LOAD.format("8, 16", "8x16"),
        STORE.format("0, 0"),
        STORE.format("-1, 8").replace("] :", "] masked :"),
        "%x = " + LOAD.format("40, 0", "16x16").replace("] :", "] masked :"),
        "%x = frag.load %v[0, 0] broadcast : memref<1x32xf16> -> !frag.tile<16x32xf16>",
        COPY.format("0, 0", "1"),
    ],
)
def test_inside(line: str) -> None:
    fragir.compile(program(line), target="sm_80")
