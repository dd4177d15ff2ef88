"""Faults planted in kernels that Triton and nvcc wrote, which a tolerance of 1e-2 passes.

Each is one edit of the PTX, by which the kernel computes something a little different at the sizes
and inputs of its case, or something else under another schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fragir.errors import FragirError

HERE = Path(__file__).parent
FOREIGN = HERE.parent / "foreign"


@dataclass(frozen=True)
class Planted:
    """`kernel`: a file of tests/foreign, and the entry where it has several. `case`: FILE:FUNCTION
    of this folder. `old` becomes `new`, where it stands for the
    `nth` time (counted from 0) in the entry, or everywhere. `finds`: what the judge says by: the
    kinds of a reason of which one is expected."""

    kernel: str
    case: str
    why: str
    old: str
    new: str
    finds: tuple[str, ...] = ("result",)
    nth: int | None = 0

    @property
    def name(self) -> str:
        return f"{self.kernel}, {self.why}"

    @property
    def right_name(self) -> str:
        return f"{self.kernel}, {self.case.split(':')[1]}"

    @property
    def cases(self) -> str:
        """What the kernel is judged by, as `fragir judge --case` takes it."""
        file, function = self.case.split(":")
        return f"{HERE / file}.py:{function}"

    def right(self) -> str:
        """The kernel as it was written."""
        return _text(self.kernel.split(":")[0])

    def text(self) -> str:
        """The kernel with the fault. FragirError where the statement is not there."""
        whole = self.right()
        _, _, entry = self.kernel.partition(":")
        start = whole.index(f".entry {entry}(") if entry else 0
        end = whole.find(".entry ", start + 1) if entry else -1
        end = len(whole) if end < 0 else end
        parts = whole[start:end].split(self.old)
        count = len(parts) - 1
        if count < 1 or (self.nth is not None and self.nth >= count):
            raise FragirError(f"{self.name}: {self.old!r} stands there {count} times")
        if self.nth is None:
            changed = self.new.join(parts)
        else:
            at = self.nth + 1
            changed = self.old.join(parts[:at]) + self.new + self.old.join(parts[at:])
        return whole[:start] + changed + whole[end:]


@cache
def _text(kernel: str) -> str:
    return (FOREIGN / f"{kernel}.ptx").read_text("utf-8")


TRITON, CUDA = "triton_ptx/", "cuda/"
_MMA_K = "{ %r87, %r88, %r89, %r90 }"
RACES = ("race", "pending-copy", "pending-source", "wgmma-registers")

#: The last step of K for what is left of a tile is not gone through.
_NO_REST = "{{ .reg .b32 full; and.b32 full, {0}, -32; setp.lt.s32 {1}, full; }}"

PLANTED = (
    # -- constants, and what is multiplied or added
    Planted(
        TRITON + "softmax.sm_80",
        "triton_cases:softmax",
        "another base of the exponential",
        "0f3FB8AA3B",
        "0f3FB8FFFF",
        nth=None,
    ),
    Planted(
        TRITON + "layer_norm.sm_80",
        "triton_cases:layer_norm",
        "epsilon twice",
        "add.f32 \t%r59, %r9, %r58;",
        "fma.rn.f32 %r59, %r9, 0f40000000, %r58;",
    ),
    Planted(
        TRITON + "layer_norm.sm_80",
        "triton_cases:layer_norm",
        "the variance is divided by n - 1",
        "div.full.f32 \t%r58, %r57, %r5;",
        "add.f32 %r58, %r5, 0fBF800000; div.full.f32 %r58, %r57, %r58;",
    ),
    Planted(
        TRITON + "attention.sm_80",
        "planted_cases:attention_even",
        "a score is not multiplied by the scale",
        "mul.f32 \t%r237, %r34, %r145;",
        "mov.b32 %r237, %r145;",
    ),
    Planted(
        TRITON + "attention.sm_80",
        "planted_cases:attention_even",
        "an element is not scaled to a new maximum",
        "mul.f32 \t%r442, %r442, %r310;",
        "",
    ),
    Planted(
        TRITON + "attention.sm_80",
        "planted_cases:attention_even",
        "the sum is not scaled to a new maximum",
        "fma.rn.f32 \t%r479, %r479, %r310, %r329;",
        "add.f32 %r479, %r479, %r329;",
    ),
    Planted(
        CUDA + "collective.sm_80:layer_norm",
        "planted_cases:cuda_layer_norm",
        "epsilon twice",
        "add.f32 \t%f65, %f15, %f17;",
        "fma.rn.f32 %f65, %f17, 0f40000000, %f15;",
    ),
    Planted(
        CUDA + "collective.sm_80:layer_norm",
        "planted_cases:cuda_layer_norm",
        "the variance is divided by n - 1",
        "div.rn.f32 \t%f15, %f64, %f7;",
        "add.f32 %f15, %f7, 0fBF800000; div.rn.f32 %f15, %f64, %f15;",
    ),
    Planted(
        CUDA + "collective.sm_80:softmax",
        "planted_cases:cuda_softmax",
        "2^(x + 2^-12) in the sum",
        "ex2.approx.ftz.f32 \t%f55, %f53;",
        "add.f32 %f53, %f53, 0f39800000; ex2.approx.ftz.f32 %f55, %f53;",
    ),
    Planted(
        CUDA + "wmma.sm_80:gemm_f16",
        "planted_cases:cuda_wmma_even",
        "alpha is 0.5002 for an eighth of the elements",
        "mul.f32 \t%f113, %f153, 0f3F000000;",
        "mul.f32 %f113, %f153, 0f3F000D1B;",
    ),
    Planted(
        CUDA + "elementwise.sm_90a:fast_math",
        "planted_cases:cuda_fast_math",
        "log(1 + x) with 0.693",
        "0f3F317218",
        "0f3F3168CA",
    ),
    Planted(
        CUDA + "elementwise.sm_90a:fast_math",
        "planted_cases:cuda_fast_math",
        "x / 3 is x / 3.001",
        "0f40400000",
        "0f40401062",
    ),
    Planted(
        CUDA + "elementwise.sm_90a:fast_math",
        "planted_cases:cuda_fast_math",
        "1 / (x + 10) is 1 / (x + 10.1)",
        "0f41200000",
        "0f4121999A",
    ),
    # -- words of an instruction
    Planted(
        CUDA + "elementwise.sm_90a:fast_math",
        "planted_cases:cuda_fast_math",
        ".sat is gone",
        "cvt.sat.f32.f32 \t%f15, %f1;",
        "mov.f32 %f15, %f1;",
    ),
    Planted(
        TRITON + "vector_add.sm_80",
        "planted_cases:vector_add",
        ".ftz for every other element",
        "add.f32 \t%r5, %r1, %r3;",
        "add.ftz.f32 %r5, %r1, %r3;",
        ("rounding",),
    ),
    Planted(
        CUDA + "elementwise.sm_90a:vector_add",
        "planted_cases:cuda_vector_add",
        ".ftz",
        "add.f32 \t%f3, %f2, %f1;",
        "add.ftz.f32 %f3, %f2, %f1;",
        ("rounding",),
    ),
    Planted(
        CUDA + "elementwise.sm_90a:vector_add",
        "planted_cases:cuda_vector_add",
        "rounded to zero",
        "add.f32 \t%f3, %f2, %f1;",
        "add.rz.f32 %f3, %f2, %f1;",
        ("rounding",),
    ),
    Planted(
        TRITON + "gemm_tma.sm_90",
        "planted_cases:gemm_tma_even",
        "a pair of results rounded to zero",
        "cvt.rn.f16x2.f32",
        "cvt.rz.f16x2.f32",
        ("rounding",),
    ),
    Planted(
        CUDA + "elementwise.sm_90a:fast_math",
        "planted_cases:cuda_fast_math",
        "the root in half precision",
        "sqrt.rz.f32 \t%f18, %f6;",
        "{ .reg .b16 half; sqrt.rz.f32 %f18, %f6; cvt.rn.f16.f32 half, %f18;"
        " cvt.f32.f16 %f18, half; }",
        ("rounding",),
    ),
    Planted(
        TRITON + "gemm.sm_80",
        "triton_cases:gemm_f16",
        "an element is summed in f16",
        f"{_MMA_K}, {{ %r91, %r92 }}, {{ %r226, %r227, %r228, %r229 }};",
        f"{_MMA_K}, {{ %r91, %r92 }}, {{ %r226, %r227, %r228, %r229 }};\n"
        "{ .reg .b16 half; cvt.rn.f16.f32 half, %r226; cvt.f32.f16 %r226, half; }",
        ("rounding",),
    ),
    Planted(
        CUDA + "mma.sm_89:gemm",
        "planted_cases:cuda_gemm_even",
        "an ldmatrix of B without .trans",
        "ldmatrix.sync.aligned.m8n8.x4.trans",
        "ldmatrix.sync.aligned.m8n8.x4",
    ),
    Planted(
        CUDA + "wmma.sm_80:gemm_f16",
        "planted_cases:cuda_wmma_even",
        "B by columns in the loop's rest",
        "wmma.load.b.sync.aligned.row",
        "wmma.load.b.sync.aligned.col",
        nth=4,
    ),
    # -- K and its rest, masks, tails
    Planted(
        TRITON + "gemm.sm_80",
        "planted_cases:gemm_waning",
        "the rest of K is left out",
        "setp.lt.s32 \t%p18, %r258, %r28;",
        _NO_REST.format("%r28", "%p18, %r258"),
    ),
    Planted(
        TRITON + "gemm.sm_90",
        "planted_cases:gemm_wgmma_waning",
        "the rest of K is left out",
        "setp.lt.s32 \t%p20, %r217, %r20;",
        _NO_REST.format("%r20", "%p20, %r217"),
    ),
    Planted(
        TRITON + "gemm_fp8.sm_89",
        "planted_cases:gemm_fp8_waning",
        "the last step of K is left out",
        "setp.lt.s32 \t%p24, %r284, %r30;",
        _NO_REST.replace("-32", "-64").format("%r30", "%p24, %r284"),
    ),
    Planted(
        TRITON + "gemm_int8.sm_80",
        "planted_cases:gemm_int8_waning",
        "the last step of K is left out",
        "setp.lt.s32 \t%p24, %r284, %r30;",
        _NO_REST.replace("-32", "-64").format("%r30", "%p24, %r284"),
    ),
    Planted(
        CUDA + "wmma.sm_80:gemm_f16",
        "planted_cases:cuda_wmma_waning",
        "the last step of K is left out",
        "add.s32 \t%r3, %r24, 1;",
        "mov.b32 %r3, %r24;",
    ),
    Planted(
        TRITON + "softmax.sm_80",
        "planted_cases:softmax_even",
        "the last column is not written",
        "setp.lt.s32 \t%p2, %r18, %r16;",
        "setp.lt.s32 %p2, %r18, 249;",
        ("unwritten", "result"),
    ),
    Planted(
        TRITON + "layer_norm.sm_80",
        "planted_cases:layer_norm_centred",
        "padded columns count in the variance",
        "selp.f32 \t%r39, %r38, 0f00000000, %p7;",
        "mov.b32 %r39, %r38;",
    ),
    Planted(
        TRITON + "attention_causal.sm_80",
        "planted_cases:attention_causal_even",
        "one key of the future",
        "setp.le.u64 \t%p21, %rd30, %rd5;",
        "setp.ge.u64 %p21, %rd30, 0;",
    ),
    Planted(
        CUDA + "collective.sm_80:total",
        "planted_cases:cuda_total",
        "the first element of a thread's is left out",
        "add.f32 \t%f32, %f32, %f10;",
        "{ .reg .pred first; setp.ne.s32 first, %r53, 77; @first add.f32 %f32, %f32, %f10; }",
    ),
    # -- places: registers, lanes, addresses
    Planted(
        TRITON + "gemm.sm_80",
        "planted_cases:gemm_even",
        "registers of A in another order",
        _MMA_K,
        "{ %r88, %r87, %r89, %r90 }",
    ),
    Planted(
        TRITON + "gemm_bf16.sm_80",
        "planted_cases:gemm_bf16_even",
        "registers of B in another order",
        "{ %r126, %r127 }",
        "{ %r127, %r126 }",
    ),
    Planted(
        TRITON + "gemm_tf32.sm_80",
        "planted_cases:gemm_tf32_even",
        "registers of A in another order",
        "{ %r83, %r84, %r85, %r86 }",
        "{ %r83, %r84, %r86, %r85 }",
    ),
    Planted(
        CUDA + "mma.sm_89:gemm",
        "planted_cases:cuda_gemm_even",
        "registers of A in another order",
        "{%r323,%r324,%r325,%r326}",
        "{%r323,%r325,%r324,%r326}",
    ),
    Planted(
        TRITON + "softmax.sm_80",
        "planted_cases:softmax_even",
        "another distance of a shuffle",
        "%r47, %r46, 16,",
        "%r47, %r46, 8,",
    ),
    Planted(
        CUDA + "mma.sm_89:scores_tf32",
        "planted_cases:cuda_scores",
        "another distance of a shuffle",
        "%r104|%p9, %r103, %r99,",
        "%r104|%p9, %r103, %r95,",
    ),
    Planted(
        CUDA + "collective.sm_80:transpose",
        "planted_cases:cuda_transpose",
        "the last rows of a tile from the row before",
        "ld.shared.f32 \t%f8, [%r13+96];",
        "ld.shared.f32 %f8, [%r13+92];",
    ),
    Planted(
        CUDA + "elementwise.sm_90a:saxpy4",
        "planted_cases:cuda_saxpy4",
        "the last of four from the third",
        "fma.rn.f32 \t%f14, %f1, %f5, %f9;",
        "fma.rn.f32 %f14, %f1, %f4, %f9;",
    ),
    # -- synchronisation
    Planted(
        TRITON + "softmax.sm_80",
        "triton_cases:softmax",
        "no barrier before the sum is read",
        "bar.sync \t0;",
        "",
        RACES,
        nth=4,
    ),
    Planted(
        TRITON + "layer_norm.sm_80",
        "triton_cases:layer_norm",
        "no barrier before the second sum",
        "bar.sync \t0;",
        "",
        RACES,
        nth=2,
    ),
    Planted(
        TRITON + "gemm.sm_80",
        "triton_cases:gemm_f16",
        "no barrier before a stage is fetched again",
        "bar.sync \t0;",
        "",
        RACES,
        nth=2,
    ),
    Planted(
        TRITON + "gemm.sm_80",
        "triton_cases:gemm_f16",
        "a group of copies more may be on the way",
        "cp.async.wait_group \t2;",
        "cp.async.wait_group \t3;",
        RACES,
    ),
    Planted(
        TRITON + "gemm.sm_90",
        "triton_cases:gemm_wgmma",
        "two products may be on the way at the end",
        "wgmma.wait_group.sync.aligned 0;",
        "wgmma.wait_group.sync.aligned 2;",
        RACES,
    ),
    Planted(
        TRITON + "gemm_tma.sm_90",
        "triton_cases:gemm_tma",
        "the bytes of TMA are not waited for",
        "@!complete bra.uni waitLoop;",
        "",
        RACES,
    ),
    Planted(
        TRITON + "gemm_tma.sm_90",
        "triton_cases:gemm_tma",
        "no proxy fence before the tile is stored by TMA",
        "fence.proxy.async.shared::cta;",
        "",
        ("proxy-fence",),
    ),
    Planted(
        TRITON + "gemm_special.sm_90",
        "triton_cases:gemm_special",
        "a role does not wait for its tile",
        "@!complete bra.uni waitLoop;",
        "",
        RACES,
        nth=2,
    ),
    Planted(
        CUDA + "collective.sm_80:softmax",
        "planted_cases:cuda_softmax",
        "no barrier before the sum is written",
        "bar.sync \t0;",
        "",
        RACES,
        nth=2,
    ),
    Planted(
        CUDA + "collective.sm_80:layer_norm",
        "planted_cases:cuda_layer_norm",
        "no barrier before the variance is written",
        "bar.sync \t0;",
        "",
        RACES,
        nth=2,
    ),
    Planted(
        CUDA + "collective.sm_80:transpose",
        "planted_cases:cuda_transpose",
        "no barrier before the tile is read",
        "bar.sync \t0;",
        "",
        RACES,
    ),
    Planted(
        CUDA + "collective.sm_80:total",
        "planted_cases:cuda_total",
        "no barrier before the warps' sums are read",
        "bar.sync \t0;",
        "",
        RACES,
        nth=1,
    ),
    Planted(
        CUDA + "mma.sm_89:gemm",
        "planted_cases:cuda_gemm_even",
        "a group of copies more may be on the way",
        "cp.async.wait_group 1;",
        "cp.async.wait_group 2;",
        RACES,
    ),
    Planted(
        CUDA + "hopper.sm_90a:gemm",
        "planted_cases:cuda_hopper",
        "a product is on the way when its tile is given back",
        "wgmma.wait_group.sync.aligned 0;",
        "",
        RACES,
    ),
    Planted(
        CUDA + "hopper.sm_90a:doubled",
        "planted_cases:cuda_doubled",
        "no proxy fence before TMA adds the tile",
        "fence.proxy.async.shared::cta;",
        "",
        ("proxy-fence",),
    ),
)
