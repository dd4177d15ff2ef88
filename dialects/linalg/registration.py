"""The dialect `linalg` of fragir's own contexts: xDSL's, and ours in the place of what it lacks.

Stock tools of xDSL do not see it: a second dialect of a name would break them.
"""

from __future__ import annotations

from functools import cache

from xdsl.dialects.linalg import Linalg, attrs
from xdsl.ir import Operation

from fragir.dialects.catalogue import of_dialect
from fragir.dialects.linalg.generic_results import GenericReader
from fragir.late_dialect import LateDialect

KEPT = frozenset(f"linalg.{name}" for name in ("generic", "yield", "index", "fill", "transpose"))
"""What xDSL reads as MLIR prints it."""
_ROOM = "fragir.dialects.linalg"


class LinalgDialect(LateDialect):
    """Operations by the table of `named_table`, which is imported when one of them is asked for."""

    def find(self, name: str) -> type[Operation] | None:
        self.late = names()
        return super().find(name)


@cache
def names() -> dict[str, str]:
    """Where the class of each operation is that is not early."""
    from fragir.dialects.linalg.named_table import class_name, meanings

    table = f"{_ROOM}.named_table"
    named = {f"linalg.{name}": f"{table}:{class_name(name)}" for name in meanings()}
    return {**named, **LINALG.late}


LINALG = LinalgDialect(
    "linalg",
    of_dialect("linalg"),
    {
        "linalg.type_fn": f"{_ROOM}.cast_attributes:TypeFnAttr",
        "linalg.elementwise_kind": f"{_ROOM}.cast_attributes:ElementwiseKindAttr",
    },
    early=[
        GenericReader if op.name == "linalg.generic" else op
        for op in Linalg.operations
        if op.name in KEPT
    ],
    early_attributes=[attrs.IteratorTypeAttr],
)
