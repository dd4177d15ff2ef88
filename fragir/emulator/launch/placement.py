"""Where variables lie: in the spaces of memory, and in the frames of recursive functions."""

from __future__ import annotations

import numpy as np

from fragir.emulator.instructions.call_frames import FRAME
from fragir.emulator.launch import environment
from fragir.emulator.launch.initial import image
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.memory import DeviceMemory
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError

#: Bytes of a lane's stack, and of all stacks together.
STACK, STACKS = 1 << 16, 1 << 26


def place_constants(program: Program, memory: DeviceMemory) -> None:
    """Constants come first in memory: their addresses have 32 bits."""
    for symbol in program.symbols:
        if symbol.space == "const":
            align = max(symbol.align, 1)
            symbol.offset = memory.allocate(symbol.name, symbol.size, align).start


def place_variables(program: Program, memory: DeviceMemory, shared: int) -> tuple[int, int]:
    """Give every variable its offset; bytes of static shared memory, rounded up, and of local."""
    static, local = environment.reserved_bytes(program), 0
    used = program.symbols
    for symbol in used:
        align = max(symbol.align, 1)
        if symbol.space == "shared" and not symbol.used:
            continue  # it is another kernel's
        if symbol.space == "global":
            buffer = memory.allocate(symbol.name, symbol.size, align)
            symbol.offset = buffer.start
        elif symbol.space == "shared":
            static = (static + align - 1) // align * align
            symbol.offset = static
            static += symbol.size
        elif symbol.space == "local" and not symbol.framed:
            align = max(align, 8)
            local = (local + align - 1) // align * align
            symbol.offset = local
            local += symbol.size
    dynamic = any(s.space == "dynamic" for s in used)
    if shared or dynamic:
        static = (static + 1023) // 1024 * 1024
    for symbol in used:
        if symbol.space == "dynamic":
            symbol.offset = static
    return static, local


def lay_out_frames(program: Program) -> None:
    """Variables of recursive functions get offsets in a frame."""
    for routine in program.routines.values():
        if not program.recursive(routine):
            continue
        size = 0
        for symbol in routine.variables:
            if symbol.space == "local":
                align = max(symbol.align, 8)
                symbol.framed, symbol.offset = True, (size + align - 1) // align * align
                size = symbol.offset + symbol.size
        routine.frame_size = max((size + FRAME - 1) // FRAME * FRAME, FRAME)


def stack_of(local: int, stack: int | None, warps: int) -> tuple[int, int]:
    """Where the lanes' stack for frames and alloca begins, behind the variables, and where it ends.

    `local`: bytes of a lane's variables; `stack`: bytes asked for, None for what fits `warps`.
    """
    base = (local + FRAME - 1) // FRAME * FRAME
    if stack is None:
        stack = max(min(STACK, STACKS // (warps * LANES)), 1 << 10)
    if stack < 0:
        raise EmulationError(f"a stack has no {stack} bytes")
    return base, base + stack


def initialise(program: Program, memory: DeviceMemory) -> None:
    """Write the initial values of global and constant variables."""
    for symbol in program.symbols:
        if symbol.space in ("global", "const"):
            data = image(program, symbol)
            start = symbol.offset
            memory.globals.bytes[start : start + len(data)] = np.frombuffer(data, np.uint8)
