"""Variables in global and constant memory that a launch sets and reads, by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from fragir.emulator.launch.arguments import Array, arrays_of, bytes_of
from fragir.emulator.machine.memory import DeviceMemory
from fragir.emulator.program.entities import Symbol
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError

_SHOWN = 8  # names in a message


class Variables:
    """Arrays that variables begin with, and that they are copied into at the end.

    A variable has memory of its own: nothing that a kernel writes into an array is in a variable,
    nor the other way round. Arrays that are read-only, and those of constants, are not written.
    """

    def __init__(
        self, program: Program, given: Mapping[str, object], arguments: Sequence[object]
    ) -> None:
        self._pairs: list[tuple[Symbol, Array]] = []
        known = {
            s.name: s
            for s in program.symbols
            if s.space in ("global", "const") and program.root.names.get(s.name) is s
        }
        for name, value in given.items():
            symbol = known.get(name)
            if symbol is None:
                raise EmulationError(f"there is no variable {name}", hint=_names(list(known)))
            self._pairs.append((symbol, _fitting(symbol, value)))
        self.given = frozenset(given)
        self._check_apart(arguments)

    def _check_apart(self, arguments: Sequence[object]) -> None:
        """A variable's array that is written lies in memory that nothing else uses."""
        arrays = [array for argument in arguments for _, array in arrays_of(argument, "")]
        for index, (symbol, array) in enumerate(self._pairs):
            others = [*arrays, *(other for _, other in self._pairs[:index])]
            if any(array.flags.writeable and np.may_share_memory(array, o) for o in others):
                raise EmulationError(
                    f"the array of the variable {symbol.name} overlaps another one",
                    hint="a variable has memory of its own: pass a copy",
                )

    def load(self, memory: DeviceMemory) -> None:
        """Set the variables; they must be placed and have their initial values."""
        for symbol, array in self._pairs:
            start = symbol.offset
            memory.globals.bytes[start : start + array.nbytes] = bytes_of(array)

    def store(self, memory: DeviceMemory) -> None:
        """Copy what the kernel has made of them into the arrays."""
        for symbol, array in self._pairs:
            if symbol.space == "global" and array.flags.writeable:
                start = symbol.offset
                bytes_of(array)[...] = memory.globals.bytes[start : start + array.nbytes]


def unset(program: Program, given: frozenset[str]) -> list[str]:
    """A sentence for every variable that a kernel uses and nobody has set, though it should."""
    notes: list[str] = []
    for symbol in program.symbols:
        declaration, variable = symbol.declaration, symbol.variable
        if declaration is None or variable is None or not symbol.used or symbol.name in given:
            continue
        extern = "extern" in declaration.linkage
        if variable.initializer is None and (
            symbol.space == "const" or (extern and symbol.space == "global")
        ):
            place = program.error("", variable.at).place
            what = "external variable" if extern else "constant"
            notes.append(
                f"{place}: the {what} {symbol.name} has no initial value, and the launch"
                " gives it none: it reads as zeros"
            )
    return notes


def _names(known: list[str]) -> str:
    if not known:
        return "the PTX has none"
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"it has: {', '.join(known[:_SHOWN])}{more}"


def _fitting(symbol: Symbol, value: object) -> Array:
    """The array of a variable; one without a size gets the array's."""
    if not isinstance(value, np.ndarray):
        raise EmulationError(
            f"the variable {symbol.name} takes a numpy array, not a {type(value).__name__}"
        )
    array = cast("Array", value)
    if not array.flags.c_contiguous:
        raise EmulationError(f"the array of the variable {symbol.name} must be C-contiguous")
    if symbol.size == 0:
        symbol.size = array.nbytes
    if array.nbytes != symbol.size:
        raise EmulationError(
            f"the variable {symbol.name} has {symbol.size} bytes, its array {array.nbytes}"
        )
    return array
