"""Where the elements of fragments come from, and fragments that are no matrix."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fragir
from fragir.emulator import Report, run
from fragir.emulator.checks.fragments.patterns import TORN, UNKNOWN, fit, permutation

from .faults import FOLDER, Fault

FAULTS = [Fault(p.stem, p.read_text()) for p in sorted((FOLDER / "fragments").glob("*.ptx"))]
EXAMPLES = Path(__file__).parents[2] / "examples"


def says(fault: Fault) -> str:
    """Part of the message that the file promises."""
    found = re.search(r"^// says (.+)$", fault.text, re.MULTILINE)
    assert found is not None
    return found[1]


def examine(fault: Fault, *, mended: bool, check: bool = False) -> Report:
    block = re.search(r"block (\d+)", fault.text)
    assert block is not None
    data = np.arange(4096, dtype=np.uint32)
    text = fault.ptx(mended=mended)
    return run(text, block=(int(block[1]),), arguments=[data], fragments=True, check=check)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_planted_faults(fault: Fault) -> None:
    findings = examine(fault, mended=False).findings
    assert {f.kind for f in findings} == {"fragment"}
    assert {f.line for f in findings} == {fault.line}
    assert says(fault) in findings[0].message
    assert all(f.warp is not None and f.lane is not None for f in findings)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_mended_twins(fault: Fault) -> None:
    report = examine(fault, mended=True, check=True)
    assert report.findings == []
    found = {(u.operand, u.buffer, u.consistent) for u in report.fragments}
    assert {("A", "argument 0 (data)", True), ("B", "argument 0 (data)", True)} <= found


def test_there_are_faults() -> None:
    assert len(FAULTS) >= 16


def test_nothing_unless_asked() -> None:
    data = np.arange(4096, dtype=np.uint32)
    (fault,) = (f for f in FAULTS if f.name == "one-lane")
    report = run(fault.ptx(mended=False), arguments=[data], check=True)
    assert report.findings == []
    assert report.fragments == []


def test_lane_and_warp_of_a_finding() -> None:
    (fault,) = (f for f in FAULTS if f.name == "one-lane")
    (finding,) = examine(fault, mended=False).findings
    assert (finding.warp, finding.lane) == (0, 5)
    assert "2 of 256 elements" in finding.message
    (fault,) = (f for f in FAULTS if f.name == "wgmma-registers")
    (finding,) = examine(fault, mended=False).findings
    assert (finding.warp, finding.lane) == (2, 0)


def test_what_arrives_where() -> None:
    (fault,) = (f for f in FAULTS if f.name == "column-major")
    uses = {u.operand: u for u in examine(fault, mended=True).fragments}
    assert (uses["A"].shape, uses["A"].bits, uses["A"].first) == ((16, 16), 16, 0)
    assert (uses["A"].row_stride, uses["A"].column_stride) == (8 * 32, 8 * 2)
    assert (uses["B"].shape, uses["B"].first) == ((16, 8), 2048)
    assert (uses["B"].row_stride, uses["B"].column_stride) == (8 * 16, 8 * 2)
    assert (uses["C"].first, uses["C"].row_stride, uses["C"].column_stride) == (4096, 256, 32)
    assert {u.count for u in uses.values()} == {1}


def kernel(loads: str) -> str:
    """One mma of A at byte 0 and B at byte 2048 of the buffer, after `loads`."""
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{{
    .reg .b32 %r<40>; .reg .b64 %rd<16>; .reg .f32 %f<9>; .reg .b16 %h<9>; .reg .pred %p<3>;
    mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 2; and.b32 %r3, %r1, 3;
    ld.param.u64 %rd1, [data];
    mul.lo.u32 %r5, %r2, 32; mad.lo.u32 %r5, %r3, 4, %r5; cvt.u64.u32 %rd2, %r5;
    add.u64 %rd2, %rd1, %rd2;
    ld.global.b32 %r10, [%rd2]; ld.global.b32 %r11, [%rd2+256];
    ld.global.b32 %r12, [%rd2+16]; ld.global.b32 %r13, [%rd2+272];
    ld.global.b32 %r14, [%rd2+2048]; ld.global.b32 %r15, [%rd2+2064];
    mov.f32 %f1, 0f00000000;
    {loads}
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f5, %f6, %f7, %f8}},
        {{%r10, %r11, %r12, %r13}}, {{%r14, %r15}}, {{%f1, %f1, %f1, %f1}};
    st.global.f32 [%rd2], %f5;
    ret;
}}
"""


