"""`frag.matmul` with scales that tensor cores multiply in: mxfp8, mxfp4 and nvfp4."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragir
from fragir.errors import FragirError
from tests.passes.block_scaled import FP4, Case


def check(case: Case, target: str = "sm_100a", seed: int = 1) -> fragir.Kernel:
    """The kernel, with every check on: nothing is found, and the product is exact."""
    kernel = fragir.compile(case.text, target=target)
    arguments, expected = case.data(seed)
    report = kernel(*arguments, on="emulator", check=True)
    assert report.findings == []
    assert report.schedules.every
    assert np.array_equal(arguments[-1].astype(np.float64), expected.astype(np.float64))
    return kernel


CASES = {
    "chunks": Case((200, 136, 304)),
    "rows": Case((200, 136, 304), lie=("rows", "rows")),
    "turned": Case((130, 72, 160), b="f8E5M2", lie=("turned", "turned")),
    "one of each": Case((136, 64, 128), a="f8E5M2", lie=("rows", "chunks"), c="bf16"),
    "across": Case((144, 80, 96), turned=(True, False), lie=("rows", "rows")),
    "few columns": Case((64, 16, 32)),
    "mxfp4": Case((130, 144, 544), FP4, FP4),
    "mxfp4 rows": Case((130, 144, 352), FP4, FP4, lie=("rows", "rows")),
    "nvfp4": Case((130, 144, 544), FP4, FP4, "f8E4M3FN", 16),
    "nvfp4 rows": Case((136, 72, 352), FP4, FP4, "f8E4M3FN", 16, lie=("rows", "turned")),
    "powers for 16": Case((128, 64, 256), FP4, FP4, "f8E8M0FNU", 16),
    "wide": Case((130, 264, 128), attributes="{tile = array<i64: 128, 256, 128>}"),
    "192": Case(
        (130, 264, 128), lie=("rows", "rows"), attributes="{tile = array<i64: 128, 192, 128>}"
    ),
    "batch": Case((130, 72, 160), lie=("rows", "rows"), batch=2),
    "nothing": Case((16, 16, 0)),
    "cluster": Case((208, 72, 160), lie=("rows", "chunks"), attributes="{cluster = 2 : i64}"),
}


@pytest.mark.parametrize("name", CASES)
def test_matmul(name: str) -> None:
    kernel = check(CASES[name])
    assert "block_scale" in kernel.ptx
    assert "tcgen05.mma" in kernel.ptx
    (entry,) = kernel.assembled.entries.values()
    assert (entry.spill_loads, entry.spill_stores) == (0, 0)


@settings(max_examples=6, deadline=None)
@given(
    st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 12)),
    st.sampled_from(["mxfp8", "mxfp4", "nvfp4"]),
    st.tuples(*2 * [st.sampled_from(["rows", "turned", "chunks"])]),
    st.integers(0, 1000),
)
def test_random(size: tuple[int, int, int], form: str, lie: tuple[str, str], seed: int) -> None:
    m, n, k = size
    if form == "mxfp8":
        case = Case((13 * m, 4 * n, 16 * k), lie=lie)
    else:
        scale = {"mxfp4": ("f8E8M0FNU", 32), "nvfp4": ("f8E4M3FN", 16)}[form]
        case = Case((13 * m, 4 * n, 32 * k), FP4, FP4, *scale, lie=lie)
    check(case, seed=seed)


def test_the_same_by_warps() -> None:
    """sm_120a multiplies them with mma.sync: a matrix of scales is read by the same program."""
    kernel = check(Case((72, 40, 96), lie=("rows", "turned")), "sm_120a")
    assert "mma.sync" in kernel.ptx
    assert "block_scale" in kernel.ptx


@pytest.mark.parametrize(
    ("case", "target", "message"),
    [
        (Case((64, 64, 64)), "sm_120a", "scales in chunks are for tensor memory"),
        (Case((64, 64, 64)), "sm_90a", "multiply no scales of blocks in"),
        (Case((64, 64, 40)), "sm_100a", "stride of 40 bytes"),
        (
            Case((64, 64, 64), attributes="{pair}"),
            "sm_100a",
            "in tensor memory on sm_100a, but a pair of blocks does not",
        ),
        (
            Case((64, 256, 64), attributes="{tile = array<i64: 128, 64, 128>}"),
            "sm_100a",
            "tiles of 64 begin within",
        ),
        (
            Case((64, 64, 64), attributes="{tile = array<i64: 128, 64, 64>}"),
            "sm_100a",
            "no multiple of 128, whose scales",
        ),
    ],
)
def test_refused(case: Case, target: str, message: str) -> None:
    with pytest.raises(FragirError, match=message):
        fragir.compile(case.text, target=target)


def test_roles() -> None:
    """Scales that threads put into chunks have a role of their own: TMA runs ahead of it."""
    for name, waits in (("rows", 6), ("chunks", 4)):
        kernel = fragir.compile(CASES[name].text, target="sm_100a")
        assert kernel.block == (256, 1, 1)
        assert kernel.ptx.count("tcgen05.cp") == 2
        assert kernel.ptx.count("mbarrier.try_wait") == waits


def test_from_python() -> None:
    case = Case((72, 64, 96), lie=("rows", "rows"))
    with fragir.kernel("product", target="sm_100a") as k:
        a, b = (k.memory(name, fragir.e4m3, (rows, 96)) for name, rows in (("a", 72), ("b", 64)))
        x, y = (k.memory(name, fragir.ue8m0, (rows, 3)) for name, rows in (("x", 72), ("y", 64)))
        c = k.memory("c", fragir.f32, (72, 64))
        k.matmul(
            *(a, b),
            into=c,
            transposed_b=True,
            scale_a=x,
            scale_b=y,
            block_a=(1, 32),
            block_b=(32, 1),
            transposed_scale_b=True,
        )
    arguments, expected = case.data()
    k.compile()(*arguments, on="emulator")
    assert np.array_equal(arguments[-1], expected)
