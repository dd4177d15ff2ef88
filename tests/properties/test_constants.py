"""Constants of every type in a tile: the nearest number of the type, as the reference says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .judge import examples, judge

TYPES = ("f16", "bf16", "tf32", "f32", "f64", "f8E4M3FN", "f8E5M2")


# halfway between numbers of small types, beyond the largest, below the smallest
SPECIAL = [0.0, 1.0, -448.0, 464.0, 60000.0, -60000.0, 2.0**-9, 2.0**-10, 3 * 2.0**-10, 1e-7]


@pytest.mark.parametrize("element", TYPES)
@examples(5)
@given(value=st.floats(-1e3, 1e3) | st.sampled_from(SPECIAL))
def test_floats(element: str, value: float) -> None:
    tile = f"!frag.tile<8x16x{element}>"
    judge(
        f"""func.func @k(%d: memref<8x16x{element}>) {{
  %x = arith.constant {value:.20e} : {element}
  %0 = frag.fill %x : {tile}
  frag.store %0, %d[0, 0] : {tile}, memref<8x16x{element}>
  func.return
}}""",
        "sm_89",
        # e4m3 has no infinity: what is beyond its largest number is NaN, here everywhere
        unjudged=1.0 if element == "f8E4M3FN" and abs(value) > 464 else 0.0,
    )


@pytest.mark.parametrize("value", [0, 1, -1, 127, -128])
def test_bytes(value: int) -> None:
    tile = "!frag.tile<8x16xi8>"
    judge(
        f"""func.func @k(%d: memref<8x16xi8>) {{
  %x = arith.constant {value} : i8
  %0 = frag.fill %x : {tile}
  frag.store %0, %d[0, 0] : {tile}, memref<8x16xi8>
  func.return
}}""",
        "sm_80",
    )
