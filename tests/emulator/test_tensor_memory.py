"""tcgen05.ld, st, cp, shift, commit and allocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, Report, run
from fragir.emulator.tensor_cores.tensor_places import SHAPES, register_places
from fragir.isa.fragments import tensor_memory as isa_layout

from .tensor_products import ARRIVE, IMAGE, SFA, Words, execute

HEAD = ".version 8.8\n.target sm_103a\n.address_size 64\n"
_ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
_DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"


def _warps(body: str, *arguments: Any, warps: int = 4, cluster: int = 1, **options: Any) -> Report:
    """Some warps, of which the first has allocated 128 columns; `taddr` is the warp's own part."""
    text = f"""{HEAD}
.visible .entry k(.param .u64 pa, .param .u64 pb) {".reqnctapercluster 2" if cluster > 1 else ""}
{{
    .shared .b32 hold[4]; .shared .b64 bar; .reg .pred p, q;
    .reg .b32 tid, warp, taddr, t, u, v<64>;
    .reg .b64 a, b, x; .reg .b32 rank; .reg .b16 h;
    mov.u32 tid, %tid.x; shr.u32 warp, tid, 5; ld.param.u64 a, [pa]; ld.param.u64 b, [pb];
    mul.wide.u32 x, tid, 256; add.u64 a, a, x; add.u64 b, b, x;
    setp.ne.u32 p, warp, 0;
    @p bra GOT;
    {_ALLOC} [hold], 128;
GOT: bar.sync 0;
    ld.shared.b32 taddr, [hold]; shl.b32 t, warp, 21; add.u32 taddr, taddr, t;
    {body}
    bar.sync 0;
    setp.ne.u32 p, warp, 0;
    @p bra DONE;
    and.b32 taddr, taddr, 0xffff;
    {_DEALLOC} taddr, 128;
DONE: ret;
}}
"""
    return run(
        text, "k", grid=(cluster,), block=(32 * warps,), arguments=list(arguments), **options
    )


# -- ld and st -------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_places_are_those_of_the_layouts(shape: str, count: int, packed: bool) -> None:
    """Two sources, written apart: the emulator's formulas and the table of layouts."""
    half = 16 if shape == "16x32bx2" else 0
    lane, column = register_places(shape, count, packed, half)
    layout = isa_layout(shape, count, packed, half)
    for element, thread in np.ndindex(*lane.shape):
        there = layout(lane=thread, element=element)
        assert there == (lane[element, thread], column[element, thread])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_store_and_load(shape: str, packed: bool) -> None:
    """st with one shape, and ld of all columns with .32x32b; ld with the shape gives it back."""
    count = 2
    registers = SHAPES[shape].registers * count
    half = ", 8" if shape == "16x32bx2" else ""
    names = ",".join(f"v{i}" for i in range(registers))
    all_names = ",".join(f"v{i}" for i in range(32))
    given = np.arange(128 * 64, dtype=np.uint32).reshape(128, 64) * np.uint32(0x10003)
    seen = np.zeros((128, 64), np.uint32)
    suffixes = (".unpack::16b", ".pack::16b") if packed else ("", "")
    zero = "".join(f"mov.u32 v{i}, 0;" for i in range(32))
    body = f"""
    {zero}
    tcgen05.st.sync.aligned.32x32b.x32.b32 [taddr], {{{all_names}}};
    {"".join(f"ld.global.u32 v{i}, [a+{4 * i}];" for i in range(registers))}
    tcgen05.st.sync.aligned.{shape}.x{count}{suffixes[0]}.b32 [taddr]{half}, {{{names}}};
    tcgen05.ld.sync.aligned.{shape}.x{count}{suffixes[1]}.b32 {{{names}}}, [taddr]{half};
    {"".join(f"st.global.u32 [b+{4 * i}], v{i};" for i in range(registers))}
    tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{all_names}}}, [taddr];
    {"".join(f"st.global.u32 [b+{128 + 4 * i}], v{i};" for i in range(32))}
    tcgen05.wait::st.sync.aligned;
    """
    report = _warps(body, given, seen, check=True)
    assert not report.findings
    lane, column = register_places(shape, count, packed, 8 if half else 0)
    wanted = np.zeros((128, 32), np.uint32)
    values = given[:, :registers]
    if packed:
        values = np.stack([values & 0xFFFF, values >> 16], axis=-1).reshape(128, -1)
    for warp in range(4):
        for element, thread in np.ndindex(*lane.shape):
            at = 32 * warp + lane[element, thread], column[element, thread]
            wanted[at] = values[32 * warp + thread, element]
    assert (seen[:, 32:64] == wanted).all()
    overlaps = shape == "16x32bx2" and packed  # halves 8 columns apart
    if not overlaps:
        assert (seen[:, :registers] == given[:, :registers]).all()


