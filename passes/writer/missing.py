"""What there is, where an operation has no instruction: for messages."""

from __future__ import annotations

from fragir.passes.writer import arith as tables
from fragir.passes.writer.sequences import SUBJECTS


def hint(name: str) -> str:
    """A way out where an operation cannot be written as PTX."""
    dialect = name.partition(".")[0]
    if dialect not in ("math", "arith"):
        return "lower tiles with convert-frag-to-ptx first"
    known = {*tables.FLOAT, *tables.SCALED, *tables.INTEGER, *SUBJECTS}
    names = sorted(each.partition(".")[2] for each in known if each.startswith(dialect + "."))
    return f"{dialect} has {', '.join(names)}"
