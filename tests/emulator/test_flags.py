"""Flags and locks: every way to hand on data by one word of memory, and its broken twins.

One kernel has all phases, one behind the other: a writer stores a word and releases a flag, a
reader looks at the flag until it is there, acquires, loads the word and resets the flag. What
orders them is PTX ISA 9.2, section 8.9 (memory consistency model, axioms and causality order).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fragir.emulator import run

HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<4>;
    .shared .align 4 .b32 words[512];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; ld.param.u64 %rd1, [data];
    setp.ge.u32 %p1, %r1, 512; @%p1 bra DONE;
    shl.b32 %r3, %r1, 2; mov.u32 %r5, words; add.u32 %r3, %r3, %r5;
CLEAR:
    st.shared.u32 [%r3], 0; add.u32 %r3, %r3, 256; add.u32 %r6, %r5, 2048;
    setp.lt.u32 %p1, %r3, %r6; @%p1 bra CLEAR;
    bar.sync 0;
    mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
    setp.eq.u32 %p1, %r1, 0; @%p1 bra WRITER; setp.eq.u32 %p1, %r1, 32; @%p1 bra READER;
    bra.uni DONE;
"""
#: How data are released: {l} is the flag, {m} the space, {s} the scope, {f} that of a membar.
RELEASES = (
    "fence.acq_rel.{s}; red.relaxed.{s}.{m}.add.u32 {l}, 1;",
    "fence.acq_rel.{s}; st.relaxed.{s}.{m}.u32 {l}, 1;",
    "fence.sc.{s}; atom.relaxed.{s}.{m}.cas.b32 %r6, {l}, 0, 1;",
    "membar.{f}; st.volatile.{m}.u32 {l}, 1;",
    "membar.{f}; red.{m}.max.u32 {l}, 1;",
    "membar.{f}; atom.{m}.exch.b32 %r6, {l}, 1;",
    "st.release.{s}.{m}.u32 {l}, 1;",
    "red.release.{s}.{m}.or.b32 {l}, 1;",
    "atom.release.{s}.{m}.add.u32 %r6, {l}, 1;",
    "atom.acq_rel.{s}.{m}.exch.b32 %r6, {l}, 1;",
)
#: How the flag is looked at, and what acquires behind the loop.
ACQUIRES = (
    ("ld.acquire.{s}.{m}.u32 %r4, {l};", ""),
    ("ld.relaxed.{s}.{m}.u32 %r4, {l};", "fence.acq_rel.{s};"),
    ("ld.volatile.{m}.u32 %r4, {l};", "membar.{f};"),
    ("atom.acquire.{s}.{m}.cas.b32 %r4, {l}, 1, 1;", ""),
    ("atom.relaxed.{s}.{m}.add.u32 %r4, {l}, 0;", "fence.acq_rel.{s};"),
    ("atom.{m}.exch.b32 %r4, {l}, 0;", "membar.{f};"),
    ("atom.acq_rel.{s}.{m}.exch.b32 %r4, {l}, 0;", ""),
)
#: How the flag is taken back, if at all. It has been seen: a plain store will do.
RESETS = (
    "st.{m}.u32 {l}, 0;",
    "",
    "st.relaxed.{s}.{m}.u32 {l}, 0;",
    "ld.{m}.u32 %r4, {l}; st.{m}.u32 {l}, 0;",
    "st.release.{s}.{m}.u32 {l}, 0;",
    "atom.relaxed.{s}.{m}.exch.b32 %r6, {l}, 0;",
    "st.volatile.{m}.u32 {l}, 0;",
    "red.relaxed.{s}.{m}.add.u32 {l}, -1;",
    "st.{m}.u16 {l}, 0;",
)
PHASES = [
    (RELEASES[i % len(RELEASES)], ACQUIRES[i % len(ACQUIRES)], RESETS[i % len(RESETS)])
    for i in range(30)
]


@dataclass(frozen=True)
class Place:
    """Where flags and data are, the scope that is enough, and who hands on to whom."""

    space: str
    scope: str
    grid: int
    block: int

    def filled(self, text: str, phase: int) -> str:
        base, shift = ("%rd1", 4) if self.space == "global" else ("words", 4)
        flag = f"[{base}+{1024 + shift * phase}]"
        membar = {"cta": "cta", "gpu": "gl"}[self.scope]
        return text.format(
            s=self.scope, m=self.space, l=flag, f=membar, d=f"[{base}+{shift * phase}]"
        )


PLACES = {
    "between blocks": Place("global", "gpu", 2, 32),
    "in a block, global": Place("global", "cta", 1, 64),
    "in a block, shared": Place("shared", "cta", 1, 64),
    "in a block, wider than it must be": Place("shared", "gpu", 1, 64),
}


def relaxed(text: str) -> str:
    """Without what orders: fences, .release, .acquire."""
    text = text.split("; ")[-1] if text.startswith(("fence", "membar")) else text
    for word in (".release", ".acq_rel", ".acquire"):
        text = text.replace(word, ".relaxed")
    return text