@pytest.mark.parametrize(
    "loads",
    [
        "",
        "setp.gt.u32 %p1, %r2, 4; @%p1 mov.b32 %r11, 0; @%p1 mov.b32 %r13, 0;",  # a border
        "add.f16x2 %r10, %r10, %r10; neg.f16x2 %r14, %r14;",  # computed: no origin
        "mov.b32 {%h1, %h2}, %r10; mov.b32 %r10, {%h1, %h2};",
        "shr.u32 %r20, %r10, 16; and.b32 %r21, %r10, 0xffff; shl.b32 %r20, %r20, 16;"
        " or.b32 %r10, %r20, %r21;",
        "prmt.b32 %r20, %r10, %r11, 0x5410; prmt.b32 %r21, %r10, %r11, 0x7632;"
        " prmt.b32 %r10, %r20, %r21, 0x5410; prmt.b32 %r11, %r20, %r21, 0x7632;",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r14, %r14;"
        " movmatrix.sync.aligned.m8n8.trans.b16 %r14, %r14;",
        "mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0;",
        "ld.global.b32 %r10, [%rd1]; mov.b32 %r11, %r10; mov.b32 %r12, %r10; mov.b32 %r13, %r10;"
        " mov.b32 {%h1, %h2}, %r10; mov.b32 %r10, {%h1, %h1}; mov.b32 %r11, %r10;"
        " mov.b32 %r12, %r10; mov.b32 %r13, %r10;",  # one element everywhere
    ],
)
def test_silent_on_right_kernels(loads: str) -> None:
    data = np.arange(4096, dtype=np.uint32)
    assert run(kernel(loads), arguments=[data], fragments=True, check=True).findings == []


@pytest.mark.parametrize(
    "loads",
    [
        "mov.b32 {%h1, %h2}, %r10; mov.b32 %r10, {%h2, %h1};",
        "shr.u32 %r20, %r10, 16; and.b32 %r21, %r11, 0xffff; shl.b32 %r20, %r20, 16;"
        " or.b32 %r10, %r20, %r21;",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r14, %r14;",
        "shfl.sync.up.b32 %r14, %r14, 1, 0, 0xffffffff;",
        "setp.eq.u32 %p1, %r1, 9; selp.b32 %r10, %r12, %r10, %p1;",
        "bfi.b32 %r10, %r11, %r10, 16, 16;",
    ],
)
def test_moves_that_break_the_fragment(loads: str) -> None:
    data = np.arange(4096, dtype=np.uint32)
    findings = run(kernel(loads), arguments=[data], fragments=True).findings
    assert [f.kind for f in findings] == ["fragment"]


# -- compilers -------------------------------------------------------------------------------------


def static_examples() -> list[tuple[str, str, str]]:
    """(file, function, target) of the examples with fragments whose sizes are all given."""
    found: list[tuple[str, str, str]] = []
    for path in sorted(EXAMPLES.glob("*.mlir")):
        text = path.read_text()
        if "?" in text or "frag.tcgen05_mma" in text:
            continue  # tcgen05.mma has no fragments: both operands and the sums are in memory
        targets: tuple[str, ...] = ("sm_80", "sm_90a")
        if " scaled " in text:
            targets = ("sm_120a",)
        elif re.search("wgmma|stmatrix|fp8|e4m3", path.name + text):
            targets = ("sm_90a",)
        for entry in re.findall(r"func\.func @(\w+)", text):
            found += [(path.name, entry, target) for target in targets]
    return found


