"""Random kernels whose warps have roles: with tiles of their own, and in chains that meet in rings.

Through ptxas and the emulator with every check, within the reference's bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from fragir.sweeps import Plan, Result, Sweep, Task
from tests.passes.test_roles import BODIES, RandomRole, program
from tests.passes.test_roles_in_rings import Chain
from tests.properties.judge import judge

TARGETS = ("sm_75", "sm_80", "sm_90a", "sm_120a")
WITH_RINGS = TARGETS[2:]
WARPS = ((1, 1), (2, 1), (1, 2), (4, 1), (2, 2))


def side_by_side(random: Random) -> tuple[str, str]:
    """Roles that have nothing to do with each other, and a target."""
    moved, groups = random.random() < 0.5, random.random() < 0.5
    bodies = ["staged", *random.choices(sorted(BODIES), k=random.randint(0, 3))]
    random.shuffle(bodies)
    roles: list[RandomRole] = []
    for body in bodies:
        whole = groups and random.random() < 0.5
        registers = random.choice([None, 40, 96]) if moved else None
        shape = (1, 1) if whole else random.choice(WARPS)
        roles.append(RandomRole(body, shape, whole, registers))
    return program(roles), random.choice(TARGETS)


def chained(random: Random) -> tuple[str, str]:
    """Roles that hand on what others give them."""
    slots = tuple(random.randint(1, 3) for _ in range(random.randint(1, 3)))
    readers = random.randint(1, 2)
    warps = tuple(random.choice(WARPS[:4]) for _ in range(len(slots) + readers))
    copy = random.choice(["async", "plain", "tile", "tma"])
    chain = Chain(copy, warps, slots, readers, random.random() < 0.5)
    return chain.text(), random.choice(WITH_RINGS)


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    random, batch = task.random(), task.parameters["batch"]
    findings: list[str] = []
    for _ in range(batch):
        text, target = random.choice([side_by_side, chained])(random)
        try:
            judge(text, target, seed=random.getrandbits(16))
        except Exception as error:
            findings.append(f"{target}: {type(error).__name__}: {error}: {text}")
    return {"findings": findings, "programs": batch}


SWEEP = Sweep(tasks, run, {"batch": 5}, seconds=600.0)
