"""Machine code by lines of PTX: what became of each line, what is spilled, how many registers live.

code = machine_code(kernel.ptx, kernel.target)
code.reason                         # why there is none, or no lines: no nvdisasm here
code.entries["gemm"].registers      # as ptxas says it
code.functions["gemm"][0].text
spills_by_line(code, "gemm")        # {line of PTX: loads and stores of spilled registers}
pressure_by_line(code, "gemm")      # {line of PTX: most registers that live there}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fragir.errors import FragirError
from fragir.toolchain.sass_loops import kind_of
from fragir.toolchain.verdicts import EntryInfo


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """One instruction of SASS: `HMMA.16816.F32` has the opcode `HMMA`.

    `line` is of the PTX (1-based), `place` the file and line that the PTX's `.loc` name; None where
    the machine code says none, as for wgmma. `live`: registers of a lane that are in use at it,
    its results among them; `live_uniform`: those that a warp shares. None where it is not known.
    """

    address: int
    opcode: str
    text: str
    line: int | None
    place: tuple[str, int] | None
    live: int | None
    live_uniform: int | None

    @property
    def spills(self) -> bool:
        """Whether it loads or stores a spilled register (or what else is in local memory)."""
        return kind_of(self.opcode) == "spill"


@dataclass(frozen=True, slots=True)
class MachineCode:
    """Machine code of a PTX module: the instructions and what ptxas says of each entry, by name.

    `reason` says why `functions` is empty, or `entries` too; None where all is there.
    """

    functions: dict[str, tuple[MachineInstruction, ...]]
    entries: dict[str, EntryInfo]
    reason: str | None = None

    def __iter__(self) -> Iterator[tuple[str, MachineInstruction]]:
        """(function, instruction) in the order of the code."""
        for name, instructions in self.functions.items():
            for one in instructions:
                yield name, one


def machine_code(ptx: str, target: str, *, live: bool = True) -> MachineCode:
    """The machine code of PTX for a target. Where tools are missing, or refuse it, it says so.

    `live`: how many registers live at each instruction; takes another run of nvdisasm.
    """
    from fragir.toolchain.ptxas import assemble, with_lines
    from fragir.toolchain.sass import disassemble, live_registers
    from fragir.toolchain.sass_loops import instructions

    try:
        entries = assemble(ptx, target).entries
    except FragirError as error:
        return MachineCode({}, {}, error.sentence)
    try:
        cubin = with_lines(ptx, target)
        found = instructions(disassemble(cubin, lines=True))
    except FragirError as error:
        return MachineCode({}, entries, error.sentence)
    try:
        counts = live_registers(cubin) if live else {}
    except FragirError:  # nvdisasm 13.2 refuses kernels of 255 registers, as those that spill are
        counts = {}
    functions: dict[str, tuple[MachineInstruction, ...]] = {}
    for name, code in found.items():
        known = counts.get(name, {})
        functions[name] = tuple(
            MachineInstruction(
                one.address,
                one.opcode,
                one.text,
                one.line,
                one.place,
                *known.get(one.address, (None, None)),
            )
            for one in code
        )
    return MachineCode(functions, entries)


def spills_by_line(code: MachineCode, function: str) -> dict[int, int]:
    """Line of PTX -> how many instructions load or store spilled registers for it."""
    return Counter(line for line, one in _by_line(code, function) if one.spills)


def pressure_by_line(code: MachineCode, function: str) -> dict[int, int]:
    """Line of PTX -> the most registers of a lane that live at its instructions."""
    found: dict[int, int] = {}
    for line, one in _by_line(code, function):
        if one.live is not None:
            found[line] = max(one.live, found.get(line, 0))
    return found


def _by_line(code: MachineCode, function: str) -> Iterator[tuple[int, MachineInstruction]]:
    for one in code.functions.get(function, ()):
        if one.line is not None:
            yield one.line, one