@pytest.mark.parametrize(("name", "entry", "target"), static_examples())
def test_examples(name: str, entry: str, target: str) -> None:
    """What the compiler makes is silent, and its fragments are matrices."""
    kernel = fragir.compile((EXAMPLES / name).read_text(), target=target, entry=entry)
    if any(not argument.is_memory for argument in kernel.signature):
        pytest.skip("takes scalars")
    sizes = [int(np.prod([int(d) for d in a.dims])) * 8 for a in kernel.signature]
    # metadata of a sparse product has two indices of four that ascend
    value = 0x44 if "sparse" in name else 0
    arguments = [np.full(size, value, np.uint8) for size in sizes]
    report = run(
        kernel.ptx,
        kernel.name,
        grid=kernel.grid({}),
        block=kernel.block,
        arguments=arguments,
        shared=kernel.shared,
        fragments=True,
        check=True,
    )
    assert report.findings == []
    if report.statistics.mma and "f32_rounded" not in entry:
        # B's 4-bit floats of mxf8 are shifted by two bits on their way: no byte of memory is left
        wanted = {"A", "SFA", "SFB"} if entry == "mxf8" else {"A", "B"}
        assert {u.operand for u in report.fragments} >= wanted


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("sizes", [(72, 40, 56), (64, 64, 64)])
def test_compiled_gemm(target: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    kernel = fragir.compile((EXAMPLES / "gemm.mlir").read_text(), target=target)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    arguments = [a, b, c, 1.0, 0.0]
    grid = kernel.grid(kernel.sizes(arguments))
    report = kernel.launch(
        grid, kernel.block, *arguments, on="emulator", fragments=True, check=True
    )
    assert report.findings == []
    assert {u.operand for u in report.fragments} >= {"A", "B"}
    assert all(u.consistent for u in report.fragments)
    assert (c == a.astype(np.float64) @ b.astype(np.float64)).all()


CUDA = """
#include <mma.h>
using namespace nvcuda;
// C[M, N] = A[M, K] B[K, N]: blocks of 4 warps, 64x64 tiles through shared memory.
extern "C" __global__ void gemm(const half *a, const half *b, float *c, int n, int k) {
    __shared__ half left[64][24], right[16][72];
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4];
    for (int j = 0; j < 4; ++j) wmma::fill_fragment(sum[j], 0.0f);
    int warp = threadIdx.x / 32, row = blockIdx.y * 64, col = blockIdx.x * 64;
    for (int at = 0; at < k; at += 16) {
        for (int i = threadIdx.x; i < 64 * 16; i += 128) {
            left[i / 16][i % 16] = a[(row + i / 16) * k + at + i % 16];
            right[i / 64][i % 64] = b[(at + i / 64) * n + col + i % 64];
        }
        __syncthreads();
        unsigned x[4], y[2];
        int lane = threadIdx.x % 32;
        unsigned from = (unsigned)__cvta_generic_to_shared(
            &left[warp * 16 + lane % 16][lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from));
        for (int j = 0; j < 8; ++j) {
            from = (unsigned)__cvta_generic_to_shared(&right[lane % 16][j * 8]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                : "=r"(y[0]), "=r"(y[1]) : "r"(from));
            float *d = &sum[j / 2].x[j % 2 * 4];
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        }
        __syncthreads();
    }
    int lane = threadIdx.x % 32;
    for (int j = 0; j < 8; ++j)
        for (int i = 0; i < 4; ++i)
            c[(row + warp * 16 + lane / 4 + i / 2 * 8) * n + col + j * 8 + lane % 4 * 2 + i % 2]
                = sum[j / 2].x[j % 2 * 4 + i];
}
"""


@pytest.fixture(scope="module")
def nvcc_gemm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """nvcc's PTX of a GEMM."""
    own = Path(np.__file__).parents[1] / "nvidia" / "cu13" / "bin" / "nvcc"
    found = [p for p in (shutil.which("nvcc"), str(own)) if p and Path(p).exists()]
    if not found:
        pytest.skip("no nvcc: install the CUDA toolkit")
    folder = tmp_path_factory.mktemp("nvcc")
    (folder / "gemm.cu").write_text(CUDA)
    done = subprocess.run(
        [found[0], "-arch", "sm_80", "-ptx", "gemm.cu"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"nvcc does not work: {done.stderr[:300]}")
    return (folder / "gemm.ptx").read_text()


def multiply(text: str) -> tuple[Report, int]:
    """The report of a GEMM, and how many elements of the result are wrong."""
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((64, 48), (48, 128)))
    c = np.zeros((64, 128), np.float32)
    report = run(
        text,
        grid=(2,),
        block=(128,),
        arguments=[a, b, c, 128, 48],
        fragments=True,
        check=True,
    )
    return report, int((c != a.astype(np.float64) @ b.astype(np.float64)).sum())


def test_nvcc(nvcc_gemm: str) -> None:
    report, wrong = multiply(nvcc_gemm)
    assert (report.findings, wrong) == ([], 0)
    a, b = (next(u for u in report.fragments if u.operand == o) for o in "AB")
    assert (a.buffer[:10], a.row_stride, a.column_stride) == ("argument 0", 48 * 16, 16)
    assert (b.buffer[:10], b.row_stride, b.column_stride) == ("argument 1", 128 * 16, 16)


def test_nvcc_with_faults(nvcc_gemm: str) -> None:
    """The same without .trans, and with two registers of A swapped."""
    swapped = re.sub(
        r"(mma\.sync.*?\{[^}]*\}, *\{ *)(%r\d+), *(%r\d+), *(%r\d+)", r"\1\2, \4, \3", nvcc_gemm
    )
    assert swapped != nvcc_gemm
    report, wrong = multiply(swapped)
    assert wrong
    assert {f.kind for f in report.findings} == {"fragment"}
    forgotten = nvcc_gemm.replace("bar.sync", "// bar.sync")
    report, _ = multiply(forgotten)
    assert report.findings


# -- fitting ---------------------------------------------------------------------------------------

STRIDES = st.integers(-4096, 4096)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 1 << 30), STRIDES, STRIDES, st.sets(st.integers(0, 127), max_size=30), st.data()
)
def test_fit_finds_the_outliers(
    base: int, rows: int, columns: int, moved: set[int], data: st.DataObject
) -> None:
    """Of a matrix with few elements elsewhere, exactly those are named."""
    row, column = np.indices((16, 8))
    places = (1 << 40) + base + row * rows + column * columns
    flat = places.reshape(-1)
    for index in moved:
        flat[index] += data.draw(st.integers(1, 1 << 20).map(lambda x: x * 65537))
    found = fit(places)
    assert set(np.flatnonzero(found.outliers.reshape(-1))) == moved
    assert (found.base - (1 << 40), found.rows, found.columns) == (base, rows, columns)


