"""Coordinates of lanes and warps: a layout's hardware part as index values."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.layout import Layout, Mode
from fragir.passes.lowering.arithmetic import Arithmetic, Value
from fragir.passes.lowering.shared import LaneOffset

INDEX = IndexType()


class Hardware:
    """The thread's place in its block."""

    def __init__(self, ar: Arithmetic, threads: int):
        self.ar = ar
        self.threads = threads

    def special(self, register: str, name: str) -> SSAValue:
        """A special register, read once at the top."""
        return self.ar.pure((register,), (), lambda: ptx.SpecialOp(register), name)

    @property
    def thread(self) -> Value:
        return self.special("tid.x", "tid")

    def axis(self, name: str) -> Value:
        """The value of the axis `thread`, `warp` or `lane`."""
        if name == "thread":
            return self.thread
        if name == "lane":
            thread = self.thread
            return thread if self.threads <= 32 else self.ar.rem(thread, 32, "lane")
        return 0 if self.threads <= 32 else self.ar.div(self.thread, 32, "warp")

    def coordinate(self, layout: Layout, dim: int) -> LaneOffset:
        """What lane, warp and thread add to a coordinate."""
        terms: list[Value] = []
        mask: int | None = 0
        for axis in layout.axes:
            if axis.name == "element":
                continue
            modes = [Mode(m.size, m.stride) for m in axis.modes if m.size > 1]
            for i, mode in enumerate(modes):
                stride = mode.stride[dim]
                if stride == 0:
                    continue
                digit = self._digit(axis.name, modes, i)
                terms.append(self.ar.mul(digit, stride))
                mask = _with(mask, mode.size, stride)
        return LaneOffset(self.ar.total(terms), mask)

    def _digit(self, axis: str, modes: list[Mode], i: int) -> Value:
        before = 1
        for mode in modes[:i]:
            before *= mode.size
        value = self.ar.div(self.axis(axis), before)
        whole = before * modes[i].size
        extent = {"lane": 32, "warp": max(1, self.threads // 32), "thread": self.threads}[axis]
        # the top digit needs no remainder, unless the axis goes on beyond the layout's modes
        return value if whole >= extent else self.ar.rem(value, modes[i].size)


def _with(mask: int | None, size: int, stride: int) -> int | None:
    """Adds the bits of a mode; None where they meet bits that are there or are no bit field."""
    if mask is None or size & (size - 1) or stride & (stride - 1) or stride < 0:
        return None
    bits = (size - 1) * stride
    return None if mask & bits else mask | bits
