"""Grids that were launched before, on the same memory: programmatic dependent launch.

A grid that has executed `griddepcontrol.launch_dependents` in all of its blocks, or has ended in
those that have not, lets the next one begin; `griddepcontrol.wait` is what waits until it has ended
and its memory can be seen (PTX ISA 9.2, section 9.7.13.13). Here grids run one after the other, so
that what they compute is what they compute in that order; which of their accesses could come in
another one the checks find out.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from fragir.emulator.machine.memory import Buffer


@dataclass(frozen=True, slots=True)
class PastGrid:
    """A grid that has run.

    `released`: whether a thread executed launch_dependents; `waited`: whether one executed wait.
    `running`: earlier grids that might still run when it began; `left`: those that its wait does
    not wait for. `homes`: where the bytes of its buffers lie, by `Buffer.start`: the memory of the
    caller, or a variable, and the address there. `accesses`: what its check of races has kept.
    """

    entry: str
    released: bool
    waited: bool
    running: tuple[PastGrid, ...]
    left: tuple[PastGrid, ...]
    buffers: tuple[Buffer, ...]
    homes: dict[int, tuple[Hashable, int]]
    accesses: Any = None

    def next_to(self) -> tuple[tuple[PastGrid, ...], tuple[PastGrid, ...]]:
        """The grids that may still run when a dependent of this one begins, and those of them that
        the dependent's wait does not wait for. The latest first."""
        left = self.left if self.waited else self.running
        return ((self, *self.running) if self.released else left), left
