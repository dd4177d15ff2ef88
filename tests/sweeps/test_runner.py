"""Sweeps give the same results whoever runs them, and lose nothing to a death."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest

from fragir.cli.main import main
from fragir.errors import FragirError
from fragir.sweeps import Plan, catalogue, runner
from fragir.sweeps.journal import Journal
from fragir.sweeps.work import Limits, TaskOutcome, perform, stuck_in

TINY = str(Path(__file__).with_name("tiny.py"))
SOURCE = catalogue.find(TINY)
SWEEP = catalogue.load(SOURCE)
LIMITS = Limits(20)


def plan(count: int, bad: str = "", sleep: float = 0.0) -> Plan:
    return Plan(3, count, {"bad": bad, "sleep": sleep})


def timeless(outcomes: Sequence[TaskOutcome]) -> list[dict[str, Any]]:
    """Outcomes in the order of the tasks, without what a clock says."""
    found = ({k: v for k, v in each.items() if k != "seconds"} for each in outcomes)
    return sorted(found, key=lambda each: each["task"])


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def serially(asked: Plan) -> list[dict[str, Any]]:
    return timeless(list(runner.serial(SOURCE, SWEEP.all_tasks(asked), LIMITS)))


# In this process ----------------------------------------------------------------------------------


def test_tasks_do_not_depend_on_their_order() -> None:
    asked = plan(20)
    backwards = list(runner.serial(SOURCE, SWEEP.all_tasks(asked)[::-1], LIMITS))
    assert timeless(backwards) == serially(asked)
    assert len({each["result"]["value"] for each in serially(asked)}) > 10
    other = Plan(4, 20, asked.parameters)
    assert serially(other) != serially(asked)


def test_what_goes_wrong_in_a_task_is_its_outcome() -> None:
    tasks = SWEEP.all_tasks(plan(4, "raise@0,hang@1,find@2"))
    raised, hung, found, plain = runner.serial(SOURCE, tasks, Limits(0.3))
    assert raised["failed"] is not None
    assert raised["failed"].startswith("KeyError: 'planted' (tests/sweeps/tiny.py:")
    assert hung["failed"] == "over the time limit of 0.3 s"
    assert found["result"] == {"findings": ["planted"], "value": 1}
    assert (plain["failed"], plain["result"] is None) == (None, False)


def test_a_summary_counts() -> None:
    tasks = SWEEP.all_tasks(plan(6, "raise@0,find@2"))
    summary = runner.run(SOURCE, tasks, Journal(None), LIMITS)
    document = summary.document()
    assert (document["tasks"], document["done"], document["failed"], document["found"]) == (
        *(6, 5, 1, 1),
    )
    assert document["findings"] == [{"task": 2, "findings": ["planted"]}]
    values = [perform(SOURCE, task, LIMITS)["result"] for task in tasks[1:]]
    assert document["totals"] == {"value": sum(v["value"] for v in values if v)}
    assert not summary.is_clean


def test_what_c_code_holds_ends_with_its_process(tmp_path: Path) -> None:
    """The limit of time holds where no exception arrives; the place is known afterwards."""
    program = f"""
