"""The dialects `tensor` and `arith` of fragir's own contexts, and two beside linalg.

xDSL's tools do not see them.
"""

from __future__ import annotations

from xdsl.dialects.arith import Arith
from xdsl.dialects.tensor import Tensor

from fragir.dialects.catalogue import of_dialect
from fragir.dialects.tensors.arithmetic import READERS
from fragir.late_dialect import LateDialect

TENSOR = LateDialect(
    "tensor",
    of_dialect("tensor"),
    early=[op for op in Tensor.operations if op.name != "tensor.reshape"],
    early_attributes=Tensor.attributes,
)
ARITH = LateDialect(
    "arith",
    of_dialect("arith"),
    early=[READERS.get(op.name, op) for op in Arith.operations],
    early_attributes=Arith.attributes,
)
TM_TENSOR = LateDialect("tm_tensor", of_dialect("tm_tensor"))
IREE_LINALG_EXT = LateDialect("iree_linalg_ext", of_dialect("iree_linalg_ext"))