def kernel(place: Place, release: bool = True, acquire: bool = True) -> tuple[str, set[int]]:
    """The text, and the lines of the reader's loads."""
    lines = [str(line) for line in HEAD.splitlines()]
    lines.append("WRITER:")
    for i, (released, _, _) in enumerate(PHASES):
        lines.append(place.filled(f"st.{{m}}.u32 {{d}}, {i + 1};", i))
        lines.append(place.filled(released if release else relaxed(released), i))
    lines += ["bra.uni DONE;", "READER:"]
    loads: set[int] = set()
    for i, (_, (look, then), reset) in enumerate(PHASES):
        look, then = (look, then) if acquire else (relaxed(look), "")
        lines.append(
            f"P{i}: " + place.filled(look, i) + f" setp.ne.u32 %p2, %r4, 1; @%p2 bra P{i};"
        )
        lines += [place.filled(then, i), place.filled("ld.{m}.u32 %r5, {d};", i)]
        loads.add(len(lines))
        lines += [f"st.global.u32 [%rd1+{2048 + 4 * i}], %r5;", place.filled(reset, i)]
    lines += ["DONE:", "ret;", "}"]
    return "\n".join(lines), loads


def found(place: Place, text: str, schedule: int | None) -> tuple[set[int | None], list[int]]:
    """The lines of races, and what the reader has loaded."""
    data = np.zeros(1024, np.uint32)
    report = run(
        text,
        grid=(place.grid,),
        block=(place.block,),
        arguments=[data],
        check=True,
        schedule=schedule,
    )
    assert {f.kind for f in report.findings} <= {"race"}
    return {f.line for f in report.findings}, data[512 : 512 + len(PHASES)].tolist()


@pytest.mark.parametrize("schedule", [None, 1])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_released_and_acquired_is_in_order(place: str, schedule: int | None) -> None:
    text, _ = kernel(PLACES[place])
    lines, loaded = found(PLACES[place], text, schedule)
    assert [text.splitlines()[line - 1] for line in lines if line] == []
    assert loaded == list(range(1, len(PHASES) + 1))


@pytest.mark.parametrize("missing", ["release", "acquire"])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_not_is_a_race(place: str, missing: str) -> None:
    """Of the data alone: the flag itself has been seen."""
    text, loads = kernel(PLACES[place], release=missing != "release", acquire=missing != "acquire")
    assert found(PLACES[place], text, None)[0] == loads
    assert found(PLACES[place], text, 1)[0] == loads


def test_a_scope_that_leaves_the_reader_out_is_a_race() -> None:
    """Of the flags too, where they name the scope."""
    narrow = Place("global", "cta", 2, 32)
    text, loads = kernel(narrow)
    lines, _ = found(narrow, text, None)
    assert loads <= lines
    assert len(lines) > len(loads)


@pytest.mark.parametrize(
    ("release", "look"),
    [
        ("st.global.u32 [%rd1+1024], 1;", "ld.acquire.gpu.global.u32"),
        ("red.relaxed.gpu.global.add.u32 [%rd1+1024], 1;", "ld.global.u32"),
    ],
)
def test_a_weak_access_to_the_flag_is_a_race(release: str, look: str) -> None:
    """Whatever the fences: what a weak load sees, or a weak store leaves, is no observation."""
    text = f"""{HEAD}
WRITER:
    st.global.u32 [%rd1], 1; fence.acq_rel.gpu; {release}
    bra.uni DONE;
READER:
    {look} %r4, [%rd1+1024]; setp.ne.u32 %p2, %r4, 1; @%p2 bra READER;
    fence.acq_rel.gpu; ld.global.u32 %r5, [%rd1]; st.global.u32 [%rd1+2048], %r5;
DONE: ret;
}}"""
    for schedule in (None, 1):
        lines, _ = found(PLACES["between blocks"], text, schedule)
        assert len(lines) == 2  # the flag, whichever comes later, and the data


@pytest.mark.parametrize(("ordered", "races"), [("bar.warp.sync -1;", False), ("", True)])
@pytest.mark.parametrize("place", ["between blocks", "in a block, shared"])
def test_who_resets_must_know_of_the_look(place: str, ordered: str, races: bool) -> None:
    """Another lane than the one that has looked resets the flag."""
    text = """
WRITER:
    fence.acq_rel.{s}; red.relaxed.{s}.{m}.add.u32 {l}, 1;
    bra.uni DONE;
LOOK:
    ld.relaxed.{s}.{m}.u32 %r4, {l}; setp.ne.u32 %p2, %r4, 1; @%p2 bra LOOK; bra.uni BOTH;
READER:
    setp.eq.u32 %p3, %r1, 32; @%p3 bra LOOK;
    BEFORE
BOTH:
    ORDERED
    @!%p3 st.{m}.u32 {l}, 0;
DONE: ret;
}}"""
    wait = "nanosleep.u32 100000;" if races else ""
    text = text.replace("ORDERED", ordered).replace("BEFORE", wait)
    text = PLACES[place].filled(text, 0)
    head = HEAD.replace("setp.eq.u32 %p1, %r1, 32;", "setp.ge.u32 %p1, %r1, 32;")
    assert bool(found(PLACES[place], head + text, None)[0]) == races
