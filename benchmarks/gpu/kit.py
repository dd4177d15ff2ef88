"""What a step is given: the kit's folder, sizes, carried cubins, what is expected."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

TARGET = "sm_90a"
"""What cubins are made for."""
MACHINE = "sm_90"
"""What such a GPU calls itself: programs for older machines are assembled for it."""

T = TypeVar("T")


@dataclass
class Kit:
    """A kit in its folder. `small`: sizes that the emulator computes in seconds."""

    folder: Path
    small: bool = False

    @classmethod
    def of(cls, folder: Path) -> Kit:
        """The kit in a folder."""
        kit = cls(folder)
        kit.small = bool(kit.facts["small"])
        return kit

    def size(self, real: T, small: T) -> T:
        """A size of the kit, or that of a rehearsal."""
        return small if self.small else real

    def path(self, name: str) -> Path:
        """A file of the kit's data."""
        return self.folder / "data" / name

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Commit, versions, hashes: `kit.json`."""
        found: dict[str, Any] = json.loads((self.folder / "kit.json").read_text("utf-8"))
        return found

    def cubin(self, ptx: str, target: str = TARGET) -> bytes:
        """The machine code of PTX: carried, or made by the ptxas that is there."""
        from fragir.toolchain import ptxas

        return ptxas.assemble(ptx, target).cubin


@dataclass
class Work:
    """One unit of a step. `without` are contenders that have ended a process, and how."""

    kit: Kit
    unit: str
    without: Mapping[str, str] = field(default_factory=dict[str, str])
    say: Callable[[str], None] = lambda _: None
    """What is begun now: where the process ends, this is what has ended it."""
