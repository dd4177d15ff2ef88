"""A compiled kernel: its PTX, what it takes, and how it is launched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from fragir.compilation.arguments import (
    ArrayView,
    check_least,
    declared_view,
    least_shapes,
    require_32_bits,
    scalar,
)
from fragir.compilation.arrays import Borrowed
from fragir.compilation.constants import HeldConstants
from fragir.compilation.signature import Argument, Interface
from fragir.errors import (
    FragirError,
    check_kind,
    check_one_of,
    require_extent,
    require_whole_number,
)
from fragir.ptx import machines

if TYPE_CHECKING:
    from xdsl.dialects import func

    from fragir.dialects.frag import GridAttr
    from fragir.dialects.ptx.tensor_maps import TensorMapRecord
    from fragir.emulator import Report
    from fragir.passes.writer.text import LineOrigin
    from fragir.roofline.lint import LaunchRemark
    from fragir.scheduling.devices import Device
    from fragir.toolchain.ptxas import Assembled


# -- compiled --------------------------------------------------------------------------------------
Place = Literal["emulator", "gpu", "auto"]
PLACES: tuple[Place, ...] = ("emulator", "gpu", "auto")
EMULATED_RESIDENT = 4
"""Blocks that run at once on the emulator, as far as a grid goes by it, where few tiles are."""
EMULATED_THREADS = 256 * 32
"""Threads that the emulator runs side by side."""


@dataclass(repr=False, kw_only=True)
class Compiled(ABC):
    """A compiled function that is called on arrays: a `Kernel`, or a `fragir.host.Program`.

    `promises` says which sizes are multiples of what (`frag.divisible`); a call is held to it.
    """

    name: str
    target: str
    ptx: str
    signature: tuple[Argument, ...]
    stages: dict[str, float] = field(default_factory=dict[str, float])
    promises: dict[str, int] = field(default_factory=dict[str, int])
    origins: tuple[LineOrigin, ...] = ()
    """From which operations of the program the lines of `ptx` come."""
    remarks: tuple[str, ...] = ()
    """What the lowering has to say."""
    counts: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Numbers times sizes that a kernel counts through: a launch keeps each below 2^31."""
    again: Callable[[Mapping[str, int]], Compiled] | None = field(default=None, compare=False)
    """Compiles the program once more, with these promises; None where sizes have no say."""
    _entries: dict[tuple[str, ...], Compiled] = field(
        default_factory=dict[tuple[str, ...], "Compiled"], init=False, compare=False
    )

    @cached_property
    def held(self) -> HeldConstants:
        """The arrays of its constants (`Argument.constant`), which a call fills in."""
        return HeldConstants(self.signature)

    is_program: ClassVar[bool] = False
    """Whether a call launches several kernels: a `fragir.host.Program`."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that a call launches."""

    def lint(
        self, sizes: Mapping[str, int] | None = None, device: Device | None = None
    ) -> list[LaunchRemark]:
        """What makes a call with these sizes slow, the worst first: the cause, its place in the
        program, and by what factor.

        Computed from the kernel, nothing is run. Sizes that are not given are supposed to be 4096;
        `device` is a row of `fragir.scheduling.DEVICES`, by default the target's example. It is
        told of the entry that such a call runs (`entry_for`).
        """
        entry = self
        if self.again is not None:
            from fragir.compilation.lint import launch_sizes

            entry = self.entry_for(launch_sizes(self.signature, self.promises, sizes or {}))
        return entry.own_lint(sizes, device)

    @abstractmethod
    def own_lint(
        self, sizes: Mapping[str, int] | None = None, device: Device | None = None
    ) -> list[LaunchRemark]:
        """The same of this entry, for whatever sizes."""

    @abstractmethod
    def schedule_notes(self) -> list[str]:
        """What ptxas did to the schedule of each kernel, a sentence each."""

    def resident(self, on: Place = "auto", sizes: Mapping[str, int] | None = None) -> int | None:
        """How many blocks run at once; None where no grid depends on it."""
        return None

    def entry_for(self, sizes: Mapping[str, int]) -> Self:
        """What a call with these sizes runs: this one, or, where rows are multiples of 16 bytes of
        which it has no promise, the same program with that promise.

        Compiled when it is first asked for, once for each set of sizes that keep to it. Strides
        that have names count as sizes; sizes that are not given keep to nothing.
        """
        if self.again is None:
            return self
        wanted = self._multiples
        kept = tuple(name for name, by in wanted.items() if sizes.get(name, 1) % by == 0)
        if not kept:
            return self
        if kept not in self._entries:
            try:
                made = self.again({name: wanted[name] for name in kept})
            except FragirError:  # this one is right for all sizes
                made = self
            if made.ptx == self.ptx:
                made = self
            vars(made)["held"] = self.held  # they lie on a GPU once
            if made is not self:
                words = ", ".join(f"{name} is a multiple of {wanted[name]}" for name in kept)
                made.remarks = (f"the entry relies on it: {words}", *made.remarks)
            self._entries[kept] = made
        return cast("Self", self._entries[kept])

    @property
    def second_entries(self) -> tuple[Compiled, ...]:
        """Those that `entry_for` has made so far, each with its own `promises`."""
        return tuple(made for made in self._entries.values() if made is not self)

    @cached_property
    def _multiples(self) -> dict[str, int]:
        from fragir.compilation.second_entry import multiples

        return multiples(self.signature, self.promises)

    @abstractmethod
    def grid(self, sizes: Mapping[str, int], resident: int | None = None) -> tuple[int, int, int]:
        """Blocks to launch for these sizes."""

    @abstractmethod
    def __call__(
        self, *arguments: object, on: Place = "auto", resident: int | None = None, **options: Any
    ) -> Any:
        """Runs on arrays, written in place; the emulator's report, or None from a GPU."""

    @cached_property
    def assembled(self) -> Assembled:
        """What ptxas says of it: cubin, registers, spills, warnings."""
        from fragir.toolchain import ptxas

        return ptxas.assemble(self.ptx, self.target)

    @cached_property
    def notes(self) -> list[str]:
        """What the lowering says; a sentence for each of its tensor-core instructions that the
        target has not natively, and, where there is a ptxas to tell, for what it did to the
        schedule: products made serial, waits put in, setmaxnreg ignored, registers spilled. Last
        what makes a launch slow (`lint`)."""
        from fragir.toolchain.find import PTXAS, find

        try:
            find(PTXAS)
        except FragirError:
            judged = list[str]()
        else:
            judged = self.schedule_notes()
        slow = map(str, self.lint())
        return [*self.lowering_notes, *judged, *slow]

    @property
    def lowering_notes(self) -> list[str]:
        """Those of the `notes` that take no other tool: of the lowering, and of instructions."""
        from fragir.compilation.notes import instruction_notes

        words = (line.split(None, 1) for line in self.ptx.splitlines())
        opcodes = (found[0] for found in words if found)
        used = dict.fromkeys(
            opcode for opcode in opcodes if opcode.startswith(("mma.", "wgmma.mma"))
        )
        return [*self.remarks, *instruction_notes(used, self.target)]

    @property
    def cubin(self) -> bytes:
        """The machine code."""
        return self.assembled.cubin

    def sizes(self, arguments: Sequence[object]) -> dict[str, int]:
        """The named sizes that the arrays' shapes give; FragirError where they contradict."""
        return self._bind(self._views(self._given(arguments)))

    def check(self, sizes: Mapping[str, int]) -> None:
        """FragirError for sizes that break what the program promises of them."""
        check_kind(sizes, Mapping, "sizes are a dict", 'write {"m": 256}')
        for name, size in sizes.items():
            require_whole_number(size, f"the size {name}")
            divisor = self.promises.get(name, 1)
            if size % divisor:
                raise FragirError(
                    f"{name} = {size}, but {self.name} is promised multiples of {divisor}",
                    hint="pad the arrays, or compile without this frag.divisible",
                )
        check_least(self.name, self.signature, sizes)
        for number, names in self.counts:
            if sizes.keys() >= set(names):
                what = " x ".join([*names, *([str(number)] if number > 1 else [])])
                require_32_bits(prod((number, *(sizes[name] for name in names))), what)

    def least_shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """How large those arrays must be whose sizes depend on how the program was compiled."""
        return least_shapes(self.signature, sizes)

    def _bind(self, views: Sequence[ArrayView | None]) -> dict[str, int]:
        found: dict[str, int] = {}
        for argument, view in zip(self.signature, views, strict=True):
            if view is None:
                continue
            for name, size in zip(argument.dims, view.shape, strict=True):
                wanted = name if isinstance(name, int) else found.setdefault(name, size)
                if wanted != size:
                    raise FragirError(
                        f"{argument.name} has shape {view.shape}; {self.name} takes "
                        f"({', '.join(map(str, argument.dims))})"
                        + ("" if isinstance(name, int) else f" with {name} = {wanted}")
                    )
        self.check(found | self._strides(views))
        return found

    def _strides(self, views: Sequence[ArrayView | None]) -> dict[str, int]:
        """The named strides that the arrays have."""
        pairs = [
            pair
            for argument, view in zip(self.signature, views, strict=True)
            if view is not None
            for pair in zip(argument.strides or (), view.strides, strict=False)
        ]
        return {name: stride for name, stride in pairs if isinstance(name, str)}

    def _views(self, arguments: Sequence[object]) -> list[ArrayView | None]:
        """The arrays among the arguments, each checked against its declaration."""
        pairs = zip(self.signature, arguments, strict=True)
        return [
            declared_view(
                _bytes_of(value, a) if a.either_sign else value, a.type, a.name, a.dims, a.strides
            )
            if a.is_memory
            else None
            for a, value in pairs
        ]

    @property
    def _taken(self) -> list[str]:
        """The names of the arguments that a caller gives."""
        return [argument.name for argument in self.signature if argument.constant is None]

    def _given(self, arguments: Sequence[object]) -> Sequence[object]:
        """What a caller gives with the constants in between; with others in their place where it
        gives all.
        """
        check_kind(arguments, Sequence, "arguments are a tuple or list")
        taken = self._taken
        if len(arguments) == len(self.signature):
            return arguments
        if len(arguments) != len(taken):
            names = ", ".join(taken)
            raise FragirError(
                f"{self.name} takes {len(taken)} arguments ({names}), not {len(arguments)}"
            )
        return self.held.fill(arguments)

    @staticmethod
    def _place(on: Place, views: Sequence[ArrayView | None], asked: Sequence[str]) -> Place:
        """Where a launch runs: "auto" is a GPU where there is one and no option asks otherwise."""
        if on != "auto":
            return on
        from fragir.toolchain import driver

        on_gpu = any(view is not None and view.on_gpu for view in views)
        return "gpu" if on_gpu or (not asked and driver.available() is None) else "emulator"


