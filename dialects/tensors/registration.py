"""The dialect `tensor` of fragir's own contexts. Stock tools of xDSL do not see it."""

from __future__ import annotations

from xdsl.dialects.tensor import Tensor

from fragir.late_dialect import LateDialect

_ROOM = "fragir.dialects.tensors"

TENSOR = LateDialect(
    "tensor",
    list(Tensor.operations),
    list(Tensor.attributes),
    {
        "tensor.generate": (f"{_ROOM}.generating", "GenerateOp"),
        "tensor.pack": (f"{_ROOM}.packing", "TensorPackOp"),
        "tensor.unpack": (f"{_ROOM}.packing", "TensorUnpackOp"),
    },
)
