"""Accumulators' bytes through shared memory: two at a time, without conflicts of banks."""

from __future__ import annotations

import numpy as np
import pytest

import fragir

PROGRAM = """
!shared = memref<32x64xELEMENT, #frag.shared<swizzle = 64>>
func.func @f(%a: memref<32x64xELEMENT>, %b: memref<32x64xELEMENT>) {
  %s = memref.alloc() : !shared
  %t = frag.load %a[0, 0] : memref<32x64xELEMENT> -> !frag.tile<32x64xELEMENT, LAYOUT>
  frag.store %t, %s[0, 0] : !frag.tile<32x64xELEMENT, LAYOUT>, !shared
  frag.barrier
  %u = frag.load %s[0, 0] : !shared -> !frag.tile<32x64xELEMENT, LAYOUT>
  frag.store %u, %b[0, 0] : !frag.tile<32x64xELEMENT, LAYOUT>, memref<32x64xELEMENT>
  func.return
}
"""
LAYOUTS = {
    "accumulators": "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 8:(0,8) 2:(16,0)]",
    "rows first": "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 4:(8,0) 8:(0,8)]",
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
def test_there_and_back(layout: str, target: str) -> None:
    text = PROGRAM.replace("ELEMENT", "si8")
    text = text.replace("LAYOUT", f'#frag.layout<"{LAYOUTS[layout]}">')
    kernel = fragir.compile(text, target=target)
    a = np.arange(32 * 64, dtype=np.int64).astype(np.int8).reshape(32, 64)
    b = np.zeros_like(a)
    report = kernel(a, b, on="emulator", check=True)
    assert report.findings == []
    np.testing.assert_array_equal(a, b)
    assert kernel.ptx.count("st.shared.b16") == kernel.ptx.count("ld.shared.b16") == 32
    counts = report.statistics.conflicts
    assert counts["passes"] == counts["passes_needed"]
