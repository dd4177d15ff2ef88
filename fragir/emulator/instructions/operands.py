"""Operands to rows: of the register files (views, no copies); literals are broadcast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from fragir.emulator.machine.lanes import LANES, Mask, Row, Select
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.machine.state import Clock
from fragir.emulator.numbers.rounding import encode, quantize
from fragir.emulator.numbers.types import FORMATS, UINT, Array, DType, dtype_of, layout_of, width_of
from fragir.emulator.program.dataflow import registers
from fragir.emulator.program.entities import Placed, Register, Scope, Symbol, constant_or_none
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError
from fragir.emulator.tensor_cores.forms import Settings
from fragir.ptx import tree
from fragir.ptx.opcodes.legality import plain_operand

# -- operand rows ----------------------------------------------------------------------------------
# Rows that are made of others whenever they are read.


class Negated:
    """A predicate row read through `!`."""

    dtype = np.dtype(np.bool_)

    def __init__(self, row: Row) -> None:
        self.row = row
        self.shape = row.shape

    def __getitem__(self, sel: Select) -> Array:
        return ~self.row[sel]


class Framed:
    """The address of a variable of a recursive function: where the frame of the call is."""

    def __init__(self, frame: Row, offset: int, dtype: DType) -> None:
        self.frame, self.offset, self.dtype = frame, offset, np.dtype(dtype)
        self.shape = frame.shape

    def view(self, dtype: DType) -> Framed:
        return Framed(self.frame, self.offset, dtype)

    def __getitem__(self, sel: Select) -> Array:
        return (self.frame[sel] + np.uint64(self.offset)).astype(self.dtype)


class Moved:
    """Something with a constant added, as integers of its width."""

    def __init__(self, row: Array, amount: int) -> None:
        self.row, self.amount = row, amount
        self.dtype = row.dtype
        self.shape: tuple[int, ...] = getattr(row, "shape", ())  # a clock has none

    def view(self, dtype: DType) -> Moved:
        return Moved(self.row.view(dtype), self.amount)

    def __getitem__(self, sel: Select) -> Array:
        value = self.row[sel]
        whole = np.dtype(f"u{value.dtype.itemsize}")
        return (value.view(whole) + whole.type(self.amount)).view(value.dtype)


class Widened:
    """An address of 32 bits read as one of 64, so that a window can be added to it."""

    dtype = np.dtype(np.uint64)

    def __init__(self, row: Row) -> None:
        self.row, self.shape = row, row.shape

    def __getitem__(self, sel: Select) -> Array:
        return self.row[sel].astype(np.uint64)


SPACES = {
    "global": "global",
    "const": "global",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "shared",
    "local": "local",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
}
#: Spaces of variables that no thread writes: their addresses count from the start of the arena of
#: global memory, where they come first, so that 32 bits hold them.
WINDOWS = ("const", "param")
#: Warps up to which a literal is written out for every lane, which halves the time of a step.
FEW = 32


def as_row(made: Negated | Clock | Moved | Framed | Widened) -> Row:
    """What is made whenever it is read stands where rows do."""
    return cast("Row", made)


def _is_made(row: object) -> bool:
    """Whether a row is made whenever it is read."""
    return not isinstance(row, np.ndarray)


@dataclass(slots=True)
class MemoryOperand:
    """A memory operand: `space` and the address of every lane."""

    space: str
    row: Row
    offset: int

    def at(self, sel: Select, mask: Mask) -> Array:
        """Addresses of the active lanes: [warps, 32], or compressed where there is a mask."""
        address = self.row[sel]
        if mask is not None:
            address = address[mask]
        if self.offset:
            address = address + address.dtype.type(
                self.offset & ((1 << (8 * address.itemsize)) - 1)
            )
        return address


class Decoder:
    """Reads the operands of one instruction at a time; `placed` is the current one."""

    def __init__(self, program: Program, machine: Machine, target: str, settings: Settings) -> None:
        self.program, self.machine, self.target_name = program, machine, target
        self.settings = settings
        self.placed: Placed = program.code[0]
        self._constants: dict[tuple[str, int], Row] = {}
        self.shared_by_checks: dict[int, Any] = {}  # of an instruction, by its identity
        self.wrapped: set[int] = set()  # instructions around which checks have put something
        self.watched: set[int] = set()  # those that they leave to straight-line runs

    @property
    def scope(self) -> Scope:
        return self.placed.scope

    def error(self, ins: tree.Instruction, message: str, hint: str | None = None) -> EmulationError:
        return self.program.error(message, ins.at, hint)

    # -- operands --------------------------------------------------------------------------------

    def count(self, ins: tree.Instruction) -> int:
        return len(ins.operands)

    def operand(self, ins: tree.Instruction, index: int) -> tree.Operand:
        if index >= len(ins.operands):
            raise self.error(ins, f"{ins.mnemonic} needs more than {len(ins.operands)} operands")
        return plain_operand(ins.operands[index])

    def literal(self, ins: tree.Instruction, index: int) -> int | None:
        """The value of a constant operand, None where it is none."""
        return constant_or_none(self.operand(ins, index))

    def source(self, ins: tree.Instruction, index: int, kind: str, wide: bool = False) -> Row:
        """The row of a source operand, seen as `kind`; `wide`: wider registers too."""
        return self.row(ins, self.operand(ins, index), kind, wide)

    def row(
        self, ins: tree.Instruction, operand: tree.Operand, kind: str, wide: bool = False
    ) -> Row:
        match operand:
            case tree.Name():
                return self._named_row(ins, operand, kind, wide)
            case tree.Component():
                return self._component(ins, operand, kind)
            case tree.Float():
                return self.constant(kind, self._float_bits(ins, operand, kind))
            case tree.Unary(operator="!") if kind == "pred":
                inner = self.row(ins, operand.operand, kind)
                return as_row(Negated(inner))
            case tree.Unary(operator="-", operand=tree.Float() as literal):
                bits = self._float_bits(ins, literal, kind)
                return self.constant(kind, bits ^ (1 << (width_of(kind) - 1)))
            case _:
                value = constant_or_none(operand)
                if value is None:
                    return self._symbolic(ins, operand, kind)
                return self.constant(kind, value)

    def _named_row(
        self, ins: tree.Instruction, operand: tree.Name, kind: str, wide: bool = False
    ) -> Row:
        name = operand.text
        found = self.program.find(self.scope, name)
        if isinstance(found, Register):
            return self.register_row(ins, found, kind, wide)
        if isinstance(found, Symbol):
            return self.symbol_row(found, kind)
        if name.startswith("%"):
            special = self.machine.special(name[1:])
            if special is not None:
                return self._narrow_row(ins, special, kind, name)
        if name == "WARP_SZ":
            return self.constant(kind, LANES)
        raise self.program.error(f"{name} is not declared", operand.at)

    def _component(self, ins: tree.Instruction, operand: tree.Component, kind: str) -> Row:
        name = f"{operand.base.text}.{operand.component}"
        found = self.program.find(self.scope, operand.part)
        if isinstance(found, Register):
            return self.register_row(ins, found, kind)
        special = self.machine.special(name[1:])
        if special is None:
            raise self.program.error(f"{name} is not known", operand.at)
        return self._narrow_row(ins, special, kind, name)

    def _narrow_row(self, ins: tree.Instruction, row: Row | Clock, kind: str, name: str) -> Row:
        dtype = dtype_of(kind)
        if (kind == "pred") != (row.dtype == np.bool_):
            raise self.error(ins, f"{name} cannot be used as .{kind}")
        if isinstance(row, Clock):
            if row.dtype.itemsize < dtype.itemsize:
                raise self.error(ins, f"{name} has fewer bits than .{kind}")
            return as_row(Clock(row.reads, dtype, row.shift))
        if row.dtype.itemsize == dtype.itemsize:
            return row.view(dtype)
        if row.dtype.itemsize > dtype.itemsize:
            return row.view(dtype)[:, :: row.dtype.itemsize // dtype.itemsize]
        raise self.error(ins, f"{name} has fewer bits than .{kind}")

    def _float_bits(self, ins: tree.Instruction, operand: tree.Float, kind: str) -> int:
        width = width_of(kind)
        if operand.width == width:
            return operand.bits
        form = {64: "f64", 32: "f32", 16: "bf16" if "bf16" in kind else "f16"}.get(width)
        if form is None:
            raise self.error(ins, f"a floating-point literal cannot be a .{kind}")
        value = np.array([operand.value])
        return int(
            encode(quantize(value, FORMATS[form]) if form != "f64" else value, FORMATS[form])[0]
        )

    def _symbolic(self, ins: tree.Instruction, operand: tree.Operand, kind: str) -> Row:
        """variable + constant."""
        match operand:
            case tree.Parens(elements=(inner,)):
                return self.row(ins, inner, kind)
            case tree.Binary(operator=("+" | "-") as operator):
                found = isinstance(operand.left, tree.Name) and self.program.find(
                    self.scope, operand.left.text
                )
                if isinstance(found, Symbol) and found.space == "function":
                    raise self.error(ins, f"nothing is added to the address of {found.name}")
                base = self.row(ins, operand.left, kind)
                offset = self.program.constant(operand.right)
                mask = (1 << (8 * base.dtype.itemsize)) - 1
                if self.registers(operand) or _is_made(base):
                    self._check_integer_sum(ins, operand, kind)
                    return as_row(Moved(base, (offset if operator == "+" else -offset) & mask))
                shift = np.uint64((offset if operator == "+" else -offset) & mask)
                step = shift.astype(base.dtype)  # a signed type wraps
                total = np.asarray(base + step)

                def move() -> None:  # shared memory lies elsewhere in each block: see `symbol_row`
                    np.add(base, step, out=total)

                if self.machine.cluster_size > 1:
                    self.machine.on_wave.append(move)
                return total
            case tree.Apply(function=tree.Name(text="generic"), argument=argument):
                return self.row(ins, argument, kind)
            case tree.Index():
                raise self.error(ins, "indexing a variable is not supported here")
            case _:
                raise self.error(ins, f"{ins.mnemonic} cannot take this operand")

    def _check_integer_sum(self, ins: tree.Instruction, operand: tree.Operand, kind: str) -> None:
        """Refuses a register and a constant whose sum is none of integers.

        PTX has no such operand; ptxas takes it everywhere, and says nowhere what it means.
        """
        kinds = [kind, *(register.kind for register in self.registers(operand))]
        if all(each[0] in "bsu" and "x" not in each and each != "bf16" for each in kinds):
            return
        text = f"a register and a constant are added as integers, not as .{kinds[-1]}"
        raise self.error(ins, f"{ins.mnemonic}: {text}", "add them by an instruction of their own")

    def constant(self, kind: str, value: int) -> Row:
        """A literal as a row, of zero strides where there are many warps."""
        key = (kind, value)
        found = self._constants.get(key)
        if found is None:
            dtype = dtype_of(kind)
            if kind == "pred":
                scalar = np.array(value != 0)
            else:
                bits = value & ((1 << (8 * dtype.itemsize)) - 1)
                scalar = np.array(bits, UINT[dtype.itemsize]).view(dtype)
            shape = self.machine.warps, LANES
            found = np.full(shape, scalar) if shape[0] <= FEW else np.broadcast_to(scalar, shape)
            self._constants[key] = found
        return found

    def register_row(
        self, ins: tree.Instruction, register: Register, kind: str, wide: bool = False
    ) -> Row:
        dtype, width = layout_of(kind)
        if register.width == 128 and wide and width != 1:
            register = register.halves[0]
        if register.width == 128:
            raise self.error(ins, f"{ins.mnemonic}: a .b128 register cannot be used as .{kind}")
        row = self.machine.files[register.width][register.index]
        if register.width == width:
            return row.view(dtype)
        if wide and width != 1 and register.width > width:
            return row.view(dtype)[:, :: register.width // width]
        raise self.error(
            ins, f"{ins.mnemonic}: a .{register.kind} register cannot be used as .{kind}"
        )

    def symbol_row(self, symbol: Symbol, kind: str) -> Row:
        """The address of a variable in its own space."""
        if symbol.space in ("shared", "dynamic"):
            window = self.machine.special("shared_window")
            assert isinstance(window, np.ndarray)
            if self.machine.cluster_size == 1:
                return self.constant(kind, symbol.offset)
            row = np.zeros(window.shape, UINT[width_of(kind) // 8])

            def fill() -> None:
                row[...] = window
                row[...] += row.dtype.type(symbol.offset)

            fill()
            self.machine.on_wave.append(fill)
            return row.view(dtype_of(kind))
        if symbol.framed:
            return as_row(Framed(self.machine.frame, symbol.offset, dtype_of(kind)))
        if symbol.space == "global":
            if width_of(kind) < 64:
                raise self.program.error(
                    f"the address of {symbol.name} has 64 bits", self.placed.ins.at
                )
            return self.constant(kind, GLOBAL_BASE + symbol.offset)
        return self.constant(kind, symbol.offset)

    def target(self, ins: tree.Instruction, index: int, kind: str) -> Row | None:
        """The row of a destination register of exactly that width; None for `_`."""
        return self.target_of(ins, self.operand(ins, index), kind)

    def target_of(self, ins: tree.Instruction, operand: tree.Operand, kind: str) -> Row | None:
        if isinstance(operand, tree.Sink):
            return None
        register = self.register(ins, operand)
        if register.width != width_of(kind):
            raise self.error(
                ins, f"{ins.mnemonic}: a .{register.kind} register cannot receive a .{kind}"
            )
        return self.machine.files[register.width][register.index].view(dtype_of(kind))

    def register(self, ins: tree.Instruction, operand: tree.Operand) -> Register:
        """A register operand; an error where it is something else."""
        found = None
        if isinstance(operand, tree.Name):
            found = self.program.find(self.scope, operand.text)
            if found is None:
                raise self.program.error(f"{operand.text} is not declared", operand.at)
        elif isinstance(operand, tree.Component):
            found = self.program.find(self.scope, operand.part)
        if not isinstance(found, Register):
            raise self.error(ins, f"{ins.mnemonic} needs a register here")
        return found

    def registers(self, operand: tree.Operand) -> list[Register]:
        """All registers that an operand names, in their order."""
        return registers(self.program, self.placed, operand)

    def halves(
        self, ins: tree.Instruction, operand: tree.Operand, source: bool = False
    ) -> list[Row | None]:
        """The two rows of a .b128 register, the low half first; None twice for a target `_`."""
        if isinstance(operand, tree.Sink) and not source:
            return [None, None]
        register = self.register(ins, operand)
        if register.width != 128:
            raise self.error(
                ins, f"{ins.mnemonic}: a .{register.kind} register cannot be used as .b128"
            )
        return [self.machine.files[half.width][half.index] for half in register.halves]

    def wide_target(self, ins: tree.Instruction, operand: tree.Operand, kind: str) -> Row | None:
        """A destination that may be wider than `kind`: the value is extended to it (ld, cvt)."""
        if isinstance(operand, tree.Sink):
            return None
        register = self.register(ins, operand)
        width = width_of(kind)
        if register.width == 128:
            text = f"{ins.mnemonic} is not emulated with a .b128 register for its .{kind}"
            raise self.error(ins, text)
        if not width <= register.width:
            raise self.error(
                ins, f"{ins.mnemonic}: a .{register.kind} register cannot receive a .{kind}"
            )
        row = self.machine.files[register.width][register.index]
        if register.width == width:
            return row.view(dtype_of(kind))
        return row.view(np.dtype(f"{'i' if kind[0] == 's' else 'u'}{register.width // 8}"))

    def vector(self, operand: tree.Operand) -> tuple[tree.Operand, ...]:
        """The elements of `{...}`; a single operand counts as one."""
        return operand.elements if isinstance(operand, tree.Vector) else (operand,)

    def pair(self, operand: tree.Operand) -> tuple[tree.Operand, tree.Operand | None]:
        """`d|p` as its two halves."""
        if isinstance(operand, tree.Pair):
            return operand.first, operand.second
        return operand, None

    def carry_row(self) -> Row:
        return self.machine.carry

    def space(self, ins: tree.Instruction) -> str:
        """The state space that the opcode names, or generic."""
        return next((SPACES[w] for w in ins.opcode if w in SPACES), "generic")

    def place(self, ins: tree.Instruction, index: int, space: str) -> MemoryOperand:
        """A memory operand `[base+offset]`."""
        operand = self.operand(ins, index)
        if not isinstance(operand, tree.Address):
            raise self.error(ins, f"{ins.mnemonic} needs an address in brackets")
        return self.place_of(ins, operand, space)

    def place_of(self, ins: tree.Instruction, operand: tree.Address, space: str) -> MemoryOperand:
        offset = 0
        if operand.offset is not None:
            value = constant_or_none(operand.offset)
            if value is None:
                raise self.error(ins, "the offset of an address must be a constant")
            offset = value
        base = operand.base
        if isinstance(base, tree.Name):
            found = self.program.find(self.scope, base.text)
            if isinstance(found, Symbol):
                if found.space in WINDOWS:
                    address = GLOBAL_BASE + found.offset
                    return MemoryOperand("global", self.constant("u64", address), offset)
                own = "shared" if found.space == "dynamic" else found.space
                return MemoryOperand(own, self.symbol_row(found, "u64"), offset)
            register = self.register(ins, base)
            kind = "u32" if register.width == 32 else "u64"
            row = self.register_row(ins, register, kind)
        else:
            row = self.row(ins, base, "u64")
        if not any(word in WINDOWS or word.startswith("param::") for word in ins.opcode):
            return MemoryOperand(space, row, offset)
        if "param::func" in ins.opcode or self.program.opcode(ins).access == "store":
            raise self.error(ins, f"{ins.mnemonic} takes the name of a parameter, no register")
        if row.dtype.itemsize < 8:
            row = as_row(Widened(row))
        return MemoryOperand("global", row, offset + GLOBAL_BASE)
