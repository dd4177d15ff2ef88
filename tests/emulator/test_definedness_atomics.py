"""Atomics on uninitialised shared memory: which bits they leave undefined."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from fragir.emulator import run
from fragir.emulator.checks.definedness.accesses import rule
from fragir.emulator.instructions.atomics import operator

BITS = 3  # of the values that are tried; the others are zero, and defined
SIGN = 1 << 31
EXACT = {"and", "or", "xor", "exch"}


def completions(value: int, undefined: int) -> list[int]:
    """Every value that the undefined bits allow."""
    unknown = [1 << i for i in range(32) if undefined >> i & 1]
    fixed = value & ~undefined
    return [
        fixed | sum(c) for n in range(len(unknown) + 1) for c in itertools.combinations(unknown, n)
    ]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        *((w, "b32") for w in ("and", "or", "xor", "exch", "cas")),
        *((w, k) for w in ("min", "max", "add") for k in ("u32", "s32")),
        ("inc", "u32"),
        ("dec", "u32"),
    ],
)
def test_against_every_completion(word: str, kind: str) -> None:
    """A bit that can come out either way is undefined; logic says so of no other bit."""
    function, left = operator(word, kind), rule(word, kind)
    assert function is not None
    chance = random.Random(f"{word} {kind}")
    count = 2 if word == "cas" else 1
    spared = 0
    for _ in range(400):
        picks = [
            (chance.getrandbits(BITS), chance.getrandbits(BITS) & chance.getrandbits(BITS))
            for _ in range(1 + count)
        ]
        if kind == "s32":
            picks = [
                (v | SIGN * chance.getrandbits(1), u | SIGN * (chance.random() < 0.2))
                for v, u in picks
            ]
        results = {
            int(function(*(np.array([x], np.uint32) for x in chosen))[0])
            for chosen in itertools.product(*(completions(v, u) for v, u in picks))
        }
        varies = 0
        for result in results:
            varies |= result ^ min(results)
        values = [np.array([[v]], np.uint32) for v, _ in picks]
        unknown = [np.array([[u]], np.uint32) for _, u in picks]
        found = int(left(values[0], unknown[0], values[1:], unknown[1:])[0, 0])
        assert varies & ~found == 0, picks
        if word in EXACT:
            assert found == varies, picks
        spared += found == varies and any(u for _, u in picks)
    assert spared > 50 or word == "add"  # the rule does not say "undefined" of everything


KERNEL = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b128 %w<4>; .reg .pred %p<3>; .reg .b16 %h<4>;
    .shared .align 16 .b32 word[4];
    mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
    mov.u32 %r6, word; cvt.u64.u32 %rd3, %r6; cvta.shared.u64 %rd3, %rd3;
    shl.b32 %r7, 1, %r0; not.b32 %r7, %r7;
    mov.b64 %rd4, 7; mov.b128 %w1, {{%rd4, %rd4}};
    {text}
    bar.sync 0;
    ld.shared.u32 %r2, [word]; {after}
    ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1;
    st.global.u32 [%rd0], %r2;
    ret;
}}
"""


def kinds(text: str, after: str = "") -> list[str]:
    ptx = KERNEL.format(text=text, after=after)
    report = run(ptx, arguments=[np.zeros(32, np.uint32)], check=True)
    return [f.kind for f in report.findings]


@pytest.mark.parametrize("red", ["red.shared.and.b32 [word]", "red.and.b32 [%rd3]"])
def test_what_is_cleared_is_defined(red: str) -> None:
    """One bit of a word, as the barriers of cooperative groups' tiles do; generic too."""
    assert kinds(f"@%p0 {red}, -2;", "and.b32 %r2, %r2, 1;") == []
    assert kinds(f"@%p0 {red}, -2;", "and.b32 %r2, %r2, 3;") == ["uninitialised"]


def test_lane_after_lane() -> None:
    """Each lane clears a bit of its own: afterwards the word is defined."""
    assert kinds("red.shared.and.b32 [word], %r7;") == []
    assert kinds("setp.ne.u32 %p1, %r0, 5; @%p1 red.shared.and.b32 [word], %r7;") == [
        "uninitialised"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "@%p0 red.shared.or.b32 [word], -1;",
        "@%p0 atom.shared.exch.b32 %r3, [word], 5;",
        "@%p0 atom.exch.b32 %r3, [%rd3], 5;",
        "@%p0 atom.shared.exch.b128 %w0, [word], %w1;",
        "@%p0 red.shared.inc.u32 [word], 0;",
        "@%p0 red.shared.dec.u32 [word], 0;",
        "@%p0 red.shared.max.u32 [word], -1;",
        "@%p0 red.shared.min.u32 [word], 0;",
        "@%p0 red.shared.max.s32 [word], 0x7fffffff;",
        "@%p0 st.shared.u32 [word], 1; @%p0 atom.shared.cas.b32 %r3, [word], 1, 2;",
    ],
)
def test_whatever_it_was(text: str) -> None:
    """The result does not depend on what was there."""
    assert kinds(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "@%p0 red.shared.add.u32 [word], 1;",
        "@%p0 red.add.u32 [%rd3], 1;",
        "@%p0 red.shared.xor.b32 [word], 1;",
        "@%p0 red.shared.max.u32 [word], 1;",
        "@%p0 red.shared.inc.u32 [word], 5;",
        "@%p0 atom.shared.cas.b32 %r3, [word], 1, 2;",
        "@%p0 atom.shared.exch.b32 %r3, [word], %r8;",
        "atom.shared.exch.b32 %r3, [word+4], 5; @%p0 st.shared.u32 [word], %r3;",
        "atom.exch.b32 %r3, [%rd3+4], 5; @%p0 st.shared.u32 [word], %r3;",
    ],
)
def test_what_stays_undefined(text: str) -> None:
    assert kinds(text) == ["uninitialised"]
