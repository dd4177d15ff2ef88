"""Judges many kernels, each in a process of its own, by the lines of a file of JSON.

A line is {"kernel": FILE, "case": MODULE:FUNCTION or FILE.py:FUNCTION}, and where they are wanted
"structure" (positions of arguments), "strict" and "seed". What comes of a line is known by its key,
a hash of the PTX, the case's file, the options and fragir's version: a line whose key has a result
need not be judged again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, cast

from fragir.errors import FragirError
from fragir.judge.child import limit
from fragir.judge.files import judge_file
from fragir.judge.judging import Judging
from fragir.judge.meanings import Document
from fragir.judge.sandbox import BrokenCaseError, CaseLimits
from fragir.sweeps.definition import GIB, Plan, Result, Sweep, Task

_KEYS = {"kernel": str, "case": str, "structure": list, "strict": bool, "seed": int}
#: Of one kernel.
SECONDS, MEMORY = 600.0, 4 * GIB
_GRACE = 5.0


# -- lines -----------------------------------------------------------------------------------------


def read_lines(path: str) -> list[Document]:
    """The lines of a file, each with its `key`. FragirError where one is no such line."""
    try:
        texts = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FragirError("cannot read this file of JSON lines", path) from error
    return [
        _line(text, path, number) for number, text in enumerate(texts, 1) if text and text.strip()
    ]


def _line(text: str, path: str, number: int) -> Document:
    try:
        found: object = json.loads(text)
    except ValueError as error:
        raise FragirError(f"this is no JSON: {error}", path, number) from error
    if not isinstance(found, dict):
        raise FragirError("a line is an object", path, number, hint='{"kernel": ..., "case": ...}')
    line = cast("Document", found)
    for name, value in line.items():
        if name not in _KEYS or not isinstance(value, _KEYS[name]):
            raise FragirError(f"a line has no {name} of that kind", path, number)
    for name in ("kernel", "case"):
        if name not in line:
            raise FragirError(f"a line names its {name}", path, number)
    return {**line, "key": key_of(line)}


def key_of(line: Mapping[str, Any]) -> str:
    """A hash of all that a line's result depends on, but for what a case file imports."""
    digest = hashlib.sha256()
    options = {name: line.get(name) for name in ("case", "structure", "strict", "seed")}
    digest.update(json.dumps([version("fragir"), options], sort_keys=True).encode())
    for path in (str(line["kernel"]), _case_file(str(line["case"]))):
        try:
            data = Path(path).read_bytes()
        except OSError:
            data = b""
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _case_file(case: str) -> str:
    place = case.rpartition(":")[0]
    if place.endswith(".py"):
        return place
    beside = Path(*place.split(".")).with_suffix(".py") if place else Path()
    if beside.is_file():
        return str(beside)
    try:
        spec = find_spec(place.partition(".")[0]) if place else None
    except (ImportError, ValueError):
        spec = None
    return (spec.origin if spec is not None else None) or ""


# -- one line, in a process of its own -------------------------------------------------------------


def judge_line(line: Mapping[str, Any], seconds: float, memory: int) -> Result:
    """What comes of a line: `verdict` is the document of `fragir judge --json`, or None and `error`
    says why there is none."""
    start = time.perf_counter()
    request = json.dumps({"line": dict(line), "seconds": seconds, "memory": memory})
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "fragir.judge.batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        start_new_session=True,
        text=True,
    )
    verdict: Document | None = None
    try:
        out, _ = process.communicate(request, timeout=seconds)
        answer: Document = json.loads(out)
        verdict, error = answer["verdict"], answer["error"]
    except subprocess.TimeoutExpired:
        error = f"stopped after {seconds:g} s"
    except ValueError:
        error = f"its process ended with code {process.returncode}"
    finally:
        _end(process)
    return {
        **{name: line[name] for name in ("key", "kernel", "case")},
        "verdict": verdict,
        "error": error,
        "seconds": round(time.perf_counter() - start, 3),
        "findings": []
        if verdict is not None and verdict["verdict"] == "pass"
        else [_summary(line, verdict, error)],
    }


def _summary(line: Mapping[str, Any], verdict: Document | None, error: str | None) -> str:
    if verdict is None:
        return f"{line['kernel']}: {error}"
    first = next((reason["message"] for reason in verdict["reasons"]), "")
    return f"{line['kernel']}: {verdict['verdict']}: {first}"


def _end(process: subprocess.Popen[str]) -> None:
    """Ends it and what it has started: asked to, it ends a case's process, whose group is
    another."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE / 2)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.communicate()


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """Ended from outside: what this has started is ended, too."""
    sys.exit(1)


def main() -> None:
    """Reads a line from stdin, judges it within its limits, prints a document."""
    signal.signal(signal.SIGTERM, _leave)
    request = json.load(sys.stdin)
    line, seconds, memory = request["line"], float(request["seconds"]), int(request["memory"])
    limit(seconds, memory, processes=False)
    how = Judging(
        seed=line.get("seed"),
        structure=tuple(map(int, line.get("structure", ()))),
        strict=bool(line.get("strict", False)),
        limit=(None, seconds),
        case_limits=CaseLimits(seconds, memory),
        jobs=1,
    )
    verdict: Document | None = None
    error: str | None = None
    try:
        verdict = judge_file(line["kernel"], line["case"], how).document()
    except (BrokenCaseError, FragirError) as problem:
        error = str(problem).splitlines()[0]
    except Exception as problem:
        error = f"unexpected {type(problem).__name__}: {' '.join(str(problem).split())[:300]}"
    print(json.dumps({"verdict": verdict, "error": error}, allow_nan=False))


# -- as a sweep ------------------------------------------------------------------------------------


def _tasks(plan: Plan) -> Sequence[Document]:
    path = plan.parameters.get("file")
    if not path:
        raise FragirError("which kernels are judged stands in a file", hint="--set file=FILE.jsonl")
    return read_lines(str(path))


def _run(task: Task) -> Result:
    parameters = task.parameters
    memory = int(float(parameters["memory"]) * GIB)
    return judge_line(task.what, float(parameters["seconds"]), memory)


SWEEP = Sweep(
    _tasks,
    _run,
    parameters={"file": None, "seconds": SECONDS, "memory": MEMORY / GIB},
    seconds=SECONDS + _GRACE,
)

if __name__ == "__main__":
    main()
