"""What a schedule costs: the cycles of each resource, and which of them it waits for.

After DeepGEMM's heuristic (csrc/jit_kernels/heuristics/sm90.hpp: cycles of shared memory and of L2
over the share of the machine that is busy) with tensor cores, device memory and what is not
overlapped added. It ranks; it does not predict: constants below are of kernels that were measured
elsewhere, and ratios are what counts. Nothing is run, and nothing tuned.
"""

from __future__ import annotations

from functools import cache
from math import ceil, gcd
from typing import NamedTuple

from fragir.isa.model import BITS
from fragir.scheduling.candidates import Configuration, GemmProblem, SearchSpace
from fragir.scheduling.devices import Device
from fragir.scheduling.l2 import USABLE, Traffic, traffic

SHARED_RATE = 128
"""Bytes a cycle of an SM's shared memory (32 banks of 4 bytes)."""
LATENCY = 700
"""Cycles from a copy's issue to its data, most of it from L2 under load."""
ALONE = {"wgmma": 300, "mma": 350}
"""Cycles of a step of K in which a block that copies and multiplies by turns does not multiply:
waits, barrier, issue of the copies. Another block of the SM fills them. By wgmma the next product
is issued before that; so much is left that 128x256x64 reaches the 600 to 620 TFLOP/s which are
published for Triton's loop of this order (f16, 8192^3, H100)."""
START = 1500
"""Cycles of a block before its first product, with an empty pipeline."""
STORE = {False: 16, True: 48}
"""Bytes of C a cycle, from registers or through shared memory."""
HAND_IN = 2 * LATENCY
"""Cycles in which a block that has written its part counts itself: what it wrote must have arrived
for others, and the count must come back."""
_COLUMNS, _HELD = 32, 16
"""Of a tile whose parts are added up at a time, and elements that a thread holds of them."""
OVERLAP = 6
"""Of resources that are busy at once: the norm of their cycles. Infinity would be the largest of
them; by 6 two that are alike cost 12 % more."""
DEEP = {False: 12, True: 8}
"""Stages at most of products that are bound by memory: with a role that fetches, and where each
stage is written out ahead of the loop."""
_WAVES = 8  # that are looked at for L2, of more they are alike

# Relative to f16. Consumer GPUs sum f16 in f32 at half the rate, so integers have four times it.
_SPEED = {"tf32": 0.5, "f32": 0.5, "f16": 1.0, "bf16": 1.0, "f64": 1 / 16,
          "e2m1x2": 4.0}  # fmt: skip
_CONSUMER = ("sm_86", "sm_89", "sm_120")
_EMULATED = 0.4  # fp8 by mma.sync on Hopper: unpacked to f16, two conversions a product


class Estimate(NamedTuple):
    """What a candidate costs, in cycles of the whole product."""

    cycles: float
    tensor: float
    """Of the tensor cores of the busiest SM; so the others, but `dram`, the whole GPU's."""
    shared: float
    l2: float
    dram: float
    exposed: float
    """In which nothing is multiplied: first copies, last stores, waits of a block alone."""
    resident: int
    """Blocks of an SM."""
    waves: float
    """Tiles for each block that the GPU has room for."""

    def __repr__(self) -> str:
        return f"<{self.cycles:.0f} cycles, waits for {self.limit}; {self.waves:.2f} waves>"

    @property
    def limit(self) -> str:
        """What it waits for."""
        parts = {
            "tensor cores": self.tensor,
            "shared memory": self.shared,
            "L2": self.l2,
            "memory": self.dram,
        }
        name = max(parts, key=parts.__getitem__)
        return name if parts[name] >= 0.7 * self.cycles else "latency"

    def tflops(self, problem: GemmProblem) -> float:
        """10^12 operations a second, at the device's clock: an upper bound to compare with."""
        flop = 2.0 * problem.m * problem.n * problem.k * problem.batch
        return flop / (self.cycles / (problem.device.clock * 1e9)) / 1e12


def rate(device: Device, element: str, wgmma: bool) -> float:
    """Operations a cycle of an SM's tensor cores on such elements, two a product."""
    if element in _SPEED:
        speed = _SPEED[element]
    elif element.startswith(("s", "u")):
        speed = 4.0 if device.target in _CONSUMER else 2.0
    else:
        emulated = element.startswith("e") and device.target == "sm_90" and not wgmma
        speed = _EMULATED if emulated else 2.0
    return device.tensor * speed * (1.0 if wgmma else device.mma_share)


