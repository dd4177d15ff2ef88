"""Why the products of a module have the schedules that `frag-tile` gives them."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from fragir.dialects import frag
from fragir.passes.tiling.choosing import choice_for, configuration_of, problem_of
from fragir.scheduling.candidates import FRAG_TILE, SPECIALISED
from fragir.scheduling.explanation import ScheduleExplanation, explained

ASSUMED = 4096
"""What a size is taken for that only a launch knows."""


def explain_schedules(module: ModuleOp, target: str) -> Iterator[ScheduleExplanation]:
    """One explanation a `frag.matmul`. FragirError where a product has no schedule."""
    for function in module.ops:
        if not isinstance(function, func.FuncOp):
            continue
        for product in function.walk():
            if not isinstance(product, frag.MatmulOp):
                continue
            m, n, k = (size if size is not None else ASSUMED for size in product.sizes())
            unknown = [
                f"{name} = {ASSUMED}"
                for name, size in zip("mnk", product.sizes(), strict=True)
                if size is None
            ]
            choice = choice_for(product, target)
            roles = choice.schedule.roles
            yield explained(
                f"{product.name} in {function.sym_name.data}",
                problem_of(product, (m, n, k), target),
                configuration_of(choice.schedule),
                configuration_of(choice.usual),
                given=choice.given,
                assumed=unknown,
                spaces=(FRAG_TILE, SPECIALISED) if roles else (FRAG_TILE,),
            )
