"""Judges an example's kernel: reference, outside answer, emulator with every check, ptxas."""

from __future__ import annotations

import copy
import functools
import inspect
import runpy
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.cli.trial import Trial
from fragir.reference.formats import decode
from fragir.reference.inputs import Kind, array_from

Array = npt.NDArray[Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEDULES: tuple[dict[str, Any], ...] = (
    {},
    {"schedule": 1, "asynchrony": "early"},
    {"schedule": 2, "asynchrony": "random"},
)


def judged(
    program: Path | str,
    sizes: Mapping[str, int],
    answers: Mapping[str, Callable[..., Any]],
    target: str = "sm_80",
    *,
    entry: str | None = None,
    given: Mapping[str, Array | float] | None = None,
    inputs: Kind = "normal",
    rtol: float | None = None,
    seed: int = 0,
) -> Trial:
    """Runs a program of these sizes as `fragir run --expect` does, under three schedules.

    `program` is a file of `examples/` or MLIR text (`k.mlir` of a kernel in Python). `answers` are
    functions by the names of outputs. Each is called with the values (f64, s64) of the arguments
    that its parameters name. `given` replaces arguments that would be drawn as `inputs` says.
    Every output must lie within the reference's bound and as near to its answer, or `rtol` from it;
    ptxas may neither warn nor spill; no check of the emulator may find anything.
    """
    text = program.read_text() if isinstance(program, Path) else program
    name = program.name if isinstance(program, Path) else "<text>"
    trial = copy.copy(_compiled(text, name, entry, target))
    trial.answers, trial.comparisons = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        trial.prepare(dict(sizes), _arguments(Path(folder), given or {}), inputs, seed)
    trial.evaluate()
    names = [slot.name for slot in trial.slots]
    values = {
        slot.name: x if slot.shape is None else decode(x, slot.element).copy()
        for slot, x in zip(trial.slots, trial.inputs, strict=True)
    }
    for output, answer in answers.items():
        wanted = inspect.signature(answer).parameters
        answered = np.asarray(answer(*(values[n] for n in wanted)))
        number = names.index(output)
        held = array_from(answered, trial.slots[number])
        assert held.shape == trial.inputs[number].shape
        trial.answers[number] = held
    assert set(trial.answers) == set(trial.expected), "an output without an answer"
    for how in SCHEDULES:
        _run(trial, how)
        trial.judge(rtol)
        assert trial.has_passed, (name, dict(sizes), how, trial.comparisons)
    return trial


@functools.lru_cache(maxsize=4)
def _compiled(text: str, name: str, entry: str | None, target: str) -> Trial:
    """Parsed, compiled and assembled once for all sizes."""
    trial = Trial(text, name, entry, target, "emulator", None)
    trial.compile()
    assembled = trial.kernel.assembled  # Trial.assemble would look at the SASS as well
    assert not assembled.warnings
    entries = [assembled.entries[part.name] for part in trial.kernel.parts]
    trial.registers = max(info.registers for info in entries)
    trial.spills = sum(info.spill_stores + info.spill_loads for info in entries)
    assert trial.spills == 0
    return trial


def script(name: str) -> dict[str, Any]:
    """What an example in Python defines: `rows/softmax.py`."""
    return runpy.run_path(str(EXAMPLES / name), run_name="example")


def _arguments(folder: Path, given: Mapping[str, Array | float]) -> dict[str, str]:
    """The values as `--arg` takes them."""
    found: dict[str, str] = {}
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", value)
            found[name] = str(folder / f"{name}.npy")
        else:
            found[name] = repr(value)
    return found


def _run(trial: Trial, how: Mapping[str, Any]) -> None:
    """One launch with every check, on copies of the inputs."""
    kernel = trial.kernel
    trial.results = [x.copy() if hasattr(x, "copy") else x for x in trial.inputs]
    grid = kernel.grid(trial.sizes)
    if 0 in grid:
        return
    if kernel.is_program:
        report = kernel(*trial.results, on="emulator", check=True, **how)
        assert report.findings == [], (trial.file, how)
        return
    report = kernel.launch(grid, None, *trial.results, on="emulator", check=True, **how)
    assert report.findings == [], (trial.file, how)
