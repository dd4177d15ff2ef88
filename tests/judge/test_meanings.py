"""What verdicts and findings mean: every one has its row, and can be asked by any of its names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fragir.emulator import KINDS
from fragir.emulator.checks.operand_contents import SENTENCES
from fragir.emulator.checks.schedules.generations import RULES
from fragir.emulator.report import OF_SEVERAL_RUNS
from fragir.errors import FragirError
from fragir.judge.meanings import (
    EXIT,
    REASONS,
    SEVERITIES,
    VERDICTS,
    explain,
    meanings,
    names,
)
from fragir.judge.supported import supported
from fragir.judge.verdict import Judgement, Reason
from fragir.ptx.opcodes.table import OPCODES
from fragir.toolchain.verdicts import KINDS as OF_PTXAS
from tests.docs import agents

ROOT = Path(__file__).resolve().parents[2]


def test_every_kind_has_its_row_and_no_row_is_idle() -> None:
    from fragir.judge.meanings import _ROWS  # pyright: ignore[reportPrivateUsage]

    told = [*KINDS, *OF_SEVERAL_RUNS, *OF_PTXAS, *REASONS]
    assert len(told) == len(set(told))
    assert set(_ROWS) == set(told) == set(meanings())
    for one in meanings().values():
        assert one.means
        assert one.why
        assert one.mend


@pytest.mark.parametrize("name", names())
def test_names(name: str) -> None:
    found = explain(name)
    assert found["name"] == name
    assert found["means"]
    assert explain(f"  {name} ") == found


def test_verdicts() -> None:
    assert {word: VERDICTS[word].exit_code for word in EXIT} == EXIT
    assert explain("fail")["exit_code"] == 1
    both = explain("unsupported")  # a verdict, and a kind of its reasons
    assert both["exit_code"] == 4
    assert both["mend"] == meanings()["unsupported"].mend


def test_rules_and_sentences() -> None:
    for letter, text in RULES.items():
        assert explain(letter.lower())["means"] == text
        assert explain(letter)["kind"] == "schedule"
    for key, (title, sentence) in SENTENCES.items():
        if key not in meanings():
            assert explain(key)["means"] == sentence
            assert explain(key)["section"] == title


def test_findings_as_they_stand_in_a_document() -> None:
    finding = {
        "kind": "schedule",
        "severity": "letter",
        "message": "m",
        "line": 7,
        "why": {"notes": ["rule A: none of these"]},
    }
    for asked in (finding, json.dumps(finding)):
        found = explain(asked)
        assert found["name"] == "schedule"
        assert found["of"]["line"] == 7
        assert found["of"]["severity"] == f"letter: {SEVERITIES['letter']}"
        assert found["of"]["rule"]["name"] == "A"
    reason = Reason("fail", "result", "m", 0).document()
    assert explain(reason)["mend"] == meanings()["result"].mend
    assert explain({"verdict": "incomplete", "reasons": []})["exit_code"] == 3


@pytest.mark.parametrize("asked", ["rase", "", {}, {"kind": 3}, {"kind": "x" * 9999}, "{", "[1]"])
def test_what_is_no_finding(asked: str | dict[str, object]) -> None:
    with pytest.raises(FragirError) as caught:
        explain(asked)
    assert len(caught.value.sentence) < 1500
    if asked == "rase":
        assert "race" in caught.value.sentence


def test_sarif_has_the_help() -> None:
    log = Judgement([Reason("fail", "race", "m", 0, "k.ptx", 1, 2)]).sarif("k.ptx")
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    race = meanings()["race"]
    assert rule["shortDescription"]["text"] == race.means
    assert rule["help"]["text"] == race.mend


@pytest.mark.parametrize("page", agents.PAGES, ids=lambda page: page.stem)
def test_pages_have_the_tables(page: Path) -> None:
    """`python -m tests.docs.agents` writes them anew."""
    assert agents.filled(page.read_text("utf-8")) == page.read_text("utf-8")


def test_what_is_supported() -> None:
    found = supported()
    assert any("sm_90a" in one["targets"] for one in found["machines"])
    emulated = {name for names in found["opcodes"].values() for name in names}
    assert {"ld", "st", "bar.sync", "mma", "cp.async.bulk"} <= emulated
    assert "added by packages" not in found["opcodes"]
    missing = {row.name for row in OPCODES.rows if row.missing}
    assert missing <= set(found["refused"])
    assert not missing & emulated
    assert all(found["refused"].values())
    json.dumps(found, allow_nan=False)
