"""Contenders that take turns on the same arrays: what each computes is checked, then its time.

The time of a wrong result is not taken. A contender that cannot be had, fails or is wrong is
`absent`, with the reason; one that has ended the process (`Work.without`) is not tried again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.gpu.device import DeviceArray, clocks, measured, median
from benchmarks.gpu.kit import MACHINE, Work
from fragir.errors import FragirError
from fragir.toolchain import driver


@dataclass
class Contender:
    """Something that can be started: `start` queues one run of it on stream 0."""

    start: Callable[[], None]
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    memory: tuple[DeviceArray, ...] = ()
    """What it has on the GPU for itself."""

    def free(self) -> None:
        for array in self.memory:
            array.free()


Maker = Callable[[], Contender]


def contest(
    work: Work,
    makers: Mapping[str, Maker],
    wrong: Callable[[], str],
    *,
    rounds: int,
    flush: bool = True,
) -> dict[str, Any]:
    """`results` by name: `ms` (median, low, high of a 95 % interval) and the contender's facts.

    `wrong` looks at what the last run has left in memory and says what is wrong, or nothing; it
    also spoils what the next one must write. `flush`: the L2 cache is written over before a run.
    """
    ready: dict[str, Contender] = {}
    absent = dict(work.without)
    try:
        for name, make in makers.items():
            if name in absent:
                continue
            work.say(name)
            try:
                found = make()
                ready[name] = found
                found.start()
                driver.call("cuStreamSynchronize", 0)
                problem = wrong()
            except Exception as error:  # another package's may be anything
                problem = f"{type(error).__name__}: {error}"
            if problem:
                absent[name] = " ".join(problem.split())[:300]
                if name in ready:
                    ready.pop(name).free()
                driver.call("cuStreamSynchronize", 0)  # raises where the context has ended
        work.say("")
        before = clocks()
        starts = {name: one.start for name, one in ready.items()}
        times = measured(starts, rounds, flush=flush)
        after = clocks()
    finally:
        with contextlib.suppress(FragirError):
            for one in ready.values():
                one.free()
    results = {name: {"ms": list(median(times[name])), **one.facts} for name, one in ready.items()}
    told = {"before": before._asdict(), "after": after._asdict()}
    return {"rounds": rounds, "results": results, "absent": absent, "clocks": told}


@contextlib.contextmanager
def on_gpu(arrays: Sequence[Any]) -> Generator[list[DeviceArray]]:
    """Copies of numpy arrays on the GPU, as long as the block runs."""
    made: list[DeviceArray] = []
    try:
        for array in arrays:
            made.append(DeviceArray(array))
        yield made
    finally:
        with contextlib.suppress(FragirError):
            for one in made:
                one.free()


def ours(kernel: Any, arguments: Sequence[Any], **facts: Any) -> Contender:
    """A compiled kernel (`fragir.compile`, `k.compile`) on arrays of the GPU and numbers."""
    from fragir.toolchain import ptxas

    target = ptxas.target_for(kernel.target, MACHINE)
    assembled = ptxas.assemble(kernel.ptx, target)
    given = [
        value.address if isinstance(value, DeviceArray) else value
        for value in kernel.parameters(arguments)
    ]
    start = driver.prepare(
        assembled.cubin,
        kernel.name,
        grid=kernel.grid(kernel.sizes(arguments), kernel.resident("gpu")),
        block=kernel.block,
        arguments=given,
        shared=kernel.shared,
        cluster=kernel.cluster,
    )
    info = assembled.entries[kernel.name]
    told = {
        "ptx_sha256": hashlib.sha256(kernel.ptx.encode()).hexdigest(),
        "registers": info.registers,
        "spills": info.spill_stores + info.spill_loads,
    }
    return Contender(start, {**told, **facts})