@pytest.mark.parametrize("words", ["min.s32", "max.u32", "max.abs.f32"])
def test_reduced_register(words: str) -> None:
    values = np.random.default_rng(1).normal(size=(128, 64)).astype(np.float32).view(np.uint32)
    seen = np.zeros((128, 64), np.uint32)
    names = ",".join(f"v{i}" for i in range(8))
    body = f"""
    {"".join(f"ld.global.u32 v{i}, [a+{4 * i}];" for i in range(8))}
    tcgen05.st.sync.aligned.32x32b.x8.b32 [taddr], {{{names}}};
    tcgen05.ld.red.sync.aligned.32x32b.x8.{words} {{{names}}}, u, [taddr];
    st.global.u32 [b], u;
    """
    _warps(body, values, seen)
    of = np.ascontiguousarray(values[:, :8])
    wanted = {
        "min.s32": of.view(np.int32).min(axis=1).view(np.uint32),
        "max.u32": of.max(axis=1),
        "max.abs.f32": np.abs(of.view(np.float32)).max(axis=1).view(np.uint32),
    }
    assert (seen[:, 0] == wanted[words]).all()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {v0}, [taddr+0x100000];", "no start of .32x32b"),
        ("tcgen05.ld.sync.aligned.16x64b.x1.b32 {v0}, [taddr+0x80000];", "0 or 16"),
        ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {v0}, [taddr+512];", "which has 512"),
        (
            "add.u32 taddr, taddr, tid; tcgen05.ld.sync.aligned.32x32b.x1.b32 {v0}, [taddr];",
            "the same in all threads",
        ),
    ],
)
def test_addresses_that_are_none(body: str, text: str) -> None:
    zero = np.zeros((128, 64), np.uint32)
    with pytest.raises(EmulationError, match=text):
        _warps(body, zero, zero)


# -- cp and shift ----------------------------------------------------------------------------------

_DESCRIPTOR = 128 >> 4 << 16 | 512 >> 4 << 32 | 1 << 46


