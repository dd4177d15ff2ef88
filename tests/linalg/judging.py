"""Runs a function of linalg on arrays: the emulator with its checks, and the reference."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.cli.trial import Trial

Array = npt.NDArray[Any]


def judged(
    text: str,
    names: Sequence[str],
    arrays: Sequence[Array],
    target: str,
    sizes: Mapping[str, int] | None = None,
) -> list[Array]:
    """What the function writes, which lies within the reference's bound. `sizes`: those that no
    array tells.
    """
    trial = Trial(text, "<test>", None, target, "emulator", None)
    trial.compile()
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, str] = {}
        for name, array in zip(names, arrays, strict=True):
            path = Path(folder) / f"{name}.npy"
            np.save(path, array)
            given[name] = str(path)
        trial.prepare(dict(sizes or {}), given, "normal", 0)
    trial.evaluate()
    copies = [x.copy() if hasattr(x, "copy") else x for x in trial.inputs]
    if 0 not in trial.kernel.grid(trial.sizes):
        report = trial.kernel(*copies, on="emulator", check=True)
        assert report.findings == []
    trial.execute()
    trial.judge()
    assert trial.has_passed, trial.comparisons
    return [trial.results[number] for number in trial.expected]
