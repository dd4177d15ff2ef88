"""Locks and barriers between blocks as libraries have them: silent, and each broken twin a race."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from fragir.emulator import run
from fragir.emulator.checks.operand_contents import quote

HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<9>; .shared .align 4 .b32 words[8];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x;
    ld.param.u64 %rd1, [data]; setp.eq.u32 %p1, %r1, 0;
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
    mad.lo.u32 %r4, %r2, 64, %r1; mul.wide.u32 %rd3, %r4, 4; add.u64 %rd3, %rd1, %rd3;
    sub.u32 %r5, %r3, 1; mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd1, %rd4;
"""
TAIL = "\nDONE: ret;\n}\n"


@dataclass(frozen=True)
class Idiom:
    """`broken`: name -> what is replaced by what, in `letters` those that are wrong by the letter.

    Data begin at word 0, flags at word 1024. `result`: what words 0 .. 63 hold at the end.
    """

    body: str
    result: list[int]
    broken: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    letters: tuple[str, ...] = ()

    def text(self, old: str = "", new: str = "") -> str:
        assert not old or old in self.body
        return HEAD + (self.body.replace(old, new) if old else self.body) + TAIL


#: Blocks add to C in turn, the last one resets: thread 0 looks at the lock and releases it.
MARLIN = """
    @!%p1 bra IN;
LOOK:
    ld.global.acquire.gpu.b32 %r6, [%rd1+4096]; setp.ne.u32 %p2, %r6, %r2; @%p2 bra LOOK;
IN:
    bar.sync 0;
    ld.global.u32 %r7, [%rd2]; add.u32 %r7, %r7, 1; st.global.u32 [%rd2], %r7;
    bar.sync 1; @!%p1 bra DONE;
    setp.eq.u32 %p3, %r2, %r5; @%p3 bra RESET;
    fence.acq_rel.gpu; red.relaxed.gpu.global.add.s32 [%rd1+4096], 1; bra.uni DONE;
RESET:
    st.global.u32 [%rd1+4096], 0;
"""
#: CUTLASS's semaphore: all threads wait by one barrier, the lock is stored.
SEMAPHORE = """
    mov.u32 %r6, -1;
LOOK:
    setp.ne.u32 %p2, %r6, %r2; barrier.sync.aligned 0; bar.red.and.pred %p3, 0, %p2;
    @!%p3 bra FREE;
    @%p1 ld.global.acquire.gpu.b32 %r6, [%rd1+4096];
    bra.uni LOOK;
FREE:
    bar.sync 0;
    ld.global.u32 %r7, [%rd2]; add.u32 %r7, %r7, 1; st.global.u32 [%rd2], %r7;
    bar.sync 1; @!%p1 bra DONE; add.u32 %r8, %r2, 1;
    st.global.release.gpu.b32 [%rd1+4096], %r8;
"""
#: Partial sums to the block that ends a tile: arrivals are counted, a plain store resets.
FIXUP = """
    setp.eq.u32 %p4, %r2, 0; @%p4 bra LAST;
    mov.u32 %r6, 1; st.global.u32 [%rd3+1024], %r6; bar.sync 0; @!%p1 bra DONE;
    fence.acq_rel.gpu; red.relaxed.gpu.global.add.s32 [%rd1+4096], 1; bra.uni DONE;
LAST:
    @!%p1 bra IN;
LOOK:
    ld.global.acquire.gpu.b32 %r6, [%rd1+4096]; setp.ne.u32 %p2, %r6, %r5; @%p2 bra LOOK;
IN:
    bar.sync 0; mov.u32 %r7, 1;
    ld.global.u32 %r8, [%rd2+1280]; add.u32 %r7, %r7, %r8;
    ld.global.u32 %r8, [%rd2+1536]; add.u32 %r7, %r7, %r8; st.global.u32 [%rd2], %r7;
    @%p1 st.global.u32 [%rd1+4096], 0;
"""
#: The block that takes the last ticket adds up what all have written, and resets the counter.
TICKET = """
    mov.u32 %r6, 1; st.global.u32 [%rd3+1024], %r6; membar.gl; bar.sync 0;
    @!%p1 bra TAKEN;
    atom.global.inc.u32 %r7, [%rd1+4096], 1000;
    setp.eq.u32 %p2, %r7, %r5; selp.u32 %r8, 1, 0, %p2; st.shared.u32 [words], %r8;
    membar.gl;
TAKEN:
    bar.sync 1; ld.shared.u32 %r8, [words]; setp.eq.u32 %p3, %r8, 0; @%p3 bra DONE;
    mov.u32 %r7, 0;
    ld.global.u32 %r8, [%rd2+1024]; add.u32 %r7, %r7, %r8;
    ld.global.u32 %r8, [%rd2+1280]; add.u32 %r7, %r7, %r8;
    ld.global.u32 %r8, [%rd2+1536]; add.u32 %r7, %r7, %r8; st.global.u32 [%rd2], %r7;
    @%p1 st.global.u32 [%rd1+4096], 0;
"""
#: Decoupled look-back: each block adds to the sum of the one before, behind a status word.
LOOK_BACK = """
    @!%p1 bra DONE;
    mov.u32 %r6, 0; setp.eq.u32 %p2, %r2, 0; @%p2 bra SUM;
LOOK:
    ld.relaxed.gpu.global.u32 %r7, [%rd4+4092]; setp.eq.u32 %p3, %r7, 0; @%p3 bra LOOK;
    fence.acq_rel.gpu;
    ld.global.u32 %r6, [%rd4+-4];
SUM:
    add.u32 %r6, %r6, %r2; st.global.u32 [%rd4], %r6;
    fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd4+4096], 1;
"""
#: The same with status and value in one word of 64 bits: nothing else is to be ordered.
PACKED = """
    @!%p1 bra DONE; mul.wide.u32 %rd5, %r2, 8; add.u64 %rd5, %rd1, %rd5;
    mov.u32 %r6, 0; setp.eq.u32 %p2, %r2, 0; @%p2 bra SUM;
LOOK:
    ld.relaxed.gpu.global.u64 %rd6, [%rd5+4088]; mov.b64 {%r6, %r7}, %rd6;
    setp.eq.u32 %p3, %r7, 0; @%p3 bra LOOK;
SUM:
    add.u32 %r6, %r6, %r2; st.global.u32 [%rd4], %r6; mov.u32 %r7, 1; mov.b64 %rd6, {%r6, %r7};
    st.relaxed.gpu.global.u64 [%rd5+4096], %rd6;
"""
#: The barrier of a grid: arrivals flip the top bit, a volatile look sees it.
GRID = """
    st.global.u32 [%rd3+1024], %r2; bar.sync 0; @!%p1 bra MET;
    setp.eq.u32 %p2, %r2, 0; sub.u32 %r6, 0x80000001, %r3; selp.u32 %r6, %r6, 1, %p2;
    membar.gl; atom.global.add.u32 %r7, [%rd1+4096], %r6;
LOOK:
    ld.volatile.global.u32 %r8, [%rd1+4096]; xor.b32 %r8, %r8, %r7; setp.ge.s32 %p3, %r8, 0;
    @%p3 bra LOOK; membar.gl;
MET:
    bar.sync 1; setp.ne.u32 %p4, %r2, 0; @%p4 bra DONE;
    ld.global.u32 %r7, [%rd2+1280];
    ld.global.u32 %r8, [%rd2+1536]; add.u32 %r7, %r7, %r8; st.global.u32 [%rd2], %r7;
"""
#: The last to come resets the counter by a plain store and turns the sense; twice.
SENSE = """
    mov.u32 %r10, 0; mov.u32 %r11, 1;
ROUND:
    st.global.u32 [%rd3+1024], %r11;
MEET:
    bar.sync 0; @!%p1 bra MET;
    atom.acq_rel.gpu.global.add.u32 %r7, [%rd1+4096], 1; setp.ne.u32 %p2, %r7, %r5; @%p2 bra LOOK;
    st.global.u32 [%rd1+4096], 0; st.release.gpu.global.u32 [%rd1+4100], %r11; bra.uni MET;
LOOK:
    ld.acquire.gpu.global.u32 %r8, [%rd1+4100]; setp.ne.u32 %p3, %r8, %r11; @%p3 bra LOOK;
MET:
    bar.sync 1; add.u32 %r11, %r11, 1; and.b32 %r12, %r11, 1; setp.eq.u32 %p4, %r12, 0;
    @%p4 bra READ; setp.lt.u32 %p5, %r11, 5; @%p5 bra ROUND; bra DONE;
READ:
    setp.ne.u32 %p6, %r2, 0; @%p6 bra MEET;
    ld.global.u32 %r7, [%rd2+1280];
    ld.global.u32 %r8, [%rd2+1536]; add.u32 %r7, %r7, %r8; st.global.u32 [%rd2], %r7;
    bra MEET;
"""
#: Threads take a lock in shared memory one by one; then one thread of each block one of all blocks.
SPIN = """
    @%p1 st.shared.u32 [words], 0; @%p1 st.shared.u32 [words+4], 0; bar.sync 0;
    and.b32 %r9, %r1, 31; setp.ne.u32 %p4, %r9, 0; @%p4 bra FREE;
MINE:
    atom.relaxed.cta.shared.cas.b32 %r6, [words], 0, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra MINE;
    fence.acq_rel.cta;
    ld.shared.u32 %r7, [words+4]; add.u32 %r7, %r7, 1; st.shared.u32 [words+4], %r7;
    membar.cta; st.volatile.shared.u32 [words], 0;
FREE:
    bar.sync 1; @!%p1 bra DONE;
ALL:
    atom.acquire.gpu.global.cas.b32 %r6, [%rd1+4096], 0, 1; setp.ne.u32 %p3, %r6, 0; @%p3 bra ALL;
    ld.shared.u32 %r7, [words+4]; ld.global.u32 %r8, [%rd1]; add.u32 %r8, %r8, %r7;
    st.global.u32 [%rd1], %r8;
    atom.release.gpu.global.exch.b32 %r6, [%rd1+4096], 0;
"""
#: A lock by numbers: whose turn it is is stored by who leaves.
NUMBERS = """
    @!%p1 bra DONE;
    atom.relaxed.gpu.global.add.u32 %r6, [%rd1+4096], 1;
LOOK:
    ld.acquire.gpu.global.u32 %r7, [%rd1+4100]; setp.ne.u32 %p2, %r7, %r6; @%p2 bra LOOK;
    ld.global.u32 %r8, [%rd1]; add.u32 %r8, %r8, 1; st.global.u32 [%rd1], %r8;
    ld.global.u32 %r7, [%rd1+4100];
    add.u32 %r7, %r7, 1; st.release.gpu.global.u32 [%rd1+4100], %r7;
"""

