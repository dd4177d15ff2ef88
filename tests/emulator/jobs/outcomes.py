"""What a launch gives, all of it, to compare one job with several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator import EmulationError, Report, run

Array = npt.NDArray[Any]
HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
START = """
    .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<4>;
    .reg .b32 %tid, %block, %at; .reg .b64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %tid, %tid.x; mov.u32 %block, %ctaid.x; mov.u32 %r0, %ntid.x;
    mad.lo.u32 %at, %block, %r0, %tid;
    mad.wide.u32 %rd0, %at, 4, %out;
"""


def kernel(body: str, *, before: str = "") -> str:
    """PTX of `k(out)`; %at is the thread's number in the grid, %rd0 the address of its word."""
    return f"{HEAD}{before}\n.visible .entry k(.param .u64 out) {{{START}{body}\n    ret;\n}}\n"


def turns(count: str, body: str, label: str = "L") -> str:
    """A loop of `count` turns, %r15 counting up from 0."""
    return f"""
    mov.u32 %r15, 0;
{label}: {body}
    add.u32 %r15, %r15, 1;
    setp.lt.u32 %p3, %r15, {count};
    @%p3 bra {label};"""


def told(report: Report) -> dict[str, Any]:
    """A report without its times."""
    counts = report.statistics
    names = ("lanes", "mma", "loaded", "stored", "conflicts", "rounds")
    return {
        "findings": report.findings,
        "remarks": report.remarks,
        "notes": report.notes,
        "instructions": list(counts.instructions.items()),
        **{name: getattr(counts, name) for name in names},
    }


def outcome(call: Callable[..., Report], arrays: Sequence[Array], jobs: int) -> dict[str, Any]:
    """What `call(*copies, jobs=...)` makes of copies of the arrays, and what it says."""
    copies = [array.copy() for array in arrays]
    try:
        found = told(call(*copies, jobs=jobs))
    except EmulationError as error:
        place = (error.kind, error.line, error.warp, error.lane, error.address)
        found = {**told(error.report or Report()), "error": str(error), "place": place}
    return {**found, "arrays": [copy.tobytes() for copy in copies]}


def alike(
    call: Callable[..., Report], arrays: Sequence[Array], jobs: Sequence[int] = (2, 3)
) -> dict[str, Any]:
    """The outcome with one job; AssertionError where another number of them gives another one."""
    one = outcome(call, arrays, 1)
    for number in jobs:
        assert outcome(call, arrays, number) == one, f"{number} jobs"
    return one


def launched(text: str, **options: Any) -> Callable[..., Report]:
    """The launch of a kernel `k` for its arrays."""

    def call(*arrays: Array, jobs: int) -> Report:
        return run(text, arguments=list(arrays), jobs=jobs, **options)

    return call


def words(count: int) -> Array:
    """So many words of global memory."""
    return np.zeros(count, np.uint32)
