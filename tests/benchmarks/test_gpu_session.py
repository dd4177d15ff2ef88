"""How a run of the steps of a kit goes on whatever a unit does, and after it was broken off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import session
from benchmarks.gpu.kit import Kit
from benchmarks.gpu.report import Run
from benchmarks.gpu.steps import Step
from tests.benchmarks import a_step

ROOT = Path(__file__).parents[2]
NAME = "tests.benchmarks.a_step"


def quiet(_: str) -> None:
    pass


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """A kit of the step of these tests alone."""
    folder = tmp_path / "kit"
    folder.mkdir()
    facts = {"small": True, "steps": {NAME: {"units": a_step.UNITS}}}
    (folder / "kit.json").write_text(json.dumps(facts))
    monkeypatch.setattr(session, "STEPS", (Step(NAME, 600, 2, "for tests", jobs=2),))
    monkeypatch.setattr(session, "START", 20.0)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return Kit.of(folder)


def lines(out: Path) -> dict[str, dict[str, Any]]:
    """The results by unit; each has one line."""
    found = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert len({line["unit"] for line in found}) == len(found)
    return {line["unit"]: line for line in found}


def test_whatever_a_unit_does_is_a_result(kit: Kit, tmp_path: Path) -> None:
    out = tmp_path / "out"
    session.session(kit, out, 11, only=[NAME], say=quiet)
    found = lines(out)
    parts = a_step.parts(kit, "group")
    assert set(found) == {*a_step.UNITS, *parts} - {"group"}
    assert "process" in found["good"]["result"]
    assert "process" in found["good too"]["result"]
    assert found["raises"]["failed"] == "ValueError: a word of Python's"
    assert found["dies"]["failed"] == "ended with exit code 7"
    assert found["hangs"]["failed"] == "no answer in 2 s"
    assert found["hangs"]["title"] == "the unit hangs"
    assert found["contenders"]["result"]["absent"] == {
        "first": "ended by SIGSEGV",
        "third": "ended by SIGSEGV",
    }
    # the unit that fell apart: the part that dies, and the others each in a process of its own
    assert found["group/1"]["failed"] == "ended with exit code 7"
    processes = {found[part]["result"]["process"] for part in ("group/0", "group/2")}
    assert len(processes) == 2
    entry = json.loads((out / "session.json").read_text())["steps"][NAME]
    assert (entry["state"], entry["left"], entry["failed"], entry["wrong"]) == ("done", 0, 4, 1)
    named = {what: words for _, what, words in Run.of(out).disagreements}
    assert named == {
        "wrong": "3, not 4",
        "the unit raises": "ValueError: a word of Python's",
        "the unit dies": "ended with exit code 7",
        "the unit hangs": "no answer in 2 s",
        "the unit group/1": "ended with exit code 7",
    }


def test_a_run_goes_on_with_what_has_no_line(kit: Kit, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    head = {"kit": kit.facts, "started": "then", "steps": {}, "machine": None}
    (out / "session.json").write_text(json.dumps(head))
    done = [u for u in (*a_step.UNITS, "group/0", "group/1") if u not in ("group", "good", "wrong")]
    kept = [json.dumps({"step": NAME, "unit": unit, "result": {"kept": True}}) for unit in done]
    (out / "results.jsonl").write_text("\n".join([*kept, '{"step": "cut o']))
    session.session(kit, out, 11, only=[NAME], resume=True, say=quiet)
    found = lines(out)
    assert set(found) == {*done, "good", "wrong", "group/2"}
    assert all(found[unit]["result"] == {"kept": True} for unit in done)
    head = json.loads((out / "session.json").read_text())
    assert head["started"] == "then"
    # without --resume it begins anew; the results of another kit are not added to
    (kit.folder / "kit.json").write_text(json.dumps({**kit.facts, "commit": "another"}))
    with pytest.raises(SystemExit, match="the results of another kit"):
        session.session(Kit.of(kit.folder), out, 11, resume=True, say=quiet)


def test_time_that_is_over_is_said(kit: Kit, tmp_path: Path) -> None:
    said: list[str] = []
    out = tmp_path / "out"
    session.session(kit, out, 0.001, only=[NAME], say=said.append)
    entry = json.loads((out / "session.json").read_text())["steps"][NAME]
    assert (entry["state"], entry["left"]) == ("left", len(a_step.UNITS))
    assert said[0] == f"{NAME}: no time is left for 8 of 8"
    assert not (out / "results.jsonl").exists()


def test_steps_go_by_what_the_machine_is(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = "tests.benchmarks.a_machine"
    facts = {
        **kit.facts,
        "steps": {first: {"units": ["machine", "cubins"]}, NAME: {"units": ["env"]}},
    }
    (kit.folder / "kit.json").write_text(json.dumps(facts))
    kit = Kit.of(kit.folder)
    monkeypatch.setattr(session, "FIRST", first)
    monkeypatch.setattr(session, "STEPS", (Step(first, 60, 9, ""), Step(NAME, 60, 9, "")))
    monkeypatch.setenv("FRAGIR_CUBINS", "a folder")
    out, said = tmp_path / "out", list[str]()

    def run(resume: bool = True, **found: Any) -> dict[str, Any]:
        monkeypatch.setenv("FRAGIR_TEST_MACHINE", json.dumps(found))
        journal = session.session(kit, out, 11, resume=resume, say=said.append)
        return {line["unit"]: line.get("result") for line in journal.lines}

    # without a GPU nothing more is run, and the next call asks again
    assert set(run(resume=False)) == {"machine", "cubins"}
    assert said[-1] == "nothing more is run: ValueError: no driver"
    one = {"machine": {"gpu": "A 1"}}
    taken, refused = {"taken": True, "words": ""}, {"taken": False, "words": "too new"}
    assert run(machine=one, cubins=taken)["env"] == {"cubins": "a folder"}
    with pytest.raises(SystemExit, match="has the results of an A 1"):
        run(machine={"machine": {"gpu": "B 2"}}, cubins=taken)
    assert run(resume=False, machine=one, cubins=refused)["env"] == {"cubins": None}
    assert "cubins are made by the ptxas that is there: too new" in said
    assert Run.of(out).head["cubins"] == refused
    assert run(resume=False, machine=one)["env"] == {"cubins": None}


def test_results_have_a_largest_size(kit: Kit, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(session, "LARGEST", 200)
    journal = session.opened(tmp_path / "out", kit.facts, resume=False)
    journal.add({"step": "a", "unit": "b", "result": {"text": "x" * 300}})
    (line,) = map(json.loads, (tmp_path / "out/results.jsonl").read_text().splitlines())
    assert line["failed"] == "left out: the results are too large"
    assert journal.left_out == 1


def test_usage(kit: Kit, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["--only", "nothing"], "there is no step nothing"),
        (["--minutes", "0"], "--minutes is above 0"),
    ):
        with pytest.raises(SystemExit) as error:
            session.main([str(kit.folder), str(tmp_path / "out"), *words])
        assert error.value.code == 2
        assert said in capsys.readouterr().err
