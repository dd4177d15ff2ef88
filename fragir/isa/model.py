"""What an instruction is: plain frozen values, no behaviour beyond asking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from typing import Literal, NamedTuple, Protocol, cast

from fragir.errors import FragirError
from fragir.layout import Layout

Lowering = Literal["native", "emulated", "split"]
RegisterClass = Literal["fragment", "descriptor", "metadata", "scale", "address", "instruction"]


class UnknownInstruction(FragirError):
    """No such instruction. `.nearest` has the canonical mnemonics of the nearest legal ones."""

    nearest: tuple[str, ...] = ()


class Types(NamedTuple):
    """Element types of the operands; empty where the instruction has no such operand."""

    a: str = ""
    b: str = ""
    c: str = ""
    d: str = ""
    scale: str = ""


@dataclass(frozen=True)
class Registers:
    """How an operand is held: `count` registers declared as `.type`.

    `cls` says what they hold: a `fragment` of a matrix, a `descriptor` of shared memory, sparse
    `metadata`, block `scale` factors, an `address`, an `instruction` descriptor. `accepts` lists
    every declared type that ptxas takes there.
    """

    count: int
    type: str
    cls: RegisterClass = "fragment"
    accepts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operand:
    """One operand of an instruction.

    `layout` maps (lane, element) to the matrix; None for a descriptor. Axis `element` counts
    matrix elements from the lowest bits of the first register upwards, not registers.
    `shape` is the matrix's extent in the dimensions of `layout`. `chunk` is how many elements
    along K one slot stands for: 1, but 2, 4 or 8 for a nibble of sparse metadata, and the
    block's length for a scale factor.
    """

    name: str
    registers: Registers
    element: str
    layout: Layout | None
    shape: tuple[int, ...]
    chunk: int = 1

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.shape))
        held = f"{self.registers.count} .{self.registers.type}"
        return f"<operand {self.name}: {size} {self.element or 'words'}, {held} of a thread>"


class Form(NamedTuple):
    """A mnemonic taken apart, independent of the order in which qualifiers were written.

    `shape` is the token as written (m16n8k16, 16x64b, ...), `layouts` row/col in order, `types`
    in order, `flags` everything else but sync, aligned and the state space.
    """

    family: str
    shape: str
    layouts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Instruction:
    """One tensor-core or matrix-movement instruction of PTX.

    `shape` is (m, n, k), or (rows, columns, matrices) for a matrix copy and (TMEM lanes, columns
    of one repetition, repetitions) for tcgen05.ld and .st; of tcgen05.mma, whose descriptor has M
    and N, it is the largest. `targets` maps a target to the lowest
    PTX version there, `lowering` says what ptxas makes of it there: one machine instruction
    (`native`), several tensor-core instructions of a smaller shape or another operation of the
    same kind (`split`), or a routine of other instructions (`emulated`). `refused` is the reason
    why it must not be emitted, although ptxas may take it. `tail` names the scalar operands after
    the matrices, in PTX's order. `selectors` are the legal sparsity selectors.
    """

    mnemonic: str
    family: str
    shape: tuple[int, int, int]
    types: Types
    operands: Mapping[str, Operand] = field(hash=False)
    targets: Mapping[str, str] = field(hash=False)
    lowering: Mapping[str, Lowering] = field(hash=False)
    form: Form
    refused: str | None = None
    selectors: tuple[int, ...] = ()
    tail: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    note: str = ""
    aliases: tuple[str, ...] = ()

    def __repr__(self) -> str:
        first = next(iter(self.targets), "no target")
        return f"<{self.mnemonic}, from {first} on>"

    @cached_property
    def warps(self) -> int:
        """How many warps execute it together: 4 for wgmma, else 1."""
        return 4 if self.family.startswith("wgmma") else 1

    @property
    def lanes(self) -> int:
        """Threads that execute it together."""
        return 32 * self.warps

    def operand(self, name: str) -> Operand:
        """The operand called `name`; an error that lists the names where there is none."""
        try:
            return self.operands[name]
        except KeyError:
            raise FragirError(
                f"{self.mnemonic} has no operand {name!r}",
                hint=f"it has {', '.join(self.operands)}",
            ) from None

    def with_operands(self, *changed: Operand) -> Instruction:
        """The same instruction with some operands replaced or added."""
        operands = {**self.operands, **{operand.name: operand for operand in changed}}
        return replace(self, operands=operands)


class Rules(Protocol):
    """What a family's rules and a whole table answer alike."""

    def forms(self, family: str = "", a: str = "") -> Iterator[Form]:
        """Every canonical form; of one family, or with this type of A, where they are given."""
        ...

    def resolve(self, form: Form) -> Instruction | None:
        """The instruction of a canonical form; None where there is none."""
        ...


