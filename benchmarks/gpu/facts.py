"""The facts of a machine that are only assumed (`fragir.validation.facts`), as a step of a session.

A kernel that traps ends its process: every fact has one of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.gpu.kit import TARGET, Kit, Work
from fragir.errors import FragirError
from fragir.validation import facts

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder


def units(kit: Kit) -> list[str]:
    """A file each."""
    return facts.names()


def prepare(kit: Builder) -> None:
    """Cubins; the emulator says what is assumed."""
    for name in units(kit):
        kit.carry(facts.read(name)[1])
        found = facts.ask_machine(name, facts.on_emulator)
        if found["found"] != found["assumed"]:
            raise FragirError(f"{name}: the emulator says {found['found']}: {found['words']}")


def run(work: Work) -> dict[str, Any]:
    """What the GPU says, with `wrong` where something else is assumed."""
    found = facts.ask_machine(work.unit, facts.on_gpu(TARGET))
    if found["found"] == found["assumed"]:
        return found
    return {**found, "wrong": f"{found['asks']} {found['found']}, not {found['assumed']}"}
