"""Whether a stream is a terminal, and whether it takes colours.

Colours go to terminals. `NO_COLOR` (no-color.org) takes them away, whatever else is set. Where
there is no terminal `FORCE_COLOR` (force-color.org) and `CLICOLOR_FORCE` ask for them; on one
`CLICOLOR=0` and `TERM=dumb` leave them out. A progress bar needs a terminal that can move its
cursor, and nothing asks for one elsewhere.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

DUMB = ("dumb", "unknown")


def moves(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which lines can be written anew."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in DUMB


def in_colour(stream: TextIO) -> bool:
    """Whether what is written to a stream should have colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if forced():
        return True
    return moves(stream) and os.environ.get("CLICOLOR") != "0"


def forced() -> bool:
    """Whether colours are asked for, terminal or not."""
    return bool(os.environ.get("FORCE_COLOR")) or os.environ.get("CLICOLOR_FORCE", "0") != "0"


def console(stream: TextIO, width: int | None = None) -> Console:
    """A console of rich's that goes by these rules."""
    from rich.console import Console

    return Console(
        file=stream,
        width=width,
        force_terminal=in_colour(stream) or moves(stream),
        no_color=not in_colour(stream),
    )
