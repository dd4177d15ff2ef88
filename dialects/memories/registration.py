"""The dialect `memref` of fragir's own contexts. Stock tools of xDSL do not see it."""

from __future__ import annotations

from xdsl.dialects.memref import CastOp, CopyOp, MemRef

from fragir.late_dialect import LateDialect

_ROOM = "fragir.dialects.memories"

MEMREF = LateDialect(
    "memref",
    [op for op in MemRef.operations if op not in (CastOp, CopyOp)],
    list(MemRef.attributes),
    {
        "memref.cast": (f"{_ROOM}.readers", "CastReader"),
        "memref.copy": (f"{_ROOM}.readers", "CopyReader"),
    },
)
