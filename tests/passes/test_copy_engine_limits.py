"""Where the copy engine writes too much or stops, the compiler refuses or goes another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.ir import Operation, SSAValue

import fragir
from fragir import f16
from fragir.compiler import parse
from fragir.errors import FragirError
from fragir.passes.specializing.epilogue import divisor_of

BUFFER = "memref<32x64xf16, #frag.shared<swizzle = 128>>"
TILE = "!frag.tile<32x64xf16>"
TURNED = 'memref<32x64xf16, #frag.layout<"row [32:1] col [64:32]">, #frag.shared>'


def program(copy: str, c: str = "memref<?x?xf16>", buffer: str = BUFFER) -> str:
    """A kernel with a copy between a buffer `%s` and an array `%c`, `%j` an index."""
    return f"""
    func.func @k(%c: {c}, %j: index) {{
      %s = memref.alloc() : {buffer}
      %c8 = arith.constant 8 : index
      %one = arith.constant 1 : index
      %eights = arith.muli %j, %c8 : index
      %past = arith.addi %eights, %one : index
      %x = arith.constant 3.0 : f16
      %t = frag.fill %x : {TILE}
      frag.store %t, %s[0, 0] : {TILE}, {buffer}
      {copy.replace("OUT", f"{buffer} to {c}").replace("INTO", f"{c} to {buffer}")}
      func.return
    }}"""


INTO, OUT = "frag.copy tma %c[0, AT] to %s[] : INTO", "frag.copy tma %s[] to %c[0, AT] : OUT"
ADD = OUT.replace("tma", "tma add")


@pytest.mark.parametrize("copy", [INTO, OUT, ADD])
@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("1", "it begins at element 1 of a row"),
        ("-4", "it begins at element -4 of a row"),
        ("%one", "it begins at element 1 of a row"),
        ("%past", "it begins 1 elements behind a multiple of 8 in a row"),
    ],
)
def test_columns_at_which_no_box_begins(copy: str, column: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        fragir.compile(program(copy.replace("AT", column)), target="sm_90a")


def test_columns_side_by_side() -> None:
    """There rows are what lies contiguously."""
    c = "memref<?x?xf16, strided<[1, ?]>>"
    copy = "frag.copy tma %s[] to %c[AT, 1] : OUT"
    fragir.compile(program(copy.replace("AT", "8"), c, TURNED), target="sm_90a")
    with pytest.raises(FragirError, match="it begins at element 4 of a row"):
        fragir.compile(program(copy.replace("AT", "4"), c, TURNED), target="sm_90a")
    with pytest.raises(FragirError, match="have 60 bytes, and the copy engine writes"):
        fragir.compile(
            program(copy.replace("AT", "8"), "memref<30x?xf16, strided<[1, 64]>>", TURNED)
        )


@pytest.mark.parametrize("column", ["8", "-8", "%eights", "%c8"])
def test_columns_that_are_multiples(column: str) -> None:
    for copy in (INTO, OUT, ADD):
        fragir.compile(program(copy.replace("AT", column)), target="sm_90a")


def test_a_column_that_only_a_launch_knows() -> None:
    """It stops as a machine does, and says where."""
    kernel = fragir.compile(program(OUT.replace("AT", "%j")), target="sm_90a")
    c = np.zeros((32, 128), np.float16)
    kernel(c, 16, on="emulator", check=True)
    assert (c[:, 16:80] == 3).all()
    with pytest.raises(FragirError, match="the innermost coordinate is 17, "):
        kernel(c, 17, on="emulator")


def test_rows_that_end_within_16_bytes() -> None:
    narrow, open_ = "memref<?x470xf16, strided<[512, 1]>>", "memref<?x?xf16, strided<[512, 1]>>"
    fragir.compile(program(INTO.replace("AT", "0"), narrow), target="sm_90a")  # is read as zeros
    for copy in (OUT, ADD):
        with pytest.raises(
            FragirError, match="have 940 bytes, and the copy engine writes multiples"
        ):
            fragir.compile(program(copy.replace("AT", "0"), narrow), target="sm_90a")
        kernel = fragir.compile(program(copy.replace("AT", "0"), open_), target="sm_90a")
        whole = np.zeros((32, 512), np.float16)
        with pytest.raises(
            FragirError, match="c has rows of 940 bytes; the kernel writes it by TMA"
        ):
            kernel(whole[:, :470], 0, on="emulator")
        kernel(whole[:, :472], 0, on="emulator", check=True)


@pytest.mark.parametrize(
    ("n", "pitch", "by_tma"),
    [(470, 512, False), ("n", 512, False), ("n", None, True), (472, 512, True), (472, None, True)],
)
def test_a_product_with_roles(n: Any, pitch: int | None, by_tma: bool) -> None:
    """It stores by TMA where rows end with 16 bytes, else by threads."""
    strides = None if pitch is None else (pitch, 1)
    with fragir.kernel("product") as k:
        a, b = k.memory("a", f16, ("m", 64)), k.memory("b", f16, (64, n), strides=strides)
        c = k.memory("c", f16, ("m", n), strides=strides)
        k.matmul(a, b, into=c, roles=True, tile=(64, 64, 64))
    kernel = k.compile("sm_90a")
    assert ("global.shared::cta" in kernel.ptx) == by_tma
    if n != 470:
        return
    x, y = np.ones((65, 64), np.float16), np.ones((64, 512), np.float16)
    whole = np.full((65, 512), 7, np.float16)
    report = kernel(x, y[:, :470], whole[:, :470], on="emulator", check=True)
    assert report.findings == []
    assert (whole[:, :470] == 64).all()
    assert (whole[:, 470:] == 7).all()


def test_what_indices_are_multiples_of() -> None:
    """Tiles begin at multiples of their size, groups of rows do not."""
    text = """
    func.func @f(%c: memref<?x512xf16>, %e: memref<?xi32>, %j: index) {
      %c1 = arith.constant 1 : index
      %c24 = arith.constant 24 : index
      %c64 = arith.constant 64 : index
      %a = arith.muli %j, %c64 : index
      %b = arith.addi %a, %c24 : index
      %d = arith.subi %b, %c1 : index
      frag.for_tiles (%row, %col) within (%g, %end) of (%j, 512) by (64, 32) persistent
          groups %e : memref<?xi32> {
        scf.for %i = %c24 to %col step %c64 {
          %n = memref.dim %c, %i : memref<?x512xf16>
          %o = memref.dim %c, %row : memref<?x512xf16>
          %p = memref.dim %c, %col : memref<?x512xf16>
          scf.yield
        }
      }
      func.return
    }"""
    module = parse(text)
    values = {value.name_hint: value for op in module.walk() for value in _values(op)}
    known = {name: divisor_of(values[name]) for name in ("a", "b", "d", "j", "i", "row", "col")}
    assert known == {"a": 64, "b": 8, "d": 1, "j": 1, "i": 8, "row": 1, "col": 32}


def _values(op: Operation) -> list[SSAValue]:
    return [*op.results, *(arg for r in op.regions for block in r.blocks for arg in block.args)]
