"""What a statement of a kernel may name: its variables, parameters, and those of the module."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from fragir.emulator.launch.legality import Names


def names_for(op: Operation, symbols: Sequence[str], registers: str) -> Names:
    """The declarations of what a statement names, and of its registers."""
    return Names(inside=registers)
