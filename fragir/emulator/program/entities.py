"""What names and constant expressions stand for in a program (PTX ISA 9.2, section 4.5)."""

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


# -- expressions -----------------------------------------------------------------------------------
# Values of constant expressions (PTX ISA 9.2, section 4.5).

WARP_SIZE = 32


def binary(operator: str, left: int, right: int) -> int | None:
    """The value of two integers under an operator; None where they have none."""
    if operator in ("/", "%") and right == 0:
        return None
    quotient = 0
    if operator in ("/", "%"):
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    table = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: quotient,
        "%": lambda: left - quotient * right,
        "<<": lambda: left << (right & 63),
        ">>": lambda: left >> (right & 63),
        "&": lambda: left & right,
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "&&": lambda: int(bool(left and right)),
        "||": lambda: int(bool(left or right)),
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        "<=": lambda: int(left <= right),
        ">": lambda: int(left > right),
        ">=": lambda: int(left >= right),
    }
    return table[operator]()


def constant_or_none(node: tree.Operand) -> int | None:
    """The value of a constant expression; None where it is none (PTX ISA 9.2, section 4.5)."""
    match node:
        case tree.Integer():
            return node.value
        case tree.Name(text="WARP_SZ"):
            return WARP_SIZE
        case tree.Parens(elements=(inner,)):
            return constant_or_none(inner)
        case tree.Cast():
            return constant_or_none(node.operand)
        case tree.Unary():
            inner_value = constant_or_none(node.operand)
            if inner_value is None:
                return None
            return {
                "-": -inner_value,
                "+": inner_value,
                "~": ~inner_value,
                "!": int(not inner_value),
            }[node.operator]
        case tree.Binary():
            left, right = (
                constant_or_none(node.left),
                constant_or_none(node.right),
            )
            if left is None or right is None:
                return None
            return binary(node.operator, left, right)
        case tree.Conditional():
            condition = constant_or_none(node.condition)
            if condition is None:
                return None
            return constant_or_none(node.then if condition else node.otherwise)
        case _:
            return None
