"""How many threads or processes a launch may use."""

from __future__ import annotations

import os
from pathlib import Path

from fragir.emulator.report import EmulationError
from fragir.errors import whole_number

#: Microseconds of computing in each period, and the period.
QUOTA = Path("/sys/fs/cgroup/cpu.max")
#: The environment's default, for all launches.
VARIABLE = "FRAGIR_JOBS"


def jobs_of(asked: int | None) -> int:
    """The jobs of a launch: what was asked for, else FRAGIR_JOBS, else the cores it may use.

    EmulationError where that is no whole number from 1 on.
    """
    if asked is not None:
        return whole_number(asked, "jobs", 1)
    text = os.environ.get(VARIABLE, "")
    if not text:
        return _cores()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise EmulationError(
            f"{VARIABLE} is {text!r}, which is no number of jobs",
            hint="set it to a whole number from 1 on, or to nothing for the cores of the machine",
        )
    return int(text)


def _cores() -> int:
    """The cores that this process may use, as a container restricts them too."""
    if hasattr(os, "sched_getaffinity"):
        return max(min(len(os.sched_getaffinity(0)), _quota()), 1)
    return os.cpu_count() or 1


def _quota() -> int:
    """The cores' worth of time that a control group of Linux has; many where it has no quota."""
    try:
        quota, period = QUOTA.read_text().split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError):  # no such file, or "max"
        return 1 << 16
