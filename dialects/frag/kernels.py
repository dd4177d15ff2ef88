"""Which functions of a module run on the GPU, and which on the host."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

HOST = "frag.host"
"""The attribute of a function that runs on the host."""


def is_host(function: Operation) -> bool:
    """Whether a function runs on the host, where it launches kernels."""
    return HOST in function.attributes


def kernels_of(module: ModuleOp) -> Iterator[FuncOp]:
    """The functions with a body that run on the GPU, those that there are now."""
    for op in list(module.ops):
        if isinstance(op, FuncOp) and not op.is_declaration and not is_host(op):
            yield op
