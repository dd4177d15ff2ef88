"""What a run may take: `--limit`, `--jobs`, `--workers`, and this machine's memory."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.reference.inputs import ProgramArgument

Command = TypeVar("Command", bound=Callable[..., Any])


# -- limit -----------------------------------------------------------------------------------------
# `--limit INSTRUCTIONS[,SECONDS]`: how long a kernel may run on the emulator.

Limit = tuple[int | None, float | None]
NONE: Limit = (None, None)


def read_limit(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Limit:
    """A callback: warp instructions and seconds, None for those that are not limited."""
    if value is None:
        return NONE
    first, comma, second = value.partition(",")
    instructions = _instruction_count(first) if first or not comma else None
    seconds = None
    if comma:
        try:
            seconds = float(second)
        except ValueError:
            seconds = math.nan
    if instructions == 0 or (seconds is not None and not 0 < seconds < math.inf):
        raise click.BadParameter(f"`{value}` is not of the form INSTRUCTIONS[,SECONDS]")
    return instructions, seconds


def _instruction_count(text: str) -> int:
    """A number of instructions, also as 1e9; 0 where it is none."""
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return 0
    return int(number) if 1 <= number < 2**63 and number.is_integer() else 0


limit_option = click.option(
    "--limit",
    callback=read_limit,
    metavar="INSTRUCTIONS[,SECONDS]",
    help="Stop a kernel after so many warp instructions, or seconds (as in 1e9,60 or ,60).",
)


class Budget:
    """What several runs may take: instructions each, seconds together."""

    def __init__(self, limit: Limit) -> None:
        self.instructions, self.seconds = limit
        self._end = None if self.seconds is None else time.monotonic() + self.seconds

    @property
    def is_spent(self) -> bool:
        """Whether the seconds are over."""
        return self._end is not None and time.monotonic() >= self._end

    def next(self) -> Limit:
        """The limit of the next run."""
        left = None if self._end is None else max(self._end - time.monotonic(), 1e-3)
        return self.instructions, left


# -- jobs ------------------------------------------------------------------------------------------
# `--jobs N`: how many threads and processes may emulate a kernel.

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cores that a large launch may use on the emulator; all of them, or $FRAGIR_JOBS, if "
    "absent.",
)


def workers_option(help_: str) -> Callable[[Command], Command]:
    """`--workers N`: processes side by side; `help_` says what each is for."""
    return click.option(
        "--workers",
        type=click.IntRange(1, 1024),
        default=2,
        show_default=True,
        metavar="N",
        help=help_,
    )


# -- memory ----------------------------------------------------------------------------------------
# What a run needs of this machine's memory, before it is asked for.

# Bytes an element: as stored, as float64 in the reference, and the copy that the kernel works on.
_EACH = 16


def check_fits_memory(slots: Sequence[ProgramArgument], sizes: Mapping[str, int]) -> None:
    """Raises FragirError where the arrays of a program do not fit into this machine's memory.

    Only what cannot be is refused: the least that a run holds is compared with all there is.
    """
    needed = {
        slot.name: _EACH * math.prod(sizes[name] for name in slot.names)
        for slot in slots
        if slot.shape is not None
    }
    there = physical()
    if there is None or sum(needed.values()) <= there:
        return
    name = max(needed, key=needed.__getitem__)
    shape = next("x".join(str(sizes[n]) for n in s.names) for s in slots if s.name == name)
    raise FragirError(
        f"the arrays need {_gib(sum(needed.values()))}, this machine has {_gib(there)}"
        f" (the largest is {name}: {shape})",
        hint="choose smaller sizes",
    )


def physical() -> int | None:
    """The bytes of memory of this machine; None where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _gib(count: int) -> str:
    gib = count / 2**30
    return f"{gib:.1f} GiB" if gib < 1e6 else f"{gib:.1e} GiB"
