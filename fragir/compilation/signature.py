"""What a function of a program takes: its arguments, their sizes, its grid, its promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, MemRefType
from xdsl.ir import Attribute

from fragir.errors import short_text

if TYPE_CHECKING:
    from xdsl.dialects import func

    from fragir.dialects.frag import Extent, GridAttr


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel as the program declares it.

    `dims` has a number for a static dimension of a memref and a name for a dynamic one; `strides`
    (elements) likewise, None for row-major order. A scalar has neither. `least`: how large each
    dimension must be where that depends on how the program was compiled.
    """

    name: str
    type: Attribute
    dims: tuple[int | str, ...] = ()
    strides: tuple[int | str, ...] | None = None
    least: tuple[Extent, ...] = ()
    either_sign: bool = False
    """Whether arrays of bytes may have a sign or none: the program declares i1, or conditions
    (`frag.bool`), or bytes that the kernel reads otherwise than it says."""
    constant: DenseIntOrFPElementsAttr | None = None
    """The elements of an array that the program brings along: no caller gives it."""

    def __repr__(self) -> str:
        return short_text(f"<argument {self.name}: {self.type}>")

    @property
    def is_memory(self) -> bool:
        return isinstance(self.type, MemRefType)

    @property
    def is_pointer(self) -> bool:
        """Whether a program written at lane level takes an address."""
        return self.type.name == "ptx.ptr"

    @property
    def is_tensor_map(self) -> bool:
        """Whether a program written at lane level takes a tensor map."""
        return self.type.name == "ptx.tensor_map"


def has_open_sizes(signature: Sequence[Argument]) -> bool:
    """Whether only a launch knows some size or stride of the arrays."""
    return any(isinstance(n, str) for a in signature for n in (*a.dims, *(a.strides or ())))


@dataclass(frozen=True)
class Interface:
    """What a function of tiles says of the kernel that it becomes."""

    signature: tuple[Argument, ...]
    grid: GridAttr | None
    promises: dict[str, int]


def interface_of(function: func.FuncOp) -> Interface:
    """What a function takes, with the names of its dynamic sizes, its grid and its promises."""
    from fragir.dialects import frag

    grid = function.attributes.get("frag.grid")
    known = grid if isinstance(grid, frag.GridAttr) else None
    return Interface(signature_of(function), known, frag.promises_of(function))


def signature_of(function: func.FuncOp) -> tuple[Argument, ...]:
    """What a function takes, with the names of its dynamic sizes."""
    from fragir.dialects import frag
    from fragir.dialects.frag.kernels import holds_conditions
    from fragir.dialects.linalg.constants import constant_of_argument
    from fragir.dialects.shorthands import is_memref

    result: list[Argument] = []
    if len(function.body.blocks) != 1:
        from fragir.mlir.diagnostics import fail

        name = function.sym_name.data
        fail(function, f"{name} has branches between blocks; use scf, or linalg on all of it")
    for i, argument in enumerate(function.body.block.args):
        name = argument.name_hint or f"arg{i}"
        type_ = argument.type
        if not is_memref(type_):
            result.append(Argument(name, type_))
            continue
        said = *frag.size_names(function, i), frag.least_of(function, i)
        is_bool = holds_conditions(function, i)
        constant = constant_of_argument(function, i)
        result.append(Argument(name, type_, *said, either_sign=is_bool, constant=constant))
    return tuple(result)
