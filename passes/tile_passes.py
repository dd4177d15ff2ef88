"""What passes on tiles share.

Their target, their functions, and which pass a program still needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType, UnrankedTensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from fragir.dialects import frag
from fragir.dialects.frag import kernels
from fragir.dialects.shorthands import operations_in
from fragir.mlir.diagnostics import fail
from fragir.passes.stages import STAGES

# -- target pass -----------------------------------------------------------------------------------
# What the passes have in common that are told for which target they work.


@dataclass(frozen=True)
class TargetPass(ModulePass):
    """A pass with the option `target`, such as sm_90a; a pipeline gives it the compilation's."""

    target: str = "sm_80"


# -- kernels ---------------------------------------------------------------------------------------
# The functions that a pass on tiles works on.


def kernels_of(module: ModuleOp) -> Iterator[FuncOp]:
    """Those with a body that run on the GPU. Fails where one has branches between blocks."""
    for function in kernels.kernels_of(module):
        if len(function.body.blocks) != 1:
            name = function.sym_name.data
            fail(function, f"{name} has branches between blocks; use scf, or linalg on all of it")
        yield function


# -- levels ----------------------------------------------------------------------------------------
# Which pass a program still needs: what is told where one is applied too early.

PASSES = (*(stage.name for stage in STAGES), "ptx")
"""The road from a matrix program to text, in order; the last is the target `-t ptx`."""


def check_level(function: func.FuncOp, name: str) -> None:
    """Fails, at its place, at the first operation that a pass before `name` should have replaced.

    A kernel is one block: also fails where a function has branches between several.
    """
    for op, before in _missing(function):
        if PASSES.index(before) < PASSES.index(name):
            asked = "-t ptx" if name == "ptx" else name
            fail(
                op, f"{_operation_text(op)} is left, which {asked} cannot take: run {before} first"
            )
    if len(function.body.blocks) != 1:
        fail(function, f"{function.sym_name.data} has branches between blocks; use scf")


def _missing(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    """(operation, the pass that replaces it), for what stands above the lane level."""
    for op in operations_in(function):
        types = [value.type for value in (*op.operands, *op.results)]
        if any(isinstance(type_, TensorType | UnrankedTensorType) for type_ in types):
            yield op, "frag-bufferize"
        elif op.name.startswith("linalg."):
            yield op, "convert-linalg-to-frag"
        elif op.name == "frag.matmul":
            yield op, "frag-tile"
        elif op.name == "frag.for_tiles":
            yield op, "frag-raster"
        elif any(_is_unplaced(type_) for type_ in types):
            yield op, "frag-place"
        elif op.name.startswith("frag.") or any(isinstance(type_, MemRefType) for type_ in types):
            yield op, "convert-frag-to-ptx"
    for type_ in function.function_type.inputs:
        if isinstance(type_, TensorType | UnrankedTensorType):
            yield function, "frag-bufferize"
        elif isinstance(type_, MemRefType):
            yield function, "convert-frag-to-ptx"


def _is_unplaced(type_: Attribute) -> bool:
    tile = frag.held_tile(type_)
    return tile is not None and tile.placement is None


def _operation_text(op: Operation) -> str:
    if isinstance(op, func.FuncOp):
        return f"memory or a tensor among the arguments of {op.sym_name.data}"
    if any(_is_unplaced(value.type) for value in (*op.operands, *op.results)):
        return f"{op.name} on tiles without a layout"
    return op.name
