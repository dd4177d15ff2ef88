"""Which checks a launch has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragir.emulator.checks.hooks import Hooks
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program


def hooks_for(machine: Machine, program: Program, *, check: bool, fragments: bool) -> list[Hooks]:
    """The checks in the order in which they see everything."""
    hooks: list[Hooks] = []
    if check:
        from fragir.emulator.checks.conflicts import Conflicts
        from fragir.emulator.checks.definedness.definedness import Definedness
        from fragir.emulator.checks.extents import Extents
        from fragir.emulator.checks.races.races import Races
        from fragir.emulator.checks.register_pool import RegisterPool
        from fragir.emulator.checks.synchronisation import Synchronisation
        from fragir.emulator.checks.tensor_maps import TensorMaps, changes_maps

        definedness = Definedness(machine, program)
        hooks += [
            definedness,
            Races(machine, program),
            Synchronisation(machine, program),
            Conflicts(machine, program),
        ]
        if RegisterPool.concerns(program):
            hooks.append(RegisterPool(machine, program))
        if Extents.concerns(program):
            hooks.append(Extents(machine, program, definedness.flow))
        if changes_maps([p.ins for p in program.code]):
            hooks.append(TensorMaps(machine))
    if fragments:
        from fragir.emulator.checks.fragments.fragments import Fragments

        hooks.append(Fragments(machine, program))
    return hooks
