"""Calls of functions, and launches of kernels."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import Operation
from xdsl.traits import SymbolTable

from fragir.dialects import frag
from fragir.dialects.calls import callee_of
from fragir.errors import FragirError
from fragir.reference.memory import BoundedMemory
from fragir.reference.run import Run

# --- calls ----------------------------------------------------------------------------------------


def call(run: Run, op: func.CallOp) -> None:
    """Memory that it is given changes; tensors are values."""
    block = callee_of(op).body.block
    for parameter, value in zip(block.args, op.arguments, strict=True):
        run.values[parameter] = run.values[value]
    for inner in block.ops:
        if isinstance(inner, func.ReturnOp):
            for result, value in zip(op.res, inner.operands, strict=True):
                run.values[result] = run.values[value]
        else:
            run.run_known(inner)


# --- launches -------------------------------------------------------------------------------------


def launch(run: Run, op: frag.LaunchOp) -> None:
    """Runs the kernel on the same memory."""
    kernel = kernel_of(op)
    values = [run.values[value] for value in op.arguments]
    sizes: dict[str, int] = {}
    for number, value in enumerate(values):
        if isinstance(value, BoundedMemory):
            names, _ = frag.size_names(kernel, number)
            pairs = zip(names, value.value.shape, strict=True)
            sizes.update({name: size for name, size in pairs if isinstance(name, str)})
    run.nested().run_function(kernel, values, _grid(kernel, sizes))


def kernel_of(op: Operation) -> func.FuncOp:
    """The function that is launched; the verifier has seen it."""
    assert isinstance(op, frag.LaunchOp)
    kernel = SymbolTable.lookup_symbol(op, op.callee)
    assert isinstance(kernel, func.FuncOp)
    return kernel


def _grid(kernel: func.FuncOp, sizes: dict[str, int]) -> tuple[int, int, int]:
    """Its blocks, for these sizes; one where tiles are shared out among however many there are."""
    grid = kernel.attributes.get("frag.grid")
    if not isinstance(grid, frag.GridAttr):
        return 1, 1, 1
    try:
        return grid.evaluate(sizes, None)
    except KeyError as error:
        raise FragirError(
            f"the grid of @{kernel.sym_name.data} needs the size {error.args[0]}",
            hint="name a dimension so, with frag.sizes",
        ) from None
