"""Tasks of milliseconds, some of which do what a task must not; for the tests of the runner.

A worker gets the text of this file.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import Any

from fragir.sweeps import Plan, Result, Sweep, Task


def tasks(plan: Plan) -> Sequence[Any]:
    """`WHAT@INDEX` in the parameter `bad`, comma after comma; all other tasks are plain."""
    made = ["plain"] * (plan.count or 40)
    for each in filter(None, str(plan.parameters["bad"]).split(",")):
        what, _, index = each.partition("@")
        made[int(index)] = what
    return made


def run(task: Task) -> Result:
    time.sleep(float(task.parameters["sleep"]))
    match task.what:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise KeyError("planted")
        case "hang":
            while True:
                time.sleep(0.01)
        case "hang-in-c":
            pow(3, 10**9)
        case "eat":
            held = [bytearray(os.urandom(1) * (1 << 26)) for _ in range(200)]
            return {"held": len(held)}
        case "find":
            return {"findings": ["planted"], "value": 1}
        case _:
            pass
    value = task.random().randrange(1000) + int(task.generator().integers(1000))
    return {"value": value, "share": value / 7}


SWEEP = Sweep(tasks, run, {"bad": "", "sleep": 0.0}, seconds=20.0)
