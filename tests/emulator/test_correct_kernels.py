"""Kernels as people write them compute what they should, and no check says anything.

Rings of Hopper kernels with multicast and clusters, epilogues with bulk stores, warpgroups in
turns, a last block that sums, locks, persistent blocks, stream-K, look-back, a barrier of the grid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fragir.emulator import run
from fragir.emulator.report import Asynchrony

from .mutation import Subject
from .patterns import PATTERNS, Array


@pytest.mark.parametrize(
    ("schedule", "asynchrony"),
    [(None, "late"), (None, "early"), (1, "random"), (2, "late"), (3, "early")],
)
@pytest.mark.parametrize(
    ("subject", "index", "wanted"), PATTERNS, ids=[subject.name for subject, _, _ in PATTERNS]
)
def test_silent_and_right(
    subject: Subject,
    index: int,
    wanted: Callable[[], Array],
    schedule: int | None,
    asynchrony: Asynchrony,
) -> None:
    arguments = subject.arguments()
    report = run(
        subject.text,
        grid=subject.blocks,
        block=(subject.block,),
        cluster=(subject.cluster,),
        arguments=arguments,
        shared=subject.shared,
        check=True,
        schedule=schedule,
        asynchrony=asynchrony,
    )
    assert report.findings == []
    assert np.array_equal(np.asarray(arguments[index]).ravel(), wanted().ravel())
