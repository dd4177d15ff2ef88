"""Runs the steps of a kit in their order: `run.sh [--minutes N] [--resume] [OUT]` calls this.

Every step has its limit in seconds, every unit of it one too, and runs in a process of its own: a
kernel that never ends, an address that is none or a crash is a result, not the end. `results.jsonl`
has a line for each unit as soon as it is known; `session.json` says what was run where and how far
it is. `--resume` goes on with what has no line yet.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from benchmarks.gpu.kit import Kit
from benchmarks.gpu.steps import STEPS, WHOLE, Step, module

FIRST = "machine"
"""The step that each call begins with: the others go by what it finds."""
MOST_CRASHES = 4
"""Contenders of one unit that may end its process before it is given up."""
LARGEST = 15 << 20
"""Bytes of a file of results, at most; what is beyond is left out, and said."""
LEAST = 0.25
"""Of a unit's limit, at least, in short runs."""
START = 60.0
"""Seconds that a process may take until it is ready: PyTorch alone may take many."""


class Ended(Exception):
    """A worker has died or does not answer."""


@dataclass
class Worker:
    """A process for units of one step."""

    kit: Kit
    step: str
    environment: Mapping[str, str]
    log: IO[str]
    process: subprocess.Popen[bytes] | None = None
    doing: str = ""
    _held: bytes = b""

    def start(self) -> None:
        """Begins the process, which says when it is ready."""
        command = [sys.executable, "-m", "benchmarks.gpu.worker"]
        self.process = subprocess.Popen(
            [*command, str(self.kit.folder), self.step],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=dict(self.environment),
            start_new_session=True,
        )
        self._held = b""

    def run(
        self, unit: str, without: Mapping[str, str], seconds: float, until: float
    ) -> dict[str, Any]:
        """The answer of a unit; `Ended` with the reason where there is none in so many seconds,
        or until the step's time is over."""
        self.doing = ""
        if self.process is None:
            self.start()
            self._line(min(time.monotonic() + START, until), START)
        assert self.process is not None
        assert self.process.stdin is not None
        begun = time.monotonic()
        end = min(begun + seconds, max(until, begun + 1))
        try:
            request = json.dumps({"unit": unit, "without": dict(without)}) + "\n"
            self.process.stdin.write(request.encode())
            self.process.stdin.flush()
        except OSError:
            pass  # it is dead, which the next line says
        while True:
            answer = self._line(end, seconds)
            if "doing" in answer:
                self.doing = answer["doing"]
                continue
            if answer.get("fatal"):
                self.stop()
            return answer

    def _line(self, end: float, seconds: float) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        handle = self.process.stdout.fileno()
        while b"\n" not in self._held:
            left = end - time.monotonic()
            ready = select.select([handle], [], [], max(0, left))[0]
            data = os.read(handle, 1 << 20) if ready else b""
            if data:
                self._held += data
                continue
            words = self._ending() if ready else f"no answer in {seconds:.0f} s"
            self.stop()
            raise Ended(words)
        line, _, self._held = self._held.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ending(self) -> str:
        """How the process ended by itself."""
        assert self.process is not None
        code = self.process.wait()
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def stop(self) -> None:
        """Ends the process and what it has started."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)  # one that the driver holds is left behind
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self.process = None


@dataclass
class Journal:
    """The files of a run: a line a unit, and the state of all."""

    folder: Path
    head: dict[str, Any]
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    size: int = 0
    left_out: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, line: dict[str, Any]) -> None:
        """Enters the result of a unit."""
        text = json.dumps(line) + "\n"
        with self.lock:
            if self.size + len(text) > LARGEST:
                line = {**line, "result": None, "failed": "left out: the results are too large"}
                text = json.dumps(line) + "\n"
                self.left_out += 1
            self.lines.append(line)
            self.size += len(text)
            with (self.folder / "results.jsonl").open("a", encoding="utf-8") as file:
                file.write(text)

    def done(self, step: str) -> set[str]:
        """The units of a step that have a line."""
        return {line["unit"] for line in self.lines if line["step"] == step}

    def save(self) -> None:
        """Writes `session.json` anew."""
        with self.lock:
            part = self.folder / "session.part"
            part.write_text(json.dumps({**self.head, "left_out": self.left_out}, indent=1) + "\n")
            part.replace(self.folder / "session.json")


def opened(folder: Path, facts: Mapping[str, Any], resume: bool) -> Journal:
    """The journal in a folder: an empty one, or that of an earlier run of the same kit."""
    folder.mkdir(parents=True, exist_ok=True)
    results, state = folder / "results.jsonl", folder / "session.json"
    head = {"kit": dict(facts), "started": now(), "steps": {}, "machine": None}
    if not resume:
        results.unlink(missing_ok=True)
        return Journal(folder, head)
    if state.exists():
        earlier: dict[str, Any] = json.loads(state.read_text("utf-8"))
        if earlier["kit"] != facts:
            raise SystemExit(f"{folder} has the results of another kit: name another folder")
        head = {**earlier, "started": earlier["started"]}
    journal = Journal(folder, head)
    if results.exists():
        text = results.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]  # a line that was being written is none
        if whole != text:
            results.write_bytes(whole)
        journal.lines = [json.loads(line) for line in whole.splitlines()]
        journal.size = len(whole)
    return journal


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@dataclass
class Run:
    """The units of one step on their way."""

    step: Step
    kit: Kit
    journal: Journal
    environment: Mapping[str, str]
    log: IO[str]
    end: float
    scale: float
    waiting: deque[tuple[str, bool]] = field(default_factory=deque[tuple[str, bool]])
    """Units, and whether each is to have a process of its own."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    busy: int = 0

    def all(self, units: Iterable[str]) -> bool:
        """Runs units until the time is over; whether none is left."""
        self.waiting.extend((unit, self.step.alone) for unit in units)
        jobs = max(1, min(self.step.jobs, len(self.waiting), os.cpu_count() or 1))
        threads = [threading.Thread(target=self._serve) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return not self.waiting

    def _next(self) -> tuple[str, bool] | None:
        """The next unit; None where time is over or none will come."""
        while time.monotonic() < self.end:
            with self.lock:
                if self.waiting:
                    self.busy += 1
                    return self.waiting.popleft()
                if not self.busy:
                    return None
            time.sleep(0.02)  # one under way may fall into parts
        return None

    def _serve(self) -> None:
        worker = Worker(self.kit, self.step.name, self.environment, self.log)
        try:
            while (found := self._next()) is not None:
                unit, alone = found
                if alone:
                    worker.stop()
                try:
                    self._unit(worker, unit)
                finally:
                    with self.lock:
                        self.busy -= 1
                if alone:
                    worker.stop()
        finally:
            worker.stop()

    def _unit(self, worker: Worker, unit: str) -> None:
        """Runs a unit, again without what ends its process; or lets it fall into parts."""
        without: dict[str, str] = {}
        seconds = self.step.unit_seconds * max(LEAST, self.scale)
        while True:
            begun = time.monotonic()
            answer: dict[str, Any]
            try:
                answer = worker.run(unit, without, seconds, self.end)
            except Ended as error:
                words = str(error)
                if time.monotonic() >= self.end and words.startswith("no answer"):
                    with self.lock:  # it was not given its time: the next call has it
                        self.waiting.appendleft((unit, self.step.alone))
                    return
                answer = {"failed": words, "fatal": True}
            fatal = bool(answer.get("fatal"))
            if fatal and worker.doing and len(without) < MOST_CRASHES:
                without[worker.doing] = answer["failed"]
                continue
            if fatal and (parts := self._parts(unit)):
                with self.lock:
                    self.waiting.extendleft((part, True) for part in reversed(parts))
                return
            answer.pop("fatal", None)
            if "failed" in answer and (title := self._asked("title", unit)):
                answer["title"] = title
            answer.setdefault("seconds", round(time.monotonic() - begun, 3))
            self.journal.add({"step": self.step.name, "unit": unit, "at": now(), **answer})
            return

    def _parts(self, unit: str) -> list[str]:
        """What a unit consists of, where that is more than itself."""
        found: list[str] = list(self._asked("parts", unit) or ())
        return found if found != [unit] else []

    def _asked(self, name: str, unit: str) -> Any:
        """What a function of the step's module says, where it has it."""
        function = getattr(module(self.step.name), name, None)
        return None if function is None else function(self.kit, unit)


def session(
    kit: Kit,
    out: Path,
    minutes: float,
    *,
    resume: bool = False,
    only: Sequence[str] = (),
    say: Callable[[str], None] = print,
    began: float | None = None,
) -> Journal:
    """Runs the steps; the journal, with `steps` by name: state, units done and all, seconds.

    `began`: the `time.monotonic` that the minutes count from.
    """
    end = (time.monotonic() if began is None else began) + 60 * minutes
    journal = opened(out, kit.facts, resume)
    scale = minutes / WHOLE
    environment = dict(os.environ)
    made = kit.facts["steps"]  # a kit may be made for some of the steps
    wanted = {FIRST, *(only or made)}
    chosen = [step for step in STEPS if step.name in wanted & set(made)]
    with (out / "log.txt").open("a", encoding="utf-8") as log:
        for again in (False, True):
            for step in chosen:
                if again and journal.head["steps"].get(step.name, {}).get("state") != "left":
                    continue  # the second time what was left has the time that others left over
                limit = (
                    end if again or step.rest else min(end, time.monotonic() + step.seconds * scale)
                )
                _step(step, kit, journal, environment, log, limit, scale, say)
                if step.name == FIRST and not again:
                    why = _heed(journal, environment, say)
                    if why is not None:
                        say(f"nothing more is run: {why}")
                        return journal
    return journal


def _step(
    step: Step,
    kit: Kit,
    journal: Journal,
    environment: Mapping[str, str],
    log: IO[str],
    end: float,
    scale: float,
    say: Callable[[str], None],
) -> None:
    units: list[str] = kit.facts["steps"][step.name]["units"]
    left = list(_left(step, kit, units, journal.done(step.name)))
    entry: dict[str, Any] = journal.head["steps"].setdefault(step.name, {"seconds": 0.0})
    start = time.monotonic()
    if left and end - start < 1:
        entry |= {"state": "left", "units": len(units), "left": len(left)}
        say(f"{step.name}: no time is left for {len(left)} of {len(units)}")
        journal.save()
        return
    entry |= {"state": "running", "units": len(units), "left": len(left)}
    journal.save()
    running = Run(step, kit, journal, environment, log, end, scale)
    running.all(left)
    lines = [line for line in journal.lines if line["step"] == step.name]
    failed = sum(line.get("failed") is not None for line in lines)
    wrong = sum("wrong" in (line.get("result") or {}) for line in lines)
    entry |= {
        "state": "left" if running.waiting else "done",
        "left": len(running.waiting),
        "failed": failed,
        "wrong": wrong,
        "seconds": round(entry["seconds"] + time.monotonic() - start, 1),
    }
    journal.save()
    words = f"{len(units) - len(running.waiting)} of {len(units)}"
    more = f", {failed} failed" * bool(failed) + f", {wrong} wrong" * bool(wrong)
    say(f"{step.name}: {words}{more} ({entry['seconds']:.1f} s): {step.what}")


def _left(step: Step, kit: Kit, units: Iterable[str], done: set[str]) -> Iterator[str]:
    """Units that have no line yet; parts stand for one that has fallen apart."""
    for unit in units:
        if step.name == FIRST:
            yield unit  # whatever an earlier call has found
        elif any(other.startswith(f"{unit}/") for other in done):
            yield from (part for part in module(step.name).parts(kit, unit) if part not in done)
        elif unit not in done:
            yield unit


def _heed(journal: Journal, environment: dict[str, str], say: Callable[[str], None]) -> str | None:
    """Goes by what the first step has found: the machine, whether its driver takes the cubins.

    Why no GPU can be used, if so; SystemExit where the results are of another one.
    """
    lines = {line["unit"]: line for line in journal.lines if line["step"] == FIRST}
    machine, cubins = lines.get("machine", {}), lines.get("cubins", {})
    if not machine.get("result"):
        return str(machine.get("failed", "there was no time to ask"))
    found = machine["result"]["machine"]
    if journal.head["machine"] not in (None, found):
        earlier = journal.head["machine"]["gpu"]
        raise SystemExit(f"{journal.folder} has the results of an {earlier}: name another folder")
    said: dict[str, Any] = cubins.get("result") or {"taken": False, "words": cubins.get("failed")}
    if not said["taken"]:
        environment.pop("FRAGIR_CUBINS", None)
        say(f"cubins are made by the ptxas that is there: {said['words']}")
    journal.head |= {"machine": found, "cubins": said}
    journal.save()
    return None


def main(argv: Sequence[str] | None = None) -> int:
    began = time.monotonic()
    parser = argparse.ArgumentParser(prog="run.sh", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder of the results")
    parser.add_argument("--minutes", type=float, default=8, metavar="N")
    parser.add_argument("--resume", action="store_true", help="go on with what is not done in OUT")
    parser.add_argument("--only", default="", metavar="STEP,...")
    parser.add_argument("--spent", type=float, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--beside", type=Path, default=Path(), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    only = [word for word in options.only.split(",") if word]
    if unknown := set(only) - {step.name for step in STEPS}:
        known = ", ".join(step.name for step in STEPS)
        parser.error(f"there is no step {', '.join(sorted(unknown))}; there are {known}")
    if not options.minutes > 0:
        parser.error("--minutes is above 0")

    def say(text: str) -> None:
        print(f"{time.monotonic() - began + options.spent:6.1f} s  {text}", flush=True)

    journal = session(
        Kit.of(options.kit.resolve()),
        (options.beside / options.out).resolve(),
        options.minutes,
        resume=options.resume,
        only=only,
        say=say,
        began=began - options.spent,
    )
    if journal.head["machine"] is None:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
