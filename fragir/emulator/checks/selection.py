"""Which checks a launch has: ours, and those that the user brings."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from fragir.emulator.checks.foreign import MakesCheck, foreign

if TYPE_CHECKING:
    from fragir.emulator.checks.hooks import Hooks
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program

#: `check=True`: the modules of this room and their checks, in the order in which they see
#: everything. They are imported only where they are asked for.
CHECK = (
    ("definedness.definedness", "Definedness"),
    ("races.races", "Races"),
    ("synchronisation", "Synchronisation"),
    ("conflicts", "Conflicts"),
    ("register_pool", "RegisterPool"),
    ("extents", "Extents"),
    ("tensor_maps", "TensorMaps"),
    ("row_ends", "RowEnds"),
    ("sparse_metadata", "SparseMetadata"),
    ("operand_contents", "OperandContents"),
)
#: `fragments=True`.
FRAGMENTS = (("fragments.fragments", "Fragments"),)


def hooks_for(
    machine: Machine,
    program: Program,
    *,
    check: bool,
    fragments: bool,
    checks: Sequence[MakesCheck] = (),
) -> list[Hooks]:
    """The checks in the order in which they see everything: ours, then the user's."""
    hooks: list[Hooks] = []
    for module, name in (*(CHECK if check else ()), *(FRAGMENTS if fragments else ())):
        kind: type[Hooks] = getattr(import_module(f"fragir.emulator.checks.{module}"), name)
        if kind.concerns(program):
            hooks.append(kind(machine, program))
    found = (foreign(makes, machine, program) for makes in checks)
    return hooks + [hook for hook in found if hook is not None]