def compulsory(problem: GemmProblem) -> float:
    """Cycles in which memory gives A and B once."""
    moved = (problem.m + problem.n) * problem.k * problem.bits / 8 * problem.batch
    return moved / (problem.device.dram_bytes * problem.device.sms)


def is_bound_by_memory(problem: GemmProblem) -> bool:
    """Whether memory gives A and B slower than tensor cores multiply them, however the product is
    cut: of few rows or columns, as where a model answers few at once. Then many bytes must be on
    their way. Of fewer than that in all it waits for the first of them."""
    products = 2.0 * problem.m * problem.n * problem.k * problem.batch
    tensor = products / (rate(problem.device, problem.element, problem.wgmma) * problem.device.sms)
    device, read = problem.device, compulsory(problem)
    return read > tensor and read * device.dram_bytes > device.in_flight


def deep(space: SearchSpace, problem: GemmProblem) -> SearchSpace:
    """A space with as many stages as a product wants that is bound by memory."""
    if not is_bound_by_memory(problem):
        return space
    return space._replace(deepest=DEEP["together" in space.roles])


def at_least(problem: GemmProblem, candidate: Configuration) -> Estimate:
    """The cost of a candidate if device memory were as fast as could be: quick to tell."""
    return _estimate(problem, candidate, False)


def estimate(problem: GemmProblem, candidate: Configuration) -> Estimate:
    """The cost of a candidate that fits."""
    return _estimate(problem, candidate, True)


def _estimate(problem: GemmProblem, candidate: Configuration, memory: bool) -> Estimate:
    device, (m, n, k) = problem.device, candidate.tile
    size = problem.bits / 8
    rows, columns = ceil(problem.m / m), ceil(problem.n / n)
    rows = ceil(rows / candidate.cluster) * candidate.cluster
    resident = candidate.resident(problem)
    work = _block_work(problem, candidate, rows * columns * problem.batch, device.sms * resident)
    steps, after = work.steps, work.after
    whole_rate = candidate.wgmma or candidate.tensor
    tensor = 2.0 * m * n * k / rate(device, problem.element, whole_rate)
    moved = _shared_bytes(candidate) + (2.0 * m * k if problem.transposes else 0.0)
    shared = moved * size / SHARED_RATE
    # what lies outside of a matrix is filled with zeros, not read
    sides = min(m, problem.m), min(n, problem.n)
    slot = (sides[0] + sides[1] / candidate.cluster) * k * size
    l2 = slot / device.l2_rate
    store = work.store
    each = ceil(work.units / device.sms)  # tiles, or parts of them, of the busiest SM
    together = min(resident, each)
    # a step takes as long as its slowest resource, and as copies under way allow
    ahead = max(1, candidate.stages - 1) * together
    busy = sum(cycles**OVERLAP for cycles in (tensor, shared, l2)) ** (1 / OVERLAP)
    step = max(busy, LATENCY / ahead if steps > 1 else 0.0)
    if candidate.roles == "together":
        alone = ALONE["wgmma" if candidate.wgmma else "mma"]
        if candidate.stages == 1:
            alone += LATENCY
        step = max(step, (tensor + alone) / together)
        edge = START + store
        cycles = each * steps * step + edge * ceil(each / together)
    elif candidate.roles == "cooperative":
        cycles = each * (steps * step + store / 2) + START
    else:
        cycles = max(each * steps * step, each * store / 2) + store + START
    if after:  # one of a tile's blocks adds up its parts, which the SMs share
        cycles += after * ceil(each / (candidate.parts * together))
    waits = steps > 1 and is_bound_by_memory(problem)
    running = min(work.units, device.sms * resident)
    flight = slot * max(1, candidate.stages - 1) * running / device.sms
    dram = compulsory(problem) * max(1.0, device.in_flight / flight) if waits else 0.0
    if memory:
        cuts = 1 if candidate.even else candidate.parts  # of which one is read after the other
        slabs = int(sides[0] * problem.k * size / cuts), int(sides[1] * problem.k * size / cuts)
        words = candidate.order, candidate.group, candidate.cluster
        read = _traffic(rows, columns, slabs, device.sms * together, device, words)
        written = problem.m * problem.n * BITS[problem.result] / 8 * problem.batch
        written += _in_memory(problem, work.handed_in * m * n)
        moved = read.dram * cuts * problem.batch
        if waits:  # what is on its way comes from memory, but for what L2 has for several
            share = min(1.0, read.dram / max(1, read.l2))
            moved *= max(1.0, device.in_flight / (share * flight))
        dram = max(dram, (moved + written) / (device.dram_bytes * device.sms))
    total = max(cycles, dram + START)
    return Estimate(
        total,
        each * steps * tensor,
        each * steps * shared,
        each * steps * l2,
        dram,
        max(0.0, total - max(each * steps * max(tensor, shared, l2), dram)),
        resident,
        work.units / (device.sms * resident),
    )


