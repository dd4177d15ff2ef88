"""Whole warps and the registers of their fragments, for instructions of the tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.lanes import Mask, Row, Select, is_slice
from fragir.emulator.numbers.types import Array
from fragir.emulator.program.entities import Register
from fragir.emulator.tensor_cores import (
    TensorOp,
    tensor_instruction,
)
from fragir.errors import pass_on
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder


def operation(d: Decoder, ins: tree.Instruction) -> TensorOp:
    try:
        return tensor_instruction(ins.opcode, d.target_name, d.settings)
    except Exception as problem:
        pass_on(problem)
        if hasattr(problem, "message"):
            raise d.error(ins, problem.message, getattr(problem, "hint", None)) from problem  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
        raise


def whole_warps(sel: Select, mask: Mask) -> Select:
    """The warps of which any lane takes part: these instructions are for warps, not lanes."""
    if mask is None:
        return sel
    some: Any = mask.any(axis=1)
    if some.all():
        return sel
    if is_slice(sel):
        return sel.start + np.flatnonzero(some)
    return sel[some]


class RegisterRows:
    """The registers of one operand of `n` neighbouring instructions: [count, n] rows."""

    def __init__(
        self,
        d: Decoder,
        ins: Sequence[tree.Instruction],
        vectors: Sequence[Sequence[tree.Operand]],
        width: int,
    ):
        self.file: Array = d.machine.files[width]
        self.rows: list[list[Row]] | None = None
        numbers: list[list[int]] = []
        kind = f"u{width}"
        for vector in vectors:
            numbers.append([])
            for element in vector:
                found = None
                if isinstance(element, tree.Name):
                    found = d.program.find(d.scope, element.text)
                if isinstance(found, Register) and found.width == width:
                    numbers[-1].append(found.index)
                else:
                    self.rows = self.rows or []
                    numbers[-1].append(-1)
        if self.rows is not None:
            self.rows = [
                [
                    d.row(one, element, kind)
                    for one, vector in zip(ins, vectors, strict=True)
                    for element in [vector[i]]
                ]
                for i in range(len(vectors[0]))
            ]
        self.index: npt.NDArray[np.intp] = np.array(numbers, np.intp).T.copy()
        flat = self.index.T.ravel()
        self.run = self.rows is None and bool((np.diff(flat) == 1).all()) and len(ins) == 1

    def read(self, sel: Select) -> Array:
        """[count, n * warps, 32]"""
        if self.rows is not None:
            parts = [np.stack([row[sel] for row in rows]) for rows in self.rows]
            stacked = np.stack(parts)
        elif self.run and is_slice(sel):
            first = int(self.index[0, 0])
            return self.file[first : first + len(self.index), sel]
        elif is_slice(sel):
            stacked = self.file[self.index, sel]
        else:
            stacked = self.file[self.index[:, :, None], sel]
        return stacked.reshape(stacked.shape[0], -1, 32)

    def write(self, sel: Select, value: Array) -> None:
        count, n = self.index.shape
        parts = value.reshape(count, n, -1, 32)
        if is_slice(sel):
            if self.run:
                first = int(self.index[0, 0])
                self.file[first : first + count, sel] = parts[:, 0]
            else:
                self.file[self.index, sel] = parts
        else:
            self.file[self.index[:, :, None], sel] = parts


def outputs(
    d: Decoder,
    group: Sequence[tree.Instruction],
    vectors: Sequence[Sequence[tree.Operand]],
    width: int,
) -> tuple[RegisterRows | None, Callable[[Select, Array], None]]:
    """The registers of results, None where some are `_`; and what writes to all but those."""
    if not any(isinstance(e, tree.Sink) for v in vectors for e in v):
        for one, vector in zip(group, vectors, strict=True):
            for element in vector:
                if d.register(one, element).width != width:
                    raise d.error(one, f"{one.mnemonic} needs {width}-bit registers here")
        plain = RegisterRows(d, group, vectors, width)
        return plain, plain.write
    rows = [
        [d.target_of(i, e, f"u{width}") for e in v] for i, v in zip(group, vectors, strict=True)
    ]

    def write(sel: Select, value: Array) -> None:
        parts = value.reshape(value.shape[0], len(rows), -1, 32)
        for n, vector in enumerate(rows):
            for i, row in enumerate(vector):
                if row is not None:
                    row[sel] = parts[i, n]

    return None, write