@dataclass(repr=False, kw_only=True)
class Kernel(Compiled):
    """A compiled entry: PTX, what it takes, and how to run it.

    `tensor_maps` are parameters behind those of `signature`, made of its arrays at launch.
    `cluster` counts the blocks of a cluster; `whole_clusters` says that a grid may be larger.
    """

    grid_attribute: GridAttr | None
    block: tuple[int, int, int]
    shared: int
    tensor_maps: tuple[TensorMapRecord, ...] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)
    whole_clusters: bool = False
    lanes: func.FuncOp | None = field(default=None, compare=False)
    """What one lane does, of which `ptx` is the text."""

    def __repr__(self) -> str:
        arguments = ", ".join(self._taken)
        threads = "x".join(map(str, self.block))
        lines = self.ptx.count("\n")
        return (
            f"<{self.name}({arguments}) for {self.target}: {threads} threads, {lines} lines of PTX>"
        )

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that a call launches: this one."""
        return (self,)

    def schedule_notes(self) -> list[str]:
        """What ptxas did to the schedule, a sentence each, with the place in the program."""
        from fragir.compilation.notes import schedule_notes

        return schedule_notes(self.assembled, self.ptx, self.target, self.origins)

    @cached_property
    def _on_this_gpu(self) -> bytes:
        """The machine code for the GPU at hand, also where the kernel is for an older one."""
        from fragir.toolchain import driver, ptxas

        target = ptxas.target_for(self.target, driver.gpu().target)
        return self.cubin if target == self.target else ptxas.assemble(self.ptx, target).cubin

    def grid(self, sizes: Mapping[str, int], resident: int | None = None) -> tuple[int, int, int]:
        """Blocks to launch for these sizes; where the kernel has clusters, whole ones.

        `resident`: how many run at once, which a grid of `at most resident` blocks goes by; without
        it there is a block for every tile.
        """
        self.check(sizes)
        if self.grid_attribute is None:
            return self.cluster
        try:
            found = self.grid_attribute.evaluate(dict(sizes), resident)
        except KeyError as error:
            raise FragirError(
                f"the grid of {self.name} needs the size {error.args[0]}",
                hint="name a dimension so, with frag.sizes",
            ) from None
        if self.cluster == (1, 1, 1):
            return found
        from fragir.compilation.arrays import in_clusters  # few kernels need it

        return in_clusters(found, self.cluster, self.whole_clusters)

    def own_lint(
        self, sizes: Mapping[str, int] | None = None, device: Device | None = None
    ) -> list[LaunchRemark]:
        """What makes launches of this entry slow."""
        if self.lanes is None:
            return []
        from fragir.compilation.lint import launch_model
        from fragir.roofline.lint import remarks

        known = "assembled" in vars(self) and self.assembled.entries.get(self.name)
        asked: dict[str, int] = {"registers": known.registers} if known else {}
        interface = Interface(self.signature, self.grid_attribute, self.promises)
        return remarks(
            launch_model(interface, self.lanes, self.target, sizes=sizes, device=device, **asked)
        )

    def resident(self, on: Place = "auto", sizes: Mapping[str, int] | None = None) -> int | None:
        """How many blocks run at once; None where the grid does not depend on it.

        A GPU's driver is asked. The emulator says `EMULATED_RESIDENT`: few, so that a small
        matrix already has blocks of several tiles; of `sizes` that give more tiles as many as it
        runs side by side, each of two tiles at least.
        """
        grid = self.grid_attribute
        if grid is None or not grid.asks_for_residents:
            return None
        from fragir.toolchain import driver

        if on == "emulator" or (on == "auto" and driver.available() is not None):
            if sizes is None:
                return EMULATED_RESIDENT
            most = EMULATED_THREADS // prod(self.block)
            return max(EMULATED_RESIDENT, min(prod(self.grid(sizes)) // 2, most))
        return driver.resident_blocks(
            self._on_this_gpu,
            self.name,
            block=self.block,
            shared=self.shared,
            cluster=grid.cluster,
        )

    def parameters(self, arguments: Sequence[object]) -> list[object]:
        """The arguments as PTX's parameters: arrays, each followed by its dynamic sizes."""
        arguments = self._given(arguments)
        views = self._views(arguments)
        self._bind(views)
        return self._parameters(arguments, views, self._borrow(views))

    def _borrow(self, views: Sequence[ArrayView | None]) -> Borrowed:
        pairs = zip(self.signature, views, strict=True)
        return Borrowed({argument.name: view for argument, view in pairs if view is not None})

    def _parameters(
        self, arguments: Sequence[object], views: Sequence[ArrayView | None], borrowed: Borrowed
    ) -> list[object]:
        result: list[object] = []
        for argument, value, view in zip(self.signature, arguments, views, strict=True):
            if argument.is_pointer or argument.is_tensor_map:
                result.append(value)  # any buffer: a program of lanes says nothing of its shape
                continue
            if view is None:
                result.append(scalar(value, argument.type, argument.name))
                continue
            result.append(borrowed.lend(view, argument.name))
            extents = zip(view.shape, argument.dims, strict=True)
            strides = zip(view.strides, argument.strides or (), strict=argument.strides is not None)
            for number, declared in (*extents, *strides):
                if isinstance(declared, str):
                    result.append(require_32_bits(number, f"{declared} of {argument.name}"))
        if self.tensor_maps:
            from fragir.compilation.arrays import tensor_maps  # few kernels need it

            types = [argument.type for argument in self.signature]
            names = [argument.name for argument in self.signature]
            result += tensor_maps(self.tensor_maps, types, views, borrowed, names)
        return result

    def __call__(
        self,
        *arguments: object,
        on: Place = "auto",
        resident: int | None = None,
        **options: Any,
    ) -> Any:
        """Runs on arrays, written in place, with the grid that their sizes ask for.

        `resident`: blocks that run at once, instead of those that `Kernel.resident` says. `options`
        as of `launch`: `kernel(a, b, c, check=True)` returns a report with findings.
        """
        arguments = tuple(self._given(arguments))
        views = self._views(arguments)
        sizes = self._bind(views)
        entry = self.entry_for(sizes | self._strides(views))
        if entry is not self:
            return entry(*arguments, on=on, resident=resident, **options)
        grid = self.grid(sizes)
        if 0 in grid:
            self.parameters(arguments)
            return self._nothing_to_do(on, options)
        if resident is not None:
            require_whole_number(resident, "resident", least=1)
            grid = self.grid(sizes, resident)
        elif self.grid_attribute is not None and self.grid_attribute.asks_for_residents:
            place = self._place(on, views, _asked_options(options))
            grid = self.grid(sizes, self.resident(place, sizes))
        return self.launch(grid, self.block, *arguments, on=on, **options)

    def _nothing_to_do(self, on: Place, options: Mapping[str, object]) -> Report | None:
        """What a run of no blocks gives, as for matrices without rows or columns."""
        check_one_of(on, PLACES, "on")
        if on == "gpu":
            return None
        from fragir.emulator import Report

        return Report()

    def launch(
        self,
        grid: Sequence[int] | int,
        block: Sequence[int] | int | None,
        *arguments: object,
        on: Place = "auto",
        shared: int | None = None,
        cluster: tuple[int, int, int] | None = None,
        stream: object = None,
        **options: Any,
    ) -> Any:
        """Runs a grid; the emulator's report, or None from a GPU. `cluster` is the kernel's own.

        `on` is "emulator", "gpu", or "auto": a GPU where there is one. Further options (`check`,
        `limit`, ...) are those of `fragir.emulator.run`; with one of them "auto" is the emulator.
        """
        check_one_of(on, PLACES, "on")
        arguments = tuple(self._given(arguments))
        views = self._views(arguments)
        asked = _asked_options(options)
        on = self._place(on, views, asked)
        if on == "gpu":
            arguments = tuple(self.held.on_gpu(arguments))
            views = self._views(arguments)
        self._bind(views)
        borrowed = self._borrow(views)
        parameters = self._parameters(arguments, views, borrowed)
        blocks = require_extent(grid, "the grid")
        threads = require_extent(self.block if block is None else block, "the block")
        cluster = require_extent(self.cluster if cluster is None else cluster, "the cluster")
        memory = self.shared if shared is None else require_whole_number(shared, "shared")
        machine = options.get("target") or self.target
        problem = machines.launch_problem(
            machine, grid=blocks, block=threads, cluster=cluster, shared=memory
        )
        if problem is not None:
            raise FragirError(f"{self.name} cannot be launched so: {problem[0]}", hint=problem[1])
        report = None
        how: dict[str, Any] = {
            "grid": blocks,
            "block": threads,
            "arguments": parameters,
            "shared": memory,
            "cluster": cluster,
        }
        if on == "gpu":
            if asked:
                raise FragirError(
                    f"a GPU knows no {' and no '.join(asked)}", hint='run it with on="emulator"'
                )
            from fragir.toolchain import driver

            driver.launch(self._on_this_gpu, self.name, stream=stream, **how)
        else:
            from fragir import emulator
            from fragir.compilation.notes import lone_block

            for argument, view in zip(self.signature, views, strict=True):
                if view is not None and view.on_gpu:
                    raise FragirError(
                        f"{argument.name} lies on a GPU, the emulator runs on the host",
                        hint='copy it to the host, or run with on="gpu"',
                    )
            try:
                report = emulator.run(self.ptx, self.name, **how, **options)
            except emulator.EmulationError as error:
                self._place_findings(error.report)
                error.put_at(self._place_of)
                raise
            self._place_findings(report)
            if blocks == (1, 1, 1) and self.grid_attribute is not None:
                report.notes += lone_block(self.grid_attribute, self._bind(views))
        borrowed.give_back()
        return report

    def _place_findings(self, report: Report | None) -> None:
        """Of a statement, whose instructions are many, one finding of a kind is enough."""
        if report is None or not (report.findings or report.remarks):
            return
        from fragir.emulator.report import place_findings

        report.findings, report.remarks = (
            place_findings(found, self._place_of) for found in (report.findings, report.remarks)
        )

    def _place_of(self, line: int) -> str:
        """Where in the program a line of the PTX comes from."""
        from fragir.compilation.notes import origin_of

        return str(origin_of(line, self.origins) or "")


def _bytes_of(value: object, argument: Argument) -> object:
    """An array of bytes with or without a sign as one of the same that the kernel takes."""
    import sys

    from fragir.dialects.elements import element_name
    from fragir.dialects.shorthands import memref_type

    package, _, kind = str(getattr(value, "dtype", "")).rpartition(".")
    view = getattr(value, "view", None)
    unsigned = element_name(memref_type(argument.type).element_type) == "u8"
    wanted = "uint8" if unsigned else "int8"
    if not callable(view) or kind not in ("int8", "uint8") or kind == wanted:
        return value
    return view(getattr(sys.modules["torch"], wanted) if package == "torch" else wanted)


def _asked_options(options: Mapping[str, object]) -> list[str]:
    """The options of a launch that are given."""
    return [name for name, value in options.items() if value is not None and value is not False]
