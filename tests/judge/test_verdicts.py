"""Good kernels pass; hostile ones, and hostile case files, never do."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fragir.judge import BrokenCaseError, CaseLimits, Judgement, Judging, judge
from fragir.judge.judging import judge_prepared
from fragir.judge.sandbox import PreparedCases, prepare

ROOT = Path(__file__).resolve().parents[2]
NORM = (ROOT / "examples/judged/norm.ptx").read_text("utf-8")
CASES = f"{ROOT / 'examples/judged/cases.py'}:norms"
LIMITED = Judging(limit=(200_000, 20.0), jobs=1)


@pytest.fixture(scope="module")
def norms() -> PreparedCases:
    """Of a seed that nobody can know before."""
    return prepare(CASES, int(time.time()), CaseLimits())


def edited(*edits: tuple[str, str]) -> str:
    text = NORM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def test_a_good_kernel_passes(norms: PreparedCases) -> None:
    verdict = judge_prepared(NORM, norms, LIMITED)
    assert verdict.word == "pass", verdict.reasons
    assert verdict.exit_code == 0
    assert verdict.equality == "exact (2^-60)"
    assert verdict.coverage["norm"].counts == (48, 48)
    assert verdict.untried == {}
    document = verdict.document()
    assert document["schedules"] == "every"
    assert document["launches"][0]["shapes"] == [[3, 1], [3, 1]]


def test_strict_asks_for_more(norms: PreparedCases) -> None:
    assert [one.number for one in norms.cases] == list(range(6))
    first = replace(norms, cases=norms.cases[:1])
    assert judge_prepared(NORM, first, LIMITED).word == "pass"
    verdict = judge_prepared(NORM, first, Judging(strict=True, jobs=1))
    assert verdict.word == "incomplete"
    assert {reason.kind for reason in verdict.reasons} == {"not covered"}
    assert judge_prepared(NORM, norms, Judging(strict=True, jobs=1)).word == "pass"


# -- hostile kernels -------------------------------------------------------------------------------

STORE = "    st.global.f32 [%rd5], %f3;\n"
READ = "    div.rn.f32 %f3, %f3, %f4;\n"
FIRST = "    mov.u32 %r2, %tid.x;\n"


def answers_of_seed_0() -> str:
    """A kernel that has the first row's answer of the smallest case written into it."""
    x = np.random.default_rng(0).normal(size=(3, 1)).astype(np.float32)
    y = (x / np.sqrt(x * x + np.float32(1e-5))).astype(np.float32)
    digits = f"0f{int(y.view(np.uint32)[0, 0]):08X}"
    return edited((READ, f"    mov.f32 %f3, {digits};\n"))


