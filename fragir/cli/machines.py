"""`fragir run --as`: one kernel with the arithmetic of several machines, and where bits differ.

The PTX stays; what its tensor cores compute is each machine's own (docs/arithmetic.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click
import numpy as np

from fragir.cli.command import Document
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.emulator.numbers.types import Array
    from fragir.reference.comparison import Verdict


def read_machines(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> tuple[str, ...]:
    """A callback for `--as sm_80,sm_90`: targets, in this order, each once."""
    from fragir.isa.targets import require_target

    if value is None:
        return ()
    names = tuple(dict.fromkeys(require_target(name.strip()) for name in value.split(",")))
    if len(names) < 2:
        raise click.BadParameter(f"`{value}` is one machine: two at least are held beside another")
    return names


def common_target(names: tuple[str, ...], asked: str | None) -> str:
    """The target whose code runs on all of these machines: the one that is asked for, if any."""
    from fragir.emulator.launch.limits import can_run, split_target

    lowest = min(split_target(name)[0] for name in names)
    candidates = [asked] if asked else [*names, f"sm_{lowest}"]
    for name in candidates:
        if all(can_run(name, machine) for machine in names):
            return name
    wrong = next(machine for machine in names if not can_run(candidates[0], machine))
    raise FragirError(f"code for {candidates[0]} does not run on {wrong}")


@dataclass(frozen=True, slots=True)
class Differences:
    """Where an output has other bits than on the first machine."""

    differing: int
    size: int
    largest: float
    """Between two values, where both are numbers."""
    first: tuple[int, ...]
    values: tuple[float, float]
    """There, on the first machine and on this one."""

    @property
    def words(self) -> str:
        place, (one, other) = ", ".join(map(str, self.first)), self.values
        told = f"other bits in {self.differing} of {self.size} elements, up to {self.largest:.3g}"
        return f"{told} apart; [{place}] is {other:.9g}, and {one:.9g}"

    @property
    def document(self) -> Document:
        values = [x if math.isfinite(x) else None for x in self.values]
        return {
            "differing": self.differing,
            "size": self.size,
            "largest": self.largest if math.isfinite(self.largest) else None,
            "first": list(self.first),
            "values": values,
        }


def differences(one: Array, other: Array, element: str) -> Differences | None:
    """Of two arrays of a format; None where all bits are equal."""
    from fragir.reference.formats import decode

    if one.tobytes() == other.tobytes():
        return None
    values, others = (np.asarray(decode(x, element)) for x in (one, other))
    bits, others_bits = (
        x.view(f"u{x.dtype.itemsize}") for x in map(np.ascontiguousarray, (one, other))
    )
    # elements below a byte have no NaN and no two zeros but e2m1's, whose values tell enough
    differ = bits != others_bits if bits.shape == values.shape else values != others
    with np.errstate(invalid="ignore"):
        apart = np.abs(values.astype(np.float64) - others.astype(np.float64))[differ]
    apart = apart[~np.isnan(apart)]
    first = tuple(int(i) for i in np.argwhere(differ)[0])
    return Differences(
        int(np.count_nonzero(differ)),
        values.size,
        float(apart.max()) if apart.size else math.nan,
        first,
        (float(values[first]), float(others[first])),
    )


@dataclass(slots=True)
class OnMachine:
    """A kernel on one machine: the verdict by its own bounds, outputs whose bits differ."""

    target: str
    verdict: Verdict
    differing: Mapping[str, Differences] = field(default_factory=dict[str, Differences])

    @property
    def document(self) -> Document:
        found = {name: one.document for name, one in self.differing.items()}
        return {"target": self.target, "result": self.verdict, "differing": found}
