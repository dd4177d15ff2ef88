"""What a sweep is: tasks that know nothing of each other, and a function that runs one."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

Result = dict[str, Any]
"""JSON. `findings`, a list of sentences, is what is wrong; whole numbers are added up."""

GIB = 1 << 30


@dataclass(frozen=True)
class Plan:
    """What a run of a sweep is asked for. `count` is None where nobody says how many tasks."""

    seed: int = 0
    count: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Task:
    """One piece of work. `what` is small and JSON: a name, a number, a list of those.

    Whatever is random comes from `random` or `generator`, which know the seed and the index and
    nothing else, so a result does not depend on who computes it when.
    """

    index: int
    what: Any = None
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def random(self) -> random.Random:
        return random.Random(f"{self.seed}/{self.index}")

    def generator(self) -> np.random.Generator:
        import numpy as np

        return np.random.default_rng([self.seed, self.index])


@dataclass(frozen=True)
class Sweep:
    """`tasks` lists what every task is about; `run` runs one, anywhere, in any order.

    `parameters` are names and defaults of what a user can set; a value's type is its default's
    (a default of None takes text). `seconds` and `memory` (bytes) are the limits of a task.
    """

    tasks: Callable[[Plan], Sequence[Any]]
    run: Callable[[Task], Result]
    parameters: Mapping[str, bool | int | float | str | None] = field(
        default_factory=dict[str, "bool | int | float | str | None"]
    )
    seconds: float = 60.0
    memory: int = 2 * GIB

    def __repr__(self) -> str:
        names = ", ".join(self.parameters) or "none"
        return f"<sweep {self.run.__module__}, parameters {names}>"

    def all_tasks(self, plan: Plan) -> list[Task]:
        return [
            Task(index, what, plan.seed, plan.parameters)
            for index, what in enumerate(self.tasks(plan))
        ]


def sample(every: Sequence[T], plan: Plan) -> list[T]:
    """All of `every`, or as many as the plan asks for: drawn by its seed, in their order."""
    if plan.count is None or plan.count >= len(every):
        return list(every)
    chosen = random.Random(plan.seed).sample(range(len(every)), plan.count)
    return [every[index] for index in sorted(chosen)]
