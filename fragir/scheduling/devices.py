"""The machines that schedules are chosen for: a row a GPU, with where its numbers are from.

Rates are those that NVIDIA publishes, not what kernels reach; a choice needs ratios only.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fragir.errors import FragirError

KIB, MIB = 1 << 10, 1 << 20
RESERVED = KIB
"""Bytes of shared memory that a block takes besides its own, from sm_80 on."""
_NUMBER = re.compile(r"sm_([0-9]+)")


class Device(NamedTuple):
    """A GPU."""

    name: str
    target: str
    """The target that it is the example of."""
    sms: int
    clock: float
    """GHz of an SM while tensor cores are busy: that of the published rates, less where power
    limits it (Hopper: 1.6 of 1.83, github.com/deepseek-ai/FlashMLA, docs/20250422)."""
    tensor: int
    """Floating-point operations of f16 products with sums in f32, a cycle and SM; two a product."""
    mma_share: float
    """Part of that rate which mma.sync reaches."""
    shared: int
    """Bytes of shared memory of an SM; a block takes 1 KiB more than it asks for from sm_80 on."""
    warps: int
    """Warps that an SM holds."""
    blocks: int
    """Blocks that an SM holds."""
    l2: int
    """Bytes of L2 cache."""
    l2_rate: float
    """Bytes a cycle from L2 to one SM while all read."""
    dram_rate: float
    """GB/s of device memory."""
    in_flight: int
    """Bytes on their way to each SM with which memory is busy."""
    source: str

    def __repr__(self) -> str:
        return f"<{self.name}, {self.target}: {self.sms} SMs at {self.clock:g} GHz>"

    @property
    def dram_bytes(self) -> float:
        """Bytes a cycle from device memory to one SM while all read."""
        return self.dram_rate / self.clock / self.sms

    def room(self, threads: int, shared: int) -> int:
        """Blocks of so many threads and bytes of shared memory that an SM holds, as far as
        registers allow; 0 where none fits."""
        warps = -(-threads // 32)
        return min(self.blocks, self.warps // warps, self.shared // (shared + RESERVED))


# The CUDA C++ Programming Guide, "Technical specifications per compute capability", has warps,
# blocks and shared memory of an SM. mma.sync on Hopper: arXiv 2501.12084, table VII (65 %). In
# flight: CCCL, cub/device/dispatch/tuning/tuning_transform.cuh, arch_to_min_bytes_in_flight.
DEVICES = (
    Device(
        *("T4", "sm_75", 40, 1.59, 1024, 1.0, 64 * KIB, 32, 16, 4 * MIB, 32, 320, 12 * KIB),
        "NVIDIA Turing whitepaper, table 3; L2: arXiv 1903.07486, section 3",
    ),
    Device(
        *("A100", "sm_80", 108, 1.41, 2048, 1.0, 164 * KIB, 64, 32, 40 * MIB, 47.4, 2039, 16 * KIB),
        "NVIDIA A100 whitepaper, tables 1 and 4 (L2: 5120 bytes a cycle); 80 GB SXM",
    ),
    Device(
        *("RTX 3090", "sm_86", 82, 1.695, 512, 1.0, 100 * KIB, 48, 16, 6 * MIB, 32, 936, 16 * KIB),
        "NVIDIA Ampere GA102 whitepaper, table 9; L2's rate is assumed",
    ),
    Device(
        *(
            "RTX 4090",
            "sm_89",
            128,
            2.52,
            512,
            1.0,
            100 * KIB,
            48,
            24,
            72 * MIB,
            32,
            1008,
            16 * KIB,
        ),
        "NVIDIA Ada whitepaper, table 2; L2's rate is assumed",
    ),
    Device(
        *("H100", "sm_90", 132, 1.6, 4096, 0.65, 228 * KIB, 64, 32, 50 * MIB, 41, 3350, 32 * KIB),
        "NVIDIA H100 whitepaper, tables 2 and 3; L2: 8.7 TB/s, 80 slices of 64 bytes at 1.7 GHz",
    ),
    Device(
        *("H200", "sm_90", 132, 1.6, 4096, 0.65, 228 * KIB, 64, 32, 50 * MIB, 41, 4800, 48 * KIB),
        "NVIDIA H200 datasheet; the SMs are those of the H100",
    ),
    Device(
        *(
            "B200",
            "sm_100",
            148,
            1.85,
            8192,
            0.325,
            228 * KIB,
            64,
            32,
            126 * MIB,
            41,
            7700,
            64 * KIB,
        ),
        "NVIDIA Blackwell architecture brief; mma.sync and L2 are assumed to be as on the H100",
    ),
    Device(
        *(
            "RTX 5090",
            "sm_120",
            170,
            2.407,
            512,
            1.0,
            100 * KIB,
            48,
            24,
            96 * MIB,
            32,
            1792,
            16 * KIB,
        ),
        "NVIDIA RTX Blackwell whitepaper, table 3; L2's rate is assumed",
    ),
)


def device_named(name: str) -> Device:
    """A row of the table, by its name in any spelling: `rtx4090`. FragirError for another."""
    found = {_plain_name(device.name): device for device in DEVICES}.get(_plain_name(name))
    if found is None:
        names = ", ".join(device.name for device in DEVICES)
        raise FragirError(f"there is no device {name} in the table", hint=f"it has {names}")
    return found


def device_for(target: str) -> Device:
    """The example of a target such as sm_90a: the first of the newest that is not newer."""
    from fragir.ptx.machines import nvidia

    match = _NUMBER.match(nvidia(target))
    number = int(match[1]) if match is not None else 0

    def capability(device: Device) -> int:
        return int(device.target.removeprefix("sm_"))

    newest = max(
        (capability(device) for device in DEVICES if capability(device) <= number),
        default=capability(DEVICES[0]),
    )
    return next(device for device in DEVICES if capability(device) == newest)


def _plain_name(name: str) -> str:
    return name.lower().replace(" ", "")
