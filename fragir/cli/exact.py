"""`fragir run --exact`: whether a kernel is the function that its program means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fragir.algebra.equality import ElementEquality, equality

if TYPE_CHECKING:
    from fragir.algebra import Values
    from fragir.cli.trial import Trial
    from fragir.emulator.numbers.types import Array

#: Formats that are followed. Scales of blocks are what their bits say.
FOLLOWED = frozenset(("f16", "bf16", "f32", "tf32", "f64", "e4m3", "e5m2", "e2m3", "e3m2"))


def follow_trial(trial: Trial, seed: int) -> dict[str, ElementEquality]:
    """What every output is, by its name."""
    from fragir.algebra import Values
    from fragir.emulator import follow
    from fragir.reference.evaluation import evaluate_elements
    from fragir.reference.formats import decode

    rng = np.random.default_rng(seed)
    results = trial.copies()
    inputs: list[Values | None] = []
    known: list[tuple[Array, str, Values]] = []
    held = trial.kernel.held.arrays
    for at, (slot, array) in enumerate(zip(trial.slots, results, strict=True)):
        values = None
        if at not in held and slot.shape is not None and slot.element in FOLLOWED:
            values = Values.random(decode(array, slot.element), rng)
            known.append((array, slot.element, values))
        inputs.append(values)
    found = evaluate_elements(
        trial.function(),
        trial.of_written(trial.inputs),
        trial.of_written(inputs),
        target=trial.machine or trial.target,
        grid=trial.blocks(),
        source=trial.text,
    )
    wanted = dict(zip(trial.of_written(range(len(results))), found, strict=True))
    followed = follow(known)
    options = {"target": trial.target, "limit": trial.limit, "jobs": 1, "checks": [followed]}
    trial.run_once(results, options)
    equalities: dict[str, ElementEquality] = {}
    for i in trial.expected:
        slot, expected = trial.slots[i], wanted[i]
        if expected is None or slot.element not in FOLLOWED:
            continue
        values, lost = expected
        got = followed.output(results[i], slot.element, values.shape)
        equalities[slot.name] = equality(got, values, lost, bool(followed.opaque))
    return equalities
