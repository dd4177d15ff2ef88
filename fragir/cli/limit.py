"""`--limit INSTRUCTIONS[,SECONDS]`: how long a kernel may run on the emulator."""

from __future__ import annotations

import math
import time

import click

Limit = tuple[int | None, float | None]
NONE: Limit = (None, None)


def read_limit(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Limit:
    """A callback: warp instructions and seconds, None for those that are not limited."""
    if value is None:
        return NONE
    first, comma, second = value.partition(",")
    instructions = _whole(first) if first or not comma else None
    seconds = None
    if comma:
        try:
            seconds = float(second)
        except ValueError:
            seconds = math.nan
    if instructions == 0 or (seconds is not None and not 0 < seconds < math.inf):
        raise click.BadParameter(f"`{value}` is not of the form INSTRUCTIONS[,SECONDS]")
    return instructions, seconds


def _whole(text: str) -> int:
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
    def spent(self) -> bool:
        """Whether the seconds are over."""
        return self._end is not None and time.monotonic() >= self._end

    def next(self) -> Limit:
        """The limit of the next run."""
        left = None if self._end is None else max(self._end - time.monotonic(), 1e-3)
        return self.instructions, left
