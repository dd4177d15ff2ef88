"""What a run gives back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong that did not stop the run.

    `kind` is one of `KINDS`; line and col are places in the PTX (1-based).
    """

    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    col: int | None = None
    warp: int | None = None
    lane: int | None = None
    address: int | None = None


#: kind -> what it means.
KINDS: dict[str, str] = {
    "uninitialised": "a register or shared memory was used before anything was written there",
    "wgmma-fence": "registers of a wgmma were written without a wgmma.fence before it",
    "unretired": "an asynchronous copy or wgmma was still pending when its thread exited",
}


@dataclass(slots=True)
class Statistics:
    """Counts over a whole launch.

    `instructions`: warp instructions by opcode word; `lanes`: lane instructions issued (32 for
    each warp instruction); `mma`: tensor-core instructions (wgmma counts once per warpgroup);
    `loaded` and `stored`: bytes by space.
    """

    instructions: Counter[str] = field(default_factory=Counter[str])
    lanes: int = 0
    mma: int = 0
    loaded: Counter[str] = field(default_factory=Counter[str])
    stored: Counter[str] = field(default_factory=Counter[str])
    rounds: int = 0
    seconds: float = 0.0
    decode_seconds: float = 0.0

    @property
    def total(self) -> int:
        """All warp instructions."""
        return sum(self.instructions.values())


@dataclass(slots=True)
class Report:
    """Statistics and findings of one launch."""

    statistics: Statistics = field(default_factory=Statistics)
    findings: list[Finding] = field(default_factory=list[Finding])
