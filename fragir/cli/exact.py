"""`fragir run --exact`: whether a kernel is the function that its program means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fragir.cli.command import Document

if TYPE_CHECKING:
    from fragir.algebra import Values
    from fragir.cli.trial import Trial
    from fragir.emulator import Followed
    from fragir.emulator.numbers.types import Array

#: Formats that are followed. Scales of blocks are what their bits say.
FOLLOWED = frozenset(("f16", "bf16", "f32", "tf32", "f64", "e4m3", "e5m2", "e2m3", "e3m2"))


@dataclass(frozen=True)
class Equality:
    """Of one output: elements that are the same function as the reference's, another one, and those
    of which that is not decided; `where`: the first that is another one."""

    equal: int
    different: int
    undecided: int
    where: tuple[int, ...] | None

    @property
    def word(self) -> str:
        if self.different:
            return "another function"
        return "not decided" if self.undecided else "the same function"

    def document(self) -> Document:
        where = None if self.where is None else list(self.where)
        return {
            "verdict": self.word,
            "equal": self.equal,
            "different": self.different,
            "undecided": self.undecided,
            "first": where,
        }


def equality(got: Values, wanted: Values, lost: Array, opaque: bool) -> Equality:
    """Compares elements; where `opaque`, bits were used for something that has no meaning."""
    differs = (got.p != wanted.p) & ~got.doubt & ~wanted.doubt
    other = np.logical_or.reduce(differs, -1)
    # what was rounded to whole numbers, or never computed, is a constant: its number is compared
    same = np.logical_and.reduce(got.p == wanted.p, -1) | (
        ~other & np.logical_or.reduce((got.p == wanted.p) & ~got.doubt & ~wanted.doubt, -1)
    )
    undecided = np.asarray(lost) | (~same & ~other) | (other & opaque)
    different = other & ~undecided
    where = tuple(int(i) for i in np.argwhere(different)[0]) if different.any() else None
    equal = int((same & ~undecided).sum())
    return Equality(equal, int(different.sum()), int(undecided.sum()), where)


def follow_trial(trial: Trial, seed: int) -> tuple[dict[str, Equality], Followed]:
    """What every output is, by its name."""
    from fragir.algebra import Values
    from fragir.emulator import follow
    from fragir.reference.evaluation import evaluate_elements
    from fragir.reference.formats import decode

    rng = np.random.default_rng(seed)
    results = trial.copies()
    inputs: list[Values | None] = []
    known: list[tuple[Array, str, Values]] = []
    for slot, array in zip(trial.slots, results, strict=True):
        values = None
        if slot.shape is not None and slot.element in FOLLOWED:
            values = Values.random(decode(array, slot.element), rng)
            known.append((array, slot.element, values))
        inputs.append(values)
    wanted = evaluate_elements(
        trial._function(),
        trial.inputs,
        inputs,
        target=trial.machine or trial.target,
        grid=trial.blocks(),
        source=trial.text,
    )
    followed = follow(known)
    options = {"target": trial.target, "limit": trial.limit, "jobs": 1, "checks": [followed]}
    trial.run_once(results, options)
    found: dict[str, Equality] = {}
    for i in trial.expected:
        slot, expected = trial.slots[i], wanted[i]
        if expected is None or slot.element not in FOLLOWED:
            continue
        values, lost = expected
        got = followed.output(results[i], slot.element, values.shape)
        found[slot.name] = equality(got, values, lost, bool(followed.opaque))
    return found, followed
