"""Single products of tcgen05 against exact arithmetic: images of memory, the kernel, the model.

Everything is placed element by element with the formulas of the PTX ISA, apart from the emulator's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from fragir.emulator import Report, run

Values = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int64]

# -- types -----------------------------------------------------------------------------------------

_DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "u8": np.uint8,
    "s8": np.int8,
}
_CODES = {
    **{"f16": 0, "bf16": 1, "tf32": 2, "u8": 0, "s8": 1},
    **{"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
}
_PACKED = {"e2m3": 6, "e3m2": 6, "e2m1": 4}
#: Bits of an element of A or B in its container, by kind.
_BITS = {"f16": 16, "tf32": 32, "f8f6f4": 8, "i8": 8, "mxf8f6f4": 8, "mxf4": 4, "mxf4nvf4": 4}
#: (exchanged bits, bytes of an atom) by swizzle field.
_SWIZZLES = {0: (0, 16), 1: (2, 32), 2: (3, 16), 4: (2, 16), 6: (1, 16)}


@dataclass(frozen=True)
class Case:
    """One tcgen05.mma. `major`: "k" or "mn" of A and B; `swizzle`: fields of the descriptors."""

    kind: str
    a: str
    b: str
    m: int
    n: int
    d: str = "f32"
    group: int = 1
    sparse: bool = False
    ws: bool = False
    tensor_a: bool = False
    major: tuple[str, str] = ("k", "k")
    swizzle: tuple[int, int] = (2, 2)
    vector: str = ""  # scale_vec::2X, block32 ...
    scale: str = ""
    first: tuple[int, int] = (0, 0)
    k96: bool = False
    negate: tuple[bool, bool] = (False, False)
    shift: int = 0
    accumulates: bool = True
    masked: bool = False

    @property
    def bits(self) -> int:
        return _BITS[self.kind]

    @property
    def k(self) -> int:
        return 96 if self.k96 else 256 // self.bits * (2 if self.sparse else 1)

    @property
    def rows(self) -> int:
        """Of A and D that a block has."""
        return self.m // self.group

    @property
    def blocks(self) -> int:
        """Scales along K."""
        if not self.scale:
            return 0
        count = {"1X": 1, "2X": 2, "4X": 4, "block16": 4, "block32": 2}[self.vector.split("::")[-1]]
        count = 1 if self.kind == "mxf8f6f4" else count
        return count * self.k // 64 if self.k96 else count

    @property
    def idesc(self) -> int:
        """Section 9.7.16.4.2."""
        turned = [int(major == "mn") for major in self.major]
        word = int(self.sparse) << 2 | self.n // 8 << 17
        word |= self.negate[0] << 13 | self.negate[1] << 14 | turned[0] << 15 | turned[1] << 16
        if self.scale:
            four = self.bits == 4
            codes = (1, 1) if four else (_CODES[self.a], _CODES[self.b])
            word |= codes[0] << 7 | codes[1] << 10 | self.first[1] << 4 | self.first[0] << 29
            word |= self.m // 128 << 27 | (self.scale == "ue8m0") << 23 | int(self.k96) << 31
            return word
        d = {"f16": 0, "f32": 1, "s32": 2}[self.d]
        return word | d << 4 | _CODES[self.a] << 7 | _CODES[self.b] << 10 | self.m // 16 << 24


# -- places ----------------------------------------------------------------------------------------


def element_bytes(
    start: int, swizzle: int, mn: Any, at: Any, *, turned: bool, size: int, strides: tuple[int, int]
) -> Any:
    """The byte of shared memory where byte `at` of row `mn` lies (K-major), or where the element
    (mn, at) of `size` bytes begins (MN-major). `strides`: leading, stride (section 9.7.16.3)."""
    bits, atom = _SWIZZLES[swizzle]
    width, (leading, stride) = atom << bits, strides
    if turned:
        rows = 4 if swizzle == 1 else 8
        across, deep = (leading, stride) if bits else (stride, leading)
        per = width // size
        x = mn % per * size + mn // per * across + at % rows * width + at // rows * deep
    else:
        along = at if bits else at // 16 * leading + at % 16
        x = mn % 8 * width + mn // 8 * stride + along
    x = start + x
    low = atom.bit_length() - 1
    return x ^ ((x >> 7 & ((1 << bits) - 1)) << low)


def accumulator_place(case: Case, m: Any, n: Any) -> tuple[Any, Any, Any]:
    """(block, lane, column) of D[m, n] (section 9.7.16.10.5)."""
    rows = case.rows
    block, m = m // rows, m % rows
    if rows == 128:
        return block, m, n
    if rows == 64 and (case.ws or (case.group == 2 and not case.sparse)):
        half = case.n // 2
        return block, m + 64 * (n // half), n % half
    if rows == 64:
        return block, 32 * (m // 16) + m % 16, n
    quarter = case.n // 4
    return block, m + 32 * (n // quarter), n % quarter


def _banks(case: Case) -> int:
    if case.rows == 128 or (case.rows == 64 and not (case.ws or case.group == 2)):
        return 1
    if case.rows == 64:
        return 1 if case.sparse and not case.ws else 2
    return 4


# -- the kernel ------------------------------------------------------------------------------------

IMAGE = 96 << 10  # bytes of shared memory that are filled
D, A, META, SFA, SFB = 0, 256, 300, 320, 400  # columns
USED = 512
ARRIVE = "mbarrier::arrive::one.shared::cluster"


def kernel(instructions: str, pair: bool, version: str = "8.8", target: str = "sm_100a") -> str:
    """Fills shared and tensor memory, has one thread execute instructions, and reads the latter."""
    registers = ",".join(f"v{i}" for i in range(64))
    fours = [
        f"[OTHER_+{16 * j}] {{v{4 * j},v{4 * j + 1},v{4 * j + 2},v{4 * j + 3}}}".split()
        for j in range(16)
    ]
    loads, stores = (
        " ".join(text.format(a.replace("OTHER", name), v) for a, v in fours)
        for text, name in (
            ("ld.global.v4.b32 {1}, {0};", "before"),
            ("st.global.v4.b32 {0}, {1};", "after"),
        )
    )
    masks = " ".join(f"ld.global.u32 m{i}, [words_+{32 + 4 * i}];" for i in range(8))
    group = 2 if pair else 1
    sync = "barrier.cluster.arrive; barrier.cluster.wait;" if pair else "bar.sync 0;"
    multicast = ".multicast::cluster" if pair else ""
    mask = ", both" if pair else ""
    return f""".version {version}
