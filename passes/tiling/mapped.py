"""Which products the tensor memory accelerator can fetch the operands of."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.dialects.narrow import memref_type
from fragir.errors import FragirError
from fragir.isa.versions import has


def unmapped(product: frag.MatmulOp, target: str) -> str | None:
    """Why A or B is not copied by TMA, as far as sizes are known; None where it may be."""
    from fragir.passes.lowering.engine import LOAD

    if not has(LOAD.format(2), target):
        return f"{target} has no tensor memory accelerator, so the product has no roles"
    return unmapped_rows(product)


def unmapped_rows(product: frag.MatmulOp) -> str | None:
    """Why no tensor map says A or B."""
    from fragir.dialects.frag.tensor_copies import check_strides, contiguous

    for name, memory in (("A", product.a), ("B", product.b)):
        try:
            check_strides(memref_type(memory.type), contiguous(memory))
        except FragirError as error:
            return (
                f"{name} is not copied by TMA, so that all threads copy and multiply, without "
                f"roles: {error.message}"
            )
    return None