def test_unknown_elements_are_left_out() -> None:
    row, column = np.indices((16, 8))
    places = 100 + 32 * row + 2 * column
    places[3:9] = UNKNOWN
    places[2, 2] = TORN
    found = fit(places)
    assert (found.base, found.rows, found.columns) == (100, 32, 2)
    assert np.argwhere(found.outliers).tolist() == [[2, 2]]


def test_coordinates() -> None:
    row, column = np.indices((16, 16))
    found = fit(64 + 512 * row + 16 * column)
    assert found.coordinates(64 + 512 * 3 + 16 * 5) == (3, 5)
    assert found.coordinates(64 + 8) is None
    assert found.coordinates(0) is None


def test_permutation_of_k() -> None:
    order = np.array([0, 1, 4, 5, 2, 3, 6, 7])
    a = 16 * order[None, :] + 1024 * np.arange(16)[:, None]
    b = 4096 + 512 * order[:, None] + 16 * np.arange(8)[None, :]
    assert permutation(a, 1) == permutation(b, 0) == tuple(order)
    a[3, 3] += 1
    assert permutation(a, 1) is None


@pytest.mark.parametrize("kind", ["s64", "u64", "b64"])
def test_two_elements_loaded_as_one_number(kind: str) -> None:
    """The origin of bytes is kept whatever the type says of them."""
    (fault,) = (f for f in FAULTS if f.name == "accumulator")
    apart = "ld.global.v2.f32 {%f1, %f2}, [%rd4+4096];"
    text = fault.ptx(mended=True)
    assert apart in text
    for order, kinds in (("{%f1, %f2}", set[str]()), ("{%f2, %f1}", {"fragment"})):
        together = f"ld.global.{kind} %rd9, [%rd4+4096]; mov.b64 {order}, %rd9;"
        data = np.arange(4096, dtype=np.uint32)
        report = run(text.replace(apart, together), arguments=[data], fragments=True)
        assert {f.kind for f in report.findings} == kinds
        assert {u.consistent for u in report.fragments if u.operand == "C"} == {not kinds}


def test_what_a_shift_fills_has_no_origin() -> None:
    """Whether the bits are zeros or copies of the sign."""
    (fault,) = (f for f in FAULTS if f.name == "accumulator")
    apart = "ld.global.v2.f32 {%f1, %f2}, [%rd4+4096];"
    found: list[list[str]] = []
    for kind in ("u64", "s64"):
        shifted = f"ld.global.b64 %rd9, [%rd4+4096]; shr.{kind} %rd9, %rd9, 32;"
        text = fault.ptx(mended=True).replace(apart, shifted + " mov.b64 {%f1, %f2}, %rd9;")
        data = np.arange(4096, dtype=np.uint32)
        found.append([f.message for f in run(text, arguments=[data], fragments=True).findings])
    assert found[0] == found[1]
    assert "32 of 96 elements are wrong" in found[0][0]  # all of register 0; register 1 is unknown
