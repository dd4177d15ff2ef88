"""Launches one after the other on one memory, as on a stream of CUDA."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.machine.past_grids import PastGrid

if TYPE_CHECKING:
    from fragir.emulator.checks.hooks import Hooks
    from fragir.emulator.launch.arguments import Arguments
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.entities import Symbol
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Module


class Stream:
    """Launches of `run(..., stream=stream)` come one after the other, on one memory.

    Their arrays are the caller's, which any of them reads and writes, and variables in global
    memory keep what the launch before of the same PTX has left in them. A launch with
    `programmatic=True` is a programmatic dependent of the one before (CUDA's attribute programmatic
    stream serialization): it may begin once all blocks of that one have executed
    griddepcontrol.launch_dependents or have ended. Then only griddepcontrol.wait orders its
    accesses after those of the grids before (PTX ISA 9.2, section 9.7.13.13), and with `check=True`
    in both launches each access that comes without it is a `race`. Other launches begin when
    everything before has ended. Grids are executed in the order of their launches.
    """

    def __init__(self) -> None:
        self._last: PastGrid | None = None
        self._variables: dict[tuple[Hashable, str], bytes] = {}
        self._modules: dict[int, Module] = {}  # so that an id stays its own

    def __repr__(self) -> str:
        return "<a stream>" if self._last is None else f"<a stream after {self._last.entry}>"

    # -- for a launch ------------------------------------------------------------------------------

    def begin(
        self, machine: Machine, program: Program, arguments: Arguments, *, programmatic: bool
    ) -> None:
        """A launch begins; everything has its place in memory."""
        machine.chained = True
        if programmatic and self._last is not None:
            machine.running, machine.left = self._last.next_to()
        homes = machine.homes
        homes |= {start: ("host", at) for start, at in arguments.arrays.homes().items()}
        for symbol in _variables(program):
            homes[symbol.offset] = (_key(program, symbol), 0)

    def load(self, machine: Machine, program: Program) -> None:
        """Variables are what the launch before has left, behind their initial values."""
        memory = machine.memory.globals.bytes
        for symbol in _variables(program):
            found = self._variables.get(_key(program, symbol), b"")
            memory[symbol.offset : symbol.offset + len(found)] = np.frombuffer(found, np.uint8)

    def end(self, machine: Machine, program: Program, hooks: Sequence[Hooks]) -> None:
        """A launch has ended well."""
        memory = machine.memory
        self._modules[id(program.module)] = program.module
        for symbol in _variables(program):
            part = memory.globals.bytes[symbol.offset : symbol.offset + symbol.size]
            self._variables[_key(program, symbol)] = part.tobytes()
        kept = [found for hook in hooks if (found := hook.for_next_grid()) is not None]
        self._last = PastGrid(
            program.entry,
            machine.released,
            machine.waited,
            machine.running,
            machine.left,
            tuple(memory.buffers),
            machine.homes,
            kept[0] if kept else None,
        )


def _variables(program: Program) -> list[Symbol]:
    return [symbol for symbol in program.symbols if symbol.space == "global"]


def _key(program: Program, symbol: Symbol) -> tuple[Hashable, str]:
    """What a variable is in another launch: that of its name in the same text."""
    source = program.module.source
    return (id(program.module) if source is None else source.text), symbol.name
