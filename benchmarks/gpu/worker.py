"""A process that runs units of one step: a line of JSON asks, lines of JSON answer.

    python -m benchmarks.gpu.worker KIT STEP

First it says `{"ready": true}`: packages that the step names (`PACKAGES`) are imported, and the GPU
has a context, so that units have their time to themselves.
A request has `unit` and `without`. Answers are `{"doing": ...}` before what may end the process,
and `{"result": ...}` or `{"failed": ..., "fatal": ...}`: after a fatal one the GPU does nothing
more for this process, and it ends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.gpu.kit import Kit, Work
from benchmarks.gpu.steps import module


def main() -> int:
    kit, name = Kit.of(Path(sys.argv[1])), sys.argv[2]
    # what anything else prints goes to the log, not among the answers
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(document: dict[str, Any]) -> None:
        answers.write(json.dumps(document) + "\n")
        answers.flush()

    step = module(name)
    for package in getattr(step, "PACKAGES", ()):
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    alive()
    answer({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        start = time.monotonic()
        work = Work(kit, request["unit"], request["without"], lambda what: answer({"doing": what}))
        fatal = False
        try:
            found: dict[str, Any] = {"result": step.run(work)}
        except Exception as error:
            traceback.print_exc()
            words = " ".join(f"{type(error).__name__}: {error}".split())[:400]
            fatal = not alive()
            found = {"failed": words, "fatal": fatal}
        answer({**found, "seconds": round(time.monotonic() - start, 3)})
        if fatal:
            return 1
    return 0


def alive() -> bool:
    """Whether the GPU still does what this process tells it."""
    from fragir.errors import FragirError
    from fragir.toolchain import driver

    try:
        driver.call("cuStreamSynchronize", 0)
    except FragirError:
        return False
    return True


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # a context that is broken may hang at the end
