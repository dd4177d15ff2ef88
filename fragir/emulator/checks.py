"""Which checks a launch has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragir.emulator.hooks import Hooks
    from fragir.emulator.program import Program
    from fragir.emulator.state import Machine


def hooks_for(machine: Machine, program: Program, *, check: bool, fragments: bool) -> list[Hooks]:
    """The checks in the order in which they see everything."""
    hooks: list[Hooks] = []
    if check:
        from fragir.emulator.conflicts import Conflicts
        from fragir.emulator.definedness import Definedness
        from fragir.emulator.extents import Extents
        from fragir.emulator.races import Races
        from fragir.emulator.register_pool import RegisterPool
        from fragir.emulator.synchronisation import Synchronisation
        from fragir.emulator.tensor_map_checks import TensorMaps, changes_maps

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
        from fragir.emulator.fragments import Fragments

        hooks.append(Fragments(machine, program))
    return hooks
