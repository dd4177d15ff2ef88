"""What the parts of the check share, and nothing that only one of them needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.findings import Findings
    from fragir.emulator.checks.sites import Sites
    from fragir.emulator.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class Context:
    """The machine that runs, who knows of what, where instructions are, and what is found."""

    machine: Machine
    clocks: Clocks
    sites: Sites
    findings: Findings