HOSTILE: dict[str, tuple[str, str, str]] = {
    # what it does: (text, verdict, kind)
    "writes nothing": (edited((STORE, "")), "fail", "unwritten"),
    "leaves the tail": (
        edited(("    @%p2 bra scaled;\n", "")),
        "fail",
        "unwritten",
    ),
    "writes NaN": (
        edited((STORE, "    mov.b32 %f3, 0f7FC00000;\n" + STORE)),
        "fail",
        "result",
    ),
    "writes a NaN with a payload": (
        edited((STORE, "    mov.b32 %f3, 0fFFC12345;\n" + STORE)),
        "fail",
        "result",
    ),
    "adds to what it finds": (
        edited((STORE, "    ld.global.f32 %f5, [%rd5];\n    add.f32 %f3, %f3, %f5;\n" + STORE)),
        "fail",
        "result",
    ),
    "writes what it finds": (
        edited((STORE, "    ld.global.f32 %f3, [%rd5];\n" + STORE)),
        "fail",
        "unwritten",
    ),
    "scales its input": (
        edited((STORE, STORE + "    add.u64 %rd6, %rd1, %rd4;\n    st.global.f32 [%rd6], %f3;\n")),
        "fail",
        "modified",
    ),
    "writes behind its output": (
        edited((STORE, STORE + "    st.global.f32 [%rd5+4096], %f3;\n")),
        "fail",
        "out-of-bounds",
    ),
    "knows an answer": (answers_of_seed_0(), "fail", "result"),
    "is a little off": (
        edited((STORE, "    mul.f32 %f3, %f3, 0f3F802000;\n" + STORE)),
        "fail",
        "result",
    ),
    "has another epsilon": (
        edited(("    add.f32 %f4, %f4, %f1;\n", "    add.f32 %f4, %f4, 0f3A83126F;\n")),
        "fail",
        "result",
    ),
    "copies its input": (edited((READ, "")), "fail", "result"),
    "forgets a shuffle": (
        edited(("    shfl.sync.bfly.b32 %f3, %f2, 16, 31, -1;\n    add.f32 %f2, %f2, %f3;\n", "")),
        "fail",
        "result",
    ),
    "overflows on the way": (
        edited(
            (READ, "    mul.f32 %f3, %f3, 0f7F000000;\n    mul.f32 %f3, %f3, 0f7F000000;\n" + READ)
        ),
        "fail",
        "result",
    ),
    "never ends": (
        edited((FIRST, FIRST + "forever:\n    add.u32 %r2, %r2, 1;\n    bra forever;\n")),
        "incomplete",
        "limit",
    ),
    "waits for ever": (
        edited((FIRST, FIRST + "    bar.sync 0, 64;\n")),
        "fail",
        "deadlock",
    ),
    "traps": (edited((FIRST, FIRST + "    trap;\n")), "fail", "stopped"),
    "looks at the clock": (
        edited(
            (
                FIRST,
                FIRST
                + "    mov.u32 %r5, %clock;\n    and.b32 %r5, %r5, 0;\n    or.b32 %r2, %r2, %r5;\n",
            )
        ),
        "incomplete",
        "choice",
    ),
    "reads what nobody wrote": (
        edited(("    mov.f32 %f2, 0f00000000; ", "    // ")),
        "fail",
        "uninitialised",
    ),
    "all lanes write one place": (
        edited((STORE, STORE + "    st.global.f32 [%rd2], %f3;\n")),
        "fail",
        "race",
    ),
    "races where it finds another NaN": (
        edited(
            (
                STORE,
                "    ld.global.u32 %r5, [%rd5];\n    setp.lt.s32 %p1, %r5, 0;\n"
                "    @%p1 st.global.f32 [%rd2], %f3;\n" + STORE,
            )
        ),
        "fail",
        "race",
    ),
    "is no PTX": (NORM.replace("add.u64 %rd1", "add.u64 %rd1 %rd1"), "fail", "syntax"),
    "is not legal": (
        edited((FIRST, FIRST + "    add.u32 %r2, %r2, %nothing;\n")),
        "fail",
        "syntax",
    ),
    "uses what is not emulated": (
        edited((FIRST, FIRST + "    txq.width.b32 %r1, [%rd1];\n")),
        "unsupported",
        "unsupported",
    ),
    "takes all memory": (
        edited(
            (".visible .entry", ".global .b8 all[1000000000000];\n.visible .entry"),
            (FIRST, FIRST + "    mov.u64 %rd7, all;\n    st.global.u32 [%rd7], %r1;\n"),
        ),
        "incomplete",
        "limit",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_kernels_do_not_pass(name: str, norms: PreparedCases) -> None:
    text, word, kind = HOSTILE[name]
    verdict = judge_prepared(text, replace(norms, cases=norms.cases[::3]), LIMITED)
    assert verdict.word == word, verdict.reasons
    assert kind in {reason.kind for reason in verdict.reasons if reason.verdict == word}
    assert verdict.exit_code == {"fail": 1, "incomplete": 3, "unsupported": 4}[word]


def test_a_reason_says_where(norms: PreparedCases) -> None:
    text, _, _ = HOSTILE["is a little off"]
    verdict = judge_prepared(text, norms, LIMITED, name="norm.ptx")
    messages = [reason.message for reason in verdict.reasons if reason.kind == "result"]
    assert all(re.search(r"\[\d+, \d+\].*: it is .*, the reference gives", m) for m in messages)
    race = judge_prepared(HOSTILE["all lanes write one place"][0], norms, LIMITED, name="norm.ptx")
    (found,) = {(r.file, r.line) for r in race.reasons if r.kind == "race"}
    assert found[0] == "norm.ptx"
    assert found[1] is not None


def test_an_entry_that_is_not_there(norms: PreparedCases) -> None:
    with pytest.raises(BrokenCaseError, match="does not fit the kernel: the PTX has no entry norm"):
        judge_prepared(edited((".entry norm", ".entry other")), norms, LIMITED)


# -- case files ------------------------------------------------------------------------------------

HEAD = """
import os, sys, time
import numpy as np
from fragir.judge import Case, KernelCall
def norm(x):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(1e-5))
def made(rng, reference=norm, columns=40, grid=3, outputs=True, **more):
    x = rng.normal(size=(3, columns)).astype(np.float32)
    y = np.empty_like(x)
    call = KernelCall("norm", [x, y, columns, np.float32(1e-5)], grid=grid, block=32)
    return Case(call, inputs=[x], outputs=[y] if outputs else [], reference=reference, **more)
"""
Judged = Callable[..., Judgement]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    """The verdict on the good kernel by a case file of this text."""

    def judged(text: str, seconds: float = 20.0, memory: int = 4 << 30) -> Judgement:
        path = tmp_path / "hostile.py"
        path.write_text(HEAD + text)
        how = Judging(limit=(200_000, 20.0), case_limits=CaseLimits(seconds, memory), jobs=1)
        return judge(NORM, f"{path}:cases", how)

    return judged


BROKEN = {
    # what it does: (text, what the judge says)
    "raises": ("def cases(rng):\n    raise RuntimeError('no cases today')", "no cases today"),
    "is no Python": ("def cases(rng)", "SyntaxError"),
    "has no function": ("def others(rng): pass", "has no function cases"),
    "yields something else": ("def cases(rng):\n    yield 1", "yields int"),
    "raises in the reference": (
        "def bad(x):\n    return x / undefined\ndef cases(rng):\n    yield made(rng, bad)",
        "undefined",
    ),
    "gives another shape": (
        "def cases(rng):\n    yield made(rng, lambda x: norm(x)[:1])",
        r"shape \(1, 40\)",
    ),
    "prints a verdict": (
        'print(\'{"verdict": "pass"}\')\nos._exit(0)\ndef cases(rng): pass',
        "left no answer",
    ),
    "writes a verdict": (
        "open(os.path.join(sys.argv[1], 'answer.json'), 'w').write('{\"verdict\": \"pass\"}')\n"
        "os._exit(0)",
        "left no answer",
    ),
    "writes an answer that is code": (
        "import json, pickle\nfolder = sys.argv[1]\n"
        "np.save(folder + '/m.npy', np.array([print], object))\n"
        "case = dict(roots=['m'], views=[], calls=[], inputs=[], outputs=[], structure=[],"
        " formats=['f32', 'f32', 'any'], rtol=None, copies=False, tiles={}, results=[],"
        " bounds=None, unbounded='', copied=False, constant=False)\n"
        "json.dump({'cases': [case]}, open(folder + '/answer.json', 'w'))\nos._exit(0)",
        "left no answer: ValueError: Object arrays",
    ),
    "dies": ("os.abort()", "by signal 6"),
    "takes all memory": ("def cases(rng):\n    np.ones(1 << 40)", "MemoryError|allocate"),
    "has no launch that fits": (
        "def cases(rng):\n    yield Case(KernelCall('norm', [1]), [], [np.zeros(1)],"
        " lambda: np.zeros(1))",
        "does not fit the kernel",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_cases_are_no_verdicts(name: str, judged: Judged) -> None:
    text, message = BROKEN[name]
    with pytest.raises(BrokenCaseError, match=message):
        judged(text)


@pytest.mark.parametrize(
    "text", ["while True: pass", "def cases(rng):\n    while True: yield made(rng)"]
)
def test_a_case_that_hangs_is_stopped(text: str, judged: Judged) -> None:
    start = time.monotonic()
    with pytest.raises(BrokenCaseError, match=r"stopped after 1 s|by signal|more than"):
        judged(text, seconds=1.0)
    assert time.monotonic() - start < 15


EMPTY = {
    "nothing": "def cases(rng):\n    return []",
    "no call": "def cases(rng):\n    yield Case([], [], [np.zeros(1)], lambda: np.zeros(1))",
    "no output": "def cases(rng):\n    yield made(rng, lambda x: (), outputs=False)",
    "an empty output": "def cases(rng):\n    yield made(rng, columns=0)",
    "the input": "def cases(rng):\n    yield made(rng, lambda x: x)",
    "a copy of the input": "def cases(rng):\n    yield made(rng, lambda x: x + 0)",
    "zeros": "def cases(rng):\n    yield made(rng, lambda x: np.zeros(x.shape))",
}


@pytest.mark.parametrize("name", EMPTY)
def test_cases_that_say_nothing_are_no_pass(name: str, judged: Judged) -> None:
    verdict = judged(EMPTY[name])
    assert verdict.word != "pass"
    assert {"nothing", "trivial"} & {reason.kind for reason in verdict.reasons}


def test_a_huge_grid_is_stopped(judged: Judged) -> None:
    verdict = judged("def cases(rng):\n    yield made(rng, grid=(2**31 - 1, 65535, 65535))")
    assert verdict.word != "pass"


def test_what_the_case_file_prints_is_not_the_verdict(judged: Judged) -> None:
    text = "print('FAIL')\ndef cases(rng):\n    print('{}')\n    yield made(rng)"
    assert judged(text).word == "pass"


def test_a_reference_that_changes_its_input(judged: Judged) -> None:
    text = (
        "def bad(x):\n    x *= 2\n    return norm(x / 2)\ndef cases(rng):\n    yield made(rng, bad)"
    )
    assert judged(text).word in ("pass", "incomplete")  # nothing else sees what it did
