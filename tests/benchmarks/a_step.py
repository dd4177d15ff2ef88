"""A step whose units end in every way: a module of `benchmarks.gpu.steps.module`, for tests."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from benchmarks.gpu.kit import Kit, Work

UNITS = ("good", "wrong", "raises", "contenders", "dies", "hangs", "group", "good too")


def units(kit: Kit) -> list[str]:
    return list(UNITS)


def parts(kit: Kit, unit: str) -> list[str]:
    return ["group/0", "group/1", "group/2"] if unit == "group" else [unit]


def title(kit: Kit, unit: str) -> str:
    return f"the unit {unit}"


def run(work: Work) -> dict[str, Any]:
    match work.unit:
        case "env":
            return {"cubins": os.environ.get("FRAGIR_CUBINS")}
        case "wrong":
            return {"wrong": "3, not 4"}
        case "raises":
            raise ValueError("a word of Python's")
        case "contenders":
            for name in ("first", "second", "third"):
                work.say(name)
                if name != "second" and name not in work.without:
                    os.kill(os.getpid(), signal.SIGSEGV)
            return {"absent": dict(work.without)}
        case "dies" | "group" | "group/1":
            os._exit(7)
        case "hangs":
            time.sleep(1000)
        case _:
            pass
    return {"process": os.getpid()}
