"""Runs a function of the host: its numbers, its memory, its launches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.dialects import arith, cf, func, memref, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.memory_types import RESHAPES
from fragir.dialects.shorthands import memref_type
from fragir.emulator import Report
from fragir.emulator.report import gather
from fragir.errors import FragirError
from fragir.host.memory import ArrayPiece, GpuArena
from fragir.mlir.diagnostics import error_at_operation
from fragir.toolchain import driver
from fragir.toolchain.driver import stream_handle

Launch = Callable[[str, Sequence[object]], None]
Make = Callable[[SSAValue, tuple[int, ...]], ArrayPiece]


def _identity(x: Any) -> Any:
    return x


def _towards_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _rest(x: int, y: int) -> int:
    return x - y * _towards_zero(x, y)


def _floor_divide(x: int, y: int) -> int:
    return x // y


def _ratio(x: float, y: float) -> float:
    return x / y


def _up(x: int, y: int) -> int:
    return -(-x // y)


def _both(x: int, y: int) -> int:
    return x & y


def _any_bit(x: int, y: int) -> int:
    return x | y


def _differing(x: int, y: int) -> int:
    return x ^ y


def _either(test: bool, x: object, y: object) -> object:
    return x if test else y


#: What an operation on numbers gives.
NUMBERS: dict[type[Operation], Callable[..., Any]] = {
    **dict.fromkeys((arith.AddiOp, arith.AddfOp), operator.add),
    **dict.fromkeys((arith.SubiOp, arith.SubfOp), operator.sub),
    **dict.fromkeys((arith.MuliOp, arith.MulfOp), operator.mul),
    **dict.fromkeys((arith.DivUIOp, arith.FloorDivSIOp), _floor_divide),
    **dict.fromkeys((arith.CeilDivSIOp, arith.CeilDivUIOp), _up),
    **dict.fromkeys((arith.MinSIOp, arith.MinUIOp), min),
    **dict.fromkeys((arith.MaxSIOp, arith.MaxUIOp), max),
    **dict.fromkeys((arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp), _identity),
    arith.DivSIOp: _towards_zero,
    arith.RemUIOp: operator.mod,
    arith.RemSIOp: _rest,
    arith.DivfOp: _ratio,
    arith.AndIOp: _both,
    arith.OrIOp: _any_bit,
    arith.XOrIOp: _differing,
    arith.SIToFPOp: float,
    arith.SelectOp: _either,
}
SIZES = (memref.DimOp, arith.ConstantOp, arith.CmpiOp, *RESHAPES)
"""Operations besides those on numbers that sizes may be computed by."""
_COMPARISONS: tuple[Callable[[int, int], bool], ...] = (
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    *(operator.lt, operator.le, operator.gt, operator.ge),  # without a sign: sizes have none
)


class HostRun:
    """One call of a function of the host.

    `make` gives memory for an allocation of a shape, `launch` runs a kernel.
    """

    def __init__(self, make: Make, launch: Launch, source: str | None = None):
        self._make, self._launch, self._source = make, launch, source
        self.values: dict[SSAValue, Any] = {}

    def call(self, function: func.FuncOp, arguments: Sequence[object]) -> None:
        """Runs it; arguments are pieces of memory and numbers."""
        block = function.body.block
        self.values.update(zip(block.args, arguments, strict=True))
        self._block(block)

    def sizes_of(self, function: func.FuncOp, arguments: Sequence[object]) -> list[tuple[int, ...]]:
        """The shapes of its allocations, in order, which only its arguments' sizes decide."""
        block, shapes = function.body.block, list[tuple[int, ...]]()
        self.values.update(zip(block.args, arguments, strict=True))
        for op in block.ops:
            if isinstance(op, memref.AllocOp):
                shapes.append(self._shape(op))
                self.values[op.memref] = ArrayPiece.of_shape(
                    shapes[-1], memref_type(op.memref.type)
                )
            elif isinstance(op, SIZES) or type(op) in NUMBERS:
                self._step(op)
        return shapes

    # --- operations ---------------------------------------------------------------------------

    def _block(self, block: Block) -> list[object]:
        for op in block.ops:
            if isinstance(op, scf.YieldOp):
                return [self.values[value] for value in op.operands]
            self._step(op)
        return []

    def _step(self, op: Operation) -> None:
        known = self.values
        kind = type(op)
        if kind in NUMBERS:
            known[op.results[0]] = NUMBERS[kind](*(known[x] for x in op.operands))
        elif isinstance(op, arith.ConstantOp):
            known[op.result] = _constant(op)
        elif isinstance(op, arith.CmpiOp):
            test = _COMPARISONS[op.predicate.value.data]
            known[op.result] = test(known[op.lhs], known[op.rhs])
        elif isinstance(op, memref.DimOp):
            known[op.result] = known[op.source].shape[known[op.index]]
        elif isinstance(op, memref.AllocOp):
            known[op.memref] = self._make(op.memref, self._shape(op))
        elif isinstance(op, memref.CastOp):
            known[op.dest] = known[op.source]
        elif isinstance(op, memref.CollapseShapeOp):
            shape = known[op.src].shape
            groups = [[index.value.data for index in group] for group in op.reassociation]
            new = tuple(prod(shape[dim] for dim in group) for group in groups)
            known[op.result] = known[op.src].reshaped(new)
        elif isinstance(op, memref.ExpandShapeOp):
            sizes = iter(known[x] for x in op.output_shape)
            static = op.static_output_shape.iter_values()
            new = tuple(next(sizes) if size < 0 else size for size in static)
            known[op.result] = known[op.src].reshaped(new)
        elif isinstance(op, frag.LaunchOp):
            self._launch(op.callee.string_value(), [known[x] for x in op.arguments])
        elif isinstance(op, scf.ForOp):
            self._loop(op)
        elif isinstance(op, cf.AssertOp):
            if not known[op.arg]:
                raise error_at_operation(op, f"the program asserts: {op.msg.data}", self._source)
        elif isinstance(op, scf.IfOp):
            region = op.true_region if known[op.cond] else op.false_region
            given = self._block(region.block) if region.blocks else []
            known.update(zip(op.results, given, strict=True))
        elif not isinstance(op, func.ReturnOp | memref.DeallocOp):
            raise error_at_operation(op, f"{op.name} cannot be run on the host", self._source)

    def _loop(self, op: scf.ForOp) -> None:
        known, block = self.values, op.body.block
        carried = [known[value] for value in op.iter_args]
        for at in range(known[op.lb], known[op.ub], known[op.step]):
            known.update(zip(block.args, [at, *carried], strict=True))
            carried = self._block(block)
        known.update(zip(op.results, carried, strict=True))

    def _shape(self, op: memref.AllocOp) -> tuple[int, ...]:
        sizes = iter(self.values[value] for value in op.dynamic_sizes)
        shape = memref_type(op.memref.type).get_shape()
        return tuple(size if size >= 0 else next(sizes) for size in shape)


