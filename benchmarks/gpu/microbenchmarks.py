"""What a model of time needs of Hopper: cycles of single instructions, copies and barriers.

A case (`timing_cases`) is a loop in PTX between two readings of the clock. It is launched for few
rounds and for many: the difference is free of what stands around the loop and of its first, cold
rounds. A row has `cycles` (median, lowest, highest): from an instruction to the next that needs its
result (`latency`), or what an SM needs for one of many that are independent (`rate`, which
`per_clk` turns round). What all SMs do has `gb_per_s` too, by events. How many rounds is an
argument of the kernels, so a rehearsal has the same PTX.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu import timing_cases, timing_copies
from benchmarks.gpu.contest import on_gpu
from benchmarks.gpu.device import DeviceArray, clocks, measured, median
from benchmarks.gpu.kit import Kit, Work
from benchmarks.gpu.timing_cases import HEADER, PARAMETERS, ROW, Case, kernel
from fragir.compilation.arrays import GpuTensorMap
from fragir.errors import FragirError
from fragir.toolchain import driver

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "wgmma": timing_cases.wgmma,
    "beside wgmma": timing_cases.beside,
    "mma.sync": timing_cases.mma,
    "tma": timing_copies.tma,
    "shared memory": timing_copies.shared,
    "matrix copies": timing_copies.matrices,
    "barriers": timing_copies.barriers,
    "memory": timing_copies.memory,
    "arithmetic": timing_cases.arithmetic,
}
LAUNCH = "launch"
_LINK = f""".visible .entry link({PARAMETERS})
{{
.reg .b32 %thread, %block; .reg .b64 %memory, %place, %next;
ld.param.u64 %memory, [memory]; cvta.to.global.u64 %memory, %memory;
mov.u32 %thread, %tid.x; mov.u32 %block, %ctaid.x; mad.lo.u32 %thread, %block, 128, %thread;
mul.wide.u32 %place, %thread, 128; add.u64 %place, %memory, %place;
ld.global.u64 %next, [%place]; add.u64 %next, %next, %memory; st.global.u64 [%place], %next;
ret;
}}
"""
"""Makes offsets addresses: those at the beginning of lines, a thread each."""
_EMPTY = f"{HEADER}.visible .entry empty()\n{{\nret;\n}}\n"
_MEMORY = {"memory": 1 << 29, "tma": 1 << 28}
"""Bytes of each of two arrays that a unit's kernels read and write, where these are many."""


def units(kit: Kit) -> list[str]:
    return [*GROUPS, LAUNCH]


def prepare(kit: Builder) -> None:
    for ptx in (*map(module, GROUPS), _EMPTY):
        if warnings := kit.carry(ptx).warnings:  # ptxas has made products serial
            raise FragirError(f"ptxas changes a case: {warnings[0]}")


def module(unit: str) -> str:
    """All kernels of a unit: case number i is the entry `k<i>`."""
    kernels = "".join(kernel(f"k{i}", case) for i, case in enumerate(GROUPS[unit]()))
    return HEADER + kernels + (_LINK if unit == "memory" else "")


def run(work: Work) -> dict[str, Any]:
    """`rows`, and `absent`: why a case has none."""
    before = clocks()._asdict()
    rows, absent = (_launches(work), {}) if work.unit == LAUNCH else _rows(work)
    return {
        "rows": rows,
        "absent": absent,
        "clocks": {"before": before, "after": clocks()._asdict()},
    }


def _rows(work: Work) -> tuple[list[dict[str, Any]], dict[str, str]]:
    cubin = work.kit.cubin(module(work.unit))
    absent = dict(work.without)
    rows: list[dict[str, Any]] = []
    size = work.kit.size(_MEMORY.get(work.unit, 1 << 20), 1 << 22)
    with on_gpu([np.zeros(size, np.uint8) for _ in range(2)]) as (memory, other):
        cases = list(enumerate(GROUPS[work.unit]()))
        for number, case in cases[:: work.kit.size(1, 11)]:
            if case.name in absent:
                continue
            work.say(case.name)
            try:
                rows.append(_measured(work.kit, cubin, f"k{number}", case, memory, other))
            except FragirError as error:
                absent[case.name] = str(error)
                driver.call("cuStreamSynchronize", 0)  # raises where the context has ended
        work.say("")
    return rows, absent


