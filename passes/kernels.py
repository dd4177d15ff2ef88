"""The functions that a pass on tiles works on."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from fragir.diagnostics import fail
from fragir.dialects.frag import kernels


def kernels_of(module: ModuleOp) -> Iterator[FuncOp]:
    """Those with a body that run on the GPU. Fails where one has branches between blocks."""
    for function in kernels.kernels_of(module):
        if len(function.body.blocks) != 1:
            name = function.sym_name.data
            fail(function, f"{name} has branches between blocks; use scf, or linalg on all of it")
        yield function
