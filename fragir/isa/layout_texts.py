"""Layouts by the name of an instruction's operand, beside all other texts of layouts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from fragir.errors import FragirError
from fragir.isa.registry import lookup
from fragir.isa.tensor_layouts import read_by
from fragir.isa.tensor_names import is_tensor_operation, tensor_operation
from fragir.isa.tiling import tile_layout
from fragir.isa.wmma import wmma_fragment
from fragir.layout.layout import Layout
from fragir.layout.texts.read import read_layout as read_text

if TYPE_CHECKING:
    from fragir.isa.model import Instruction
    from fragir.isa.tensor_names import TensorMemoryCopy, TensorMma
    from fragir.layout.chain import LayoutChain

_OPERAND = re.compile(
    r"\s*((?:mma|wgmma|ldmatrix|stmatrix|movmatrix|tcgen05)[\w.]*(?:::[\w.]+)*)\s*:\s*([\w-]*)\s*"
)

_WMMA = re.compile(r"\s*(wmma\.[\w.]+):([a-z]+)\s*")
_BY = re.compile(r"\s+by\s+([\w.:]+)(?:\s+at\s+(\d{1,9})\s*,\s*(\d{1,9}))?\s*$")


def read_layout(
    text: str, shape: tuple[int, ...] | None = None, warps: tuple[int, int] = (1, 1)
) -> Layout | LayoutChain:
    """The layout of a text: an operand's (`MNEMONIC:OPERAND`) or any that `fragir.layout` reads.

    Of tcgen05.mma and .cp the names of `fragir.isa.tensor_names`, which say their own shape; with
    ` by tcgen05.ld... at LANE,COLUMN` behind them what a warp's registers hold.

    An operand's layout is spread over a tile of `shape` (rows, columns) and `warps` (rows,
    columns; warpgroups of a wgmma) if a shape is given, see `tile_layout`. Raises FragirError.

    >>> print(read_layout("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32:b", (16, 16)))
    lane [4:(2,0) 8:(0,1)] element [2:(1,0) 2:(8,0) 2:(0,8)]
    """
    named = _WMMA.fullmatch(text) if isinstance(cast("object", text), str) else None
    if named is not None:
        if shape is not None:
            raise FragirError("a fragment of wmma is not spread over other tiles")
        return wmma_fragment(named[1], named[2]).layout
    tensor = tensor_operand_of(text)
    if tensor is not None:
        operation, name = tensor
        if shape is not None:
            raise FragirError(
                f"{operation.name} says its own shape", hint="take another m and n of the name"
            )
        held = operation.operand(name).layout
        return _in_registers(held, text)
    named = operand_of(text)
    if named is None:
        return read_text(text, shape)
    instruction, operand = named
    layout = instruction.operand(operand).layout
    if layout is None:
        raise FragirError(
            f"operand {operand} of {instruction.mnemonic} lies in shared memory, no lane holds it"
        )
    return layout if shape is None else tile_layout(instruction, operand, shape, warps)


def operand_of(text: str) -> tuple[Instruction, str] | None:
    """The instruction and operand that a text names (`MNEMONIC:OPERAND`); None for another text.

    None also for products and copies of tcgen05 (`tensor_operand_of`). Raises FragirError where
    there is no such instruction.
    """
    if not isinstance(cast("object", text), str) or is_tensor_operation(text):
        return None
    found = _OPERAND.fullmatch(text)
    return None if found is None else (lookup(found[1]), found[2])


def _in_registers(held: Layout, text: str) -> Layout:
    """A layout of tensor memory as the `by` of a text has it in registers, if any."""
    found = _BY.search(text)
    if found is None:
        return held
    lane, column = int(found[2] or 0), int(found[3] or 0)
    return read_by(held, lookup(found[1]), lane=lane, column=column)


def tensor_operand_of(text: str) -> tuple[TensorMma | TensorMemoryCopy, str] | None:
    """The product or copy of tcgen05 and the operand that a text names (`NAME:OPERAND`).

    None for another text; raises FragirError where there is no such product.
    """
    if not isinstance(cast("object", text), str) or not is_tensor_operation(text):
        return None
    found = _OPERAND.fullmatch(_BY.sub("", text))
    return None if found is None else (tensor_operation(found[1]), found[2])


def digit_layout(text: str) -> Layout:
    """The layout of a text that says its own shape, for where layouts must be made of digits.

    Raises FragirError also for a chain, naming the mode in the way.
    """
    found = read_layout(text)
    if not isinstance(found, Layout):
        raise FragirError(f"{found} is no layout of digits: {found.reason}")
    return found