def _measured(
    kit: Kit, cubin: bytes, entry: str, case: Case, memory: DeviceArray, other: DeviceArray
) -> dict[str, Any]:
    """The row of a case."""
    block, cluster = (case.threads,), 2 if case.blocks.startswith("pair") else 1
    everywhere = case.blocks in ("all", "pairs")
    blocks = cluster
    if everywhere and not kit.small:
        blocks = driver.resident_blocks(
            cubin, entry, block=block, shared=case.shared, cluster=cluster
        )
    rounds = kit.size(case.rounds, (1, 2))
    warps = case.threads // 32
    told = np.zeros((blocks, warps, 2), np.uint64)
    words = np.zeros(blocks * case.threads // 2, np.uint64)
    chain = offsets(kit.size(case.chain, 1 << 14)) if case.chain else words
    with on_gpu([np.concatenate([told.reshape(-1), words]), chain]) as (out, lines):
        given: list[Any] = [out.address, (lines if case.chain else memory).address, other.address]
        more = [_map(memory, case.box)] if case.box else []
        starts = {
            str(count): driver.prepare(
                cubin,
                entry,
                grid=(blocks,),
                block=block,
                arguments=[*given, count, *more],
                shared=case.shared,
                cluster=(cluster,),
            )
            for count in rounds
        }
        if case.chain:
            grid = (lines.bytes // 128 // 128,)
            driver.prepare(cubin, "link", grid=grid, block=(128,), arguments=[*given, 0])()
        readings: list[list[float]] = []
        for _ in range(kit.size(6, 2)):
            readings.append([])
            for start in starts.values():
                if case.flush:
                    driver.call("cuMemsetD8Async", other.address, 0, other.bytes, 0)
                start()
                told = out.get()[: told.size].reshape(told.shape)
                readings[-1].append(cycles(told, case.timed))
        row = row_of(case, readings[1:], rounds)  # the first are to warm up
        if everywhere:
            times = measured(starts, kit.size(7, 1), warm=1, flush=case.flush)
            moved = case.work["bytes"] * case.each * case.issuers * blocks
            row["gb_per_s"] = bandwidth(times, moved)
    return row


def cycles(told: np.ndarray[Any, Any], timed: tuple[int, int] | None = None) -> float:
    """From the first start to the last stop in a block, mean of all: [block, warp, start or stop].

    `timed`: the warps that count.
    """
    told = told[:, slice(*timed)] if timed else told
    return float((told[:, :, 1].max(1) - told[:, :, 0].min(1)).mean())


def row_of(
    case: Case, readings: Sequence[Sequence[float]], rounds: tuple[int, int]
) -> dict[str, Any]:
    """The row of a case whose loops of few and of many rounds took so many cycles each time."""
    counted = case.each * max(1, case.issuers) * (rounds[1] - rounds[0])
    each = sorted((many - few) / counted for few, many in readings)
    middle = statistics.median(each)
    row: dict[str, Any] = {
        "name": case.name,
        "cycles": [middle, each[0], each[-1]],
        "unit": "cycles/instruction",
    }
    if case.issuers and middle > 0:
        row["per_clk"] = {"instructions": 1 / middle}
        row["per_clk"] |= {name: amount / middle for name, amount in case.work.items()}
    return row


def bandwidth(times: Mapping[str, Sequence[float]], moved: float) -> float | None:
    """GB/s, of milliseconds by counts of rounds; `moved`: bytes of a round. None below noise."""
    (few, short), (many, long) = (
        (int(count), statistics.median(found)) for count, found in times.items()
    )
    return moved * (many - few) / (long - short) / 1e6 if long > short else None


def offsets(size: int) -> np.ndarray[Any, Any]:
    """Memory in which every line of 128 bytes begins with where another one is.

    All lines are on one way round, in an order of chance.
    """
    lines = size // 128
    way = np.concatenate([[0], 1 + np.random.default_rng(0).permutation(lines - 1)])
    found = np.zeros((lines, 16), np.uint64)
    found[way, 0] = 128 * np.roll(way, -1)
    return found.reshape(-1)


def _map(memory: DeviceArray, rows: int) -> GpuTensorMap:
    """The memory as rows of 64 f16, and boxes of so many of them."""
    return GpuTensorMap(memory, (rows, 64), 128, (ROW, 2), (memory.bytes // ROW, 64), "f16")


def _launches(work: Work) -> list[dict[str, Any]]:
    """Kernels that do nothing: `us`, from one to the next or of one of a large grid."""
    cubin = work.kit.cubin(_EMPTY)

    def empty(blocks: int, **more: Any) -> Callable[[], None]:
        return driver.prepare(cubin, "empty", grid=(blocks,), block=(128,), **more)

    def times(count: int, start: Callable[[], None]) -> Callable[[], None]:
        def queue() -> None:
            for _ in range(count):
                start()

        return queue

    one = empty(1)
    stream = driver.call("cuStreamCreate", 1)  # CU_STREAM_NON_BLOCKING
    nodes = times(200, empty(1, stream=int(stream)))
    driver.call("cuStreamBeginCapture", stream, driver.capture_mode())
    try:
        nodes()
    finally:
        recorded = driver.call("cuStreamEndCapture", stream)
    graph = driver.call("cuGraphInstantiate", recorded, 0)
    grids = (1, *(132 * n for n in work.kit.size((1, 16, 64, 256, 1024), (1,))))
    runs: dict[str, tuple[int, Callable[[], None]]] = {
        # so few that the host queues them while the L2 cache is written over
        "20 empty kernels: one": (20, times(20, one)),
        "a graph of 200 empty kernels: one": (
            200,
            lambda: driver.call("cuGraphLaunch", graph, 0),
        ),
        **{f"{n} empty blocks of 128 threads: all": (1, empty(n)) for n in grids},
    }
    found = measured({name: start for name, (_, start) in runs.items()}, work.kit.size(9, 1))
    told = {name: (runs[name][0], values) for name, values in found.items()}
    waits: list[float] = []
    for _ in range(work.kit.size(30, 1)):
        begun = time.perf_counter()
        one()
        driver.call("cuStreamSynchronize", 0)
        waits.append(1e3 * (time.perf_counter() - begun))
    told["an empty kernel for which the host waits: all"] = (1, waits)
    driver.call("cuGraphExecDestroy", graph)
    driver.call("cuGraphDestroy", recorded)
    driver.call("cuStreamDestroy", stream)
    return [
        {"name": name, "us": [1e3 * value / n for value in median(values)], "unit": "us/launch"}
        for name, (n, values) in told.items()
    ]
