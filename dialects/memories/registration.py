"""The dialect `memref` of fragir's own contexts. Stock tools of xDSL do not see it."""

from __future__ import annotations

from xdsl.dialects.memref import CastOp, CopyOp, MemRef

from fragir.dialects.catalogue import of_dialect
from fragir.late_dialect import LateDialect

MEMREF = LateDialect(
    "memref",
    of_dialect("memref"),
    early=[op for op in MemRef.operations if op not in (CastOp, CopyOp)],
    early_attributes=MemRef.attributes,
)
