"""Functions that nvcc calls and no PTX defines: printf, the heap, failed assertions.

`vprintf(format, arguments)`: a C format and a buffer that holds the arguments one after the other,
each at a multiple of its size (CUDA C++ Programming Guide, "Formatted Output" and "Dynamic Global
Memory Allocation and Operations").
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.memory import GLOBAL_BASE, AccessFault
from fragir.emulator.report import EmulationError

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine

#: One lane's call: (machine, flat lane, arguments) -> result.
Act = Callable[["Machine", int, list[int]], int]
LONGEST = 1 << 16  # bytes of a string

_DIRECTIVE = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    r"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXeEfFgGaAcsp%])"
)


@dataclass(frozen=True, slots=True)
class Extern:
    """Sizes in bytes of parameters and result (0: none, taken as 4), and what it does."""

    parameters: tuple[int, ...]
    result: int
    act: Act


def bytes_at(machine: Machine, lane: int, address: int, count: int) -> bytes:
    """Bytes that one lane reads at a generic address. AccessFault where they are not."""
    memory = machine.memory
    warp = np.array([lane // LANES])
    mask = np.zeros((1, LANES), np.bool_)
    mask[0, lane % LANES] = True
    # a word at once, where it is one
    step = count if count in (2, 4, 8) and address % count == 0 else 1
    result = bytearray()
    for offset in range(0, count, step):
        where = np.array([(address + offset) & (1 << 64) - 1], np.uint64)
        arena, at, _ = memory.spaces("generic", where, warp, mask, step)[0]
        first = int(at.flat[0])
        result += arena.bytes[first : first + step].tobytes()
    return bytes(result)


def text_at(machine: Machine, lane: int, address: int) -> str:
    """A string that ends with a zero byte."""
    found = _global_text(machine, address)
    if found is not None:
        return found
    result = bytearray()
    while len(result) < LONGEST:
        byte = bytes_at(machine, lane, address + len(result), 1)
        if byte == b"\0":
            return result.decode("utf-8", "replace")
        result += byte
    raise AccessFault(f"a string of more than {LONGEST} bytes", address, 0)


def _global_text(machine: Machine, address: int) -> str | None:
    """A string in global memory, read at once; None where it is not one."""
    if address < GLOBAL_BASE:
        return None
    data = machine.memory.rest_of_buffer(address, LONGEST)
    return data[: data.index(0)].decode("utf-8", "replace") if 0 in data else None


class _Arguments:
    """The buffer of a vprintf, read from its start."""

    def __init__(self, machine: Machine, lane: int, address: int) -> None:
        self.machine, self.lane, self.address = machine, lane, address
        self.at = 0

    def take(self, size: int) -> bytes:
        self.at = (self.at + size - 1) // size * size
        data = bytes_at(self.machine, self.lane, self.address + self.at, size)
        self.at += size
        return data

    def integer(self, size: int, signed: bool) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)


def formatted(machine: Machine, lane: int, form: str, address: int) -> str:
    """What printf prints."""
    arguments = _Arguments(machine, lane, address)

    def one(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind == "%":
            return "%"
        width, precision = match["width"], match["precision"]
        if width == "*":
            width = str(arguments.integer(4, True))
        if precision == "*":
            precision = str(max(arguments.integer(4, True), 0))
        flags = match["flags"]
        if width is not None and width.startswith("-"):
            flags, width = flags + "-", width[1:]
        style = f"%{flags}{width or ''}{'' if precision is None else '.' + (precision or '0')}"
        if kind in "diouxX":
            size = 8 if match["length"] in ("l", "ll", "j", "z", "t") else 4
            value = arguments.integer(size, kind in "di")
            narrow = {"h": 2, "hh": 1}.get(match["length"] or "")
            if narrow is not None:
                low = value & ((1 << 8 * narrow) - 1)
                negative = kind in "di" and low >> (8 * narrow - 1)
                value = low - (1 << 8 * narrow) if negative else low
            if kind == "o" and "#" in flags:
                return (style.replace("#", "") + "s") % f"0{value:o}"
            if kind in "xX" and "#" in flags and value == 0:
                style = style.replace("#", "")
            return (style + {"i": "d", "u": "d"}.get(kind, kind)) % value
        if kind == "c":
            return (style + "s") % chr(arguments.integer(4, False) & 0xFF)
        if kind == "s":
            place = arguments.integer(8, False)
            return (style + "s") % (text_at(machine, lane, place) if place else "(null)")
        if kind == "p":
            value = arguments.integer(8, False)
            return (style.split(".")[0] + "s") % (f"0x{value:x}" if value else "(nil)")
        (number,) = struct.unpack("<d", arguments.take(8))
        if kind in "aA":
            text = float(number).hex()
            return (style.split(".")[0] + "s") % (text.upper() if kind == "A" else text)
        return (style + kind) % number

    return _DIRECTIVE.sub(one, form)


def _vprintf(machine: Machine, lane: int, values: list[int]) -> int:
    place, address = values
    form = text_at(machine, lane, place)
    text = formatted(machine, lane, form, address)
    machine.report.printed.append(text)
    machine.said[lane] = text
    if machine.output is not None:
        machine.output.write(text)
    return len(_DIRECTIVE.findall(form.replace("%%", "")))


def _malloc(machine: Machine, lane: int, values: list[int]) -> int:
    buffer = machine.memory.heap_take(values[0])
    return 0 if buffer is None else buffer.address


def _free(machine: Machine, lane: int, values: list[int]) -> int:
    (address,) = values
    if address and not machine.memory.heap_give(address - GLOBAL_BASE):
        raise AccessFault("free of what malloc has not given, or twice", address, 0)
    return 0


def _assertion(machine: Machine, lane: int, values: list[int]) -> int:
    message, file, line, function, _ = values
    words = [text_at(machine, lane, place) if place else "?" for place in (message, file, function)]
    said = machine.said.get(lane, "").strip()
    error = EmulationError(
        f"assertion failed: {words[0]}, {words[1]}:{line}, in {words[2]}"
        + (f"; it has printed: {said}" if said else "")
    )
    error.warp, error.lane = divmod(lane, LANES)
    raise error


EXTERNS: dict[str, Extern] = {
    "vprintf": Extern((8, 8), 4, _vprintf),
    "malloc": Extern((8,), 8, _malloc),
    "free": Extern((8,), 4, _free),
    "__assertfail": Extern((8, 8, 4, 8, 8), 4, _assertion),
}