.target {target}
.address_size 64
.extern .shared .align 1024 .b8 dyn[];
.visible .entry k(.param .u64 image, .param .u64 before, .param .u64 after, .param .u64 words)
{".reqnctapercluster 2" if pair else ""}
{{
    .reg .pred p, q, leader, yes; .reg .b16 both;
    .reg .b32 t, u, base, taddr, tid, warp, rank, i, idesc, bar;
    .reg .b32 v<64>, m<8>, td, ta, tm, tsa, tsb;
    .reg .b64 image_, before_, after_, a, x, da, db, words_;
    mov.u32 tid, %tid.x; shr.u32 warp, tid, 5; mov.u32 rank, {"%cluster_ctarank" if pair else "0"};
    ld.param.u64 image_, [image]; ld.param.u64 before_, [before]; ld.param.u64 after_, [after];
    ld.param.u64 words_, [words];
    mov.u32 base, dyn; add.u32 bar, base, {IMAGE}; mov.b16 both, 3;
    mul.wide.u32 x, rank, {IMAGE}; add.u64 image_, image_, x;
    mul.wide.u32 x, rank, {512 * USED};
    add.u64 before_, before_, x; add.u64 after_, after_, x;
    shl.b32 i, tid, 4;
FILL: cvt.u64.u32 x, i; add.u64 a, image_, x;
    ld.global.v4.b32 {{v0,v1,v2,v3}}, [a]; add.u32 t, base, i;
    st.shared.v4.b32 [t], {{v0,v1,v2,v3}}; add.u32 i, i, 2048;
    setp.lt.u32 p, i, {IMAGE}; @p bra FILL;
    setp.eq.u32 leader, tid, 0;
    @leader mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster; fence.proxy.async;
    {sync if pair else ""}
    setp.ne.u32 p, warp, 0;
    @p bra GOT;
    tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [bar+8], {USED};
    tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
GOT: bar.sync 0;
    ld.shared.b32 taddr, [bar+8];
    shl.b32 t, warp, 21; add.u32 td, taddr, t; mul.wide.u32 x, tid, {4 * USED};
    add.u64 before_, before_, x; add.u64 after_, after_, x; mov.u32 i, 0;
ST: {loads}
    tcgen05.st.sync.aligned.32x32b.x64.b32 [td], {{{registers}}};
    add.u64 before_, before_, 256; add.u32 td, td, 64; add.u32 i, i, 64;
    setp.lt.u32 p, i, {USED}; @p bra ST;
    tcgen05.wait::st.sync.aligned;
    {sync}
    setp.eq.u32 p, rank, 0; and.pred yes, p, leader;
    @!yes bra ISSUED;
    add.u32 td, taddr, {D}; add.u32 ta, taddr, {A}; add.u32 tm, taddr, {META};
    add.u32 tsa, taddr, {SFA}; add.u32 tsb, taddr, {SFB};
    ld.global.u64 da, [words_]; ld.global.u64 db, [words_+8];
    cvt.u64.u32 x, base; shr.u64 x, x, 4; and.b64 x, x, 0x3fff;
    add.u64 da, da, x; add.u64 db, db, x;
    ld.global.u32 idesc, [words_+16];
    {masks}
    {instructions}
    tcgen05.commit.cta_group::{group}.{ARRIVE}{multicast}.b64 [bar]{mask};
ISSUED: bar.warp.sync 0xffffffff;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra WAIT;
    shl.b32 t, warp, 21; add.u32 td, taddr, t; mov.u32 i, 0;
LD: tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{registers}}}, [td];
    tcgen05.wait::ld.sync.aligned;
    {stores}
    add.u64 after_, after_, 256; add.u32 td, td, 64; add.u32 i, i, 64;
    setp.lt.u32 p, i, {USED}; @p bra LD;
    {sync}
    setp.ne.u32 p, warp, 0;
    @p bra DONE;
    tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 taddr, {USED};
