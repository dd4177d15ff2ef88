"""Whether a stream is a terminal, and whether it takes colours.

Colours go to terminals. `NO_COLOR` (no-color.org) takes them away, whatever else is set. Where
there is no terminal `FORCE_COLOR` (force-color.org) and `CLICOLOR_FORCE` ask for them; on one
`CLICOLOR=0` and `TERM=dumb` leave them out. A progress bar needs a terminal that can move its
cursor, and nothing asks for one elsewhere.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, ClassVar, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

    from fragir.emulator.machine.watch import Moment


DUMB = ("dumb", "unknown")


def can_rewrite_lines(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which lines can be written anew."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in DUMB


def is_coloured(stream: TextIO) -> bool:
    """Whether what is written to a stream should have colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if is_colour_forced():
        return True
    return can_rewrite_lines(stream) and os.environ.get("CLICOLOR") != "0"


def is_colour_forced() -> bool:
    """Whether colours are asked for, terminal or not."""
    return bool(os.environ.get("FORCE_COLOR")) or os.environ.get("CLICOLOR_FORCE", "0") != "0"


def console(stream: TextIO, width: int | None = None) -> Console:
    """A console of rich's that goes by these rules."""
    from rich.console import Console

    return Console(
        file=stream,
        width=width,
        force_terminal=is_coloured(stream) or can_rewrite_lines(stream),
        no_color=not is_coloured(stream),
    )


# -- progress --------------------------------------------------------------------------------------
# A bar on stderr while something takes long, where stderr is a terminal.

DELAY = 0.4
"""Seconds without a bar: what is over by then needs none."""


class Progress:
    """A bar on stderr, where stderr is a terminal; call it with the part done, 0 to 1.

    It comes after `DELAY` seconds, and swings until it is called. Inside of another one it lends
    that its label: there is one bar.
    """

    _open: ClassVar[Progress | None] = None

    def __init__(self, label: str) -> None:
        self._label = label
        self._done: float | None = None
        self._over = False
        self._lock: Any = None
        self._timer: Any = None
        self._bar: Any = None
        self._task: Any = None
        self._around: Progress | None = None
        self._label_around = ""

    def __enter__(self) -> Progress:
        if Progress._open is not None:
            self._around, self._label_around = Progress._open, Progress._open._label
            self._around.say(self._label)
        elif can_rewrite_lines(sys.stderr):
            import threading

            Progress._open = self
            self._lock = threading.Lock()
            self._timer = threading.Timer(DELAY, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def _show(self) -> None:
        from rich.progress import Progress as Bar

        with self._lock:
            if self._over:
                return
            # stdout goes above the bar where both are one terminal, else where it goes anyway
            bar = Bar(
                console=console(sys.stderr),
                transient=True,
                redirect_stdout=sys.stdout.isatty(),
            )
            bar.start()
            self._task = bar.add_task(self._label, total=None)
            self._bar = bar
        if self._done is not None:
            self(self._done)

    def __call__(self, done: float) -> None:
        self._done = done
        if self._bar is not None:
            self._bar.update(self._task, total=1.0, completed=done)

    def beat(self, moment: Moment) -> None:
        """What the emulator is at, beside the bar."""
        if self._around is not None:
            self._around.beat(moment)
        if self._bar is not None:
            where = "" if moment.line is None else f", line {moment.line}"
            text = f"{self._label}: {moment.instructions:,} warp instructions{where}"
            self._bar.update(self._task, description=text)

    def say(self, label: str) -> None:
        """Another label."""
        self._label = label
        if self._around is not None:
            self._around.say(label)
        if self._bar is not None:
            self._bar.update(self._task, description=label)

    def __exit__(self, *_: object) -> None:
        if self._around is not None:
            self._around.say(self._label_around)
        if self._timer is None:
            return
        Progress._open = None
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()
                self._bar = None


class _Current:
    """What `sys.stdout` or `sys.stderr` is when it is written to: a bar puts its own there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, text: str) -> int:
        return getattr(sys, self._name).write(text)

    def flush(self) -> None:
        getattr(sys, self._name).flush()


STDOUT = cast(TextIO, _Current("stdout"))
STDERR = cast(TextIO, _Current("stderr"))
