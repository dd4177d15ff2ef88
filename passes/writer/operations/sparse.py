"""Sparse products."""

from __future__ import annotations

from fragir.dialects import ptx
from fragir.passes.writer.operations.products import write_mma
from fragir.passes.writer.text import KernelText


def mma_sparse(w: KernelText, op: ptx.MmaSparseOp) -> None:
    write_mma(w, op, (w.register(op.metadata), str(op.selector.value.data)))
