"""What a program at matrix or tile level means, in numpy, with rigorous error bounds.

    function = ...                       # func.func with frag, linalg, arith, scf, memref
    results = evaluate(function, [a, b, c], target="sm_80", grid=(2, 2, 1))
    compare(results[2], c_from_the_gpu)

Shares no function with `fragir.emulator`. docs/accuracy.md derives the bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fragir.reference.bounded import Bounded
    from fragir.reference.comparison import Comparison, compare
    from fragir.reference.evaluation import evaluate, outputs

_HOMES = {
    "Bounded": "fragir.reference.bounded",
    "Comparison": "fragir.reference.comparison",
    "compare": "fragir.reference.comparison",
    "evaluate": "fragir.reference.evaluation",
    "outputs": "fragir.reference.evaluation",
}

__all__ = ["Bounded", "Comparison", "compare", "evaluate", "outputs"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
