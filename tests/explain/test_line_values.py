"""What operands and registers of PTX held: against numpy, and against what the text says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir.errors import FragirError
from fragir.explain.held import RegisterAsked, decode_elements, parse_request
from fragir.explain.line_values import line_values

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PRODUCT = (EXAMPLES / "hand_written.ptx").read_text()
MMA = PRODUCT.splitlines().index("    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") + 1
LDMATRIX = next(n for n, line in enumerate(PRODUCT.splitlines(), 1) if "ldmatrix" in line)


def product() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (32, 16)).astype(np.float16)
    b = rng.integers(-4, 5, (8, 16)).astype(np.float16)
    return a, b, np.zeros((32, 8), np.float32)


@pytest.mark.parametrize("warp", [None, 1])
def test_operands_of_an_mma(warp: int | None) -> None:
    a, b, c = product()
    at = f"{MMA}" if warp is None else f"{MMA}/{warp}"
    found = {one.name: one for one in line_values(PRODUCT, at, block=(64,), arguments=[a, b, c])}
    assert list(found) == ["a", "b", "c", "d"]
    own = a[16 * (warp or 0) : 16 * (warp or 0) + 16]
    np.testing.assert_array_equal(found["a"].matrix, own)
    np.testing.assert_array_equal(found["b"].matrix, b.T)
    assert not found["c"].matrix.any()
    np.testing.assert_array_equal(found["d"].matrix, own.astype(np.float32) @ b.T)
    slot = found["a"].slot(9, 3)
    assert slot is not None
    assert slot == (warp or 0, 5, 3)  # row 9: group 1, columns 2 and 3: thread 1; third element
    assert not c.any()


def test_matrices_of_ldmatrix_by_a_type() -> None:
    """Four matrices of 8 x 8: upper left, lower left, upper right, lower right of A."""
    a, b, c = product()
    (one,) = line_values(PRODUCT, f"{LDMATRIX}=f16", block=(64,), arguments=[a, b, c])
    assert one.shape == (8, 8, 4)
    for number, (row, col) in enumerate([(0, 0), (8, 0), (0, 8), (8, 8)]):
        np.testing.assert_array_equal(one.matrix[..., number], a[row : row + 8, col : col + 8])
    (bits,) = line_values(PRODUCT, f"{LDMATRIX}", block=(64,), arguments=[a, b, c])
    np.testing.assert_array_equal(bits.matrix, one.matrix.view(np.uint16))


def test_registers_of_lanes() -> None:
    a, b, c = product()
    options = {"block": (64,), "arguments": [a, b, c]}
    halves, whole = line_values(PRODUCT, f"{MMA}:%a0=f16x2,%r1", **options)
    assert halves.shape == (2, 32, 2)
    lane = np.arange(32)
    rows, cols = lane // 4, 2 * (lane % 4)
    for warp in range(2):
        np.testing.assert_array_equal(halves.matrix[warp, :, 0], a[16 * warp + rows, cols])
        np.testing.assert_array_equal(halves.matrix[warp, :, 1], a[16 * warp + rows, cols + 1])
    np.testing.assert_array_equal(whole.matrix, np.arange(64).reshape(2, 32))
    (before,) = line_values(PRODUCT, f"{MMA}:%c0=f32", **options)
    (behind,) = line_values(PRODUCT, f"{MMA}+:%c0", **options)
    assert not before.matrix.any()
    np.testing.assert_array_equal(behind.matrix[1], (a[16:].astype(np.float32) @ b.T)[rows, cols])


LOOP = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry turns(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .f32 %f<9>;
    .reg .b64 %rd<2>;
    mov.u32 %r0, %laneid;
    mov.u32 %r1, 0;
again:
    add.u32 %r1, %r1, 3;
    setp.lt.u32 %p, %r1, %r0;
    @%p bra again;
    MMA {%f0,%f1,%f2,%f3}, {%r0,%r1,%r0,%r1}, {%r0,%r1}, {1.0,1.0,1.0,1.0};
    MMA {%f4,%f5,%f6,%f7}, {%r0,%r1,%r0,%r1}, {%r0,%r1}, {2.0,2.0,2.0,2.0};
    ld.param.u64 %rd0, [out];
    @%p mov.u32 %r2, 1;
    st.global.u32 [%rd0], %r1;
    trap;
}
""".replace("MMA", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")


def turns(at: str, text: str = LOOP) -> Any:
    (one,) = line_values(text, at, arguments=[np.zeros(1, np.uint32)])
    return one


def test_each_lane_counts_its_own_turns() -> None:
    """Lane i comes round max(1, ceil(i / 3)) times."""
    lanes = np.arange(32)
    often = np.maximum(1, -(-lanes // 3))
    third = turns("13:%r1@3")
    np.testing.assert_array_equal(third.known[0], often >= 3)
    np.testing.assert_array_equal(third.matrix[0], np.where(often >= 3, 6, 0))
    last = turns("13+:%r1@last")
    np.testing.assert_array_equal(last.matrix[0], 3 * often)
    assert last.known.all()
    assert last.times == 11
    branch = turns("15:%p@1")
    np.testing.assert_array_equal(branch.matrix[0], lanes > 3)


def test_between_two_mma_that_would_be_one_step() -> None:
    """Neither reads what the other writes, so they run as one where nobody looks."""
    before, between, behind = (turns(at) for at in ("16:%f0", "17:%f0", "17+:%f0"))
    assert not before.matrix.any()
    np.testing.assert_array_equal(between.matrix, behind.matrix)
    assert between.matrix.min() >= 1
    assert not turns("17:%f4").matrix.any()
    assert turns("17+:%f4").matrix.min() >= 2


def test_guarded_statements_are_looked_at_by_all_lanes() -> None:
    assert turns("19:%r0").known.all()


def test_a_run_that_fails_later() -> None:
    """What was seen is told, with how the run ended."""
    assert any("ended with an error" in note for note in turns("20:%r1").notes)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("12:%r1", "line 12 of the PTX has no instruction .the next one stands in line 13"),
        ("99", "line 99 of the PTX has no instruction"),
        ("13:%r9x", "declares no register %r9x"),
        ("13:%r1=f64", "has 32 bits and cannot be read as f64"),
        ("13:%r1=what", "cannot be read as what"),
        ("15+:%r1", "behind bra stands what runs elsewhere"),
        ("21", "trap in line 21 has no register"),
        ("%acc", "is no line of PTX"),
        ("16/3", "warp 3 never came there"),
    ],
)
def test_what_cannot_be_shown(at: str, message: str) -> None:
    with pytest.raises(FragirError, match=message):
        turns(at)


def test_not_so_often() -> None:
    with pytest.raises(FragirError, match="came there 11 times, not 12 times") as told:
        turns("13:%r1@12", LOOP.replace("trap", "ret"))
    assert told.match("@11 or @last")


def test_a_product_under_way() -> None:
    """The accumulator of a wgmma is written at its wait: behind the wgmma that is said."""
    import fragir

    text = (EXAMPLES / "wgmma_shared.mlir").read_text()
    kernel = fragir.compile(text, target="sm_90a")
    lines = kernel.ptx.splitlines()
    first = next(n for n, line in enumerate(lines, 1) if "wgmma.mma_async" in line)
    a, b, c = (tuple(map(int, argument.dims)) for argument in kernel.signature)
    arrays = [np.ones(a, np.float16), np.ones(b, np.float16), np.zeros(c, np.float32)]
    registers = lines[first - 1].split("{")[1].split(",")[0]
    (one,) = line_values(
        kernel.ptx, f"{first}+:{registers}=f32", block=kernel.block, arguments=arrays
    )
    assert "under way" in one.notes[0]


def test_requests() -> None:
    one = parse_request("gemm:%acc@last[1,2]")
    assert (one.kernel, one.name, one.occurrence, one.block) == ("gemm", "acc", None, (1, 2, 0))
    one = parse_request(" 72:12@5 ")
    assert (one.line, one.col, one.occurrence, one.where) == (72, 12, 5, "72:12")
    one = parse_request("58+:%r1,%r2=f16x2/2")
    assert one.registers == (RegisterAsked("%r1"), RegisterAsked("%r2", "f16x2"))
    assert (one.after, one.warp, one.occurrence) == (True, 2, 1)
    assert parse_request("58=bf16").type == "bf16"
    assert parse_request(one) is one


@pytest.mark.parametrize(
    ("element", "codes", "values"),
    [
        ("bf16", [0x3F80, 0xC020], [1.0, -2.5]),
        ("tf32", [0x3FC00000], [1.5]),
        ("e4m3", [0x38, 0xC4], [1.0, -3.0]),
        ("e5m2", [0x3C, 0x41], [1.0, 2.5]),
        ("e2m1", [0x2, 0xD], [1.0, -3.0]),
        ("e2m1x2", [0x2, 0xD], [1.0, -3.0]),
        ("ue8m0", [127, 130], [1.0, 8.0]),
        ("s8", [0xFF, 0x7F], [-1, 127]),
        ("s4", [0xF, 0x7], [-1, 7]),
        ("u4", [0xF, 0x7], [15, 7]),
        ("s64", [(1 << 64) - 2], [-2]),
        ("b1", [1, 0], [1, 0]),
        ("pred", [1, 0], [True, False]),
        ("f64", [0x4004 << 48], [2.5]),
    ],
)
def test_elements(element: str, codes: list[int], values: list[float]) -> None:
    """One and a half, two and a half and so on, by the formats' definitions."""
    found = decode_elements(np.array(codes, np.uint64), element)
    np.testing.assert_array_equal(found, values)
