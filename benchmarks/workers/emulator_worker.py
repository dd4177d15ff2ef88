"""One revision of the emulator, with one core and so many jobs, in a process that lives on.

It first says which fragir it has imported and which core is in use (or `problem`). Requests are
lines of JSON: `launch` is a file of `emulator_cases.Launch.write`; `check`: with every check;
`keep`: a file for the results; `rows`: ranges of rows of the last array, whose digests are wanted;
`once`: this launch is done only once, with arrays that need not be kept. Answers have wall and CPU
time in ms (with threads, and with forked processes), digests, statistics, findings and memory.
"""

from __future__ import annotations

import gc
import hashlib
import json
import pickle
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import fragir
from fragir.emulator import Report, TensorMap, run
from fragir.errors import FragirError
from fragir.ptx import parse


def core_name() -> str:
    """The core in use; revisions before there was a choice have numpy's."""
    try:
        from fragir.emulator.native.library import core
    except ImportError:
        return "numpy"
    return core()


class Prepared:
    """A launch read from its file."""

    def __init__(self, path: str) -> None:
        with Path(path).open("rb") as file:
            self.told: dict[str, Any] = pickle.load(file)
        self.arrays: list[Any] = self.told["arrays"]
        self.module = parse(self.told["ptx"]) if self.told["reading"] == "module" else None
        self.new = 0

    def program(self) -> Any:
        """What is run: text, the same or one never seen before, or a module."""
        if self.told["reading"] == "module":
            return self.module
        if self.told["reading"] == "same":
            return self.told["ptx"]
        self.new += 1
        return f"{self.told['ptx']}// {self.new}\n"

    def parameters(self, arrays: list[Any]) -> list[Any]:
        return [
            TensorMap(arrays[value], **more)
            if kind == "map"
            else arrays[value]
            if kind == "array"
            else value
            for kind, value, more in self.told["parameters"]
        ]

    def do(self, request: dict[str, Any]) -> dict[str, Any]:
        times, options, check = self.told["times"], self.told["options"], request["check"]
        arrays = self.arrays if request.get("once") else [array.copy() for array in self.arrays]
        parameters = self.parameters(arrays)
        reports: list[Report] = []
        gc.collect()
        forget_peak()
        cpu, wall = cpu_seconds(), time.perf_counter()
        for _ in range(times):
            reports.append(run(self.program(), arguments=parameters, check=check, **options))
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        if (keep := request.get("keep")) is not None:
            np.savez(keep, *arrays)
        last = reports[-1].statistics
        return {
            "wall": wall / times * 1e3,
            "cpu": cpu / times * 1e3,
            "peak": peak(),
            "results": digest(*arrays),
            "rows": [digest(arrays[-1][first:end]) for first, end in request.get("rows", ())],
            "statistics": {
                "instructions": dict(sorted(last.instructions.items())),
                "lanes": last.lanes,
                "mma": last.mma,
                "loaded": dict(sorted(last.loaded.items())),
                "stored": dict(sorted(last.stored.items())),
            },
            "findings": [repr(each) for each in (*reports[-1].findings, *reports[-1].remarks)],
            "decoding": min(r.statistics.decode_seconds / r.statistics.seconds for r in reports),
        }


def cpu_seconds() -> float:
    """Of all threads, and of processes that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def forget_peak() -> None:
    """The peak of memory counts from here on (Linux: proc(5), clear_refs)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    except OSError:
        pass  # then it counts from the start of the process


def peak() -> int | None:
    """The most memory that this process had, in bytes; None where /proc does not say."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(found[0]) * 1024 if found else None


def digest(*arrays: Any) -> str:
    """Of the bytes of arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def main() -> None:
    try:
        said = {"fragir": str(Path(fragir.__file__).parent), "core": core_name()}
    except FragirError as error:
        said = {"problem": str(error)}
    print(json.dumps(said), flush=True)
    path, prepared = "", None
    for line in sys.stdin:
        request = json.loads(line)
        if prepared is None or request["launch"] != path:
            prepared, path = None, request["launch"]
            prepared = Prepared(path)
        print(json.dumps(prepared.do(request)), flush=True)


if __name__ == "__main__":
    main()
