"""ldmatrix and stmatrix are chosen where the machine has them; elsewhere lanes load and store."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir.errors import FragirError
from fragir.toolchain.find import PTXAS, find
from fragir.toolchain.ptxas import assemble

MEMORY, SHARED = "memref<16x16xf16>", "memref<16x16xf16, #frag.shared>"
A = "!frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a, warps = [1, 1]>>"


def program(turned: str) -> str:
    """A fragment of A out of shared memory, perhaps transposed, and into shared memory again."""
    return f"""
func.func @f(%a: {MEMORY}, %c: {MEMORY}) attributes {{frag.warps = array<i64: 1, 1>}} {{
  %s = memref.alloc() : {SHARED}
  %r = memref.alloc() : {SHARED}
  frag.copy %a[0, 0] to %s[] : {MEMORY} to {SHARED}
  frag.barrier
  %t = frag.load %s[0, 0] {turned} : {SHARED} -> {A}
  frag.store %t, %r[0, 0] : {A}, {SHARED}
  frag.barrier
  %u = frag.load %r[0, 0] : {SHARED} -> !frag.tile<16x16xf16>
  frag.store %u, %c[0, 0] : !frag.tile<16x16xf16>, {MEMORY}
  func.return
}}
"""


@pytest.mark.parametrize("turned", ["", "transposed"])
@pytest.mark.parametrize(
    ("target", "loads", "stores"),
    [("sm_70", False, False), ("sm_75", True, False), ("sm_90", True, True)],
)
def test_only_where_the_machine_has_them(
    target: str, loads: bool, stores: bool, turned: str
) -> None:
    """ldmatrix is there from sm_75 on, stmatrix from sm_90 (PTX ISA 9.2, section 9.7.14.5)."""
    kernel = fragir.compile(program(turned), target=target)
    assert ("ldmatrix" in kernel.ptx) == loads
    assert ("stmatrix" in kernel.ptx) == stores
    a = np.arange(256, dtype=np.float16).reshape(16, 16)
    c = np.zeros_like(a)
    assert not kernel(a, c, on="emulator", check=True).findings
    assert np.array_equal(c, a.T if turned else a)
    try:  # the last that knows sm_70
        find(PTXAS, "12.9")
    except FragirError:
        pytest.skip("no ptxas 12.9 here")
    assert assemble(kernel.ptx, target, version="12.9").entries["f"].registers