# -- elements --------------------------------------------------------------------------------------
# Element types of matrix operands, and how registers hold them (PTX ISA 9.2, section 9.7.14.5).
#
# Sub-byte floating-point types stand in 8-bit containers in `.kind::f8f6f4` and
# `.kind::mxf8f6f4`, and in the 8-bit matrix copies; packed with 4 bits in `.kind::mxf4*`.

BITS: dict[str, int] = {
    "b1": 1,
    "s4": 4,
    "u4": 4,
    "e2m1": 4,
    "e2m3": 6,
    "e3m2": 6,
    "s8": 8,
    "u8": 8,
    "e4m3": 8,
    "e5m2": 8,
    "ue8m0": 8,
    "ue4m3": 8,
    "b8": 8,
    "b8x16.b6x16_p32": 8,
    "b8x16.b4x16_p64": 8,
    "f16": 16,
    "bf16": 16,
    "b16": 16,
    "s1z4m11": 16,
    "tf32": 32,
    "f32": 32,
    "s32": 32,
    "u32": 32,
    "b32": 32,
    "f64": 64,
}

FLOAT8 = ("e4m3", "e5m2")
FLOAT6_4 = ("e3m2", "e2m3", "e2m1")
FLOAT8_6_4 = (*FLOAT8, *FLOAT6_4)

Signature = tuple[str, ...]  # D, A, B, C (wgmma: D, A, B) and the type of block scales, if any


def pairs(first: tuple[str, ...], d: tuple[str, ...]) -> tuple[Signature, ...]:
    """Every signature with A and B any of `first` and C like D."""
    return tuple((t, a, b, t) for t in d for a in first for b in first)


_WORD32 = ("b32", "f32", "s32", "u32", "f16x2")

# What ptxas takes as the declared type of a register, by the element type it holds.
ACCEPTS: dict[str, tuple[str, ...]] = {
    "f16": ("b32", "f16x2"),
    "bf16": ("b32", "f16x2"),
    "tf32": ("b32",),
    "f32": ("f32", "b32"),
    "s32": ("s32", "u32", "b32"),
    "f64": ("f64", "b64"),
}


def per_register(element: str, container: int = 0) -> int:
    """Elements in one register; `container` overrides the element's own width in bits."""
    return max(1, 32 // (container or BITS[element]))


def register_type(element: str) -> str:
    """The PTX type to declare for a register that holds `element`s."""
    return element if element in ("f32", "s32", "f64") else "b32"


def accepts(element: str) -> tuple[str, ...]:
    """Every declared register type ptxas takes for fragments of this element type."""
    return ACCEPTS.get(element, _WORD32)


# -- families --------------------------------------------------------------------------------------
# The families of instructions, and the modules with their rules.

# Family -> the module with its rules, imported when first asked.
_MODULES: dict[str, str] = {
    "mma": "dense",
    "mma.sp": "sparse",
    "mma.sp::ordered_metadata": "sparse",
    "wgmma": "warpgroup",
    "wgmma.sp": "warpgroup",
    "ldmatrix": "copies",
    "stmatrix": "copies",
    "movmatrix": "copies",
    "tcgen05.ld": "tensor_memory",
    "tcgen05.st": "tensor_memory",
    "tcgen05.ld.red": "tensor_memory",
    "tcgen05.mma": "tensor_mma",
    "tcgen05.mma.sp": "tensor_mma",
    "tcgen05.mma.ws": "tensor_mma",
    "tcgen05.mma.ws.sp": "tensor_mma",
}
FAMILIES = tuple(_MODULES)


@cache
def _rules(module: str) -> Rules:
    return cast(Rules, import_module(f"fragir.isa.{module}"))


def rules_of(family: str) -> tuple[Rules, ...]:
    """The rules of a family: none where there is no such family, all of them for ""."""
    if family:
        return (_rules(_MODULES[family]),) if family in _MODULES else ()
    return tuple(map(_rules, dict.fromkeys(_MODULES.values())))