FENCED = "fence.acq_rel.gpu; red.relaxed.gpu.global"
IDIOMS = {
    "marlin": Idiom(
        MARLIN,
        [3] * 64,
        {
            "no fence": ("fence.acq_rel.gpu; red", "red"),
            "narrow fence": ("fence.acq_rel.gpu", "fence.acq_rel.cta"),
            "narrow add": ("red.relaxed.gpu", "red.relaxed.cta"),
            "relaxed look": ("ld.global.acquire.gpu", "ld.global.relaxed.gpu"),
            "narrow look": ("acquire.gpu", "acquire.cta"),
            "no barrier behind": ("bar.sync 1;", ""),
            "no barrier before": ("IN:\n    bar.sync 0;", "IN:"),
        },
        ("relaxed look",),
    ),
    "marlin, released": Idiom(
        MARLIN.replace(FENCED, "red.release.gpu.global"),
        [3] * 64,
        {"relaxed": ("red.release", "red.relaxed")},
    ),
    "semaphore": Idiom(
        SEMAPHORE,
        [3] * 64,
        {
            "relaxed store": ("release.gpu", "relaxed.gpu"),
            "relaxed look": ("acquire.gpu", "relaxed.gpu"),
            "no barrier": ("bar.sync 1;", ""),
        },
        ("relaxed look",),
    ),
    "fixup": Idiom(
        FIXUP,
        [3] * 64,
        {
            "no fence": ("fence.acq_rel.gpu; red", "red"),
            "relaxed look": ("acquire.gpu", "relaxed.gpu"),
            "no barrier before the arrival": ("bar.sync 0; @!%p1 bra DONE", "@!%p1 bra DONE"),
            "no barrier behind the look": ("IN:\n    bar.sync 0;", "IN:"),
        },
        ("relaxed look",),
    ),
    "ticket": Idiom(
        TICKET,
        [3] * 64,
        {
            "no fence": ("membar.gl; bar.sync 0;", "bar.sync 0;"),
            "narrow fence": ("membar.gl; bar.sync 0;", "membar.cta; bar.sync 0;"),
            "no fence behind": ("membar.gl;\nTAKEN", "TAKEN"),
            "no barrier": ("bar.sync 0;", ""),
        },
        ("no fence behind",),
    ),
    "ticket, volatile loads": Idiom(  # threadFenceReduction of the CUDA samples
        TICKET.replace("membar.gl;\nTAKEN", "TAKEN").replace("ld.global", "ld.volatile.global"),
        [3] * 64,
        {"no fence": ("membar.gl; bar.sync 0;", "bar.sync 0;"), "no barrier": ("bar.sync 0;", "")},
    ),
    "look-back": Idiom(
        LOOK_BACK,
        [0, 1, 3, *[0] * 61],
        {
            "no fence before": ("fence.acq_rel.gpu; st", "st"),
            "no fence behind": ("@%p3 bra LOOK;\n    fence.acq_rel.gpu;", "@%p3 bra LOOK;"),
            "narrow fences": ("fence.acq_rel.gpu", "fence.acq_rel.cluster"),
            "weak status": ("st.relaxed.gpu", "st"),
        },
    ),
    "look-back, packed": Idiom(
        PACKED, [0, 1, 3, *[0] * 61], {"weak": ("st.relaxed.gpu.global.u64", "st.global.u64")}
    ),
    "grid": Idiom(
        GRID,
        [3] * 64,
        {
            "no fence before": ("membar.gl; atom", "atom"),
            "no fence behind": ("@%p3 bra LOOK; membar.gl;", "@%p3 bra LOOK;"),
            "narrow atomic": ("atom.global.add", "atom.relaxed.cta.global.add"),
            "no barrier": ("bar.sync 0;", ""),
        },
        ("no fence behind",),
    ),
    "sense": Idiom(
        SENSE,
        [6] * 64,
        {
            "relaxed sense": ("st.release.gpu", "st.relaxed.gpu"),
            "relaxed look": ("ld.acquire.gpu", "ld.relaxed.gpu"),
            "relaxed arrival": ("atom.acq_rel.gpu", "atom.relaxed.gpu"),
            "reset behind the turn": (
                "st.global.u32 [%rd1+4096], 0; st.release.gpu.global.u32 [%rd1+4100], %r11;",
                "st.release.gpu.global.u32 [%rd1+4100], %r11; st.global.u32 [%rd1+4096], 0;",
            ),
        },
    ),
    "spin": Idiom(
        SPIN,
        [3 * 2, *[0] * 63],
        {
            "no fence before": ("membar.cta; st", "st"),
            "no fence behind": ("fence.acq_rel.cta;", ""),
            "relaxed lock": ("atom.acquire.gpu", "atom.relaxed.gpu"),
            "relaxed unlock": ("atom.release.gpu", "atom.relaxed.gpu"),
            "narrow lock": ("atom.acquire.gpu", "atom.acquire.cta"),
            "weak unlock": ("st.volatile.shared", "st.shared"),
        },
    ),
    "numbers": Idiom(
        NUMBERS,
        [3, *[0] * 63],
        {
            "relaxed look": ("ld.acquire.gpu", "ld.relaxed.gpu"),
            "relaxed turn": ("st.release.gpu", "st.relaxed.gpu"),
        },
    ),
}
TWINS = [(name, twin) for name, idiom in IDIOMS.items() for twin in idiom.broken]


