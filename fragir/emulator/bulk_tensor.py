"""cp.async.bulk.tensor: tiles of arrays by a tensor map (PTX ISA 9.2, sections 5.5 and 9.7.9.27).

Tiled mode, 1 to 5 dimensions, all swizzles of 16-byte chunks, element strides, fill outside the
array, multicast, store and reduction. im2col and packed 4- and 6-bit types are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fragir.emulator.access import get
from fragir.emulator.alu import Function
from fragir.emulator.asynchronous import Transfer
from fragir.emulator.common import I64, UINT, EmulationError, Mask, Step, where
from fragir.emulator.memory import GLOBAL_BASE, SHARED_WINDOW, AccessFault, Buffer, Memory
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.decode import Decoder
    from fragir.emulator.state import Machine

SIZE = 128  # bytes of a tensor map
_MAGIC = b"fragir tensormap"
_REDUCE: dict[str, Function] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@dataclass(frozen=True, eq=False)
class TensorMap:
    """What `cuTensorMapEncodeTiled` makes: how tiles of `array` are copied.

    Dimensions go outermost first, as in numpy. `box`: the tile. `swizzle`: width of the pattern in
    bytes, 0 for none. `strides`: bytes, for all dimensions (default: the array's own).
    `element_strides`: every how many elements one is taken. `fill`: what elements outside the
    array read as; NaN needs a floating-point dtype.
    """

    array: npt.NDArray[Any]
    box: tuple[int, ...]
    swizzle: Literal[0, 32, 64, 128] = 0
    strides: tuple[int, ...] | None = None
    element_strides: tuple[int, ...] | None = None
    fill: Literal["zero", "nan"] = "zero"

    def __post_init__(self) -> None:
        rank = self.array.ndim
        if not 1 <= rank <= 5 or len(self.box) != rank:
            raise EmulationError(
                f"a tensor map has 1 to 5 dimensions and a box of as many, not {rank} and "
                f"{len(self.box)}"
            )
        if any(not 1 <= b <= 256 for b in self.box):
            raise EmulationError(f"the sides of a box are 1 to 256, not {self.box}")
        inner = self.box[-1] * self.array.itemsize
        if inner % 16:
            raise EmulationError(f"the inner side of a box is a multiple of 16 bytes, not {inner}")
        if self.swizzle and inner > self.swizzle:
            raise EmulationError(
                f"the inner side of the box has {inner} bytes, more than swizzle {self.swizzle}"
            )

    @property
    def steps(self) -> tuple[int, ...]:
        return self.element_strides or (1,) * self.array.ndim

    @property
    def pitches(self) -> tuple[int, ...]:
        return self.strides or self.array.strides

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements of a tile in every dimension."""
        return tuple(-(-b // s) for b, s in zip(self.box, self.steps, strict=True))

    @property
    def bytes(self) -> int:
        return int(np.prod(self.counts)) * self.array.itemsize

    def image(self, index: int) -> bytes:
        """The 128 opaque bytes that stand for map number `index` of a launch."""
        return (_MAGIC + struct.pack("<I", index)).ljust(SIZE, b"\0")

    def elements(self, corner: Sequence[int]) -> tuple[I64, npt.NDArray[np.bool_]]:
        """(byte offsets in the array, which are inside it) of a tile; corner outermost first."""
        offset: Any = np.zeros((), np.int64)
        inside: Any = np.ones((), np.bool_)
        for axis, (start, count, step) in enumerate(
            zip(corner, self.counts, self.steps, strict=True)
        ):
            shape = [1] * self.array.ndim
            shape[axis] = count
            index = (start + step * np.arange(count)).reshape(shape)
            inside = inside & (index >= 0) & (index < self.array.shape[axis])
            offset = offset + index * self.pitches[axis]
        return np.broadcast_to(offset, self.counts), np.broadcast_to(inside, self.counts)

    def swizzled(self, start: int) -> I64:
        """Byte positions of the tile's elements in shared memory, beginning at `start`."""
        size = self.array.itemsize
        at = start + size * np.arange(int(np.prod(self.counts)), dtype=np.int64)
        if self.swizzle:
            at ^= ((at >> 7) & (self.swizzle // 16 - 1)) << 4
        return at.reshape(self.counts)

    def filler(self) -> Any:
        """The bits of an element outside the array."""
        unsigned = UINT[self.array.itemsize]
        if self.fill == "zero":
            return np.zeros((), unsigned)
        return np.full(1, np.nan).astype(self.array.dtype).view(unsigned)[0]


def find_map(machine: Machine, address: int) -> tuple[TensorMap, Buffer]:
    """The tensor map whose bytes lie at a generic address."""
    start = address - GLOBAL_BASE
    data = machine.memory.globals.bytes[max(start, 0) : max(start, 0) + SIZE].tobytes()
    if start < 0 or not data.startswith(_MAGIC):
        raise AccessFault("there is no tensor map at this address", address, 0, "out-of-bounds")
    if address % 64:
        raise AccessFault("a tensor map must be 64-byte aligned", address, 0, "misaligned")
    (index,) = struct.unpack_from("<I", data, len(_MAGIC))
    return machine.tensor_maps[index]


def tensor_copy(d: Decoder, ins: tree.Instruction) -> Step:
    """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor."""
    words = ins.opcode
    if any(w.startswith(("im2col", "tile::", "cta_group")) for w in words):
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    rank = next(int(w[0]) for w in words if len(w) == 2 and w[1] == "d")
    loads = words[words.index(f"{rank}d") + 1].startswith("shared")
    operand = d.operand(ins, 1 if loads else 0)
    if not isinstance(operand, tree.Address) or len(operand.rest) != 1:
        raise d.error(ins, f"{ins.mnemonic} needs [map, {{coordinates}}]")
    coordinates = [d.row(ins, c, "s32") for c in d.vector(operand.rest[0])]
    if len(coordinates) != rank:
        raise d.error(ins, f"{ins.mnemonic} needs {rank} coordinates, not {len(coordinates)}")
    the_map = d.place_of(ins, operand, "generic")
    shared = d.place(ins, 0 if loads else 1, "shared")
    barrier = d.place(ins, 2, "shared") if loads else None
    multicast = d.source(ins, 3, "u16") if "multicast::cluster" in words else None
    reduction = next((w for w in words if w in _REDUCE), None) if words[1] == "reduce" else None
    if words[1] == "reduce" and reduction is None:
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    machine = d.machine
    memory = machine.memory

    def run(sel: Any, mask: Mask) -> None:
        lanes = get(machine.engine.lane_ids, sel, mask).ravel()
        maps = the_map.at(sel, mask).ravel()
        places = _plain(shared.at(sel, mask)).ravel()
        homes = get(memory.shared_home, sel, mask).ravel()
        corners = [get(c, sel, mask).ravel() for c in coordinates]
        groups = get(machine.engine.bulk_committed, sel, mask).ravel()
        signals = None if barrier is None else _plain(barrier.at(sel, mask)).ravel()
        chosen = None if multicast is None else get(multicast, sel, mask).ravel()
        for index, lane in enumerate(lanes):
            one = slice(index, index + 1)
            try:
                tensor, buffer = find_map(machine, int(maps[index]))
                if tensor.array.ndim != rank:
                    raise AccessFault(
                        f"the tensor map has {tensor.array.ndim} dimensions", int(maps[index]), 0
                    )
                memory.locate_shared(
                    places[one] + places.dtype.type(tensor.bytes - 16), homes[one], 16
                )
                if int(places[index]) % 128:
                    raise AccessFault(
                        "a tile must be 128-byte aligned", int(places[index]), 0, "misaligned"
                    )
                start = int(memory.locate_shared(places[one], homes[one], 16)[0])
                word = -1
                if signals is not None:
                    word = int(memory.locate_shared(signals[one], homes[one], 8)[0])
            except AccessFault as fault:
                fault.index = index
                raise
            corner = [int(c[index]) for c in reversed(corners)]
            if signals is None:
                _store(
                    machine, tensor, buffer, corner, start, int(lane), int(groups[index]), reduction
                )
                continue
            home, stride = int(homes[index]), memory.shared_stride
            targets = [(start, word)]
            if chosen is not None:
                targets = [
                    (
                        home + r * stride + (start - home) % stride,
                        home + r * stride + (word - home) % stride,
                    )
                    for r in range(memory.cluster)
                    if int(chosen[index]) >> r & 1
                ]
            for to, signal in targets:
                _load(machine, tensor, buffer, corner, to, signal, int(lane))

    return run


def _plain(address: Any) -> Any:
    """Shared addresses, given as such or generic."""
    if address.dtype.itemsize == 8:
        return where(address >= SHARED_WINDOW, address - np.uint64(SHARED_WINDOW), address)
    return address


def _load(
    machine: Machine,
    tensor: TensorMap,
    buffer: Buffer,
    corner: Sequence[int],
    start: int,
    word: int,
    lane: int,
) -> None:
    size = tensor.array.itemsize
    shift = size.bit_length() - 1

    def move(memory: Memory) -> None:
        offsets, inside = tensor.elements(corner)
        filler = tensor.filler() if memory is machine.memory else np.zeros((), UINT[size])
        at = np.where(inside, offsets + buffer.start, 0) >> shift
        values = np.where(inside, memory.globals.view(size)[at], filler)
        memory.shared.view(size)[tensor.swizzled(start) >> shift] = values

    chunks = np.arange(start, start + tensor.bytes, 16, dtype=np.int64)
    machine.report.statistics.loaded["global"] += tensor.bytes
    machine.engine.transfer(
        Transfer(
            move,
            np.array([lane]),
            chunks,
            "cp.async.bulk.tensor",
            signal=word,
            size=tensor.bytes,
        )
    )


def _store(
    machine: Machine,
    tensor: TensorMap,
    buffer: Buffer,
    corner: Sequence[int],
    start: int,
    lane: int,
    group: int,
    reduction: str | None,
) -> None:
    size = tensor.array.itemsize
    shift = size.bit_length() - 1

    def move(memory: Memory) -> None:
        offsets, inside = tensor.elements(corner)
        values = memory.shared.view(size)[tensor.swizzled(start) >> shift][inside]
        cells = (offsets + buffer.start)[inside] >> shift
        target = memory.globals.view(size)
        if reduction is not None and memory is machine.memory:
            kind = tensor.array.dtype
            old = target[cells].view(kind)
            values = _REDUCE[reduction](old, values.view(kind)).astype(kind).view(UINT[size])
        target[cells] = values

    machine.report.statistics.stored["global"] += tensor.bytes
    machine.engine.transfer(
        Transfer(
            move,
            np.array([lane]),
            None,
            "cp.async.bulk.tensor",
            group,
            np.arange(start, start + tensor.bytes, 16, dtype=np.int64),
            size=tensor.bytes,
        )
    )
