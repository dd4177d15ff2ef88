"""What tiles and scalars of a program held in a run: against numpy on the same arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir.errors import FragirError
from fragir.explain.held import HeldValue
from fragir.explain.values import several_values, values

ROOT = Path(__file__).resolve().parents[2]
GEMM = (ROOT / "examples" / "gemm_frag.mlir").read_text()


def numbers(*shape: int, seed: int = 0) -> Any:
    """Integers as f16, of which sums of products are exact in f32."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float16)


A, B, BIAS = numbers(200, 100), numbers(100, 150, seed=1), numbers(150, seed=2)


def gemm(*at: str) -> list[HeldValue]:
    c = np.zeros((200, 150), np.float16)
    found = several_values(GEMM, (A, B, BIAS, c), at)
    assert not c.any(), "a look changes nothing"
    return found


def test_tiles_of_a_product() -> None:
    """Slices of A and B, the accumulator in the loop and behind it, the epilogue."""
    first, second, ragged, inside, behind, result = gemm(
        "%ta", "%ta@2[1,1]", "%tb@last[1,0]", "72@2", "%total", "%result[0,1]"
    )
    np.testing.assert_array_equal(first.matrix, A[:128, :32])
    assert (first.element, first.matrix.dtype, first.times) == ("f16", np.float16, 4)
    # block (1, 1): rows 128 on, of which 72 there are, the others zero
    np.testing.assert_array_equal(second.matrix[:72], A[128:, 32:64])
    assert not second.matrix[72:].any()
    # the last step has 4 of its 32 rows of B, the right block 22 of its columns
    np.testing.assert_array_equal(ragged.matrix[:4, :22], B[96:, 128:])
    assert not ragged.matrix[4:].any()
    assert not ragged.matrix[:, 22:].any()
    a, b = A.astype(np.float64), B.astype(np.float64)
    np.testing.assert_array_equal(inside.matrix, a[:128, :64] @ b[:64, :128])
    assert (inside.name, inside.occurrence) == ("%sum", 2)
    np.testing.assert_array_equal(behind.matrix, a[:128] @ b[:, :128])
    active = np.maximum(a[128:] @ b[:, :128] + BIAS[:128], 0).astype(np.float16)
    np.testing.assert_array_equal(result.matrix[:72], active)
    for one in (first, second, ragged, inside, behind, result):
        assert one.known.all()
        assert one.notes == one.disagreements == ()


def test_who_held_an_element() -> None:
    """Lane and element are those of the layout: A of m16n8k16, two warps below each other, A the
    same in the two beside each other."""
    (one,) = gemm("%ta")
    assert one.layout is not None
    slot = one.slot(9, 3)
    assert slot is not None
    place = {"warp": slot.warp, "lane": slot.lane, "element": slot.element}
    assert one.layout(**place) == (9, 3)
    assert (slot.warp, slot.lane) == (0, 5)  # row 9 = group 1 + 8, column 3 = thread 1 of four


def test_scalars() -> None:
    k0, more, column, steps = gemm("%k0@3", "%more@last", "%col[1,0]", "%k")
    assert (k0.shape, int(k0.matrix), k0.element) == ((), 64, "s32")
    assert (more.element, bool(more.matrix)) == ("pred", False)
    assert int(column.matrix) == 128
    assert int(steps.matrix) == 100


def test_row_maxima_of_a_softmax() -> None:
    """Held by every lane that has elements of a row: all copies agree."""
    x = np.random.default_rng(3).standard_normal((2, 1300)).astype(np.float32)
    text = (ROOT / "examples" / "rows" / "softmax.mlir").read_text()
    largest, running, again = several_values(
        text,
        (x, np.zeros_like(x)),
        ["%largest", "%largest_1@2", "%largest[1]"],
        entry="softmax",
    )
    np.testing.assert_array_equal(largest.matrix, x[:1].max(axis=1))
    np.testing.assert_array_equal(running.matrix, x[:1, :1024].max(axis=1))
    np.testing.assert_array_equal(again.matrix, x[1:].max(axis=1))
    assert largest.layout is not None
    assert largest.layout.replication() > 1
    assert largest.disagreements == ()


def test_products_under_way() -> None:
    """A tile in flight is not there yet, which is said; what is awaited is."""
    a, b = numbers(128, 320), numbers(320, 128, seed=1)
    text = (ROOT / "examples" / "wgmma_ring.mlir").read_text()
    arguments = (a, b, np.zeros((128, 128), np.float32))
    done, flying = several_values(text, arguments, ["%d[0,1]", "%next"], target="sm_90a")
    np.testing.assert_array_equal(done.matrix, a[64:].astype(np.float64) @ b.astype(np.float64))
    assert done.notes == ()
    assert ["under way" in note for note in flying.notes] == [True]