def findings(text: str, schedule: int | None) -> tuple[list[str], list[int]]:
    """In words, and what words 0 .. 63 hold; three blocks of 64 threads."""
    data = np.zeros(2048, np.uint32)
    report = run(text, grid=(3,), block=(64,), arguments=[data], check=True, schedule=schedule)
    return [f"{f.severity} {f.kind}: {f.message}" for f in report.findings], data[:64].tolist()


@pytest.mark.parametrize("schedule", [None, 1, 2])
@pytest.mark.parametrize("name", IDIOMS)
def test_an_idiom_is_silent(name: str, schedule: int | None) -> None:
    idiom = IDIOMS[name]
    assert findings(idiom.text(), schedule) == ([], idiom.result)


@pytest.mark.parametrize(("name", "twin"), TWINS)
def test_its_broken_twin_is_a_race(name: str, twin: str) -> None:
    """In some schedule of those that `fragir check` tries."""
    idiom = IDIOMS[name]
    text = idiom.text(*idiom.broken[twin])
    found = [each for schedule in (None, 1, 2) for each in findings(text, schedule)[0]]
    kinds = {each.partition(":")[0] for each in found}
    if twin in idiom.letters:
        assert kinds == {"letter race"}
        assert all(quote("acquire") in each for each in found)
    else:
        assert "error race" in kinds