def _constant(op: arith.ConstantOp) -> object:
    value = op.value
    if isinstance(value, IntegerAttr | FloatAttr):
        return value.value.data
    raise error_at_operation(op, f"{op.name} of {value} is no number of the host", None)


def check_host(function: func.FuncOp, source: str | None = None) -> None:
    """FragirError at what does not run on the host, or where nothing is launched."""
    allowed = (
        *(memref.AllocOp, memref.DeallocOp, frag.LaunchOp),
        *(scf.ForOp, scf.IfOp, scf.YieldOp, func.ReturnOp, cf.AssertOp, *SIZES),
    )
    for op in function.body.walk():
        if not isinstance(op, allowed) and type(op) not in NUMBERS:
            raise error_at_operation(
                op,
                f"{op.name} does not run on the host, where kernels are launched, memory is "
                "allocated and sizes are computed; put it into a kernel",
                source,
            )
        if isinstance(op, memref.AllocOp) and op.parent is not function.body.block:
            words = "a function of the host allocates at its top, not in loops or branches"
            raise error_at_operation(op, words, source)
    if not any(isinstance(op, frag.LaunchOp) for op in function.body.walk()):
        name = function.sym_name.data
        raise error_at_operation(
            function, f"@{name} runs on the host, but launches no kernel", source
        )


# -- graph -----------------------------------------------------------------------------------------
# The launches of a program as a CUDA graph.


class Graph:
    """What `record(stream)` launches, instantiated: a launch of all costs the host one call.

    It works on the arrays that it was made for, as long as they live; `close` frees its memory.
    """

    def __init__(self, memory: GpuArena, record: Callable[[int], None]):
        self._memory = memory
        self._stream = driver.call("cuStreamCreate", 1)  # CU_STREAM_NON_BLOCKING
        driver.call("cuStreamBeginCapture", self._stream, driver.capture_mode())
        try:
            record(int(self._stream))
        finally:
            graph = driver.call("cuStreamEndCapture", self._stream)
        self._graph: object = driver.call("cuGraphInstantiate", graph, 0)
        driver.call("cuGraphDestroy", graph)

    def launch(self, stream: object = None) -> None:
        """Starts all launches on a stream, and waits for them where none is given."""
        if self._graph is None:
            raise FragirError("the graph is closed", hint="make another with program.graph(...)")
        handle = stream_handle(stream)
        driver.call("cuGraphLaunch", self._graph, handle)
        if stream is None:
            driver.call("cuStreamSynchronize", handle)

    def close(self) -> None:
        """Frees the graph and its temporaries."""
        if self._graph is not None:
            driver.call("cuGraphExecDestroy", self._graph)
            driver.call("cuStreamDestroy", self._stream)
            self._graph = None
            self._memory.free()


# -- reports ---------------------------------------------------------------------------------------
# The emulator's reports of several launches as one.


def join_reports(reports: Sequence[Report]) -> Report:
    """All findings, remarks, notes and texts in order; instructions counted together.

    A statement that several launches come to has one finding of a kind.
    """
    whole = Report()
    for report in reports:
        whole.add(report)
    known = [one for one in whole.findings if one.places]  # other lines are of several texts
    whole.findings = gather(known) + [one for one in whole.findings if not one.places]
    return whole
