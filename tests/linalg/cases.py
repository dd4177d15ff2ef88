"""The functions of `tests/linalg/corpus`: a file each, its arrays, and what numpy makes of them.

A file's head says what it shows, the shapes of its arguments in order (`below N`: indices;
`positive`: above 0), and for
every array that it writes, in order, an expression of numpy on their values. `page` names where
MLIR defines a form that a released mlir-opt does not know yet.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from fragir.cli.trial import Trial
from fragir.dialects.shorthands import memref_type
from fragir.reference.formats import FLOATS, decode
from fragir.reference.inputs import array_from

Array = npt.NDArray[Any]
FOLDER = Path(__file__).parent / "corpus"


class Argument(NamedTuple):
    """An array, and what its elements are."""

    name: str
    shape: tuple[int, ...]
    below: int | None = None
    positive: bool = False


@dataclass(frozen=True)
class Case:
    """One file."""

    name: str
    text: str
    arrays: tuple[Argument, ...]
    results: tuple[str, ...]
    page: str | None


def cases() -> list[Case]:
    """All files, by name."""
    return [_case(path) for path in sorted(FOLDER.glob("*.mlir"))]


def _case(path: Path) -> Case:
    text, arrays, results, page = path.read_text(), list[Any](), list[str](), None
    for line in text.splitlines():
        word, _, rest = line.removeprefix("// ").partition(": ")
        if not line.startswith("//"):
            break
        if word == "arrays" and rest:
            arrays += [_array(part) for part in rest.split(", ")]
        elif word == "result":
            results.append(rest)
        elif word == "page":
            page = rest
    return Case(path.stem, text, tuple(arrays), tuple(results), page)


def _array(words: str) -> Argument:
    name, shape, *more = words.split()
    below = int(more[1]) if more[:1] == ["below"] else None
    return Argument(name, tuple(map(int, shape.split("x"))), below, more == ["positive"])


def trial_of(case: Case, target: str) -> Trial:
    """Compiled, with arrays drawn: normal floats, small integers, indices."""
    trial = Trial(case.text, f"{case.name}.mlir", None, target, "emulator", None)
    trial.compile()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, str] = {}
        wanted = _shapes(case)
        for number, argument in enumerate(trial.kernel.signature):
            path = Path(folder) / f"{argument.name}.npy"
            np.save(path, _drawn(rng, wanted[number], argument.type))
            given[argument.name] = str(path)
        trial.prepare({}, given, "normal", 0)
    return trial


def _shapes(case: Case) -> list[Argument]:
    """The arguments, and behind them the results that have arguments of their own."""
    zeros = {
        x.name: np.zeros(x.shape, np.float64 if x.below is None else np.int64) for x in case.arrays
    }
    with np.errstate(all="ignore"):
        made = [np.shape(_evaluated(result, zeros)) for result in case.results]
    # where nothing is written of a result it is seen
    return [*case.arrays, *(Argument("", shape, below=2) for shape in made)]


def _drawn(rng: np.random.Generator, wanted: Argument, type_: Attribute) -> Array:
    is_integer = isinstance(memref_type(type_).element_type, IntegerType)
    if wanted.below is not None:
        shape = wanted.shape
        return rng.integers(0, wanted.below, shape) if is_integer else np.full(shape, np.nan)
    numbers = rng.standard_normal(wanted.shape)
    if wanted.positive:
        return np.abs(numbers) + 0.5
    return rng.integers(-4, 5, wanted.shape) if is_integer else numbers


def answers(case: Case, trial: Trial) -> list[Array]:
    """What numpy makes of the trial's inputs, in f64."""
    values = {
        slot.name: decode(x, slot.element)
        for slot, x in zip(trial.slots, trial.inputs, strict=True)
        if slot.shape is not None
    }
    return [np.asarray(_evaluated(result, values)) for result in case.results]


def _evaluated(expression: str, values: dict[str, Array]) -> Any:
    return eval(expression, {"np": np, "math": math, **values})  # of files in this folder


def nearness(trial: Trial) -> float:
    """How far results may be from numpy: a rounding to f16, two to bf16, or some of f32 and of
    approximations, in parts of the largest number.
    """
    return 1e-2 if any(trial.slots[at].element == "bf16" for at in trial.expected) else 2e-3


def differences(case: Case, trial: Trial) -> list[float]:
    """How far each result is from numpy, in parts of the largest; whole numbers must be equal."""
    found: list[float] = []
    for number, answer in zip(sorted(trial.expected), answers(case, trial), strict=True):
        slot = trial.slots[number]
        wanted = decode(array_from(answer, slot), slot.element)
        result = decode(trial.results[number], slot.element)
        if slot.element not in FLOATS:
            found.append(float(not np.array_equal(result, wanted)))
            continue
        finite = np.isfinite(wanted)
        assert np.array_equal(result[~finite], wanted[~finite], equal_nan=True)
        scale = np.abs(wanted[finite]).max(initial=1e-30)
        found.append(float(np.abs(result - wanted)[finite].max(initial=0) / scale))
    return found
