"""The emulator's reports of several launches as one."""

from __future__ import annotations

from collections.abc import Sequence

from fragir.emulator import Report
from fragir.emulator.report import gathered


def joined(reports: Sequence[Report]) -> Report:
    """All findings, remarks, notes and texts in order; instructions counted together.

    A statement that several launches come to has one finding of a kind.
    """
    whole = Report()
    for report in reports:
        whole.add(report)
    known = [one for one in whole.findings if one.places]  # other lines are of several texts
    whole.findings = gathered(known) + [one for one in whole.findings if not one.places]
    return whole