from fragir.sweeps import Plan, catalogue, work
work.GRACE = 0.2
source = catalogue.find({TINY!r})
tasks = catalogue.load(source).all_tasks(Plan(0, 2, {{"bad": "hang-in-c@1", "sleep": 0}}))
work.perform_on_worker(source, tasks[0], work.Limits(60, {str(tmp_path)!r}), True)
work.perform_on_worker(source, tasks[1], work.Limits(0.2, {str(tmp_path)!r}), True)
"""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert done.returncode == 1
    assert time.monotonic() - start < 30
    stuck = stuck_in(str(tmp_path), 1)
    assert stuck is not None
    assert stuck.startswith(f'"{TINY}", line ')
    assert stuck_in(str(tmp_path), 0) is None


# Files --------------------------------------------------------------------------------------------


def head(asked: Plan) -> dict[str, Any]:
    return runner.head(SOURCE, asked, asked.count or 40)


def run_into(path: Path, asked: Plan, tasks: slice = slice(None)) -> runner.Summary:
    journal = Journal.resume(str(path), head(asked))
    try:
        return runner.run(SOURCE, SWEEP.all_tasks(asked)[tasks], journal, LIMITS)
    finally:
        journal.close()


def test_resuming_runs_what_is_left(tmp_path: Path) -> None:
    path, asked = tmp_path / "r.jsonl", plan(12, "raise@2")
    run_into(path, asked, slice(0, 5))
    before = path.read_text()
    summary = run_into(path, asked)
    assert (summary.resumed, summary.done, len(summary.failures)) == (4, 11, 1)
    after = path.read_text()
    assert after.startswith(before)
    first, *rest = lines(path)
    assert (first["sweep"], first["seed"], first["parameters"]["bad"]) == ("tiny", 3, "raise@2")
    assert first["versions"]["fragir"]
    # what had failed was tried again, everything else once
    assert sorted(each["task"] for each in rest) == sorted([*range(12), 2])
    assert timeless(list({each["task"]: each for each in rest}.values())) == serially(asked)


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_line_that_a_kill_cut_off_is_dropped(tmp_path: Path, cut: int) -> None:
    path, asked = tmp_path / "r.jsonl", plan(6)
    run_into(path, asked)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert run_into(path, asked).resumed == 5
    assert path.read_bytes().startswith(whole[: whole[:-1].rfind(b"\n") + 1])
    assert timeless(lines(path)[1:]) == serially(asked)


def test_a_first_line_that_a_kill_cut_off_is_written_anew(tmp_path: Path) -> None:
    path, asked = tmp_path / "r.jsonl", plan(3)
    run_into(path, asked)
    whole = path.read_bytes()
    path.write_bytes(whole[:30])
    assert run_into(path, asked).resumed == 0
    assert timeless(lines(path)[1:]) == serially(asked)


def test_files_of_other_runs_are_refused_and_kept(tmp_path: Path) -> None:
    path, asked = tmp_path / "r.jsonl", plan(6)
    run_into(path, asked)
    whole = path.read_text()
    with pytest.raises(FragirError, match="seed 3, not 4"):
        run_into(path, Plan(4, 6, asked.parameters))
    with pytest.raises(FragirError, match=r"count 6, not 5"):
        run_into(path, plan(5))
    with pytest.raises(FragirError, match="this file exists"):
        Journal.create(str(path), head(asked))
    rows = whole.splitlines(keepends=True)
    for broken, line in (
        (rows[0] + "nonsense\n" + "".join(rows[2:]), 2),
        (rows[0] + rows[1].replace('"task": 0', '"task": 6'), 2),
        ("[]\n", 1),
        ("hello", None),
    ):
        path.write_text(broken)
        with pytest.raises(FragirError, match="no result of a sweep") as caught:
            run_into(path, asked)
        assert caught.value.line == line
        assert path.read_text() == broken
    path.write_text(whole.replace(SOURCE.digest, "0" * 64))
    with pytest.raises(FragirError, match="another version of this sweep"):
        run_into(path, asked)


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    path, asked = tmp_path / "r.jsonl", plan(6)
    first = Journal.resume(str(path), head(asked))
    with pytest.raises(FragirError, match="another sweep is writing"):
        Journal.resume(str(path), head(asked))
    first.close()
    run_into(path, asked)


def schema(name: str) -> Any:
    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
    found = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    made = next(s for s in map(json.loads, found) if s.pop("$id") == name)
    return cast(Any, jsonschema.Draft202012Validator(made))


# The command --------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fragir(*words: str) -> tuple[int, str, str]:
        code = main(["sweep", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    file = str(tmp_path / "r.jsonl")
    code, out, err = fragir(TINY, "--serial", "--count", "3", "--seed", "3")
    assert code == 0
    assert timeless([json.loads(line) for line in out.splitlines()[1:]]) == serially(plan(3))
    assert "3 of 3 tasks done" in err
    bad = ("--set", "bad=find@1,raise@2")
    code, out, err = fragir(TINY, "--serial", "--count", "3", *bad, "-o", file, "--json")
    document = json.loads(out)
    schema("sweep").validate(document)
    assert (code, document["found"], document["failed"]) == (1, 1, 1)
    first, *rest = lines(Path(file))
    schema("sweep-head").validate(first)
    for line in rest:
        schema("sweep-line").validate(line)
    code, out, err = fragir(TINY, "--serial", "--count", "3", *bad, "--resume", file)
    assert code == 1
    assert "2 of 3 tasks taken over" in err
    assert "task 1: planted\n" in out
    assert "task 2: failed: KeyError" in out
    code, out, err = fragir(TINY, "--serial", "--count", "3", *bad, "--task", "1")
    assert code == 1
    assert [json.loads(line)["task"] for line in out.splitlines()[1:]] == [1]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nothing"], 1, "there is no sweep 'nothing'"),
        (["nothing.py"], 1, "nothing.py: cannot read this sweep"),
        (["broken.py"], 1, "broken.py:2: this is no Python"),
        (["raises.py"], 1, "cannot be imported: ZeroDivisionError"),
        (["empty.py"], 1, "this file defines no sweep"),
        ([TINY, "--set", "good=1"], 1, "no parameter 'good' (it has bad, sleep)"),
        ([TINY, "--set", "sleep=long"], 1, "sleep is a number, as in 0.0, not 'long'"),
        ([TINY, "--set", "sleep"], 2, "write NAME=VALUE"),
        ([TINY, "--task", "40"], 1, "there is no task 40 (they are 0 to 39)"),
        ([TINY, "--serial", "--scheduler", "tcp://127.0.0.1:1"], 2, "leave out --scheduler"),
        ([TINY, "--scheduler", "tcp://127.0.0.1:1"], 1, "no scheduler of Dask answers at tcp"),
        (
            [TINY, "--scheduler", "nonsense", "-o", "r.jsonl"],
            1,
            "no scheduler of Dask answers at nonsense",
        ),
        ([TINY, "-o", "a", "--resume", "b"], 2, "leave out -o"),
        ([TINY, "-o", "no/such/folder"], 1, "cannot write this file"),
        (["validation", "--set", "on=tpu"], 1, "`on` is emulator or gpu"),
    ],
)
def test_refusals(
    words: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from fragir.sweeps import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 1)
    monkeypatch.chdir(tmp_path)
    Path("broken.py").write_text("x = 1\ny = (\n")
    Path("raises.py").write_text("1 / 0\n")
    Path("empty.py").write_text('"""Nothing."""\n')
    before = set(tmp_path.iterdir())
    assert main(["sweep", *words]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) == 1
    assert set(tmp_path.iterdir()) == before


def test_without_dask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["sweep", TINY]) == 1
    assert "pip install 'fragir[sweep]', or --serial" in capsys.readouterr().err


def test_every_sweep_is_listed_and_has_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    schema("sweeps").validate(document)
    listed = {each["name"]: each["about"] for each in document}
    assert "validation" in listed
    assert all(listed.values())
    assert main(["sweep"]) == 0
    shown = capsys.readouterr().out
    for name in listed:
        assert name in shown


# Workers ------------------------------------------------------------------------------------------


def killed_when(path: Path, enough: Callable[[], bool], *words: str) -> None:
    """Runs `fragir sweep` and kills it, with all that it started, once `enough` is true."""
    command = [sys.executable, "-m", "fragir.cli.main", "sweep", *words, "-o", str(path)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not enough():
            assert child.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path, asked = tmp_path / "r.jsonl", plan(60, sleep=0.02)
    words = [TINY, "--seed", "3", "--count", "60", "--set", "sleep=0.02"]
    killed_when(path, lambda: path.exists() and path.read_bytes().count(b"\n") > 8, *words)
    written = [line for line in path.read_bytes().split(b"\n")[1:-1]]
    assert 8 <= len(written) < 60
    summary = run_into(path, asked)
    assert summary.resumed == len(written)
    assert summary.done == 60
    assert timeless(lines(path)[1:]) == serially(asked)


def test_other_clusters_of_the_machine_are_no_matter() -> None:
    """Somebody has the ports that schedulers of Dask take where they are asked for none."""
    pytest.importorskip("distributed")
    from fragir.sweeps import cluster

    with ExitStack() as taken:
        for port in (8786, 8787):
            held = taken.enter_context(socket.socket())
            with suppress(OSError):  # others of this machine have it, which is as good
                held.bind(("127.0.0.1", port))
                held.listen()
        with cluster.local(1, 1 << 30) as pool:
            found = timeless(list(pool.perform(SOURCE, SWEEP.all_tasks(plan(3)), LIMITS)))
    assert found == serially(plan(3))


def test_workers_die_and_nothing_else_is_lost(tmp_path: Path) -> None:
    """A worker is killed from outside, and a task kills every worker that it gets."""
    pytest.importorskip("distributed")
    from fragir.sweeps import cluster

    asked = plan(60, "die@7,raise@11", sleep=0.02)
    journal = Journal.create(str(tmp_path / "r.jsonl"), head(asked))
    victims: list[int] = []
    with cluster.local(2, 1 << 30) as pool:

        def kill_one(now: runner.Summary) -> None:
            if now.done == 20 and not victims:
                victims.extend(pool.client.run(os.getpid).values())
                os.kill(victims[0], signal.SIGKILL)

        tasks = SWEEP.all_tasks(asked)
        summary = runner.run(SOURCE, tasks, journal, LIMITS, pool.perform, kill_one)
        journal.close()
        with cluster.remote(pool.client.cluster.scheduler_address, SOURCE) as other:
            again = timeless(list(other.perform(SOURCE, tasks[20:30], LIMITS)))
    assert victims
    assert summary.done == 58
    assert summary.failures[7].startswith("KilledWorker: 3 workers died of it")
    assert summary.failures[11].startswith("KeyError: 'planted'")
    without = [each for each in serially(plan(60, "raise@11")) if each["task"] != 7]
    found = timeless(lines(tmp_path / "r.jsonl")[1:])
    assert [each for each in found if each["task"] != 7] == without
    assert again == without[19:29]
