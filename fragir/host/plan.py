"""What a function of the host does, step by step: its launches, and how long temporaries live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.memory_types import root_of
from fragir.dialects.shorthands import memref_type


class LaunchStep(NamedTuple):
    """A kernel that is launched, and what it gets, by name."""

    number: int
    kernel: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.number:>3}  {self.kernel}({', '.join(self.arguments)})"


class Temporary(NamedTuple):
    """Memory between kernels: how large it is, and the first and the last step that use it."""

    name: str
    dims: tuple[int | str, ...]
    element: str
    first: int
    last: int
    value: SSAValue

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def bytes(self) -> int | None:
        """Its size; None where it depends on the launch."""
        count = element_bits(memref_type(self.value.type).element_type)
        for size in self.dims:
            if not isinstance(size, int):
                return None
            count *= size
        return -(-count // 8)

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.dims)) or "one"
        size = self.bytes
        shown = "" if size is None else f", {size} bytes"
        return f"{self.name}: {shape} of {self.element}{shown}, steps {self.first} to {self.last}"


class ProgramPlan(NamedTuple):
    """The launches of a program, in order, and its temporaries."""

    launches: tuple[LaunchStep, ...]
    temporaries: tuple[Temporary, ...]

    def __repr__(self) -> str:
        return f"<{len(self.launches)} launches, {len(self.temporaries)} temporaries; print it>"

    def __str__(self) -> str:
        lines = ["launches", *map(str, self.launches)]
        if self.temporaries:
            lines += ["temporaries", *(f"     {one}" for one in self.temporaries)]
        return "\n".join(lines)


def plan_of(function: func.FuncOp) -> ProgramPlan:
    """What a function of the host does. A loop or branch at the top of the function is one
    step for what it uses.
    """
    body, launches = function.body.block, list[LaunchStep]()
    used: dict[SSAValue, list[int]] = {}
    for op in body.ops:
        first = len(launches)
        for inner in op.walk():
            if isinstance(inner, frag.LaunchOp):
                names = tuple(map(_name, inner.arguments))
                launches.append(LaunchStep(len(launches), inner.callee.string_value(), names))
        steps = range(first, len(launches))
        if steps:
            for value in _memories(op):
                used.setdefault(root_of(value), []).extend((steps[0], steps[-1]))
    temporaries: list[Temporary] = []
    for op in body.ops:
        if isinstance(op, memref.AllocOp):
            steps = used.get(op.memref, [0])
            dims = tuple(_dims(op))
            element = element_name(memref_type(op.memref.type).element_type)
            name = _name(op.memref)
            temporaries.append(Temporary(name, dims, element, min(steps), max(steps), op.memref))
    return ProgramPlan(tuple(launches), tuple(temporaries))


def _memories(op: Operation) -> Iterator[SSAValue]:
    for inner in op.walk():
        if isinstance(inner, frag.LaunchOp):
            yield from (x for x in inner.arguments if isinstance(x.type, MemRefType))


def _dims(op: memref.AllocOp) -> Iterator[int | str]:
    sizes = iter(op.dynamic_sizes)
    for size in memref_type(op.memref.type).get_shape():
        yield size if size >= 0 else _name(next(sizes))


def _name(value: SSAValue) -> str:
    if value.name_hint is not None:
        return value.name_hint
    owner = value.owner
    if not isinstance(owner, Operation):
        return f"arg{owner.args.index(value)}"
    type_: Attribute = value.type
    return f"a {type_}"


# -- arena -----------------------------------------------------------------------------------------
# Where temporaries lie in one piece of memory, which is used again when they are done with.

ALIGNMENT = 256
"""Bytes, at whose multiples cudaMalloc's memory and so every temporary begins."""


class Lifetime(NamedTuple):
    """A temporary's bytes, and the first and the last step that use it."""

    size: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both are in use at a time."""
        return self.first <= other.last and other.first <= self.last


class ArenaPlan(NamedTuple):
    """Offsets, one a temporary, and the bytes of all."""

    offsets: tuple[int, ...]
    size: int


def first_fit(lifetimes: Sequence[Lifetime]) -> ArenaPlan:
    """The lowest place for each that nothing else in use at the time takes, the largest first."""
    offsets = [0] * len(lifetimes)
    order = sorted(range(len(lifetimes)), key=lambda at: (-lifetimes[at].size, at))
    placed: list[int] = []
    for at in order:
        taken = sorted(
            (offsets[other], offsets[other] + _aligned_bytes(lifetimes[other].size))
            for other in placed
            if lifetimes[at].meets(lifetimes[other])
        )
        offset, size = 0, _aligned_bytes(lifetimes[at].size)
        for start, end in taken:
            if offset + size <= start:
                break
            offset = max(offset, end)
        offsets[at] = offset
        placed.append(at)
    ends = (
        offset + _aligned_bytes(one.size) for offset, one in zip(offsets, lifetimes, strict=True)
    )
    return ArenaPlan(tuple(offsets), max(ends, default=0))


def _aligned_bytes(size: int) -> int:
    """Bytes up to where the next temporary may begin."""
    return -(-size // ALIGNMENT) * ALIGNMENT
