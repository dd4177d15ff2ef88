"""What a kernel takes of a machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """What one kernel takes, as ptxas reports it: registers a thread, the rest in bytes."""

    registers: int
    spill_stores: int
    spill_loads: int
    shared: int
    """Static shared memory; what is given at launch is not known here."""
    stack: int
    barriers: int