def test_tiles_of_a_role() -> None:
    """Warps are counted in the block: the role's are behind the one that fetches."""
    text = (ROOT / "tests" / "golden" / "frag_roles.mlir").read_text()
    a = numbers(64, 64)
    one = values(text, (a, np.zeros_like(a)), "%t", target="sm_90a", entry="two")
    np.testing.assert_array_equal(one.matrix, a)
    assert one.known.all()
    warps = set(one.slots[..., 0].ravel().tolist())
    assert len(warps) == 8
    assert max(warps) - min(warps) == 7


def test_programs_of_several_kernels() -> None:
    """Three layers of a network, a kernel each; which kernel is named."""
    text = (ROOT / "examples" / "linalg" / "linears.mlir").read_text()
    shapes = ((40, 64), (96, 64), (96,), (48, 96), (48,), (10, 48), (10,))
    x, w1, b1, w2, b2, w3, b3 = (numbers(*shape, seed=n) for n, shape in enumerate(shapes))
    arguments = (x / 8, w1 / 8, b1, w2 / 8, b2, w3, b3, np.zeros((40, 10), np.float32))
    first, second = several_values(text, arguments, ["linears_0:%result", "linears_1:%result"])
    h1 = np.maximum((x / 8).astype(np.float32) @ (w1 / 8).T.astype(np.float32) + b1, 0)
    h2 = h1.astype(np.float16).astype(np.float32) @ (w2 / 8).T.astype(np.float32) + b2
    np.testing.assert_array_equal(first.matrix[:40, :96], h1.astype(np.float16))
    # the sums of the second have other roundings: one step of f16 at most
    wanted = np.maximum(h2, 0).astype(np.float16)
    np.testing.assert_allclose(second.matrix[:40, :48], wanted, rtol=2**-10, atol=2**-10)
    with pytest.raises(FragirError, match="in several kernels: linears_0, linears_1, linears_2"):
        several_values(text, arguments, ["%result"])


LANES = """
!t = !frag.tile<16x8xf32>
func.func @own(%x: memref<16x8xf32>, %y: memref<16x8xf32>, %some: i32)
    attributes {frag.warps = array<i64: 2, 1>} {
  %t = frag.load %x[0, 0] : memref<16x8xf32> -> !t
  %r = frag.lanes %t in #frag.mma<m16n8k16.f16, c> : !t -> !t like %t {
  ^bb0(%lane: index, %warp: index, %v: vector<4xf32>):
    %n = arith.index_cast %warp : index to i32
    %f = arith.sitofp %n : i32 to f32
    %all = ptx.pack %f, %f, %f, %f : f32, f32, f32, f32 -> vector<4xf32>
    %sum = arith.addf %v, %all : vector<4xf32>
    frag.yield %sum : vector<4xf32>
  }
  %zero = arith.constant 0 : i32
  %never = arith.cmpi slt, %some, %zero : i32
  scf.if %never {
    %there = frag.cast %r : !t -> !frag.tile<16x8xf16>
    %back = frag.cast %there : !frag.tile<16x8xf16> -> !t
    frag.store %back, %y[0, 0] : !t, memref<16x8xf32>
  }
  frag.store %r, %y[0, 0] : !t, memref<16x8xf32>
  func.return
}
"""


def test_copies_that_differ() -> None:
    """Both warps have the tile; their code makes it another in each."""
    x = np.arange(128, dtype=np.float32).reshape(16, 8)
    one = values(LANES, (x, np.zeros_like(x), 1), "%r")
    np.testing.assert_array_equal(one.matrix, x)
    assert len(one.disagreements) == 128
    first = one.disagreements[0]
    assert (first.first.warp, first.second.warp) == (0, 1)
    assert first.first[1:] == first.second[1:]
    assert first.values == (x[first.point], x[first.point] + 1)
    assert "128 copies differ" in one.notes[0]
    assert f"{first}" in one.notes[0]


@pytest.mark.parametrize(
    ("at", "message", "hint"),
    [
        ("%there", "%there: block \\(0,0,0\\) never came there", "another block"),
        ("%r@2", "came there once, not 2 times", "@1 or @last"),
        ("%r[3]", "no block \\(3,0,0\\) ran", "fewer blocks"),
        ("%tt", "there is no %tt among the placed tiles", "%t \\(16x8 f32\\)"),
        ("2:3", "no tile is made at 2:3", "in lines 5, 6, 17, 18"),
        ("15:1", "no tile is made at 15:1", None),
        ("other:%r", "there is no kernel other", "there are own"),
        ("r", "`r` names no value", "write %acc"),
        ("%r@0", "executions count from 1", "@1 is the first"),
        ("0:3", "lines count from 1", None),
        ("7:%r1=", "names no value|no register", None),
    ],
)
def test_what_cannot_be_shown(at: str, message: str, hint: str | None) -> None:
    x = np.zeros((16, 8), np.float32)
    with pytest.raises(FragirError, match=message) as told:
        values(LANES, (x, x.copy(), 1), at)
    if hint is not None:
        assert told.match(hint)


def test_several_at_a_line() -> None:
    with pytest.raises(FragirError, match="at 52 are several") as told:
        gemm("52")
    assert told.match("%acc.*%total")