DONE: ret;
}}
"""


def execute(
    instructions: str,
    image: U8,
    before: Words,
    words: Words,
    *,
    target: str = "sm_100a",
    **options: Any,
) -> tuple[Words, Report]:
    """Tensor memory `[blocks, 128, 512]` after instructions. `image`: `[blocks, IMAGE]`; `words`:
    the descriptors of A and B, the instruction descriptor, and the mask from word 8 on."""
    blocks = len(before)
    after = np.zeros_like(before)
    report = run(
        kernel(instructions, blocks == 2, target=target),
        "k",
        grid=(blocks,),
        block=(128,),
        shared=IMAGE + 64,
        arguments=[image, before, after, words],
        **options,
    )
    return after, report


# -- one product -----------------------------------------------------------------------------------


@dataclass
class Trial:
    """The operands of a case, and D as it must be."""

    case: Case
    image: U8
    before: Words
    words: Words
    expected: Words  # [m, n]
    written: npt.NDArray[np.bool_]  # [m, n]

    @property
    def instruction(self) -> str:
        case = self.case
        words = [".ws"] if case.ws else []
        words += [".sp"] if case.sparse else []
        words += [f".cta_group::{case.group}.kind::{case.kind}"]
        words += (
            [f".block_scale.{case.vector}" if case.vector else ".block_scale"] if case.scale else []
        )
        operands = ["[td]", "[ta]" if case.tensor_a else "da", "db"]
        operands += ["[tm]"] if case.sparse else []
        operands += ["idesc"]
        operands += ["[tsa]", "[tsb]"] if case.scale else []
        if case.masked:
            operands.append("{" + ",".join(f"m{i}" for i in range(4 * case.group)) + "}")
        operands.append("1" if case.accumulates else "0")
        operands += [str(case.shift)] if case.shift else []
        return f"tcgen05.mma{''.join(words)} {', '.join(operands)};"

    def run(self, **options: Any) -> tuple[Words, Report]:
        """D as it is, and the report."""
        after, report = execute(self.instruction, self.image, self.before, self.words, **options)
        m, n = np.meshgrid(np.arange(self.case.m), np.arange(self.case.n), indexing="ij")
        return after[accumulator_place(self.case, m, n)], report


def _codes(element: str, values: Values) -> npt.NDArray[np.uint32]:
    dtype = _DTYPES[element]
    size = np.dtype(dtype).itemsize
    found = np.ascontiguousarray(values.astype(dtype)).view(f"u{size}").astype(np.uint32)
    return found


def _random_values(rng: np.random.Generator, element: str, shape: tuple[int, ...]) -> Values:
    if element == "u8":
        return rng.integers(0, 256, shape).astype(np.float64)
    if element == "s8":
        return rng.integers(-128, 128, shape).astype(np.float64)
    return rng.integers(-3, 4, shape) / 2.0


def _strides(case: Case, which: int, extent: int, size: int) -> tuple[int, int]:
    """(leading, stride) so that nothing overlaps, whatever the layout."""
    bits, atom = _SWIZZLES[case.swizzle[which]]
    width = atom << bits
    if case.major[which] == "k":
        return (128, 128 * 4) if not bits else (16, 8 * width)
    rows = 4 if case.swizzle[which] == 1 else 8
    along = -(-extent * size // width)
    if bits:
        return rows * width * -(-case.k // rows), rows * width
    return 128 * along, 128


def _place_matrix(case: Case, which: int, codes: Words, image: U8, start: int) -> tuple[int, int]:
    """Puts A or B `[rows, k]` of a block into its shared memory; its strides."""
    element = (case.a, case.b)[which]
    turned = case.major[which] == "mn"
    size = max(case.bits // 8, 1)
    strides = _strides(case, which, len(codes), size)
    swizzle = case.swizzle[which]
    depth = int(codes.shape[1])
    r, k = np.indices((len(codes), depth))
    if turned:
        at = element_bytes(start, swizzle, r, k, turned=True, size=size, strides=strides)
        for byte in range(size):
            image[at + byte] = codes >> np.uint32(8 * byte) & 0xFF
        return strides
    packed = _PACKED.get(element, case.bits) if case.bits == 8 else case.bits
    flat = np.zeros((len(codes), depth * case.bits // 8), np.uint8)
    for j in range(depth):
        bit = (j // 16 * 128 + j % 16 * packed) if case.bits == 8 else j * case.bits
        for b in range(packed):
            flat[:, (bit + b) // 8] |= ((codes[:, j] >> b & 1) << ((bit + b) % 8)).astype(np.uint8)
    at = element_bytes(
        start,
        swizzle,
        r[:, :1],
        np.arange(flat.shape[1])[None, :],
        turned=False,
        size=1,
        strides=strides,
    )
    image[at] = flat
    return strides


def _descriptor(start: int, swizzle: int, strides: tuple[int, int]) -> int:
    return start >> 4 | strides[0] >> 4 << 16 | strides[1] >> 4 << 32 | 1 << 46 | swizzle << 61


_NIBBLES = (0x4, 0x8, 0xC, 0x9, 0xD, 0x6, 0xE)


def _kept(case: Case, nibbles: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The columns of kept elements `[m, k / 2]` of metadata `[m, chunks]`."""
    found = np.zeros((len(nibbles), case.k // 2), np.int64)
    for (row, chunk), code in np.ndenumerate(nibbles):
        if case.kind == "tf32":
            found[row, chunk] = 2 * chunk + (code == 0xE)
        elif case.bits == 4:
            for j, pair in enumerate((code & 3, code >> 2)):
                found[row, 4 * chunk + 2 * j : 4 * chunk + 2 * j + 2] = (
                    8 * chunk + 2 * pair + [0, 1]
                )
        else:
            found[row, 2 * chunk : 2 * chunk + 2] = 4 * chunk + (code & 3), 4 * chunk + (code >> 2)
    return found


def make_trial(case: Case, seed: int = 0, one_hot: bool = False) -> Trial:
    """Random operands, or an A with one element, whose products and sums are exact."""
    rng = np.random.default_rng(seed)
    depth = case.k // 2 if case.sparse else case.k
    a = _random_values(rng, case.a, (case.m, depth))
    b = _random_values(rng, case.b, (case.n, case.k))
    if one_hot:
        a[...] = 0
        a[rng.integers(case.m), rng.integers(depth)] = 1
    c = rng.integers(-8, 9, (case.m, case.n)).astype(np.float64)
    image = np.zeros((case.group, IMAGE), np.uint8)
    before = rng.integers(0, 1 << 32, (case.group, 128, USED), dtype=np.uint32)
    codes_a, codes_b = _codes(case.a, a), _codes(case.b, b)
    starts = 0, IMAGE // 2
    words = np.zeros(16, np.uint32)
    described = words.view(np.uint64)
    for block in range(case.group):
        rows = slice(block * case.rows, (block + 1) * case.rows)
        if not case.tensor_a:
            strides = _place_matrix(case, 0, codes_a[rows], image[block], starts[0])
            described[0] = _descriptor(starts[0], case.swizzle[0], strides)
        part = slice(block * case.n // case.group, (block + 1) * case.n // case.group)
        strides = _place_matrix(case, 1, codes_b[part], image[block], starts[1])
        described[1] = _descriptor(starts[1], case.swizzle[1], strides)
    words[4] = case.idesc
    m, n = np.meshgrid(np.arange(case.m), np.arange(case.n), indexing="ij")
    cells = accumulator_place(case, m, n)
    c_codes = c.astype({"f32": np.float32, "f16": np.float16, "s32": np.int32}[case.d])
    c_words = c_codes.view("u2" if case.d == "f16" else "u4").astype(np.uint32)
    if case.d == "f16":
        c_words |= before[cells] & np.uint32(0xFFFF0000)
    before[cells] = c_words
    if case.tensor_a:
        _place_tensor_a(case, codes_a, before)
    full = a
    if case.sparse:
        chunks = case.k // {"tf32": 2}.get(case.kind, 8 if case.bits == 4 else 4)
        legal = (0x4, 0xE) if case.kind == "tf32" else _NIBBLES
        nibbles = rng.choice(np.array(legal), (case.m, chunks)).astype(np.int64)
        _place_metadata(case, nibbles, before)
        full = np.zeros((case.m, case.k))
        np.put_along_axis(full, _kept(case, nibbles), a, axis=1)
    exact = _product(case, full, b, rng, before)
    signs = (-1) ** (case.negate[0] + case.negate[1])
    total = signs * exact + (c / 2.0**case.shift if case.accumulates else 0)
    expected = _result_words(case, total)
    written = np.ones(expected.shape, np.bool_)
    if case.masked:
        off = rng.integers(0, 2, (case.group, 128)).astype(np.uint8)
        mask = np.packbits(off.ravel(), bitorder="little").view(np.uint32)
        words[8 : 8 + len(mask)] = mask
        written = off[cells[0], cells[1]] == 0
        expected = np.where(written, expected, before[cells])
    return Trial(case, image, before, words, expected, written)


def _result_words(case: Case, total: Values) -> Words:
    if case.d == "s32":
        return total.astype(np.int64).astype(np.int32).view(np.uint32)
    if case.d == "f16":
        found = (total + 0.0).astype(np.float16)
        assert (found.astype(np.float64) == total).all()
        return found.view(np.uint16).astype(np.uint32)
    single = (total + 0.0).astype(np.float32)
    assert (single.astype(np.float64) == total).all()
    return single.view(np.uint32)


def _row_lanes(case: Case, m: int) -> list[tuple[int, int]]:
    """(block, lane) of every copy of row m of A."""
    banks = _banks(case)
    block, lane, _ = accumulator_place(case, m, 0)
    return [(block, lane + 128 // banks * bank) for bank in range(banks)]


def _place_tensor_a(case: Case, codes: Words, before: Words) -> None:
    up = {"e2m1": 2}.get(case.a, 0) if case.bits == 8 else 0
    per = 32 // case.bits
    for m in range(case.m):
        row = codes[m].reshape(-1, per) << np.uint32(up)
        packed = np.zeros(len(row), np.uint32)
        for j in range(per):
            packed |= row[:, j] << np.uint32(j * case.bits)
        for block, lane in _row_lanes(case, m):
            before[block, lane, A : A + len(packed)] = packed


def _place_metadata(case: Case, nibbles: npt.NDArray[np.int64], before: Words) -> None:
    for (m, c), code in np.ndenumerate(nibbles):
        for block, p in _row_lanes(case, m):
            if case.kind in ("f16", "tf32"):
                lane, column = p // 32 * 32 + (p & 16) + p % 8 + 8 * (c // 4), META
                bit = 16 * (p % 16 // 8) + 4 * (c % 4)
            else:
                lane, column, bit = p, META + c // 8, 4 * (c % 8)
            word = int(before[block, lane, column]) & ~(15 << bit)
            before[block, lane, column] = word | int(code) << bit


def _product(case: Case, a: Values, b: Values, rng: np.random.Generator, before: Words) -> Values:
    if not case.scale:
        return a @ b.T
    sizes = (case.m, case.blocks), (case.n, case.blocks)
    if case.scale == "ue8m0":
        codes = [rng.integers(125, 130, size) for size in sizes]
        factors = [2.0 ** (code - 127) for code in codes]
    else:
        factors = [rng.choice([0.5, 1.0, 1.5, 2.0], size) for size in sizes]
        codes = [_codes("e4m3", f).astype(np.int64) for f in factors]
    for r in range(case.m):
        block, row = r // case.rows, r % case.rows
        _place_scales(before[block], codes[0][r], row, case.rows, SFA, case.first[0])
    for n in range(case.n):
        for block in range(case.group):
            half = case.n // 2
            if case.group == 2 and case.m == 128:
                _place_scales(
                    before[block], codes[1][n], n % half, half, SFB, case.first[1],
                    lanes=range(64 * (n // half), 64 * (n // half) + 64, 32),
                )  # fmt: skip
            else:
                _place_scales(before[block], codes[1][n], n, case.n, SFB, case.first[1])
    group = case.k // case.blocks
    total = np.zeros((case.m, case.n))
    for j in range(case.blocks):
        part = slice(j * group, (j + 1) * group)
        total += a[:, part] @ b[:, part].T * factors[0][:, j : j + 1] * factors[1][:, j]
    return total


def _place_scales(
    cells: Words,
    codes: npt.NDArray[np.int64],
    row: int,
    rows: int,
    base: int,
    first: int,
    lanes: range = range(0, 128, 32),
) -> None:
    for j, code in enumerate(codes.tolist()):
        b = first + j
        column = base + row // 32 + b // 4 * 4 * -(-rows // 128)
        for start in lanes:
            word = int(cells[start + row % 32, column]) & ~(0xFF << 8 * (b % 4))
            cells[start + row % 32, column] = word | code << 8 * (b % 4)
