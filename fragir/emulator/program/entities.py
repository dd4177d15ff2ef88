"""What names stand for in a program: registers, variables, functions, and where they are seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fragir.emulator.numbers.types import DTYPES
from fragir.ptx import tree


@dataclass(frozen=True, slots=True)
class Register:
    """Row `index` of the register file of that width (bits; predicates are 1 wide).

    A register of 128 bits is two neighbouring rows of the file of 64 bits, the low half first.
    """

    width: int
    index: int
    kind: str

    @property
    def halves(self) -> tuple[Register, ...]:
        """The rows that it is made of."""
        if self.width != 128:
            return (self,)
        return Register(64, self.index, "b64"), Register(64, self.index + 1, "b64")


@dataclass(slots=True)
class Symbol:
    """A variable, parameter or function. `offset` counts within its space once it is placed.

    `space`: global, const, shared, dynamic (extern shared), local, param (of the kernel), or
    function (then `offset` is its number).
    """

    name: str
    space: str
    size: int
    align: int
    declaration: tree.Declaration | None = None
    variable: tree.Variable | None = None
    offset: int = -1
    #: Of a recursive function: `offset` counts from the frame of the call.
    framed: bool = False
    #: Whether anything that the kernel can reach names it.
    used: bool = False


Entity = Register | Symbol


@dataclass(slots=True)
class Scope:
    """The names of one function, block or module; inner scopes hide outer ones."""

    parent: Scope | None
    function: Routine | None
    names: dict[str, Entity] = field(default_factory=dict[str, Entity])
    ranges: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    targets: dict[str, tuple[tree.Name, ...]] = field(
        default_factory=dict[str, tuple[tree.Name, ...]]
    )
    prototypes: dict[str, tree.CallPrototype] = field(default_factory=dict[str, tree.CallPrototype])
    #: Vector registers, and how many components they have.
    vectors: dict[str, int] = field(default_factory=dict[str, int])

    def componentwise(self, ins: tree.Instruction) -> tree.Instruction:
        """An instruction in which vector registers are vectors of their components."""
        if not any(scope.vectors for scope in self.chain()):
            return ins

        def whole(operand: tree.Operand) -> tree.Operand:
            if not isinstance(operand, tree.Name):
                return operand
            for scope in self.chain():
                if operand.text in scope.names:
                    break
                if (count := scope.vectors.get(operand.text)) is not None:
                    parts = (tree.Component(operand, x, operand.at) for x in "xyzw"[:count])
                    return tree.Vector(tuple(parts), operand.at)
            return operand

        return replace(ins, operands=tuple(map(whole, ins.operands)))

    def chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclass(slots=True)
class Routine:
    """A kernel or function in the flat list: instructions [start, end)."""

    name: str
    node: tree.Function
    start: int = -1
    end: int = -1
    parameters: list[Symbol | Register] = field(default_factory=list[Symbol | Register])
    returns: list[Symbol | Register] = field(default_factory=list[Symbol | Register])
    #: What its body declares: an activation has its own of each.
    registers: list[Register] = field(default_factory=list[Register])
    variables: list[Symbol] = field(default_factory=list[Symbol])
    frame_size: int = 0  # bytes of the frame of a recursive function


@dataclass(frozen=True, slots=True)
class Placed:
    """One instruction of the flat list with the scope its names are looked up in."""

    ins: tree.Instruction
    scope: Scope


def type_size(kind: str) -> int:
    """Bytes of a PTX type in memory."""
    return 16 if kind == "b128" else max(DTYPES[kind][1], 8) // 8
