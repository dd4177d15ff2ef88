"""What passes tell a program's author.

Remarks, and errors where a kernel asks too much of its machine.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, StringAttr
from xdsl.ir import Operation

from fragir.dialects import frag, ptx
from fragir.dialects.shorthands import operations_in
from fragir.mlir.diagnostics import fail
from fragir.ptx.machines import shared_problem

REMARKS = "frag.remarks"


def remark(function: func.FuncOp, words: Iterable[str]) -> None:
    """Adds remarks to a function, each once."""
    known = frag.sizes_of(function.attributes.get(REMARKS))
    found = list(dict.fromkeys((*known, *words)))
    if found:
        function.attributes[REMARKS] = ArrayAttr(map(StringAttr, found))


def lone_blocks(function: func.FuncOp, operations: Iterable[Operation]) -> list[str]:
    """What is to be said of `frag.block_id` along which a call launches one block."""
    grid = function.attributes.get("frag.grid")
    if "frag.cluster" in function.attributes:
        return []
    extents = len(grid.data) if isinstance(grid, frag.GridAttr) else 0
    found: list[str] = []
    for op in operations:
        if not isinstance(op, frag.BlockIdOp):
            continue
        dimension = op.dimension.data.value
        if "xyz".index(dimension) >= extents:
            has = (
                f"the grid has {extents} dimension{'s' * (extents > 1)}"
                if extents
                else ("the kernel has no grid")
            )
            place = op.location
            at = ""
            if isinstance(place, FileLineColLoc):
                at = f"{place.filename.data}:{place.line.data}:{place.column.data}: "
            found.append(
                f"{at}frag.block_id {dimension} is always 0 in a call: {has} "
                "(attributes {frag.grid = #frag.grid<...>}, k.grid(...) in Python)"
            )
    return found


# -- limits ----------------------------------------------------------------------------------------
# What a kernel may ask of its machine; errors stand at the operation that asks for too much.

ALIGNED = 1024  # bytes: where buffers of shared memory begin, since swizzles repeat after so many


def align_buffer(size: int) -> int:
    """Bytes of shared memory up to where the next buffer begins."""
    return -(-size // ALIGNED) * ALIGNED


def allocate(op: ptx.SharedOp, before: int, target: str) -> int:
    """Bytes of shared memory in use after an allocation, with `before` of them in use already.

    Ends the pass where a block of the target has not so many.
    """
    size = op.bytes.value.data
    total = before + align_buffer(size)
    problem = shared_problem(target, size if size < 0 else total)
    if problem is not None:
        message, hint = problem
        earlier = f"; {before} bytes are taken before this" if before else ""
        fail(op, f"{message}{earlier}; {hint or 'make the tile smaller'}")
    return total


def check_shared(function: func.FuncOp, target: str) -> None:
    """Ends the pass where a kernel at lane level allocates more than a block of the target has."""
    total = 0
    for op in operations_in(function):
        if isinstance(op, ptx.SharedOp):
            total = allocate(op, total, target)
