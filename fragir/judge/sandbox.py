"""Runs a case file in a process of its own, within limits, in a sandbox where there is one.

A case file is a program: it may raise, hang, take all memory or write a verdict of its own. What
comes back are numbers, from before the kernel has run. Where `bwrap` (bubblewrap) is found and may
be used, the process sees all files but can write to one folder only, has no network and no other
processes; elsewhere only the limits hold, and the verdict says `sandbox: none`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fragir.algebra import ROUNDS
from fragir.errors import FragirError
from fragir.judge.shipping import Document, PackedCase, load_array, unpack_case, write_json
from fragir.reference.formats import FLOATS, INTEGERS, Array, Floats, decode

#: Of what the process says on stderr, bytes that are looked at.
_WORDS = 4096


class BrokenCaseError(FragirError):
    """A case file cannot be used: the kernel is not to blame."""


@dataclass(frozen=True)
class CaseLimits:
    """What a case file may take: seconds, and bytes of memory."""

    seconds: float = 60.0
    memory: int = 4 << 30


@dataclass(frozen=True)
class Reference:
    """Elements `p` of Z/P `[..., rounds]`, and where a difference in them says nothing."""

    p: Array
    doubt: Array


@dataclass(frozen=True)
class Prepared:
    """A case, which one of its file, and what its reference gives.

    `results`: float64 or int64, by output; `bounds`: how far each may be off by rounding, or
    `unbounded` says why that is not known. `functions`: elements of the outputs, for each way to
    spell exp that makes a difference, or `unknown` says why there are none. `names`: functions in
    them of which only the name is known. `copied`: the reference gives back an input; `constant`:
    it gives the same whatever its inputs.
    """

    number: int
    case: PackedCase
    results: list[Array]
    bounds: list[Floats] | None
    unbounded: str | None
    functions: list[list[Reference]] | None
    unknown: str | None
    names: list[str]
    copied: bool
    constant: bool


@dataclass(frozen=True)
class PreparedCases:
    """All cases of a file, and the sandbox they were made in: bwrap or none."""

    cases: list[Prepared]
    sandbox: str
    seed: int
    rounds: int


def prepare(case: str, seed: int, limits: CaseLimits, rounds: int = ROUNDS) -> PreparedCases:
    """Runs the function MODULE:FUNCTION or FILE.py:FUNCTION, and the references of its cases.

    Raises BrokenCaseError for whatever goes wrong there.
    """
    if ":" not in case:
        raise BrokenCaseError(f"{case!r} is not of the form MODULE:FUNCTION or FILE.py:FUNCTION")
    with _folder() as folder:
        request: Document = {"case": case, "seed": seed, "rounds": rounds, **asdict(limits)}
        write_json(folder / "request.json", request)
        sandbox = _bubblewrap(folder)
        _run([*sandbox, *_command(folder)], case, limits.seconds)
        prepared = _read(folder, case, limits.memory, rounds)
    return PreparedCases(prepared, "bwrap" if sandbox else "none", seed, rounds)


@contextlib.contextmanager
def _folder() -> Generator[Path]:
    """A folder for the time being. What a sandbox held may live a moment longer, and write."""
    folder = Path(tempfile.mkdtemp(prefix="fragir-judge-"))
    try:
        yield folder
    finally:
        for _ in range(100):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.05)


# -- the process -----------------------------------------------------------------------------------


def _command(folder: Path) -> list[str]:
    # -P: nothing that lies in the working folder is imported instead of a module of Python's
    return [sys.executable, "-P", "-m", "fragir.judge.child", str(folder)]


def _bubblewrap(folder: Path) -> list[str]:
    """The words that put a command into a sandbox; none where there is no sandbox."""
    found = shutil.which("bwrap")
    if found is None:
        return []
    words = [found, "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/"]
    words += ["--dev", "/dev", "--proc", "/proc", "--bind", str(folder), str(folder)]
    try:
        works = subprocess.run(
            [*words, "true"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return words if works.returncode == 0 else []  # some machines allow no namespaces


def _environment() -> dict[str, str]:
    """No more of the environment than Python needs, and the modules that there are here."""
    kept = ("PATH", "HOME", "LANG", "SYSTEMROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    found = {name: os.environ[name] for name in kept if name in os.environ}
    package = str(Path(__file__).resolve().parents[2])
    paths = dict.fromkeys([package, *(path for path in sys.path if path)])
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    return {
        **found,
        **threads,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }


def _run(command: Sequence[str], case: str, seconds: float) -> None:
    """Runs it to its end. BrokenCaseError where it does not end well and in time."""
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=words,
            env=_environment(),
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise BrokenCaseError(f"{case} was stopped after {seconds:g} s") from None
        finally:
            _end(process)
        if code:
            words.seek(max(words.tell() - _WORDS, 0))
            last = words.read(_WORDS).decode(errors="replace").strip().splitlines()[-1:]
            number = -code if code < 0 else code - 128  # a sandbox gives the signal of its child so
            how = f"by signal {number}" if number > 0 else f"with code {code}"
            raise BrokenCaseError(
                f"the process of {case} ended {how}" + "".join(f": {line[:300]}" for line in last)
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends it and what it has started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# -- what it left ----------------------------------------------------------------------------------


def _read(folder: Path, case: str, memory: int, rounds: int) -> list[Prepared]:
    try:
        size = sum(path.lstat().st_size for path in folder.iterdir())
        if size > memory:
            raise BrokenCaseError(f"{case} has arrays of {size} bytes, more than {memory}")
        answer = json.loads((folder / "answer.json").read_text("utf-8"))
        if "error" in answer:
            raise BrokenCaseError(
                f"the case is broken: {answer['error']}", answer.get("file"), answer.get("line")
            )
        return [
            _prepared(number, document, folder, rounds)
            for number, document in enumerate(answer["cases"])
        ]
    except BrokenCaseError:
        raise
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        raise BrokenCaseError(f"{case} left no answer: {type(error).__name__}: {words}") from error


def _prepared(number: int, document: Document, folder: Path, rounds: int) -> Prepared:
    case = unpack_case(document, folder)
    results = [load_array(folder, name) for name in document["results"]]
    named: list[Any] | None = document["bounds"]
    bounds = None if named is None else [load_array(folder, name) for name in named]
    memory = case.memory()
    for arrays in (results, *([] if bounds is None else [bounds])):
        for array, (view, element) in zip(arrays, case.outputs, strict=True):
            if element not in {*FLOATS, *INTEGERS}:
                raise ValueError(f"{element} is no type of elements")
            if array.shape != decode(case.views[view].of(memory), element).shape:
                raise ValueError("a result has another shape than its output")
    functions = _references(document["functions"], results, folder, rounds)
    unbounded, unknown = document["unbounded"], document["unknown"]
    return Prepared(
        number,
        case,
        results,
        bounds,
        None if unbounded is None else str(unbounded),
        functions,
        None if unknown is None else str(unknown),
        [str(name) for name in document["names"]],
        bool(document["copied"]),
        bool(document["constant"]),
    )


def _references(
    named: list[list[list[str]]] | None, results: Sequence[Array], folder: Path, rounds: int
) -> list[list[Reference]] | None:
    if named is None:
        return None
    found = [
        [Reference(*(load_array(folder, name) for name in parts)) for parts in values]
        for values in named
    ]
    for values in found:
        for one, result in zip(values, results, strict=True):
            shape = (*result.shape, rounds)
            if one.p.dtype != np.uint64 or one.p.shape != shape or one.doubt.shape != shape:
                raise ValueError("elements have another shape than their output")
    return found
