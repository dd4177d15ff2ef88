"""The file of a sweep: a first line that says what is run, then a line for each finished task."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from fragir.errors import FragirError
from fragir.sweeps.work import TaskOutcome

Head = Mapping[str, Any]


@dataclass
class Journal:
    """Lines are written and flushed one by one, so a kill costs no finished task.

    `earlier`: what a resumed file already holds, by the task's index; the last line of a task
    counts.
    """

    file: IO[str] | None
    head: Head | None = None  # not written yet: a run that cannot begin leaves nothing behind
    earlier: dict[int, TaskOutcome] = field(default_factory=dict[int, TaskOutcome])

    def add(self, outcome: TaskOutcome) -> None:
        if self.head is not None:
            self._write(self.head)
            self.head = None
        self._write(outcome)

    def _write(self, line: Mapping[str, object]) -> None:
        if self.file is not None:
            self.file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            self.file.flush()

    def close(self) -> None:
        if self.file is None or self.file is sys.stdout:
            return
        if self.head is not None and os.path.isfile(self.file.name):
            os.unlink(self.file.name)
        self.file.close()

    @classmethod
    def to_stdout(cls, head: Head) -> Journal:
        return cls(sys.stdout, head)

    @classmethod
    def create(cls, path: str, head: Head) -> Journal:
        """A new file. FragirError where there is one with results: they may be hours of work."""
        try:
            if os.path.exists(path) and os.path.isfile(path) and os.path.getsize(path):
                hint = f"--resume {path} goes on with it; else delete it or name another file"
                raise FragirError("this file exists", path, hint=hint)
            file = Path(path).open("a", encoding="utf-8")
        except OSError as error:
            raise FragirError(f"cannot write this file: {error.strerror}", path) from error
        _lock(file, path)
        return cls(file, head)

    @classmethod
    def resume(cls, path: str, head: Head) -> Journal:
        """Goes on with a file, or begins it. FragirError where it belongs to another run.

        A last line that a kill has cut off is dropped.
        """
        if not os.path.exists(path):
            return cls.create(path, head)
        try:
            file = Path(path).open("r+", encoding="utf-8", newline="\n")
        except OSError as error:
            raise FragirError(f"cannot write this file: {error.strerror}", path) from error
        try:
            _lock(file, path)
            data = Path(path).read_bytes()
            whole = data[: data.rfind(b"\n") + 1]
            if whole:
                earlier = _read(whole, path, head)
            elif data and not data.startswith(b"{"):
                raise _no_journal(path)
            else:
                earlier = {}
            file.truncate(len(whole))
            file.seek(0, os.SEEK_END)
        except BaseException:
            file.close()
            raise
        return cls(file, None if whole else head, earlier)


def _no_journal(path: str, line: int | None = None) -> FragirError:
    hint = "name the file that `fragir sweep -o` has written"
    return FragirError("this is no result of a sweep", path, line, hint=hint)


def _read(data: bytes, path: str, head: Head) -> dict[int, TaskOutcome]:
    """What a file of complete lines holds, after its first line has been held against `head`."""
    earlier: dict[int, TaskOutcome] = {}
    for number, line in enumerate(data.splitlines(), 1):
        try:
            found: Any = json.loads(line)
            if number == 1:
                known = {key: found[key] for key in head}
            else:
                outcome = TaskOutcome(**{key: found[key] for key in TaskOutcome.__annotations__})  # type: ignore[typeddict-item]
                if not 0 <= int(outcome["task"]) < head["tasks"]:
                    raise ValueError
                earlier[outcome["task"]] = outcome
                continue
        except (ValueError, KeyError, TypeError) as error:
            raise _no_journal(path, number) from error
        differing = [key for key in head if known[key] != head[key]]
        if differing:
            raise FragirError(
                f"this file has {_difference(known, head, differing)}",
                path,
                hint="ask for the same, or write another file with -o",
            )
    return earlier


def _difference(known: Head, head: Head, differing: list[str]) -> str:
    """`seed 1, not 2; parameters {'cases': 3}, not {'cases': 4}`."""
    if "digest" in differing:
        return "results of another version of this sweep"
    return "; ".join(f"{key} {known[key]}, not {head[key]}" for key in differing)


def _lock(file: IO[str], path: str) -> None:
    """Two runs must not write one file."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise FragirError("another sweep is writing this file", path) from None
    except OSError:  # a pipe, or a file system without locks
        return
