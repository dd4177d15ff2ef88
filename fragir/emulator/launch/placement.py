"""Where variables lie, in memory and in frames, and those that a launch sets and reads by name."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from fragir.emulator.instructions.call_frames import FRAME
from fragir.emulator.launch.arguments import Array, arrays_of, bytes_of
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import GLOBAL_BASE, ArrayContents, DeviceMemory
from fragir.emulator.machine.state import Dim3
from fragir.emulator.program.entities import Symbol, constant_or_none, type_size
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError
from fragir.ptx import tree

# -- environment -----------------------------------------------------------------------------------
# What a kernel finds beside its arguments: the system's shared memory, the grid's workspace.
#
# Cooperative groups are where both are met. Block tiles of more than a warp keep their barriers in
# the shared memory that the system has reserved (%reserved_smem_offset_*, PTX ISA 9.2, section
# 10.48). A grid that synchronises finds the address of a workspace in %envreg1 (its high half) and
# %envreg2: a size, and 4 bytes on the barrier of all blocks, which are on the machine together.

#: Bytes that the system takes of every block's shared memory, before the kernel's own.
RESERVED = 1024
_OFFSETS = {"begin": 0, "end": RESERVED, "cap": RESERVED, "0": 0, "1": RESERVED // 2}
_RESERVED = re.compile(r"%reserved_smem_offset_(begin|end|cap|0|1)")

WORKSPACE = 8
_HIGH, _LOW = "envreg1", "envreg2"
#: Of a machine with 132 multiprocessors (%nsmid): warps and blocks of each.
_PROCESSORS, _WARPS, _BLOCKS = 132, 64, 32


def reserved_bytes(program: Program) -> int:
    """The first bytes of shared memory that are not the kernel's; 0 where it looks at none."""
    return RESERVED if any(_RESERVED.fullmatch(name) for name in program.special_names) else 0


def is_cooperative(program: Program) -> bool:
    """Whether a kernel looks for the workspace of a cooperative launch."""
    names = program.special_names
    return f"%{_HIGH}" in names and f"%{_LOW}" in names


