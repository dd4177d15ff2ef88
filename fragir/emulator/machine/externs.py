"""Functions that nvcc calls and no PTX defines: printf, the heap, failed assertions.

`vprintf(format, arguments)`: a C format and a buffer that holds the arguments one after the other,
each at a multiple of its size (CUDA C++ Programming Guide, "Formatted Output" and "Dynamic Global
Memory Allocation and Operations").
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.memory import GLOBAL_BASE, LOCAL_WINDOW, AccessFault
from fragir.emulator.report import EmulationError
from fragir.errors import callers_code

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine

LONGEST = 1 << 16  # bytes of a string

_DIRECTIVE = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    r"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXeEfFgGaAcsp%])"
)


class Call:
    """The lanes' calls of one instruction, made one after the other; none writes strings."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.texts: dict[int, str] = {}  # of strings in global memory, by address

    def text_at(self, lane: int, address: int) -> str:
        """A string that ends with a zero byte."""
        found = self.texts.get(address)
        if found is None:
            found = _global_text(self.machine, address)
            if found is None:
                return _own_text(self.machine, lane, address)
            self.texts[address] = found
        return found


#: One lane's call: (call, flat lane, arguments) -> result.
Act = Callable[[Call, int, Sequence[int]], int]


@dataclass(frozen=True, slots=True)
class Extern:
    """Sizes in bytes of parameters and result (0: none, taken as 4), and what it does."""

    parameters: tuple[int, ...]
    result: int
    act: Act


def bytes_at(machine: Machine, lane: int, address: int, count: int) -> bytes:
    """Bytes that one lane reads at a generic address. AccessFault where they are not."""
    memory = machine.memory
    if 0 <= (offset := address - LOCAL_WINDOW) <= memory.local_size - count:  # quickly
        first = offset + int(memory.local_home[lane // LANES, lane % LANES])
        return memory.local.bytes[first : first + count].tobytes()
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


def _own_text(machine: Machine, lane: int, address: int) -> str:
    """A string in a lane's own memory, or its block's."""
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

    def __init__(self, call: Call, lane: int, address: int) -> None:
        self.call, self.lane, self.address = call, lane, address
        self.at = 0

    def take(self, size: int) -> bytes:
        self.at = (self.at + size - 1) // size * size
        data = bytes_at(self.call.machine, self.lane, self.address + self.at, size)
        self.at += size
        return data

    def integer(self, size: int, signed: bool) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)


#: What prints one directive.
_Shows = Callable[[_Arguments], str]


@lru_cache(maxsize=256)
def _pieces(form: str) -> tuple[tuple[str | _Shows, ...], int]:
    """A format as texts and what prints its directives, and how many of these there are."""
    made: list[str | _Shows] = []
    at = count = 0
    for match in _DIRECTIVE.finditer(form):
        made.append(form[at : match.start()])
        at = match.end()
        if match["kind"] == "%":
            made.append("%")
        else:
            made.append(_shows(match))
            count += 1
    return (*made, form[at:]), count


def _shows(match: re.Match[str]) -> _Shows:
    width, precision = match["width"], match["precision"]
    if "*" not in (width, precision):
        return _style(match["flags"], width, precision, match["length"], match["kind"])

    def one(arguments: _Arguments) -> str:
        flags, wide, exact = match["flags"], width, precision
        if wide == "*":
            wide = str(arguments.integer(4, True))
        if exact == "*":
            exact = str(max(arguments.integer(4, True), 0))
        if wide is not None and wide.startswith("-"):
            flags, wide = flags + "-", wide[1:]
        return _style(flags, wide, exact, match["length"], match["kind"])(arguments)

    return one


def _style(
    flags: str, width: str | None, precision: str | None, length: str | None, kind: str
) -> _Shows:
    """What prints one argument in a style of C's that Python's `%` has too, or nearly."""
    style = f"%{flags}{width or ''}{'' if precision is None else '.' + (precision or '0')}"
    as_text = style.split(".")[0] + "s"
    if kind in "diouxX":
        return _whole_number(flags, style, length, kind)
    if kind == "c":
        return lambda arguments: (style + "s") % chr(arguments.integer(4, False) & 0xFF)
    if kind == "s":

        def string(arguments: _Arguments) -> str:
            place = arguments.integer(8, False)
            text = arguments.call.text_at(arguments.lane, place) if place else "(null)"
            return (style + "s") % text

        return string
    if kind == "p":

        def pointer(arguments: _Arguments) -> str:
            value = arguments.integer(8, False)
            return as_text % (f"0x{value:x}" if value else "(nil)")

        return pointer

    def number(arguments: _Arguments) -> str:
        (value,) = _DOUBLE.unpack(arguments.take(8))
        if kind in "aA":
            text = float(value).hex()
            return as_text % (text.upper() if kind == "A" else text)
        return (style + kind) % value

    return number


def _whole_number(flags: str, style: str, length: str | None, kind: str) -> _Shows:
    size, signed = 8 if length in ("l", "ll", "j", "z", "t") else 4, kind in "di"
    bits = {"h": 16, "hh": 8}.get(length or "")
    bare, python = style.replace("#", ""), {"i": "d", "u": "d"}.get(kind, kind)

    def one(arguments: _Arguments) -> str:
        value = arguments.integer(size, signed)
        if bits is not None:
            low = value & ((1 << bits) - 1)
            value = low - (1 << bits) if signed and low >> (bits - 1) else low
        if kind == "o" and "#" in flags:
            return (bare + "s") % f"0{value:o}"
        if kind in "xX" and "#" in flags and value == 0:
            return (bare + python) % value
        return (style + python) % value

    return one


_DOUBLE = struct.Struct("<d")


def _vprintf(call: Call, lane: int, values: Sequence[int]) -> int:
    place, address = values
    pieces, count = _pieces(call.text_at(lane, place))
    arguments = _Arguments(call, lane, address)
    text = "".join([one if isinstance(one, str) else one(arguments) for one in pieces])
    machine = call.machine
    machine.report.printed.append(text)
    machine.said[lane] = text
    if machine.output is not None:
        with callers_code():
            machine.output.write(text)
    return count


def _malloc(call: Call, lane: int, values: Sequence[int]) -> int:
    buffer = call.machine.memory.heap_take(values[0])
    return 0 if buffer is None else buffer.address


def _free(call: Call, lane: int, values: Sequence[int]) -> int:
    (address,) = values
    if address and not call.machine.memory.heap_give(address - GLOBAL_BASE):
        raise AccessFault("free of what malloc has not given, or twice", address, 0)
    return 0


def _assertion(call: Call, lane: int, values: Sequence[int]) -> int:
    message, file, line, function, _ = values
    words = [call.text_at(lane, place) if place else "?" for place in (message, file, function)]
    said = call.machine.said.get(lane, "").strip()
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
