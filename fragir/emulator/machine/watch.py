"""How far a run is, and when it has run long enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from fragir.emulator.report import EmulationError

#: Warp instructions, or those and seconds; None: as many as it takes.
Limit: TypeAlias = "int | Sequence[int | float | None] | None"

#: Warp instructions between two looks at the clock: where only progress is shown, and where
#: seconds count. With every check, an instruction of many waiting warps takes milliseconds.
QUANTUM, CAREFUL = 1 << 14, 1 << 6
BEAT = 0.25  # seconds between two reports of progress


@dataclass(frozen=True, slots=True)
class Moment:
    """How far a run is: the share of the grid that has ended, warp instructions, the PTX line."""

    share: float
    instructions: int
    line: int | None


class Watch:
    """Counts warp instructions and looks at the clock now and then.

    `left` counts down from one look to the next: whoever executes takes off what was executed,
    and calls `look` once it is negative.
    """

    def __init__(self, limit: Limit, heartbeat: Callable[[Moment], None] | None = None) -> None:
        self.instructions, self.seconds = read_limit(limit)
        self.heartbeat = heartbeat
        self.share = 0.0
        self.elsewhere: Callable[[], int] = int  # warp instructions of other processes
        self._looked = self._granted = 0  # instructions executed at the last look; until the next
        self._started = self._beat = time.perf_counter()
        self.left = 0
        self._grant()

    def _grant(self) -> None:
        room = QUANTUM if self.seconds is None else CAREFUL
        if self.instructions is not None:
            room = min(room, self.instructions - self._looked)
        self.left = self._granted = room

    @property
    def executed(self) -> int:
        """Warp instructions so far."""
        return self._looked + self._granted - self.left

    def look(self, line: Callable[[], int | None]) -> str | None:
        """Why the run has to stop now, None where it may go on; `line`: where it is."""
        self._looked += self._granted - self.left
        if self.instructions is not None and self._looked > self.instructions:
            return f"at its limit of {self.instructions} warp instructions"
        now = time.perf_counter()
        if self.seconds is not None and now - self._started > self.seconds:
            spent = f"after {self._looked} warp instructions"
            return f"at its limit of {self.seconds:.3g} seconds, {spent}"
        if self.heartbeat is not None and now - self._beat > BEAT:
            self._beat = now
            self.heartbeat(Moment(self.share, self._looked + self.elsewhere(), line()))
        self._grant()
        return None


class Divide(Protocol):
    """Who gives some of the warps that run to other processes."""

    idle: bool
    """Whether all have been given away."""

    def is_due(self) -> bool:
        """Whether it is time for that."""
        ...

    def divide(self) -> None:
        """Does it; every lane's key says where it stands."""
        ...


def read_limit(limit: object) -> tuple[int | None, float | None]:
    """Instructions and seconds. EmulationError where it is no limit."""
    pair = isinstance(limit, tuple | list)
    match list(cast("Sequence[object]", limit)) if pair else [limit, None]:
        case [(int() | None) as instructions, (int() | float() | None) as seconds] if not any(
            isinstance(number, bool) or (number is not None and not number > 0)
            for number in (instructions, seconds)
        ):
            return instructions, seconds
        case _:
            raise EmulationError(
                f"{limit!r} is no limit",
                hint="give a number of warp instructions, or that and seconds: (10**9, 60)",
            )