def check_resident(block: Dim3, grid: Dim3) -> None:
    """EmulationError where a cooperative grid does not fit the machine at once."""
    warps = -(-block[0] * block[1] * block[2] // 32)
    most = _PROCESSORS * min(_BLOCKS, _WARPS // warps)
    blocks = grid[0] * grid[1] * grid[2]
    if blocks > most:
        raise EmulationError(
            f"a cooperative launch has all blocks on the machine together: {blocks} of {warps}"
            f" warps are more than the {most} of {_PROCESSORS} multiprocessors"
        )


def provide(machine: Machine, workspace: int | None, reserved: int) -> None:
    """Makes what a kernel finds: the workspace's address (None: there is none), the offsets."""
    values = machine.environment
    if workspace is not None:
        values |= {_HIGH: workspace >> 32, _LOW: workspace & 0xFFFFFFFF}
    if reserved:
        values |= {f"reserved_smem_offset_{name}": at for name, at in _OFFSETS.items()}
    machine.reserved_shared = reserved


def allocate_workspace(memory: DeviceMemory) -> int:
    """The address of the grid's workspace."""
    return memory.allocate("the grid's workspace", WORKSPACE).address


# -- initial ---------------------------------------------------------------------------------------
# Initial values of variables as bytes (PTX ISA 9.2, sections 4.5 and 5.4.4).
#
# ptxas decides what is not written there: an array needs braces and a scalar has none, integers
# take no floating-point numbers nor the other way round, `.b32` and `.b64` take both, and elements
# follow each other without gaps where inner braces hold fewer than there is room for.

_FLOATS = {"f32": "<f", "f64": "<d", "b32": "<f", "b64": "<d"}
_INTEGERS = {f"{sign}{width}" for sign in "sub" for width in (8, 16, 32, 64)} | {"b128"}
#: Spaces whose variables have addresses that an initial value can hold.
_ADDRESSED = {"global": GLOBAL_BASE, "const": 0, "function": 0}


def image(program: Program, symbol: Symbol) -> bytes:
    """The bytes that a variable begins with. FragirError where they are none of its type."""
    variable, declaration = symbol.variable, symbol.declaration
    if variable is None or declaration is None or variable.initializer is None:
        return b""
    kind = declaration.type
    if kind not in _INTEGERS and kind not in _FLOATS:
        text = f"{symbol.name} is a .{kind}, which has no initial value"
        raise program.error(text, variable.at)
    extents = [None if d is None else program.constant(d) for d in variable.dimensions]
    if declaration.vector is not None:
        extents.append(int(declaration.vector[1:]))
    values = list(_elements(program, symbol, variable.initializer, extents))
    return b"".join(_value(program, value, kind) for value in values)


def _elements(
    program: Program, symbol: Symbol, node: tree.Operand, extents: list[int | None]
) -> Iterator[tree.Operand]:
    """The values of an initialiser in order; braces go as deep as the variable has dimensions."""
    if not extents:
        if isinstance(node, tree.Vector):
            raise program.error(f"an element of {symbol.name} is one value, not a list", node.at)
        yield node
        return
    if not isinstance(node, tree.Vector):
        raise program.error(f"{symbol.name} is an array: its values stand in braces", node.at)
    most = extents[0]
    if most is not None and len(node.elements) > most:
        raise program.error(
            f"{symbol.name} has too many initial values: {len(node.elements)} for {most}", node.at
        )
    for element in node.elements:
        yield from _elements(program, symbol, element, extents[1:])


def _value(program: Program, node: tree.Operand, kind: str) -> bytes:
    size = type_size(kind)
    if kind in _FLOATS:
        number = _number(program, node)
        if number is not None:
            return _pack(program, node, number, kind)
    if kind[0] == "f":
        raise program.error(f"a .{kind} begins with a floating-point number, say 1.0", node.at)
    value = constant_or_none(node)
    if value is None:
        value = _address(program, node, kind)
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _pack(program: Program, node: tree.Operand, number: float, kind: str) -> bytes:
    try:
        return struct.pack(_FLOATS[kind], number)
    except OverflowError:
        raise program.error(f"{number:g} is no .{kind}", node.at) from None


def _number(program: Program, node: tree.Operand) -> float | None:
    """The value of a floating-point expression; None where it has no such number."""
    match node:
        case tree.Float():
            return node.value
        case tree.Parens(elements=(inner,)):
            return _number(program, inner)
        case tree.Unary(operator="-" | "+"):
            value = _number(program, node.operand)
            return -value if value is not None and node.operator == "-" else value
        case tree.Binary(operator="+" | "-" | "*" | "/"):
            left, right = _number(program, node.left), _number(program, node.right)
            if left is None or right is None:
                return None
            return _arithmetic(node.operator, left, right)
        case tree.Conditional():
            condition = constant_or_none(node.condition)
            if condition is None:
                return None
            return _number(program, node.then if condition else node.otherwise)
        case _:
            return None


def _arithmetic(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _ if right:
            return left / right
        case _:
            return math.nan if not left else math.copysign(math.inf, left) * math.copysign(1, right)


def _address(program: Program, node: tree.Operand, kind: str, generic: bool = False) -> int:
    """The address of a variable, with an offset, as a generic one, or some bytes of it."""
    match node:
        case tree.Parens(elements=(inner,)):
            return _address(program, inner, kind, generic)
        case tree.Binary(operator="+" | "-"):
            offset = program.constant(node.right)
            base = _address(program, node.left, kind, generic)
            return base + (offset if node.operator == "+" else -offset)
        case tree.Apply(function=tree.Integer(value=mask)) if mask:
            shift = (mask & -mask).bit_length() - 1
            return (_address(program, node.argument, kind, generic) & mask) >> shift
        case tree.Apply(function=tree.Name(text="generic")):
            return _address(program, node.argument, kind, True)
        case tree.Name():
            return _place(program, node, generic)
        case tree.Float():
            raise program.error(f"a .{kind} begins with an integer", node.at)
        case _:
            raise program.error("an initial value is a constant or an address", node.at)


def _place(program: Program, node: tree.Name, generic: bool) -> int:
    found = program.find(program.root, node.text)
    if found is None:
        raise program.error(f"{node.text} is not declared", node.at)
    is_entry = node.text in program.module.entries
    if is_entry or not isinstance(found, Symbol) or found.space not in _ADDRESSED:
        raise program.error(f"the address of {node.text} is no initial value", node.at)
    base = GLOBAL_BASE if generic and found.space == "const" else _ADDRESSED[found.space]
    return found.offset + base


#: Bytes of a lane's stack, and of all stacks together.
STACK, STACKS = 1 << 16, 1 << 26


def place_constants(program: Program, memory: DeviceMemory) -> None:
    """Constants come first in memory: their addresses have 32 bits."""
    for symbol in program.symbols:
        if symbol.space == "const":
            align = max(symbol.align, 1)
            symbol.offset = memory.allocate(symbol.name, symbol.size, align).start


def place_variables(program: Program, memory: DeviceMemory, shared: int) -> tuple[int, int]:
    """Give every variable its offset; bytes of static shared memory, rounded up, and of local."""
    static, local = reserved_bytes(program), 0
    used = program.symbols
    for symbol in used:
        align = max(symbol.align, 1)
        if symbol.space == "shared" and not symbol.used:
            continue  # it is another kernel's
        if symbol.space == "global":
            buffer = memory.allocate(symbol.name, symbol.size, align)
            symbol.offset = buffer.start
        elif symbol.space == "shared":
            static = (static + align - 1) // align * align
            symbol.offset = static
            static += symbol.size
        elif symbol.space == "local" and not symbol.framed:
            align = max(align, 8)
            local = (local + align - 1) // align * align
            symbol.offset = local
            local += symbol.size
    dynamic = any(s.space == "dynamic" for s in used)
    if shared or dynamic:
        static = (static + 1023) // 1024 * 1024
    for symbol in used:
        if symbol.space == "dynamic":
            symbol.offset = static
    return static, local


def lay_out_frames(program: Program) -> None:
    """Variables of recursive functions get offsets in a frame."""
    for routine in program.routines.values():
        if not program.is_recursive(routine):
            continue
        size = 0
        for symbol in routine.variables:
            if symbol.space == "local":
                align = max(symbol.align, 8)
                symbol.framed, symbol.offset = True, (size + align - 1) // align * align
                size = symbol.offset + symbol.size
        routine.frame_size = max((size + FRAME - 1) // FRAME * FRAME, FRAME)


def stack_of(local: int, stack: int | None, warps: int) -> tuple[int, int]:
    """Where the lanes' stack for frames and alloca begins, behind the variables, and where it ends.

    `local`: bytes of a lane's variables; `stack`: bytes asked for, None for what fits `warps`.
    """
    base = (local + FRAME - 1) // FRAME * FRAME
    if stack is None:
        stack = max(min(STACK, STACKS // (warps * LANES)), 1 << 10)
    if stack < 0:
        raise EmulationError(f"a stack has no {stack} bytes")
    return base, base + stack


def initialise(program: Program, memory: DeviceMemory) -> None:
    """Write the initial values of global and constant variables."""
    for symbol in program.symbols:
        if symbol.space in ("global", "const"):
            data = image(program, symbol)
            start = symbol.offset
            memory.globals.bytes[start : start + len(data)] = np.frombuffer(data, np.uint8)


# -- variables -------------------------------------------------------------------------------------
# Variables in global and constant memory that a launch sets and reads, by their names.

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

    def contents(self, structure: Collection[str]) -> Iterator[ArrayContents]:
        """The data in the variables, but for those named."""
        for symbol, _ in self._pairs:
            if symbol.name not in structure and symbol.size:
                yield ArrayContents(symbol.name, symbol.offset, symbol.size)

    def store(self, memory: DeviceMemory) -> None:
        """Copy what the kernel has made of them into the arrays."""
        for symbol, array in self._pairs:
            if symbol.space == "global" and array.flags.writeable:
                start = symbol.offset
                bytes_of(array)[...] = memory.globals.bytes[start : start + array.nbytes]


def structure_names(program: Program, given: Sequence[int | str]) -> list[str]:
    """The parameters and variables that a launch names as part of it. EmulationError for others."""
    if isinstance(given, str) or not isinstance(cast("object", given), Sequence):
        raise EmulationError("structure is a list of names or numbers of parameters")
    parameters = [p.name for p in program.main.parameters if isinstance(p, Symbol)]
    variables = [s.name for s in program.symbols if s.space in ("global", "const")]
    found: list[str] = []
    for one in given:
        if isinstance(one, int) and 0 <= one < len(parameters):
            found.append(parameters[one])
        elif one in parameters or one in variables:
            found.append(str(one))
        else:
            names = ", ".join([*parameters, *variables])
            hint = f"it has: {names}" if names else None
            raise EmulationError(f"structure: {program.entry} has no parameter {one}", hint=hint)
    return found


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
