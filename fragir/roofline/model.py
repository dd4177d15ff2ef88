"""How long a launch takes by the resource that it waits for, and what of it is to blame.

A roofline (Williams, Waterman, Patterson, CACM 52(4), 2009) with what a launch of few blocks or of
few bytes in flight adds: rounds of blocks over the SMs, and a latency for each time that a warp
waits for memory. It ranks and finds factors; it predicts no times.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf

from fragir.isa.model import BITS
from fragir.isa.products import has_wgmma
from fragir.isa.registry import lookup
from fragir.isa.throughput import multiply_adds
from fragir.roofline.counters import KEPT, LINE, SECTOR, BlockCounters, MemoryUse
from fragir.roofline.lanes import LANES
from fragir.scheduling.cost import LATENCY, START, rate
from fragir.scheduling.devices import Device

ALONE = 64
"""Bytes a cycle that an SM takes from L2 where few ask: two sectors."""
ISSUED = 4
"""Instructions that an SM issues in a cycle: one a scheduler."""
FUNCTIONS = 2
"""Cycles of a warp's instruction on the unit for functions: 16 lanes a cycle (CUDA C++ Programming
Guide, "Arithmetic Instructions")."""
REGISTERS = 65536
"""Of an SM."""
USUAL = 64
"""Registers of a thread where ptxas has not been asked."""
USABLE = 0.5
"""Of L2 for what is read again."""
REUSED = 8
"""Multiplications of an element that is read, beyond which it is a product of matrices."""
SCALAR = 2
"""Instructions of an access of one element: it, and its test."""
BESIDE = 1.3
"""Instructions of a good main loop for each that multiplies."""


@dataclass
class LaunchModel:
    """A launch on a device. Times are in cycles of an SM."""

    kernel: str
    names: Sequence[str]
    """Of its arguments."""
    work: BlockCounters
    device: Device
    target: str
    blocks: int
    threads: int
    shared: int
    array_bytes: dict[int, int]
    """Of each argument that is memory."""
    bits: dict[int, int]
    """Of an element of the same."""
    registers: int = USUAL
    open_rows: dict[int, str] = field(default_factory=dict[int, str])
    """Of arguments whose rows have a length that only the launch knows, its name."""

    @cached_property
    def resident(self) -> int:
        """Blocks that an SM holds at once."""
        room = self.device.room(self.threads, self.shared)
        return max(1, min(room, REGISTERS // max(1, self.registers * self.threads)))

    @property
    def busy(self) -> int:
        """SMs that have a block."""
        return min(self.blocks, self.device.sms)

    def moved(self, fixed: Collection[str] = ()) -> float:
        """Bytes of memory that the launch moves: what an array has, as often as it is read where
        L2 does not hold it meanwhile."""
        total = 0.0
        for part in self.by_memory().values():
            memory = part[0].memory
            array = self.array_bytes.get(memory, 0) if memory is not None else 0
            whole = [self.blocks * self._bytes(use, fixed) for use in part]
            if not array:
                total += sum(whole)
                continue
            held = max(self._bytes(use, fixed) for use in part) * self.resident * self.busy
            shares = [min(1.0, one / array) for one in whole]
            again = held > USABLE * self.device.l2 and "passes" not in fixed
            total += array * (sum(shares) if again else max(shares))
        return total

    def _bytes(self, use: MemoryUse, fixed: Collection[str]) -> float:
        """That come from L2 for a block."""
        if "sectors" in fixed:
            once, all_ = use.bytes, use.wanted * use.turns
        else:
            once, all_ = use.once, use.touched * SECTOR * use.turns
        return once if "again" in fixed or once <= KEPT else all_

    @cached_property
    def _reuses(self) -> bool:
        """Whether what a block reads is multiplied so often that it is a product of matrices."""
        read = sum(use.bytes for use in self.work.traffic if not use.writes) / 2
        products = LANES * 64 * sum(self.work.products.values())
        return self.work.multiplied + products > REUSED * read

    @cached_property
    def _narrow(self) -> bool:
        """Whether tensor cores multiply what is read: elements of 16 bits and less."""
        read = [use.memory for use in self.work.traffic if not use.writes]
        return all(memory is not None and self.bits.get(memory, 32) <= 16 for memory in read)

    @cached_property
    def _reads_again(self) -> bool:
        """Whether it reads most of it from global memory twice or more."""
        reads = [use for use in self.work.traffic if not use.writes]
        asked = sum(use.asked * use.turns for use in reads)
        return asked > 2 * sum(use.bytes for use in reads)

    def by_memory(self) -> dict[tuple[int | None, bool], list[MemoryUse]]:
        """What is read of each memory, or written there."""
        found: dict[tuple[int | None, bool], list[MemoryUse]] = {}
        for use in self.work.traffic:
            found.setdefault((use.memory, use.writes), []).append(use)
        return found

    def tensor(self, best: bool) -> float:
        """Cycles of the tensor cores for a block, by wgmma where there is one if `best`."""
        total = 0.0
        for (_, mnemonic), times in self.work.products.items():
            instruction = lookup(mnemonic)
            native = mnemonic.startswith("wgmma")
            fast = native or (best and has_wgmma(instruction.types.a, self.target))
            per_cycle = rate(self.device, instruction.types.a, fast)
            total += 2.0 * multiply_adds(instruction) * times / per_cycle
        return total

    @cached_property
    def _at_best(self) -> float:
        """Bytes that a block's products take from L2 where a tile is of 128 x 256; all bytes that
        it takes where wgmma multiplies already, or cannot."""
        elements, bits = 0.0, 16
        for (_, mnemonic), times in self.work.products.items():
            instruction = lookup(mnemonic)
            if mnemonic.startswith("wgmma") or not has_wgmma(instruction.types.a, self.target):
                return inf
            elements += multiply_adds(instruction) * times * (1 / 128 + 1 / 256)
            bits = BITS[instruction.types.a]
        return elements * bits / 8 if elements else inf

    def cycles(self, fixed: Collection[str] = ()) -> float:
        """Of the launch, where these causes did not exist."""
        return max(self.parts(fixed).values()) + START

    @property
    def limit(self) -> str:
        """What it waits for."""
        parts = self.parts()
        return max(parts, key=parts.__getitem__)

    def parts(self, fixed: Collection[str] = ()) -> dict[str, float]:
        """Cycles by what the launch may wait for, where these causes did not exist."""
        work, device, busy = self.work, self.device, self.busy
        share = float(ceil(self.blocks / device.sms))  # blocks of the busiest SM
        if "sms" in fixed:
            share, busy = self.blocks / device.sms, device.sms
        rounds = share if share <= 1 else max(1.0, share / self.resident)
        l2 = sum(self._bytes(use, fixed) for use in work.traffic)
        if "products" in fixed:
            l2 = min(l2, self._at_best)
        l1 = sum(_l1(use, fixed) for use in work.traffic)
        issued = work.issued
        if self._reuses and self._narrow and "fma" in fixed:
            issued = max(0.0, issued - work.multiplied / LANES)
        if "again" in fixed and self._reuses and self._reads_again:
            issued = min(issued, BESIDE * (work.multiplied / LANES + sum(work.products.values())))
        if "narrow" in fixed:
            issued -= sum(SCALAR * use.turns * use.requests * _narrow(use) for use in work.traffic)
        waits = 0.0 if "flight" in fixed else work.waits
        return {
            "L2": share * l2 / min(ALONE, device.l2_rate * device.sms / busy),
            "L1": share * l1,
            "issue": share * issued / ISSUED,
            "functions": share * work.special * FUNCTIONS,
            "tensor cores": share * self.tensor("products" in fixed),
            "latency": rounds * waits * LATENCY,
            "memory": self.moved(fixed) / (device.dram_bytes * device.sms),
        }

    @property
    def in_flight(self) -> float:
        """Bytes that are on their way to an SM at once, in the loop that moves most."""
        reads = [use for use in self.work.traffic if not use.writes]
        if not reads:
            return 0.0
        most = max(reads, key=lambda use: use.once)
        return min(self.resident, ceil(self.blocks / self.device.sms)) * most.touched * SECTOR


def _l1(use: MemoryUse, fixed: Collection[str]) -> float:
    """Cycles of the SM's L1 for a block."""
    turns = use.distinct_turns if "again" in fixed else use.turns
    asked, lines, requests = use.asked, use.lines, use.requests
    if "again" in fixed and asked:
        share = min(1.0, use.wanted / asked)
        asked, lines, requests = asked * share, lines * share, requests * share
    if "narrow" in fixed:
        lines, requests = lines * (1 - _narrow(use)), requests * (1 - _narrow(use))
    if "sectors" in fixed:  # lanes that have several neighbours are as far apart
        apart = 1.0 if "narrow" in fixed else max(1.0, use.beside * LANES / LINE)
        lines = min(lines, max(requests * apart, asked / LINE))
    return turns * max(lines, asked / LINE)


def _narrow(use: MemoryUse) -> float:
    """The part of the requests that wider ones would save."""
    return 1 - use.size / max(use.size, use.beside)
