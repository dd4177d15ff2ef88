"""The dialect `kit`: a row an operation, each imported when a program has it."""

from fragir.late_dialect import LateDialect, rows

KIT = LateDialect(
    "kit",
    rows(
        """
        operation     cls                meaning
        kit.gram      gram:GramOp        -
        kit.row_max   row_max:RowMaxOp   meanings
        """,
        "tilekit",
    ),
    {"kit.columns": "tilekit.columns:ColumnsAttr"},
)
