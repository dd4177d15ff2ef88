"""The text of a kernel while it is written: its lines, and the registers of each value."""

from __future__ import annotations

import abc
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from xdsl.dialects.builtin import FileLineColLoc, LocationAttr, UnknownLoc
from xdsl.ir import Attribute, Block, Operation, SSAValue

from fragir.dialects import ptx
from fragir.isa.versions import has
from fragir.passes.writer.literals import (
    SHORT,
    check_literal,
    default_hint,
    literal_bits,
    move_opcode,
    register_form,
)
from fragir.passes.writer.sharing import dies_at
from fragir.ptx.spelling import address

# -- origins ---------------------------------------------------------------------------------------
# From where in a program the lines of its PTX come, for us and for debuggers and profilers.


class LineOrigin(NamedTuple):
    """PTX from `ptx_line` on (1-based) comes from the operation at this place of the program."""

    ptx_line: int
    file: str
    line: int
    col: int

    @classmethod
    def of(cls, ptx_line: int, place: FileLineColLoc) -> LineOrigin:
        return cls(ptx_line, place.filename.data, place.line.data, place.column.data)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


def pointer_to(place: FileLineColLoc, files: dict[str, int]) -> str:
    """A `.loc` (PTX ISA 9.2, section 11.4.2): the lines behind it come from this place.

    `files` has the number of each file's name, and gets that of a new one.
    """
    number = files.setdefault(place.filename.data, len(files) + 1)
    return f"    .loc {number} {place.line.data} {place.column.data}"


def file_directives(files: dict[str, int]) -> str:
    """The lines that name the files. ptxas takes ASCII without quotes."""
    named = (
        (number, name.encode("ascii", "replace").decode().replace('"', "'").replace("\n", " "))
        for name, number in files.items()
    )
    return "".join(f'.file {number} "{name}"\n' for number, name in named)


#: In the order of the lines; one without an origin of its own belongs to that before it.
Origins: TypeAlias = tuple[LineOrigin, ...]


# -- registers -------------------------------------------------------------------------------------
# Names of registers and of everything else in a kernel's text.

_DEFAULT = {1: "p", 8: "c", 16: "h", 32: "r", 64: "rd", 128: "q"}
_CLASS = {1: ".pred", 8: ".b8", 16: ".b16", 32: ".b32", 64: ".b64", 128: ".b128"}


class RegisterNames:
    """Hands out registers named after the value they hold and declares them.

    All registers of one width are declared with the untyped class (.b32 and so on), which every
    instruction of that width takes (PTX ISA 9.2, section 5.2.2), so a bitcast costs nothing.
    """

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self._bits: dict[str, int] = {}

    def fresh_register(self, bits: int, hint: str | None = None) -> str:
        """A new register of 1, 8, 16, 32, 64 or 128 bits."""
        prefix = self._prefix(bits, hint)
        number = self._count.get(prefix, 0)
        self._count[prefix] = number + 1
        self._bits[prefix] = bits
        return f"%{prefix}{number}"

    def _prefix(self, bits: int, hint: str | None) -> str:
        prefix = _spelled_hint(bits, hint)
        while self._bits.get(prefix, bits) != bits:
            prefix += f"_{_DEFAULT[bits]}"
        return prefix

    def declarations(self) -> list[str]:
        """The `.reg` lines."""
        return [
            f".reg {_CLASS[self._bits[prefix]]} %{prefix}<{count}>;"
            for prefix, count in sorted(
                self._count.items(), key=lambda item: (self._bits[item[0]], item[0])
            )
        ]


@lru_cache(maxsize=1024)
def _spelled_hint(bits: int, hint: str | None) -> str:
    """A hint as the beginning of a register's name."""
    prefix = re.sub(r"[^A-Za-z0-9_]", "_", hint or "") or _DEFAULT[bits]
    if not prefix[0].isalpha():
        prefix = f"{_DEFAULT[bits]}_{prefix.strip('_')}"
    return f"{prefix}_" if prefix[-1].isdigit() else prefix


