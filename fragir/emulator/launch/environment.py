"""What a kernel finds beside its arguments: the system's shared memory, the grid's workspace.

Cooperative groups are where both are met. Block tiles of more than a warp keep their barriers in
the shared memory that the system has reserved (%reserved_smem_offset_*, PTX ISA 9.2, section
10.48). A grid that synchronises finds the address of a workspace in %envreg1 (its high half) and
%envreg2: a size, and 4 bytes on the barrier of all blocks, which are on the machine together.
"""

from __future__ import annotations

import re

from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import DeviceMemory
from fragir.emulator.machine.state import Dim3
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError

#: Bytes that the system takes of every block's shared memory, before the kernel's own.
RESERVED = 1024
_OFFSETS = {"begin": 0, "end": RESERVED, "cap": RESERVED, "0": 0, "1": RESERVED // 2}
_RESERVED = re.compile(r"%reserved_smem_offset_(begin|end|cap|0|1)")

WORKSPACE = 8
_HIGH, _LOW = "envreg1", "envreg2"
#: Of a machine with 132 multiprocessors (%nsmid): warps and blocks of each.
_PROCESSORS, _WARPS, _BLOCKS = 132, 64, 32


def reserved_bytes(program: Program) -> int:
    """The first bytes of shared memory that are not the kernel's; 0 where it looks at none."""
    return RESERVED if any(_RESERVED.fullmatch(name) for name in program.special_names) else 0


def synchronises(program: Program) -> bool:
    """Whether a kernel looks for the workspace of a cooperative launch."""
    names = program.special_names
    return f"%{_HIGH}" in names and f"%{_LOW}" in names


def check_resident(block: Dim3, grid: Dim3) -> None:
    """EmulationError where a cooperative grid does not fit the machine at once."""
    warps = -(-block[0] * block[1] * block[2] // 32)
    most = _PROCESSORS * min(_BLOCKS, _WARPS // warps)
    blocks = grid[0] * grid[1] * grid[2]
    if blocks > most:
        raise EmulationError(
            f"a cooperative launch has all blocks on the machine together: {blocks} of {warps}"
            f" warps are more than the {most} of {_PROCESSORS} multiprocessors"
        )


def provide(machine: Machine, workspace: int | None, reserved: int) -> None:
    """Makes what a kernel finds: the workspace's address (None: there is none), the offsets."""
    values = machine.environment
    if workspace is not None:
        values |= {_HIGH: workspace >> 32, _LOW: workspace & 0xFFFFFFFF}
    if reserved:
        values |= {f"reserved_smem_offset_{name}": at for name, at in _OFFSETS.items()}
    machine.reserved_shared = reserved


def allocate_workspace(memory: DeviceMemory) -> int:
    """The address of the grid's workspace."""
    return memory.allocate("the grid's workspace", WORKSPACE).address