def _copied(words: str, rows: int, size: int) -> tuple[Words, npt.NDArray[np.uint8]]:
    """Columns SFA.. after a cp of `rows` rows of `size` bytes, and the rows."""
    rng = np.random.default_rng(3)
    source = rng.integers(0, 256, (rows, size)).astype(np.uint8)
    image = np.zeros((1, IMAGE), np.uint8)
    for row, byte in np.ndindex(rows, size):
        image[0, row % 8 * 16 + row // 8 * 512 + byte // 16 * 128 + byte % 16] = source[row, byte]
    described = np.zeros(16, np.uint32)
    described.view(np.uint64)[0] = _DESCRIPTOR
    before = np.zeros((1, 128, 512), np.uint32)
    text = f"tcgen05.cp.cta_group::1.{words} [tsa], da;"
    after, report = execute(text, image, before, described, check=True)
    assert not report.findings
    return after[0, :, SFA : SFA + size // 4], source


#: By shape: rows and bytes of the source, and the lanes that row r goes to.
_COPIES: dict[str, tuple[int, int, Callable[[int], list[int]]]] = {
    "128x256b": (128, 32, lambda r: [r]),
    "128x128b": (128, 16, lambda r: [r]),
    "4x256b": (4, 32, lambda r: [32 * r]),
    "64x128b.warpx2::02_13": (64, 16, lambda r: [r, r + 64]),
    "64x128b.warpx2::01_23": (64, 16, lambda r: [r % 32 + 64 * (r // 32) + d for d in (0, 32)]),
    "32x128b.warpx4": (32, 16, lambda r: [r + 32 * w for w in range(4)]),
}


@pytest.mark.parametrize("words", _COPIES)
def test_copies(words: str) -> None:
    rows, size, lanes = _COPIES[words]
    found, source = _copied(words, rows, size)
    wanted = np.zeros_like(found)
    for row in range(rows):
        for lane in lanes(row):
            wanted[lane] = source[row].view(np.uint32)
    assert (found == wanted).all()


@pytest.mark.parametrize(("words", "bits", "up"), [("b4x16_p64", 4, 2), ("b6x16_p32", 6, 0)])
def test_copies_that_decompress(words: str, bits: int, up: int) -> None:
    """Element i of 16 is the i-th of the low bits, and becomes byte i."""
    found, source = _copied(f"128x128b.b8x16.{words}", 128, 16)
    for row in (0, 5, 127):
        number = int.from_bytes(source[row].tobytes(), "little")
        elements = [(number >> bits * i & ((1 << bits) - 1)) << up for i in range(16)]
        assert found[row].tobytes() == bytes(elements)


def test_shift() -> None:
    """Each row takes the next one's 32 bytes, but for the last one of a partition."""
    rng = np.random.default_rng(4)
    before = rng.integers(0, 1 << 32, (1, 128, 512), dtype=np.uint32)
    image = np.zeros((1, IMAGE), np.uint8)
    text = "tcgen05.shift.cta_group::1.down [td];"
    after, report = execute(text, image, before, np.zeros(16, np.uint32), check=True)
    assert not report.findings
    assert len(report.notes) == 1
    wanted = before.copy()
    for row in range(128):
        if row % 32 != 31:
            wanted[0, row, :8] = before[0, row + 1, :8]
    assert (after == wanted).all()


# -- allocation ------------------------------------------------------------------------------------

_ZERO = np.zeros((256, 64), np.uint32)


def test_alloc_waits_for_free_columns() -> None:
    """512 columns: the second warp gets them when the first has given them back."""
    seen = np.zeros((128, 64), np.uint32)
    report = run(
        f"""{HEAD}
.visible .entry k(.param .u64 pb)
{{
    .shared .b32 hold[4]; .reg .pred p; .reg .b32 tid, warp, t, u; .reg .b64 b;
    ld.param.u64 b, [pb]; mov.u32 tid, %tid.x; shr.u32 warp, tid, 5; mov.u32 t, hold;
    shl.b32 u, warp, 2; add.u32 t, t, u;
    {_ALLOC} [t], 512;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 u, [t];
    setp.eq.u32 p, tid, 32; @p st.global.u32 [b], 7;
    {_DEALLOC} u, 512;
    ret;
}}""",
        "k",
        block=(64,),
        arguments=[seen],
        check=True,
    )
    assert seen[0, 0] == 7
    assert not report.findings


def test_alloc_that_waits_for_ever() -> None:
    body = f"@p bra L; {_ALLOC} [hold+4], 512; L:"
    with pytest.raises(EmulationError, match=r"(?s)deadlock.*tcgen05\.alloc") as caught:
        _warps(body, _ZERO, _ZERO)
    assert caught.value.kind == "deadlock"


@pytest.mark.parametrize("count", [0, 16, 48, 96, 1024])
def test_numbers_of_columns(count: int) -> None:
    body = f"@p bra L; mov.u32 u, {count}; {_ALLOC} [hold+4], u; L:"
    with pytest.raises(EmulationError, match=f"{count} columns cannot be allocated"):
        _warps(body, _ZERO, _ZERO)


def test_addresses_of_allocations() -> None:
    """Columns lie behind each other, and are used again."""
    seen = np.zeros((128, 64), np.uint32)
    body = f"""
    @p bra L;
    {_ALLOC} [hold+4], 64; {_ALLOC} [hold+8], 32; bar.warp.sync 0xffffffff;
    ld.shared.u32 t, [hold+4]; ld.shared.u32 u, [hold+8];
    st.global.u32 [b], t; st.global.u32 [b+4], u;
    {_DEALLOC} t, 64; bar.warp.sync 0xffffffff; {_ALLOC} [hold+4], 32; bar.warp.sync 0xffffffff;
    ld.shared.u32 t, [hold+4]; st.global.u32 [b+8], t;
    {_DEALLOC} t, 32; {_DEALLOC} u, 32;
    L:
    """
    report = _warps(body, _ZERO, seen, check=True)
    assert seen[0, :3].tolist() == [128, 192, 128]
    assert not report.findings


_RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
_HALF = "@p bra L; and.b32 u, tid, 16; setp.eq.u32 p, u, 0; @p {} L:"


@pytest.mark.parametrize(
    "statement",
    [
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {v0}, [taddr];",
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [taddr], {tid};",
        "tcgen05.wait::ld.sync.aligned;",
    ],
)
def test_half_a_warp(statement: str) -> None:
    report = _warps(_HALF.format(statement), _ZERO, _ZERO, check=True)
    assert ("divergent", "error") in {(one.kind, one.severity) for one in report.findings}


@pytest.mark.parametrize("statement", [_RELINQUISH, f"{_ALLOC} [hold+4], 32;"])
def test_half_a_warp_that_waits_for_the_rest(statement: str) -> None:
    with pytest.raises(EmulationError, match="deadlock") as caught:
        _warps(_HALF.format(statement), _ZERO, _ZERO)
    assert caught.value.kind == "divergent"


def test_half_a_warp_that_has_left() -> None:
    text = f"""{HEAD}
.visible .entry k() {{ .reg .pred p; .reg .b32 t; mov.u32 t, %tid.x; setp.gt.u32 p, t, 15;
    @p exit; {_RELINQUISH} ret; }}"""
    report = run(text, "k", block=(32,))
    assert [(one.kind, one.severity) for one in report.findings] == [("divergent", "error")]


def test_undefined_until_written() -> None:
    body = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {v0}, [taddr]; st.global.u32 [b], v0;"
    report = _warps(body, _ZERO, np.zeros((128, 64), np.uint32), check=True)
    assert [one.kind for one in report.findings] == ["uninitialised"]


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_a_permit_that_another_warp_gives_back(barrier: str) -> None:
    """It may come before the block's alloc, unless something orders it behind."""
    body = f"""
    @p bra OTHER;
    {_ALLOC} [hold+4], 32;
    OTHER:
    {barrier}
    {_RELINQUISH}
    bar.sync 0; ld.shared.b32 t, [hold+4]; bar.sync 0;
    @p bra GO;
    {_DEALLOC} t, 32;
    GO:
    """
    report = _warps(body, _ZERO, np.zeros((128, 64), np.uint32), check=True)
    found = [one.kind for one in report.findings]
    assert found == ([] if barrier else ["tensor-memory"])
    assert barrier or "nothing orders this after tcgen05.alloc" in report.findings[0].message


# -- pairs of blocks -------------------------------------------------------------------------------

_PAIR = """
    barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 rank, %cluster_ctarank;
    setp.eq.u32 q, tid, 0;
    @q mbarrier.init.shared.b64 [bar], 1;
    @q fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.u32 p, rank, 0; and.pred p, p, q; mov.b16 h, MASK;
    @p tcgen05.commit.cta_group::1.ARRIVE.multicast::cluster.b64 [bar], h;
W: mbarrier.try_wait.parity.shared.b64 p, [bar], 0; @!p bra W;
    st.global.u32 [b], 5;
    barrier.cluster.arrive; barrier.cluster.wait;
""".replace("ARRIVE", ARRIVE)


def test_commit_arrives_everywhere() -> None:
    """With nothing before it, at once; in all blocks that the mask names."""
    seen = np.zeros((128, 64), np.uint32)
    report = _warps(_PAIR.replace("MASK", "3"), _ZERO, seen, cluster=2, check=True)
    assert (seen[:, 0] == 5).all()
    assert not report.findings


def test_a_block_that_a_commit_outlives() -> None:
    """The cluster's barrier does not wait for a commit, which arrives when it can."""
    other = "    setp.eq.u32 p, rank, 1; @p bra V;\nW: "
    body = _PAIR.replace("MASK", "3").replace("W: ", other, 1)
    body = body.replace("    st.global.u32 [b], 5;", "V:\n    st.global.u32 [b], 5;")
    report = _warps(body, _ZERO, np.zeros((128, 64), np.uint32), cluster=2, check=True)
    assert {one.kind for one in report.findings} == {"race"}
    assert all("does not wait for it and may exit" in one.message for one in report.findings)


def test_commit_that_forgets_a_block() -> None:
    with pytest.raises(EmulationError, match="deadlock"):
        _warps(_PAIR.replace("MASK", "1"), _ZERO, np.zeros((128, 64), np.uint32), cluster=2)


def test_commit_to_a_block_that_is_none() -> None:
    with pytest.raises(EmulationError, match="the mask 0x4 names block 2"):
        _warps(_PAIR.replace("MASK", "4"), _ZERO, np.zeros((128, 64), np.uint32), cluster=2)


@pytest.mark.parametrize(("cluster", "text"), [(1, "no even number"), (2, "different operands")])
def test_pairs_that_do_not_meet(cluster: int, text: str) -> None:
    """cta_group::2 without a pair; blocks that ask for different numbers of columns."""
    alloc = _ALLOC.replace("group::1", "group::2")
    body = f"@p bra L; mov.u32 rank, %cluster_ctarank; shl.b32 u, 32, rank; {alloc} [hold+4], u; L:"
    with pytest.raises(EmulationError, match=text):
        _warps(body, _ZERO, _ZERO, cluster=cluster)


_MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("", ["letter"]),
        ("bar.sync 0;", ["letter"]),
        ("barrier.cluster.arrive;", ["letter"]),
        (_MEET, []),
        (_MEET.replace("arrive", "arrive.relaxed"), []),
    ],
)
def test_a_pair_that_knows_of_each_other(before: str, found: list[str]) -> None:
    """alloc of a pair, with and without having heard of the other block."""
    after = "barrier.cluster.wait;" if "arrive" in before and "wait" not in before else ""
    alloc, dealloc = (text.replace("group::1", "group::2") for text in (_ALLOC, _DEALLOC))
    text = f"""{HEAD}
.visible .entry k() .reqnctapercluster 2
{{
    .shared .b32 hold; .reg .b32 t;
    {before}
    {alloc} [hold], 32;
    {after}
    bar.sync 0;
    ld.shared.b32 t, [hold];
    {_MEET}
    {dealloc} t, 32;
    ret;
}}"""
    for grid in (2, 8):
        report = run(text, "k", grid=(grid,), block=(32,), check=True)
        assert [one.severity for one in report.findings] == found
        assert all("the issuing warp must make sure" in one.message for one in report.findings)


def test_a_peer_that_has_gone() -> None:
    text = f"""{HEAD}
.visible .entry k() .reqnctapercluster 2
{{
    .shared .b32 hold; .reg .pred p; .reg .b32 rank;
    mov.u32 rank, %cluster_ctarank; setp.eq.u32 p, rank, 1; @p ret;
    {_ALLOC.replace("group::1", "group::2")} [hold], 32;
    ret;
}}"""
    with pytest.raises(EmulationError, match="the other block of the pair has exited"):
        run(text, "k", grid=(2,), block=(32,))
