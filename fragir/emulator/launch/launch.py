"""Running a kernel: `run` puts all parts together."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO, cast

import numpy as np

from fragir.emulator.checks.selection import (
    MakesCheck,
    hooks_for,
    may_merge,
    merges,
    require_checks,
)
from fragir.emulator.launch import placement
from fragir.emulator.launch.arguments import Arguments
from fragir.emulator.launch.decoding import Decoding, Shelf
from fragir.emulator.launch.division import Again, Division, jobs_of, obstacle, unit_of
from fragir.emulator.launch.limits import check_launch, cluster_of, target_of
from fragir.emulator.launch.placement import (
    Variables,
    initialise,
    lay_out_frames,
    place_constants,
    place_variables,
    stack_of,
    structure_names,
    unset,
)
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import ArrayContents, DeviceMemory
from fragir.emulator.machine.state import Dim3, PastGrid
from fragir.emulator.machine.watch import Limit, Moment, Watch
from fragir.emulator.native.library import core
from fragir.emulator.report import Asynchrony, EmulationError, Finding, Report, Why, gather
from fragir.emulator.tensor_cores import Settings
from fragir.errors import check_one_of, kind_of, require_extent, require_whole_number
from fragir.ptx import tree
from fragir.ptx.opcodes.legality import problem_of
from fragir.ptx.opcodes.table import OPCODES
from fragir.ptx.source_lines import SourceLines

if TYPE_CHECKING:
    from fragir.emulator.checks.hooks import Hooks
    from fragir.emulator.program.entities import Symbol
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Module


# -- streams ---------------------------------------------------------------------------------------
# Launches one after the other on one memory, as on a stream of CUDA.


class Stream:
    """Launches of `run(..., stream=stream)` come one after the other, on one memory.

    Their arrays are the caller's, which any of them reads and writes, and variables in global
    memory keep what the launch before of the same PTX has left in them. A launch with
    `programmatic=True` is a programmatic dependent of the one before (CUDA's attribute programmatic
    stream serialization): it may begin once all blocks of that one have executed
    griddepcontrol.launch_dependents or have ended. Then only griddepcontrol.wait orders its
    accesses after those of the grids before (PTX ISA 9.2, section 9.7.13.13), and with `check=True`
    in both launches each access that comes without it is a `race`. Other launches begin when
    everything before has ended. Grids are executed in the order of their launches.
    """

    def __init__(self) -> None:
        self._last: PastGrid | None = None
        self._variables: dict[tuple[Hashable, str], bytes] = {}
        self._modules: dict[int, Module] = {}  # so that an id stays its own

    def __repr__(self) -> str:
        return "<a stream>" if self._last is None else f"<a stream after {self._last.entry}>"

    # -- for a launch ------------------------------------------------------------------------------

    def begin(
        self, machine: Machine, program: Program, arguments: Arguments, *, programmatic: bool
    ) -> None:
        """A launch begins; everything has its place in memory."""
        machine.chained = True
        if programmatic and self._last is not None:
            machine.running, machine.left = self._last.next_to()
        homes = machine.homes
        homes |= {start: ("host", at) for start, at in arguments.arrays.homes().items()}
        for symbol in _variables(program):
            homes[symbol.offset] = (_key(program, symbol), 0)

    def load(self, machine: Machine, program: Program) -> None:
        """Variables are what the launch before has left, behind their initial values."""
        memory = machine.memory.globals.bytes
        for symbol in _variables(program):
            found = self._variables.get(_key(program, symbol), b"")
            memory[symbol.offset : symbol.offset + len(found)] = np.frombuffer(found, np.uint8)
            if found:
                machine.memory.data.append(ArrayContents(symbol.name, symbol.offset, len(found)))

    def end(self, machine: Machine, program: Program, hooks: Sequence[Hooks]) -> None:
        """A launch has ended well."""
        memory = machine.memory
        self._modules[id(program.module)] = program.module
        for symbol in _variables(program):
            part = memory.globals.bytes[symbol.offset : symbol.offset + symbol.size]
            self._variables[_key(program, symbol)] = part.tobytes()
        kept = [found for hook in hooks if (found := hook.for_next_grid()) is not None]
        self._last = PastGrid(
            program.entry,
            machine.released,
            machine.waited,
            machine.running,
            machine.left,
            tuple(memory.buffers),
            machine.homes,
            kept[0] if kept else None,
        )


def _variables(program: Program) -> list[Symbol]:
    return [symbol for symbol in program.symbols if symbol.space == "global"]


def _key(program: Program, symbol: Symbol) -> tuple[Hashable, str]:
    """What a variable is in another launch: that of its name in the same text."""
    source = program.module.source
    return (id(program.module) if source is None else source.text), symbol.name


#: Warps that are on the machine together, if one cluster does not need more.
RESIDENT = 256
#: Bytes of what malloc gives (CUDA's own default).
HEAP = 8 << 20
#: What has been read and laid out before.
PROGRAMS = Shelf(OPCODES)


def run(
    ptx: str | Module,
    entry: str | None = None,
    *,
    grid: Sequence[int] = (1, 1, 1),
    block: Sequence[int] = (32, 1, 1),
    arguments: Sequence[object] = (),
    cluster: Sequence[int] = (1, 1, 1),
    shared: int = 0,
    target: str | None = None,
    ptxas: str | None = None,
    check: bool = False,
    fragments: bool = False,
    checks: Sequence[MakesCheck] = (),
    schedule: int | None = None,
    asynchrony: Asynchrony = "late",
    trace: TextIO | None = None,
    progress: Callable[[float], None] | None = None,
    heartbeat: Callable[[Moment], None] | None = None,
    limit: Limit = None,
    resident: int = RESIDENT,
    stack: int | None = None,
    output: TextIO | None = None,
    cooperative: bool | None = None,
    variables: Mapping[str, object] | None = None,
    jobs: int | None = None,
    stream: Stream | None = None,
    programmatic: bool = False,
    structure: Sequence[int | str] | None = (),
) -> Report:
    """Run a kernel of a PTX text on the CPU.

    `arguments` in the order of the PTX parameters: a C-contiguous numpy array is a device buffer,
    read and written in place (arrays that overlap are one buffer); numbers are converted by the
    parameter's declared type; bytes are a by-value struct; None is a null pointer; `Struct`,
    `Pointer` and `pointers` hold pointers. `shared` is the number of bytes of
    dynamic shared memory. `target` (default: the PTX's own) decides the
    arithmetic of tensor-core instructions, and must be able to run the code; `ptxas` ("12.4", the
    newest unless given) is the assembler whose emulation of what the machine lacks is imitated
    (fp8 mma.sync on sm_90). `check` looks for errors that do not stop the run
    and `fragments` for matrix fragments that are no matrix; `checks` are further ones, classes of
    `Hooks` or functions that make one (docs/emulator.md, "Writing a check"); what is found is in
    the report. `schedule` seeds another order of execution.
    `asynchrony`: when asynchronous copies happen. `progress` is called with the share of the grid
    that is done, `heartbeat` a few times a second with the share, the warp instructions and the
    PTX line that is executed. `limit`: warp instructions, or (warp instructions, seconds), after
    which the run is stopped with an error of the kind `limit`. `resident`: how many warps are on
    the machine together. `stack`: bytes a lane for recursive functions and alloca (default: up to
    64 KiB). `output`: a file that printf prints to; `Report.printed` has it in any case.
    `jobs`: how many threads, and on Linux processes, may run a launch that is large enough; None:
    FRAGIR_JOBS, or the cores that there are. Results, findings and statistics are those of one.
    `stream`: the launch comes after those of the same `Stream`, on the same memory; `programmatic`:
    as a programmatic dependent of the one before. `structure`: the parameters (names, or numbers
    from 0) and variables whose contents are part of the launch, as sizes are: `Report.data` speaks
    for these contents of them, and for every one of the others; None: it is not wanted.

    Raises EmulationError for what goes wrong, with the place in the PTX, and PtxSyntaxError.
    """
    started = time.perf_counter()
    shared = require_whole_number(shared, "shared")
    require_whole_number(resident, "resident", 1)
    if schedule is not None:
        schedule = require_whole_number(schedule, "schedule")
    if stack is not None:
        require_whole_number(stack, "stack", 0)
    for what, text in (("entry", entry), ("target", target), ("ptxas", ptxas)):
        if text is not None and not isinstance(cast("object", text), str):
            raise EmulationError(f"{what} is a str, not {kind_of(text)}")
    check_one_of(asynchrony, ("late", "early", "random"), "asynchrony")
    core()  # FRAGIR_CORE may ask for one that is not there
    if not isinstance(cast("object", ptx), str | tree.Module):
        raise EmulationError(f"a program is PTX text or a Module, not {kind_of(ptx)}")
    module = PROGRAMS.module(ptx) if isinstance(ptx, str) else ptx
    made = partial(
        Launch,
        module,
        entry,
        grid=_dim3("grid", grid),
        block=_dim3("block", block),
        cluster=_dim3("cluster", cluster),
        arguments=arguments,
        shared=shared,
        target=target,
        ptxas=ptxas,
        seed=schedule,
        asynchrony=asynchrony,
        trace=trace,
        resident=resident,
        check=check,
        fragments=fragments,
        checks=require_checks(checks),
        stack=stack,
        output=output,
        cooperative=cooperative,
        variables=variables or {},
        jobs=jobs_of(jobs),
        stream=stream,
        programmatic=programmatic,
        structure=structure,
    )
    if programmatic and stream is None:
        raise EmulationError(
            "a programmatic launch depends on the one before, on a stream",
            hint="give both launches the same stream=fragir.emulator.Stream()",
        )
    launch = made(watch=Watch(limit, heartbeat))
    launch.report.statistics.decode_seconds = time.perf_counter() - started
    try:
        try:
            launch.run(progress)
        except Again:
            launch = made(watch=Watch(limit, heartbeat), divides=False)
            launch.run(progress)
    except EmulationError as error:
        error.report = launch.report
        if error.line is not None and (sources := _sources(module)) is not None:
            error.compiled_from = sources.place(error.line)
        raise
    finally:
        report = launch.report
        report.findings = gather(report.findings, ordered=True)
        if (report.findings or report.remarks) and (sources := _sources(module)) is not None:
            for found in (report.findings, report.remarks):
                found[:] = [_with_source(one, sources) for one in found]
    launch.report.statistics.seconds = time.perf_counter() - started
    if not checks:  # those of a user may keep it
        PROGRAMS.give(launch.program, entry)
    return launch.report


def _sources(module: Module) -> SourceLines | None:
    """What the `.loc` of a module say; None where it has none."""
    text = module.source.text if module.source is not None else ""
    return SourceLines(text) if ".loc" in text else None


def _with_source(found: Finding, sources: SourceLines) -> Finding:
    """A finding with the lines of the program that its own, and the other access's, are of."""
    lines = [found.line, None if found.other is None else found.other[0]]
    own, other = ("" if line is None else sources.place(line) for line in lines)
    return replace(found, compiled_from=(own, other) if other else (own,)) if own else found


def _version(text: str) -> tuple[int, int]:
    """`12.4` or `12.4.131` as (12, 4)."""
    parts = text.split(".")
    if len(parts) < 2 or not all(p.isascii() and p.isdigit() for p in parts):
        raise EmulationError(f"{text!r} is no version of ptxas", hint='write it as "12.4"')
    return int(parts[0]), int(parts[1])


def _dim3(what: str, value: Sequence[int]) -> Dim3:
    numbers = require_extent(value, what)
    if min(numbers) < 1:
        raise EmulationError(f"{what} must be up to three positive numbers, not {numbers}")
    return numbers


class Launch:
    """One kernel, its memory and its arguments, decoded and ready."""

    def __init__(
        self,
        module: Module,
        entry: str | None,
        *,
        grid: Dim3,
        block: Dim3,
        cluster: Dim3,
        arguments: Sequence[object],
        shared: int,
        target: str | None,
        ptxas: str | None = None,
        seed: int | None,
        asynchrony: Asynchrony,
        trace: TextIO | None,
        resident: int,
        check: bool = False,
        fragments: bool = False,
        checks: Sequence[MakesCheck] = (),
        stack: int | None = None,
        output: TextIO | None = None,
        watch: Watch | None = None,
        cooperative: bool | None = None,
        variables: Mapping[str, object] = MappingProxyType({}),
        jobs: int = 1,
        divides: bool = True,
        stream: Stream | None = None,
        programmatic: bool = False,
        structure: Sequence[int | str] | None = (),
    ) -> None:
        self.report = Report()
        self.watch = watch or Watch(None)
        self.program = program = PROGRAMS.take(module, entry)
        self._check_known()
        self.grid = grid
        name = target_of(module, target)
        cluster = cluster_of(program, cluster)
        check_launch(program, name, grid, block, cluster, shared)
        self.memory = memory = DeviceMemory()
        self.variables = Variables(program, variables, arguments)
        self.report.notes += unset(program, self.variables.given)
        place_constants(program, memory)
        self.arguments = Arguments(program, memory, arguments)
        lay_out_frames(program)
        static, local = place_variables(program, memory, shared)
        threads = block[0] * block[1] * block[2]
        warps = (threads + LANES - 1) // LANES
        size = cluster[0] * cluster[1] * cluster[2]
        total = grid[0] * grid[1] * grid[2]
        self.total = total
        self.wave = min(max(resident // (warps * size), 1) * size, total)
        if program.takes_cluster:
            # Half of the clusters wait, so that there is something to cancel.
            self.wave = min(self.wave, (total // size + 1) // 2 * size)
        if cooperative is None:
            cooperative = placement.is_cooperative(program)
        workspace = None
        if cooperative:
            placement.check_resident(block, grid)
            self.wave, workspace = total, placement.allocate_workspace(memory)
        self.started = 0  # blocks that have been put on the machine or cancelled
        counts = dict(program.counts)
        counts[32] += 1  # keep every file non-empty
        self.machine = machine = Machine(
            grid, block, cluster, self.wave, counts, memory, self.report, asynchrony, seed
        )
        machine.dynamic_shared = shared
        placement.provide(machine, workspace, placement.reserved_bytes(program))
        machine.output = output
        machine.cancel = self._cancel
        if program.frames:
            machine.stack_base, local = stack_of(local, stack, machine.warps)
        heap = HEAP if "malloc" in program.externs else 0
        self.stream = stream
        if stream is not None:
            stream.begin(machine, program, self.arguments, programmatic=programmatic)
        undivided = cooperative or fragments or asynchrony == "random"
        undivided |= not all(map(may_merge, checks))
        undivided |= stream is not None
        undivided |= any(x is not None for x in (seed, trace, self.watch.seconds))
        divides = divides and jobs > 1 and not undivided
        divides = divides and not obstacle(program, warps=total * warps, clusters=total // size)
        try:
            memory.commit(
                machine.warps, self.wave, static + shared, local, size, heap, forks=divides
            )
        except MemoryError as error:
            need = sum(buffer.size for buffer in memory.buffers)
            raise EmulationError(
                f"there is no memory for this launch: {need} bytes of global memory, and"
                f" {local} of local memory for each of {32 * machine.warps} lanes"
            ) from error
        machine.assemble()
        initialise(program, memory)
        if stream is not None:
            stream.load(machine, program)
        self.variables.load(memory)
        self.arguments.load()
        if structure is not None:
            declared = structure_names(program, structure)
            memory.data = [one for one in memory.data if one.name not in declared]
            memory.data += self.arguments.contents(declared)
            memory.data += self.variables.contents(declared)
            memory.structure = list(dict.fromkeys((*declared, *self.arguments.pointing)))
        if checks:
            machine.hosts = self.arguments.arrays.homes()
        self.hooks = machine.hooks = hooks_for(
            machine, program, check=check, fragments=fragments, checks=checks
        )
        settings = Settings() if ptxas is None else Settings(_version(ptxas))
        with np.errstate(all="ignore"):
            decoding = Decoding(program, machine, name, settings, self.watch)
            self.scheduler = decoding.scheduler(seed, trace)
        machine.jobs = jobs
        self.division: Division | None = None
        if memory.globals.shared and not machine.reads_clocks and all(map(merges, self.hooks)):
            unit = unit_of(program)
            self.division = Division(
                machine,
                self.scheduler,
                self.hooks,
                total=total,
                wave=self.wave,
                jobs=jobs,
                unit=unit,
            )

    # -- checks before anything runs -------------------------------------------------------------

    def _check_known(self) -> None:
        if self.program.legal:
            return
        for placed in self.program.code:
            problem = problem_of(self.program.opcodes, placed.ins)
            if problem is not None:
                raise self.program.error(problem[0], placed.ins.at, problem[1])
        self.program.legal = True

    # -- running -----------------------------------------------------------------------------------

    def run(self, progress: Callable[[float], None] | None) -> None:
        """Run all blocks, and bring back what they have written.

        Raises Again where that must be done anew, in one process; nothing is brought back then.
        """
        division = self.division
        try:
            with np.errstate(all="ignore"):
                for hook in self.hooks:
                    hook.on_launch_start()
                if division is None:
                    self._waves(progress)
                else:
                    division.run(progress)
        except BaseException as error:
            if isinstance(error, EmulationError) and error.kind in ("deadlock", "divergent"):
                error.why = self._why()
            if division is None or not division.divided:
                self._bring_back()
            raise
        self._bring_back()
        with np.errstate(all="ignore"):
            for hook in self.hooks:
                hook.on_launch_end()
        self.arguments.check_read_only()
        if self.stream is not None:
            self.stream.end(self.machine, self.program, self.hooks)

    def _why(self) -> Why:
        """Why nothing can run any more."""
        from fragir.emulator.checks.protocols.standstill import standstill

        return standstill(self.machine, self.program)

    def _waves(self, progress: Callable[[float], None] | None) -> None:
        while self.started < self.total:
            first = self.started
            self.started = min(first + self.wave, self.total)
            self.machine.start_wave(first, self.started - first)
            self.scheduler.run_wave()
            self.watch.share = self.started / self.total
            if progress is not None:
                progress(self.watch.share)

    def _bring_back(self) -> None:
        self._count()
        self.arguments.store()
        self.variables.store(self.memory)

    def _cancel(self) -> Dim3 | None:
        """Take the next cluster off the launch (clusterlaunchcontrol.try_cancel)."""
        if self.started >= self.total:
            return None
        block = self.machine.coordinates(np.array([self.started], np.int64))[0]
        self.started += self.machine.cluster_size
        return int(block[0]), int(block[1]), int(block[2])

    def _count(self) -> None:
        statistics = self.report.statistics
        for start, block in sorted(self.scheduler.blocks.items()):
            end = block.end + (1 if block.terminator is not None else 0)
            for at in range(start, end):
                name = self.program.code[at].ins.opcode[0]
                statistics.instructions[name] += block.runs
                statistics.lanes += 32 * block.runs
