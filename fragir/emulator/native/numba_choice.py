"""When numba computes a tensor-core step, where the compiled core is not there.

numba takes time before it gains any: to be imported, and to load what it compiled once on this
machine, or to compile it. So numpy computes until it has done as many products in this process as
would have taken that time; then numba does, in the middle of a launch too. FRAGIR_CORE=numba takes
it from the start. Where numba does not work, `library.core()` says numpy from then on, and
`library.why_not_faster` why.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

from fragir.emulator.native import library
from fragir.errors import pass_on

_MMA = 16 * 8 * 16  # products of an m16n8k16

WARM = 150_000 * _MMA
"""Products after which numba pays where its machine code is on disk: 0.4 s of numpy."""
COLD = 2_000_000 * _MMA
"""The same where it must compile: 6 s of numpy."""


class NumbaState:
    """What this process knows of numba."""

    def __init__(self) -> None:
        self.products = 0
        self.module: ModuleType | None = None
        self.on_disk: bool | None = None


state = NumbaState()


def count(products: int) -> None:
    """numpy has computed products that numba could have."""
    state.products += products


def undecided() -> bool:
    """Whether numba may compute later what numpy computes now."""
    return library.core() == "numba"


def ready() -> bool:
    """Whether numba is to compute now."""
    if library.core() != "numba":
        return False
    if not os.environ.get(library.VARIABLE):
        if state.products < WARM:
            return False
        if state.products < COLD and not _on_disk():
            return False
    return works()


def works() -> bool:
    """Whether numba can be imported. FragirError where it cannot and FRAGIR_CORE asks for it."""
    return _module() is not None


def give_up(problem: Exception) -> None:
    """numba cannot compile: numpy computes. FragirError where FRAGIR_CORE asks for numba."""
    first = str(problem).strip().split("\n", 1)[0]
    library.numba_trouble.append(f"numba does not work here: {type(problem).__name__}: {first}")
    library.core()


def _module() -> ModuleType | None:
    if state.module is None:
        try:
            from fragir.emulator.native import numba_mma
        except Exception as problem:  # whatever a numba that does not fit raises
            pass_on(problem)
            give_up(problem)
        else:
            state.module = numba_mma
    return state.module


def _on_disk() -> bool:
    """Whether numba's cache has an mma or wgmma, compiled since this package was installed."""
    if state.on_disk is None:
        module = _module()
        state.on_disk = False
        if module is not None:
            place: str | None = module.cache_path()
            built = Path(str(module.__file__)).stat().st_mtime
            if place is not None:
                found = Path(place).glob("numba_mma.*.nbi")
                state.on_disk = any(path.stat().st_mtime >= built for path in found)
    return state.on_disk
