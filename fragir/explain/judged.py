"""What is said of a program, at the lines it is about: by ptxas, by checks, by ourselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from fragir.explain.report import MachineFunction, MachineLine, Mark

if TYPE_CHECKING:
    from fragir.emulator import Finding, FragmentUse
    from fragir.toolchain.verdicts import ScheduleVerdict


def from_compiler(module: ModuleOp, target: str) -> Iterator[Mark]:
    """Remarks of the lowering, and on instructions that the target does not have natively."""
    from fragir.lowering_notes import instruction_notes, instructions_of, remarks_of

    for words in (*remarks_of(module), *instruction_notes(instructions_of(module), target)):
        yield Mark("compiler", "remark", "remark", words)


def from_findings(findings: Sequence[Finding], source: Sequence[int]) -> Iterator[Mark]:
    """Findings of a run, at their lines of PTX and of the source."""
    for one in findings:
        line = one.line or 0
        words = one.message
        if one.warp is not None and "warp" not in words:
            words += f" (warp {one.warp}" + (")" if one.lane is None else f" lane {one.lane})")
        yield Mark("check", one.kind, one.severity, words, line, at(source, line))


def from_fragments(uses: Sequence[FragmentUse]) -> Iterator[Mark]:
    """What arrived in the operands of tensor-core instructions, at their lines of PTX."""
    for one in uses:
        first = f"{one.first}" if one.first == one.last else f"{one.first} to {one.last}"
        rows, cols = one.shape
        words = (
            f"{one.operand.upper()} is {rows} x {cols} of {one.buffer}: [0,0] at byte {first}, "
            f"a row {one.row_stride / 8:+g} bytes, a column {one.column_stride / 8:+g}; "
            f"{one.count} times"
            if one.consistent
            else f"{one.operand.upper()} is no matrix of {one.buffer}"
        )
        line = one.line or 0
        yield Mark("check", "operand", "remark", words, line, line)


def at(source: Sequence[int], line: int) -> int:
    """The line of the source that a line of PTX comes from."""
    return source[line - 1] if 0 < line <= len(source) else 0


def machine_of(
    ptx: str, target: str
) -> tuple[tuple[MachineFunction, ...], list[tuple[ScheduleVerdict, int]], str]:
    """The machine code by lines of PTX, ptxas's verdicts with the line that each is about, and why
    there is no machine code, or none of its lines."""
    from fragir.explain.machine import machine_code, spills_by_line
    from fragir.toolchain.ptxas import assemble

    code = machine_code(ptx, target)
    if not code.entries:
        return (), [], code.reason or "ptxas finds no kernel"
    functions = tuple(
        MachineFunction(
            name,
            info.registers,
            info.spill_stores,
            info.spill_loads,
            info.shared,
            info.stack,
            info.barriers,
            tuple(
                MachineLine(one.text, one.line or 0, one.live, one.spills)
                for one in code.functions.get(name, ())
            ),
        )
        for name, info in code.entries.items()
    )
    verdicts: list[tuple[ScheduleVerdict, int]] = []
    for verdict in assemble(ptx, target).verdicts:
        line = verdict.line
        if verdict.kind == "spill" and verdict.function is not None:
            spilled = spills_by_line(code, verdict.function)
            line = max(spilled, key=lambda at: spilled[at], default=None)
        verdicts.append((verdict, line or 0))
    return functions, verdicts, code.reason or ""


def from_ptxas(
    verdicts: Sequence[tuple[ScheduleVerdict, int]], source: Sequence[int]
) -> Iterator[Mark]:
    """What ptxas did to the schedule, at lines of PTX and of the source."""
    for verdict, line in verdicts:
        yield Mark("ptxas", verdict.kind, "remark", str(verdict), line, at(source, line))
