"""The families of instructions, and the modules with their rules."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import cast

from fragir.isa.model import Rules

# Family -> the module with its rules, imported when first asked.
_MODULES: dict[str, str] = {
    "mma": "dense",
    "mma.sp": "sparse",
    "mma.sp::ordered_metadata": "sparse",
    "wgmma": "warpgroup",
    "wgmma.sp": "warpgroup",
    "ldmatrix": "copies",
    "stmatrix": "copies",
    "movmatrix": "copies",
    "tcgen05.ld": "tensor_memory",
    "tcgen05.st": "tensor_memory",
    "tcgen05.ld.red": "tensor_memory",
}
FAMILIES = tuple(_MODULES)


@cache
def _rules(module: str) -> Rules:
    return cast(Rules, import_module(f"fragir.isa.{module}"))


def rules_of(family: str) -> tuple[Rules, ...]:
    """The rules of a family: none where there is no such family, all of them for ""."""
    if family:
        return (_rules(_MODULES[family]),) if family in _MODULES else ()
    return tuple(map(_rules, dict.fromkeys(_MODULES.values())))
