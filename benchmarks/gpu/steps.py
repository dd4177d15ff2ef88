"""The steps in their order: what must not be missing comes first."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, cast

from benchmarks.gpu.kit import Kit, Work

WHOLE = 11.0
"""Minutes that the limits below are for; those of a run scale them."""


class Step(NamedTuple):
    """A step and its limits in seconds: of all of it, and of one unit of it.

    `jobs` units may run side by side, each in a process of its own where `alone`. `rest`: it may
    take what is left of a run.
    """

    name: str
    seconds: float
    unit_seconds: float
    what: str
    jobs: int = 1
    alone: bool = False
    rest: bool = False


STEPS = (
    Step("machine", 5, 10, "driver, device, clocks; whether the driver takes the cubins"),
    Step("smoke", 15, 15, "mma.sync, wgmma, a product by TMA"),
    Step("probes", 150, 20, "every instruction of tensor cores: bits beside the emulator's", 12),
    Step("arithmetic", 20, 10, "the open questions of docs/arithmetic.md"),
    Step(
        "facts", 10, 8, "what is only assumed of the machine, as far as it may trap", 5, alone=True
    ),
    Step("gemm", 120, 30, "products beside cuBLASLt and Triton"),
    Step("attention", 90, 25, "attention beside PyTorch's and Triton's"),
    Step("kernels", 60, 20, "rows, W4A16, transpose: bytes a second; every example"),
    Step("conversions", 30, 10, "conversions of layouts: cycles beside Triton's"),
    Step("loops", 60, 20, "main loops by mma.sync"),
    Step("linalg", 30, 20, "programs of linalg as CUDA graphs"),
    Step("microbenchmarks", 60, 15, "what a model of time needs"),
    Step("tests", 10, 120, "pytest -m gpu", rest=True),
)


class Module(Protocol):
    """What the module of a step has; `parts` and `title` may be missing.

    `PACKAGES`, where it has that, are imported in a process before its first unit.
    """

    def units(self, kit: Kit) -> Sequence[str]:
        """Names of its units, in the order of what must not be missing."""
        ...

    def prepare(self, kit: Any) -> None:
        """Makes here what the units need there; `kit` is a `build.Builder`."""
        ...

    def run(self, work: Work) -> dict[str, Any]:
        """The result of one unit."""
        ...

    def parts(self, kit: Kit, unit: str) -> Sequence[str]:
        """Units to run one by one, each in a process of its own, where this one has failed."""
        ...

    def title(self, kit: Kit, unit: str) -> str:
        """What reports call a unit that has failed, where its name is a number."""
        ...


def module(name: str) -> Module:
    """The module of a step, of this package where its name has no dot."""
    path = name if "." in name else f"benchmarks.gpu.{name}"
    return cast("Module", importlib.import_module(path))
