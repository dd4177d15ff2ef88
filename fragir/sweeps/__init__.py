"""Long runs: many independent tasks, in this process or on a Dask cluster, kept and resumed."""

from __future__ import annotations

from fragir.sweeps.definition import Plan, Result, Sweep, Task, sample

__all__ = ["Plan", "Result", "Sweep", "Task", "sample"]


def __dir__() -> list[str]:
    """What there is to use, without what is imported here."""
    return __all__