class BlockWork(NamedTuple):
    """What the blocks of a product do: so many units of so many steps of K."""

    units: int
    steps: int
    store: float
    """Cycles in which a unit's sum leaves."""
    after: float
    """Cycles in which the last block of a tile adds up its parts, and writes C."""
    handed_in: int
    """Parts of all tiles that go through memory."""


def _block_work(
    problem: GemmProblem, candidate: Configuration, tiles: int, running: int
) -> BlockWork:
    """Tiles, their parts of equal length, or even shares of all steps for `running` blocks."""
    m, n, k = candidate.tile
    steps, rate_ = ceil(problem.k / k), STORE[candidate.staged]
    whole = m * n * BITS[problem.result] / 8 / rate_
    if candidate.parts == 1:
        return BlockWork(tiles, steps, whole, 0.0, 0)
    hand_in = m * n * BITS[problem.sums] / 8 / rate_ + HAND_IN
    if not candidate.even:
        units = tiles * candidate.parts
        after = whole + _added_up(problem, candidate, candidate.parts)
        return BlockWork(units, ceil(steps / candidate.parts), hand_in, after, units)
    share = max(ceil(tiles * steps / running), ceil(steps / (candidate.parts - 1)))
    units = ceil(tiles * steps / share)
    if share % steps == 0:  # every block has whole tiles
        return BlockWork(units, share, share // steps * whole, 0.0, 0)
    own = ceil(share / steps) + 1  # tiles of which a block has a part, or all
    parts = min(candidate.parts, ceil(steps / share) + 1)
    after = whole + _added_up(problem, candidate, parts)
    store = min(own, 2) * hand_in + max(0, own - 2) * whole
    return BlockWork(units, share, store, after, min(tiles * parts, tiles + units))


def _added_up(problem: GemmProblem, candidate: Configuration, parts: int) -> float:
    """Cycles in which a block reads a tile's parts, some columns at a time, one part after the
    other."""
    m, n, _ = candidate.tile
    threads = candidate.threads_of_a_tile
    pieces = n / max(1, gcd(n, _COLUMNS, max(1, _HELD * threads // m)))
    read = parts * m * n * BITS[problem.sums] / 8 / problem.device.l2_rate
    return max(pieces * parts * LATENCY, read)


def _in_memory(problem: GemmProblem, elements: float) -> float:
    """Bytes of parts that L2 does not keep until they are added up: written and read."""
    held = elements * BITS[problem.sums] / 8
    return 2 * held if held > USABLE * problem.device.l2 else 0.0


def _shared_bytes(candidate: Configuration) -> float:
    """Elements of a step that are written to shared memory and read from there.

    Warps of a row of blocks read the same A, of a column the same B. Of wgmma each group reads its
    own A, and all B at once; tcgen05.mma reads both once, a pair of blocks half of B each.
    """
    m, n, k = candidate.tile
    if candidate.pair:
        n //= 2
    whole = candidate.wgmma or candidate.tensor
    across, down = (1, 1) if whole else (candidate.warps[1], candidate.warps[0])
    return float((m + n) * k + (m * across + n * down) * k)


@cache
def _traffic(
    rows: int,
    columns: int,
    slabs: tuple[int, int],
    running: int,
    device: Device,
    words: tuple[str, int, int],
) -> Traffic:
    """What is read; of a large product what its first rows of tiles read, scaled."""
    order, group, cluster = words
    unit = group * cluster
    looked = min(rows, ceil(max(1, _WAVES * running // columns) / unit) * unit)
    capacity = USABLE * device.l2
    found = traffic(
        *(looked, columns, slabs, running, capacity), order=order, group=group, cluster=cluster
    )
    return Traffic(round(found.l2 * rows / looked), round(found.dram * rows / looked))
