"""Which barriers, fences and waits a kernel could do without.

Each statement that synchronises is left out in turn, and one run of every launch judges the rest:
no finding, no new letter, a verdict that holds for every schedule, the same bytes. (What the kernel
does is what the rest does in one of its schedules, so that the rest does it in every one.) What
could go one at a time need not go together, so statements are then left out one after the other as
long as the rest is still judged so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fragir.errors import FragirError, check_kind, short_text
from fragir.redundancy.judging import ASSUMPTIONS, Baseline, baseline, refuted
from fragir.redundancy.statements import SyncStatement, synchronising, without

#: Further schedules under which what may go is run: the verdict says that they agree.
OTHERS: tuple[Mapping[str, Any], ...] = (
    {"asynchrony": "early"},
    {"asynchrony": "random", "schedule": 1},
)


@dataclass(frozen=True, slots=True)
class NeedOf:
    """Whether a statement at a line is needed, and why: what is found without it.

    `not executed`: no launch comes to it, so nothing is known. `not judged`: without it the text is
    no program, or time was over.
    """

    line: int
    statement: str
    verdict: Literal["needed", "not needed", "not executed", "not judged"]
    why: str = ""

    def __repr__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return short_text(f"<line {self.line} {self.verdict}{why}: {self.statement}>")


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """Of every statement that synchronises whether it is needed, in the order of the text (kernels
    that no launch names are left out);
    `together`: indices of those that are not needed all at once, as many as were found.

    `assumptions`: what that takes for granted, by name (`ASSUMPTIONS`); `launches`: how many ran.
    """

    statements: tuple[NeedOf, ...]
    together: tuple[int, ...]
    assumptions: tuple[str, ...]
    launches: int

    def document(self) -> dict[str, Any]:
        """As `check` and `judge` show it."""
        return {
            "statements": [asdict(one) for one in self.statements],
            "together": list(self.together),
            "launches": self.launches,
            "assumptions": {name: ASSUMPTIONS[name] for name in self.assumptions},
        }

    def __repr__(self) -> str:
        singly = sum(one.verdict == "not needed" for one in self.statements)
        return f"<{singly} of {len(self.statements)} not needed, {len(self.together)} together>"


class _Judge:
    def __init__(
        self,
        ptx: str,
        launches: Sequence[Mapping[str, Any]],
        seconds: float | None,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.ptx, self.launches, self.progress = ptx, launches, progress
        self.end = None if seconds is None else time.monotonic() + seconds
        names = [str(launch["entry"]) for launch in launches if launch.get("entry") is not None]
        known = names if len(names) == len(launches) else None
        self.statements = list(synchronising(ptx, known))
        places = frozenset(at for one in self.statements for at in one.places)
        self.known = [baseline(ptx, launch, places) for launch in launches]
        self.reached = {at for one in self.known for at in one.reached}
        self.done = 0

    @property
    def is_over(self) -> bool:
        return self.end is not None and time.monotonic() >= self.end

    def refuted(self, gone: Sequence[SyncStatement], **options: Any) -> tuple[str, bool]:
        """Why the kernel needs some of these, by the first launch that shows it."""
        text = without(self.ptx, gone)
        pairs: Sequence[tuple[Mapping[str, Any], Baseline]]
        pairs = list(zip(self.launches, self.known, strict=True))
        for number, (launch, known) in enumerate(pairs, 1):
            why, judged = refuted(text, launch, known, **options)
            if why:
                return (f"{why} (launch {number})" if len(pairs) > 1 else why), judged
        return "", True

    def refuted_elsewhere(self, gone: Sequence[SyncStatement]) -> str:
        """Why the kernel needs some of these by another schedule than the regular one, though its
        verdict was for every one; empty where it does not."""
        return next((why for how in OTHERS if (why := self.refuted(gone, **how)[0])), "")

    def one(self, statement: SyncStatement) -> NeedOf:
        self._tell()
        at = statement.line, statement.text
        if not self.reached.intersection(statement.places):
            return NeedOf(*at, "not executed", "no launch comes to it")
        if self.is_over:
            return NeedOf(*at, "not judged", "time was over")
        why, judged = self.refuted([statement])
        why = why or self.refuted_elsewhere([statement])
        return NeedOf(*at, "not needed" if not why else "needed" if judged else "not judged", why)

    def together(self, candidates: Sequence[int]) -> list[int]:
        """As many of those that can go one at a time as can go all at once."""
        found: list[int] = []
        for index in candidates:
            self._tell()
            wanted = [self.statements[i] for i in (*found, index)]
            if not self.is_over and (not found or not self.refuted(wanted)[0]):
                found.append(index)
        while found:
            gone = [self.statements[i] for i in found]
            if len(found) == 1 or not self.refuted_elsewhere(gone):
                break
            found.pop()  # the verdict for every schedule was wrong: nothing is said of it
        return found

    def _tell(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(min(self.done / (2 * max(len(self.statements), 1)), 1.0))

    def assumptions(self) -> tuple[str, ...]:
        found = {name: None for one in self.known for name in one.schedules.assumptions}
        words = [one.text.split()[0] for one in self.statements]
        if any("wgmma.wait_group" in one.text for one in self.statements):
            found["wgmma-waits"] = None
        uncounted = any(
            word.startswith(("bar", "barrier")) and "," not in one.text and "warp" not in one.text
            for word, one in zip(words, self.statements, strict=True)
        )
        leaves = sum(word in ("ret;", "exit;") for word in self.ptx.split())
        if uncounted and leaves > 1:
            found["exited-threads"] = None
        return (*found, "launches", "time")


def not_needed(
    ptx: str,
    launches: Sequence[Mapping[str, Any]],
    *,
    seconds: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> NotNeeded:
    """Which barriers, fences and waits of a kernel are not needed in any of some launches.

    `launches`: each the keywords of `fragir.emulator.run`, but that `arguments`, and `variables`
    where there are any, are functions that make them anew. A statement is not needed where no
    launch needs it. `seconds`: after which no statement is judged any more; `progress` is called
    with the share that is done.

    FragirError where a launch has a finding that is an error, or its verdict is not for every
    schedule: without that nothing can be said. EmulationError where one stops.
    """
    check_kind(ptx, str, "not_needed takes PTX text")
    if not launches:
        raise FragirError("there is no launch to judge by", hint="give one at least")
    judge = _Judge(ptx, launches, seconds, progress)
    judged = tuple(judge.one(one) for one in judge.statements)
    candidates = [i for i, one in enumerate(judged) if one.verdict == "not needed"]
    return NotNeeded(judged, tuple(judge.together(candidates)), judge.assumptions(), len(launches))


__all__ = ["ASSUMPTIONS", "NeedOf", "NotNeeded", "not_needed"]
