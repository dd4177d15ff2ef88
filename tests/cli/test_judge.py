"""`fragir judge`: exit codes, JSON, SARIF, batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_json import validate

Fragir = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
NORM = (ROOT / "examples/judged/norm.ptx").read_text("utf-8")
STORE = "    st.global.f32 [%rd5], %f3;\n"
CASES = "examples/judged/cases.py:norms"
#: Rows without columns, and one word behind them.
FEW = """
import numpy as np
from fragir.judge import Case, KernelCall
def cases(rng):
    x, y = np.ones(1, "f4"), np.zeros(1, "f4")
    yield Case(KernelCall("norm", [x, y, 0, 1e-5]), [x], [y], lambda x: x + 1)
"""
FATBIN = b"\x50\xed\x55\xba\x01\x00\x10\x00" + bytes(8)


@pytest.fixture(autouse=True)
def examples(in_folder: Path) -> None:
    """The example, a kernel that leaves out what it should write, and others."""
    (in_folder / "examples").symlink_to(ROOT / "examples")
    Path("good.ptx").write_text(NORM)
    Path("bad.ptx").write_text(NORM.replace(STORE, ""))
    Path("loop.ptx").write_text(
        NORM.replace("ret;\n}", "loop:\n add.u32 %r4,%r4,1;\n bra loop;\n}")
    )
    Path("code.fatbin").write_bytes(FATBIN)
    Path("broken.py").write_text("def cases(rng):\n    yield 1 / 0\n")


def judge(fragir: Fragir, *arguments: str) -> Any:
    return fragir("judge", *arguments, "--seed", "7", "--jobs", "1")


@pytest.mark.parametrize(
    ("kernel", "code", "word"),
    [
        ("good.ptx", 0, "pass"),
        ("bad.ptx", 1, "fail"),
        ("loop.ptx", 3, "incomplete"),
        ("code.fatbin", 4, "unsupported"),
    ],
)
def test_verdicts(fragir: Fragir, kernel: str, code: int, word: str) -> None:
    options = [kernel, "--case", CASES, "--limit", "1e5", "--sarif", "log.sarif", "--json"]
    result = judge(fragir, *options)
    assert result.code == code
    document = json.loads(result.out)
    validate(document, "judge")
    assert document["verdict"] == word
    assert (document["reasons"] == []) == (word == "pass")
    log = json.loads(Path("log.sarif").read_text())
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["properties"] == {"verdict": word}
    assert len(run["results"]) == len(document["reasons"])
    rules = {
        rule["id"]: rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"]
    }
    for found in run["results"]:
        assert rules[found["ruleId"]] != found["ruleId"]
        (place,) = found["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == kernel


def test_in_words(fragir: Fragir) -> None:
    result = judge(fragir, "good.ptx", "--case", CASES)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[-1] == "PASS"
    assert "norm: 6 launches, 48 of 48 statements" in lines
    result = judge(fragir, "bad.ptx", "--case", "examples/judged/cases.py:other_norms")
    assert result.code == 1
    assert "elements of output 0 are not written" in result.out
    Path("few.py").write_text(FEW)
    result = judge(fragir, "good.ptx", "--case", "few.py:cases")
    loop = 1 + NORM[: NORM.index("squares:")].count("\n")
    assert f"not executed: lines {loop + 1}-{loop + 7}, " in result.out
    assert f"one way only: lines {loop - 1}, " in result.out
    result = judge(fragir, "bad.ptx", "--case", CASES)
    assert result.code == 1
    assert "elements of output 0 are not written" in result.out
    assert result.out.endswith("FAIL\n")


def test_what_is_not_needed(fragir: Fragir) -> None:
    twice = "    shfl.sync.bfly.b32 %f3, %f2, 16"
    Path("more.ptx").write_text(NORM.replace(twice, f"    bar.warp.sync -1;\n{twice}"))
    result = judge(fragir, "more.ptx", "--case", CASES, "--not-needed", "--json")
    assert result.code == 0
    document = json.loads(result.out)
    validate(document, "judge")
    (found,) = document["not_needed"]["statements"]
    assert (found["statement"], found["verdict"]) == ("bar.warp.sync -1;", "not needed")
    assert document["not_needed"]["launches"] == 6
    result = judge(fragir, "more.ptx", "--case", CASES, "--not-needed")
    assert "not needed in these 6 launches, one at a time: 1 of 1" in result.out
    result = judge(fragir, "bad.ptx", "--case", CASES, "--not-needed", "--json")
    document = json.loads(result.out)
    validate(document, "judge")
    assert "kernels that pass" in document["not_needed"]["refused"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.ptx"], "--case"),
        (["none.ptx", "--case", CASES], "cannot read this file"),
        (["good.ptx", "--case", "broken.py:cases"], "the case is broken: ZeroDivisionError"),
        (["good.ptx", "--case", "nomodule:cases"], "No module named 'nomodule'"),
        (["good.ptx", "--case", CASES, "--batch", "x.jsonl"], "leave out"),
        (["--batch", "x.jsonl", "--resume"], "-o FILE"),
        (["--batch", "none.jsonl"], "cannot read"),
    ],
)
def test_the_judges_own_trouble_is_2(fragir: Fragir, arguments: list[str], message: str) -> None:
    result = judge(fragir, *arguments, "--json")
    assert result.code == 2
    document = json.loads(result.out)
    validate(document, "error")
    assert message in document["error"]["message"]


def test_where_a_case_is_broken(fragir: Fragir) -> None:
    result = judge(fragir, "good.ptx", "--case", "broken.py:cases")
    assert result.code == 2
    assert "broken.py:2: the case is broken" in result.err


# -- batches ---------------------------------------------------------------------------------------


def batch(*kernels: str) -> None:
    lines = [{"kernel": name, "case": CASES, "seed": 7} for name in kernels]
    Path("batch.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_batch_and_how_it_goes_on(fragir: Fragir) -> None:
    batch("good.ptx", "bad.ptx")
    command = ["judge", "--batch", "batch.jsonl", "--serial", "--json", "-o", "out.jsonl"]
    result = fragir(*command)
    assert result.code == 1
    document = json.loads(result.out)
    validate(document, "judge-batch")
    assert document == {"kernels": 2, "resumed": 0, "verdicts": {"pass": 1, "fail": 1}}
    first = Path("out.jsonl").read_text()
    found = [json.loads(line) for line in first.splitlines()]
    for one in found:
        validate(one, "judge-line")
        validate(one["verdict"], "judge")
    assert [one["verdict"]["verdict"] for one in found] == ["pass", "fail"]

    Path("bad.ptx").write_text(NORM + "// mended\n")  # another text has another key
    Path("out.jsonl").write_text(first + '{"key": "cut o')
    result = fragir(*command, "--resume")
    assert result.code == 0
    document = json.loads(result.out)
    assert document == {"kernels": 2, "resumed": 1, "verdicts": {"pass": 2}}
    now = Path("out.jsonl").read_text()
    assert now.startswith(first)
    assert len(now.splitlines()) == 3


def test_a_kernel_that_takes_too_long(fragir: Fragir) -> None:
    batch("loop.ptx")
    result = fragir("judge", "--batch", "batch.jsonl", "--serial", "--seconds", "1")
    assert result.code in (2, 3)
    (line,) = map(json.loads, result.out.splitlines())
    validate(line, "judge-line")
    stopped = line["verdict"] is None and line["error"] == "stopped after 1 s"
    assert stopped or line["verdict"]["verdict"] == "incomplete"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "this is no JSON"),
        ("[]", "a line is an object"),
        ('{"kernel": "k.ptx"}', "a line names its case"),
        ('{"kernel": "k.ptx", "case": "a:b", "more": 1}', "no more of that kind"),
    ],
)
def test_lines_that_are_none(fragir: Fragir, text: str, message: str) -> None:
    Path("batch.jsonl").write_text(text + "\n")
    result = fragir("judge", "--batch", "batch.jsonl", "--json")
    assert result.code == 2
    assert message in json.loads(result.out)["error"]["message"]
