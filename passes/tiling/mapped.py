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
    """Why no tensor map says A or B.

    Rows of a group begin anywhere. Where they are A's contiguous dimension, boxes would begin at
    elements that are no multiples of 16 bytes, at which the copy engine stops.
    """
    from fragir.dialects.frag.tensor_copies import check_strides, contiguous

    for name, memory in (("A", product.a), ("B", product.b)):
        try:
            along = contiguous(memory)
            check_strides(memref_type(memory.type), along)
        except FragirError as error:
            return _told(name, error.message)
        m = memref_type(memory.type).get_num_dims() - (2 if product.a_transposed is None else 1)
        if product.ends is not None and memory is product.a and along == m:
            return _told(
                name,
                "a group begins at any of its rows, which lie side by side, and a box of a tensor "
                "map begins at multiples of 16 bytes; A with K contiguous has boxes",
            )
    return None


def _told(name: str, why: str) -> str:
    return (
        f"{name} is not copied by TMA, so that all threads copy and multiply, without roles: {why}"
    )
