"""A compiled function of several kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

from xdsl.dialects import func
from xdsl.ir import SSAValue

from fragir.compilation.arguments import ArrayView
from fragir.compilation.kernel import Compiled, Kernel, Place
from fragir.compilation.signature import Interface
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.host.memory import ArrayPiece, GpuArena, HostArena, bytes_of
from fragir.host.plan import ArenaPlan, Lifetime, ProgramPlan, first_fit, plan_of
from fragir.host.running import HostRun

if TYPE_CHECKING:
    from fragir.emulator import Report
    from fragir.host.running import Graph
    from fragir.passes.writer.text import LineOrigin
    from fragir.roofline.lint import LaunchRemark
    from fragir.scheduling.devices import Device


@dataclass(repr=False, kw_only=True)
class Program(Compiled):
    """A function of the host: kernels of one PTX module, and memory for what they hand on.

    `ptx` has an entry for each of `kernels`. A call runs them in order on arrays, as that of a
    `Kernel` does; `plan` shows launches and temporaries. Temporaries lie in one piece of memory,
    which is used again as soon as nothing reads them any more.
    """

    host: func.FuncOp
    kernels: dict[str, Kernel]
    source: str | None = None

    def __repr__(self) -> str:
        arguments = ", ".join(self._taken)
        count = len(self.plan.launches)
        return f"<{self.name}({arguments}) for {self.target}: {count} launches>"

    is_program: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """Its kernels."""
        return tuple(self.kernels.values())

    @cached_property
    def plan(self) -> ProgramPlan:
        """Launches in order, and temporaries with the steps that use them."""
        return plan_of(self.host)

    def arena(self, sizes: Sequence[tuple[int, ...]]) -> ArenaPlan:
        """Where temporaries of these shapes lie, in the order of `plan.temporaries`."""
        lifetimes = [
            Lifetime(bytes_of(shape, memref_type(one.value.type).element_type), one.first, one.last)
            for one, shape in zip(self.plan.temporaries, sizes, strict=True)
        ]
        return first_fit(lifetimes)

    def lint(
        self, sizes: Mapping[str, int] | None = None, device: Device | None = None
    ) -> list[LaunchRemark]:
        """What makes the launches of its kernels slow: `sizes` are those of the kernels."""
        if self.again is not None:
            return super().lint(sizes, device)
        return _worst_first(remark for one in self.parts for remark in one.lint(sizes, device))

    def own_lint(
        self, sizes: Mapping[str, int] | None = None, device: Device | None = None
    ) -> list[LaunchRemark]:
        """The same of the kernels of `ptx`, for whatever sizes."""
        return _worst_first(remark for one in self.parts for remark in one.own_lint(sizes, device))

    def schedule_notes(self) -> list[str]:
        """What ptxas did to each kernel's schedule."""
        return [note for kernel in self.kernels.values() for note in kernel.schedule_notes()]

    def grid(self, sizes: Mapping[str, int], resident: int | None = None) -> tuple[int, int, int]:
        """One: each of its kernels has a grid of its own."""
        self.check(sizes)
        return 1, 1, 1

    def launch(self, *arguments: object, **options: Any) -> NoReturn:
        """FragirError: a program launches its kernels itself."""
        raise FragirError(
            f"{self.name} has several kernels, each with a grid of its own",
            hint="call it on arrays, launch one of its kernels, or compile with alone=True what "
            "one kernel can do",
        )

    def __call__(
        self, *arguments: object, on: Place = "auto", resident: int | None = None, **options: Any
    ) -> Any:
        """Runs the kernels on arrays, written in place; the emulator's report, or None from a GPU.

        Options as of a kernel's call; with `check` every temporary is an array of its own, so that
        what lies beside it is found to be outside.
        """
        arguments = tuple(self._given(arguments))
        views = self._views(arguments)
        entry = self.entry_for(self._bind(views) | self._strides(views))
        if entry is not self:
            return entry(*arguments, on=on, resident=resident, **options)
        asked = [name for name, value in options.items() if value not in (None, False)]
        place = self._place(on, views, asked)
        more = {"resident": resident, **options}
        if place == "gpu":
            arguments = tuple(self.held.on_gpu(arguments))
            self._on_gpu(arguments, self._views(arguments), more)
            return None
        return self._emulate(arguments, views, more)

    def graph(self, *arguments: object) -> Graph:
        """The launches on these arrays, which lie on a GPU, as a CUDA graph: `graph.launch()`."""
        from fragir.host.running import Graph

        arguments = tuple(self._given(arguments))
        views = self._views(arguments)
        entry = self.entry_for(self._bind(views) | self._strides(views))
        if entry is not self:
            return entry.graph(*arguments)
        arguments = tuple(self.held.on_gpu(arguments))
        views = self._views(arguments)
        for argument, view in zip(self.signature, views, strict=True):
            if view is not None and not view.on_gpu:
                raise FragirError(
                    f"{argument.name} lies on the host; a graph works on arrays on a GPU",
                    hint="copy it to the GPU, or call the program",
                )
        pieces = self._pieces(arguments, views)
        arena = self._plan_arena(pieces)
        memory = GpuArena(arena.size)
        return Graph(memory, lambda stream: self._run(pieces, arena, memory, {"stream": stream}))

    # --- runs -----------------------------------------------------------------------------------

    def _emulate(
        self,
        arguments: Sequence[object],
        views: Sequence[ArrayView | None],
        options: Mapping[str, Any],
    ) -> object:
        from fragir.emulator import Report
        from fragir.host.running import join_reports

        pieces = self._pieces(arguments, views)
        arena, reports = self._plan_arena(pieces), list[Report]()
        memory = None if options.get("check") else HostArena(arena.size)
        self._run(pieces, arena, memory, {"on": "emulator", **options}, reports.append)
        return join_reports(reports)

    def _on_gpu(
        self,
        arguments: Sequence[object],
        views: Sequence[ArrayView | None],
        options: Mapping[str, Any],
    ) -> None:
        """Copies arrays of the host there and back, those on a GPU are used in place."""
        pieces = self._pieces(arguments, views)
        hosts = {
            at: (piece, cast("Any", piece.value))
            for at, (piece, view) in enumerate(zip(pieces, views, strict=True))
            if isinstance(piece, ArrayPiece) and view is not None and not view.on_gpu
        }
        size, offsets = 0, dict[int, int]()
        for at, (piece, _) in hosts.items():
            offsets[at] = size
            size += -(-bytes_of(piece.shape, piece.element) // 256) * 256
        arrays = GpuArena(size)
        memory = None
        try:
            for at, (piece, array) in hosts.items():
                arrays.fill(offsets[at], array)
                pieces[at] = arrays.piece(offsets[at], piece.shape, piece.element)
            arena = self._plan_arena(pieces)
            memory = GpuArena(arena.size)
            self._run(pieces, arena, memory, {"on": "gpu", **options})
            for at, (_, array) in hosts.items():
                if array.flags.writeable:
                    arrays.read(offsets[at], array)
        finally:
            arrays.free()
            if memory is not None:
                memory.free()

    def _pieces(
        self, arguments: Sequence[object], views: Sequence[ArrayView | None]
    ) -> list[ArrayPiece | object]:
        """Arrays as pieces, numbers as they are."""
        found: list[ArrayPiece | object] = []
        for argument, value, view in zip(self.signature, arguments, views, strict=True):
            if view is None:
                found.append(value)
                continue
            piece = ArrayPiece(view.value, view.shape, memref_type(argument.type).element_type)
            # what launchers take for an array without dimensions has one
            found.append(piece if view.shape else piece.reshaped(()))
        return found

    def _plan_arena(self, pieces: Sequence[object]) -> ArenaPlan:
        shapes = HostRun(_no_memory, _no_launch, self.source).sizes_of(self.host, pieces)
        return self.arena(shapes)

    def _run(
        self,
        pieces: Sequence[object],
        arena: ArenaPlan,
        memory: HostArena | GpuArena | None,
        options: Mapping[str, Any],
        note: Callable[[Report], object] = lambda _: None,
    ) -> None:
        """Runs the function; without `memory` each temporary is allocated by itself."""
        numbers = {one.value: at for at, one in enumerate(self.plan.temporaries)}

        def make(value: SSAValue, shape: tuple[int, ...]) -> ArrayPiece:
            element = memref_type(value.type).element_type
            if memory is None:
                return HostArena(bytes_of(shape, element)).piece(0, shape, element)
            return memory.piece(arena.offsets[numbers[value]], shape, element)

        def launch(name: str, arguments: Sequence[object]) -> None:
            values = [x.value if isinstance(x, ArrayPiece) else x for x in arguments]
            note(self.kernels[name](*values, **options))

        HostRun(make, launch, self.source).call(self.host, pieces)


def _worst_first(remarks: Iterable[LaunchRemark]) -> list[LaunchRemark]:
    return sorted(remarks, key=lambda remark: -remark.factor)


def _no_memory(value: SSAValue, shape: tuple[int, ...]) -> ArrayPiece:
    return ArrayPiece.of_shape(shape, memref_type(value.type))


def _no_launch(name: str, arguments: Sequence[object]) -> None:
    raise AssertionError(name)


def program_of(
    host: func.FuncOp,
    interface: Interface,
    kernels: dict[str, Kernel],
    target: str,
    ptx: str,
    origins: tuple[LineOrigin, ...],
    stages: dict[str, float],
    source: str | None,
) -> Program:
    """The program of a function of the host, which `check_host` has seen."""
    remarks = dict.fromkeys(words for kernel in kernels.values() for words in kernel.remarks)
    return Program(
        name=host.sym_name.data,
        target=target,
        ptx=ptx,
        signature=interface.signature,
        stages=stages,
        promises=interface.promises,
        origins=origins,
        remarks=tuple(remarks),
        host=host,
        kernels=kernels,
        source=source,
    )
