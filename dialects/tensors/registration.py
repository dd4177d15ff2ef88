"""The dialect `tensor` of fragir's own contexts. Stock tools of xDSL do not see it."""

from __future__ import annotations

from xdsl.dialects.tensor import Tensor

from fragir.dialects.catalogue import of_dialect
from fragir.late_dialect import LateDialect

TENSOR = LateDialect(
    "tensor",
    of_dialect("tensor"),
    early=Tensor.operations,
    early_attributes=Tensor.attributes,
)
