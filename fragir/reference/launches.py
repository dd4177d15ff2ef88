"""The meaning of a launch: what its kernel does, block after block."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import Operation
from xdsl.traits import SymbolTable

from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.reference.memory import BoundedMemory
from fragir.reference.run import Run


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