class Labels:
    """Unique labels; they have function scope."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def fresh_label(self, hint: str) -> str:
        number = self._count.get(hint, 0)
        self._count[hint] = number + 1
        return f"${hint}_{number}"


Names = tuple[str, ...]
TENSOR_MAP = ".b8"
"""The PTX type of a parameter that is a tensor map, of 128 bytes."""


class KernelText(abc.ABC):
    """The text of one kernel: `lines`, `registers` to declare, and the `opcodes` that occur.

    Every value has names: its registers in order, or literals where it is a constant. Operations
    that only pick registers give names without writing anything. For operations of other packages
    `emit`, `define`, `alias`, `register`, `in_registers`, `names` and `target` stay as they are.
    """

    def __init__(
        self, target: str, kernel: str, comments: bool, files: dict[str, int] | None = None
    ):
        self.target, self.kernel, self.comments = target, kernel, comments
        self.memory, self.local_memory = f"{kernel}_shared", f"{kernel}_local"
        self.lines: list[str] = []
        self.opcodes: dict[str, None] = {}  # in the order of their first use
        self.registers = RegisterNames()
        self.labels = Labels()
        self.names: dict[SSAValue, Names] = {}
        self.owned: set[SSAValue] = set()  # values that alone have their registers
        self.reserved: dict[SSAValue, Names] = {}
        self.fragments: dict[Operation, Names] = {}  # A of a wgmma, ready before its fence
        self.shared = 0  # bytes used so far
        self.local = 0  # bytes of local memory that one operation uses at a time
        self.externs: dict[str, None] = {}  # declarations that a module has once
        self._texts: dict[str, str] = {}  # names of constants
        self.places: list[tuple[int, FileLineColLoc]] = []  # of the lines from a number on
        self._location: LocationAttr = UnknownLoc()
        self.files = files  # numbers of files, where the text says its places in the program
        self._pointers = ("", "")  # the `.loc` in force, and that before it

    def has(self, opcode: str) -> bool:
        """Whether the target has an opcode."""
        return has(opcode, self.target)

    # --- text ---------------------------------------------------------------------------------

    def emit(self, opcode: str, *operands: str, guard: str | None = None) -> None:
        """One instruction."""
        self.opcodes[opcode] = None
        for operand in operands:
            if len(operand) > SHORT and operand[0] != "%":
                check_literal(opcode, operand)
        prefix = f"@{guard} " if guard else ""
        tail = f" {', '.join(operands)}" if operands else ""
        self.lines.append(f"    {prefix}{opcode}{tail};")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def pragma(self, word: str) -> None:
        """A directive to ptxas for what stands here (PTX ISA 9.2, section 11.5)."""
        self.lines.append(f'    .pragma "{word}";')

    def declare(self, declaration: str) -> None:
        """A declaration of what stands in no module, such as a function of the driver."""
        self.externs[declaration] = None

    def constant_text(self, text: str) -> str:
        """The name of a string in global memory that ends with a zero byte."""
        return self._texts.setdefault(text, f"{self.kernel}_text{len(self._texts)}")

    def constants(self) -> list[str]:
        """The declarations of such strings."""
        found: list[str] = []
        for text, name in self._texts.items():
            data = (*text.encode(), 0)
            found.append(
                f".global .align 1 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};"
            )
        return found

    def origin(self, op: Operation) -> None:
        """Takes down, and says where comments are wanted, which operation the next lines are of."""
        place = op.location
        if place is self._location:
            return
        if isinstance(place, FileLineColLoc):
            if self.comments and place != self._location:
                self.lines.append(f"    // {place.filename.data}:{place.line.data}")
            if self.files is not None:
                self._point(place, self.files)
            self.places.append((len(self.lines), place))
        self._location = place

    def _point(self, place: FileLineColLoc, files: dict[str, int]) -> None:
        """A `.loc` where the place is another; one that no line stands behind goes again."""
        now, before = self._pointers
        if self.lines and self.lines[-1] is now:
            self.lines.pop()
            now = before
        pointer = pointer_to(place, files)
        if pointer != now:
            self.lines.append(pointer)
            self._pointers = pointer, now
        else:
            self._pointers = now, before

    # --- values -------------------------------------------------------------------------------

    def parameter(self, argument: SSAValue, name: str, type_: str) -> None:
        """Loads a kernel parameter into a register; global pointers are made global."""
        (register,) = self.define(argument)
        if argument.type.name == "ptx.tensor_map":  # its address: the copy engine reads it
            self.emit("mov.b64", register, name)
            self.emit("cvta.param.u64", register, register)
            return
        self.emit(f"ld.param{type_}", register, address(name))
        if isinstance(argument.type, ptx.PointerType):
            self.emit("cvta.to.global.u64", register, register)

    def define(self, value: SSAValue) -> Names:
        """New registers for a value, or those of the loop variable that it replaces."""
        reserved = self.reserved.pop(value, None)
        if reserved is None:
            width, count, default = register_form(value.type)
            hint = value.name_hint or default
            reserved = tuple([self.registers.fresh_register(width, hint) for _ in range(count)])
        self.names[value] = reserved
        self.owned.add(value)
        return reserved

    def alias(self, value: SSAValue, names: Sequence[str]) -> None:
        """Names for a value that needs no instruction."""
        self.names[value] = tuple(names)
        reserved = self.reserved.pop(value, None)
        if reserved is not None:
            self.move(reserved, self.names[value], value.type)
            self.names[value] = reserved

    def one(self, value: SSAValue) -> str:
        """The register or literal of a scalar."""
        (name,) = self.names[value]
        return name

    def register(self, value: SSAValue) -> str:
        """A scalar's register, where the instruction takes no literal."""
        return self.in_registers(value)[0]

    def in_registers(self, value: SSAValue) -> Names:
        """The registers of a value; literals are moved to registers."""
        names = self.names[value]
        if all(name.startswith("%") for name in names):
            return names
        moved: dict[str, str] = {}
        width = ptx.register_bits(value.type)
        result: list[str] = []
        for name in names:
            if not name.startswith("%") and name not in moved:
                moved[name] = self.registers.fresh_register(width, default_hint(value.type))
                self.emit(move_opcode(width), moved[name], literal_bits(name))
            result.append(moved.get(name, name))
        return tuple(result)

    def move(self, targets: Sequence[str], sources: Sequence[str], type_: Attribute) -> None:
        """Copies registers, all at once: a target may be another's source."""
        width = ptx.register_bits(type_)
        self.parallel_move([(t, s, width) for t, s in zip(targets, sources, strict=True)])

    def parallel_move(self, moves: Sequence[tuple[str, str, int]]) -> None:
        """Copies (target, source, bits) as if all at once; a cycle takes a temporary."""
        pending: list[tuple[str, str, int]] = [(t, s, w) for t, s, w in moves if t != s]
        while pending:
            sources = {move[1] for move in pending}
            ready = [move for move in pending if move[0] not in sources]
            if ready:
                for target, source, width in ready:
                    self.emit(move_opcode(width), target, literal_bits(source))
                pending = [move for move in pending if move not in ready]
                continue
            target, source, width = pending[0]
            spare = self.registers.fresh_register(width, "swap")
            self.emit(move_opcode(width), spare, source)
            pending = [(t, spare if s == source else s, w) for t, s, w in pending]

    def take_over(self, value: SSAValue, op: Operation) -> Names | None:
        """A value's registers where `op` may overwrite them, else None."""
        names = self.names[value]
        if value in self.owned and dies_at(value, op) and len(set(names)) == len(names):
            return names
        return None

    def own(self, value: SSAValue, names: Names) -> None:
        self.names[value] = names
        self.owned.add(value)

    @abc.abstractmethod
    def block(self, block: Block) -> None:
        """Writes a block's operations."""
