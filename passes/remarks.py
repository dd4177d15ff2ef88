"""What passes tell a program's author: remarks, kept in an attribute of the function."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from fragir.dialects import frag

REMARKS = "frag.remarks"


def remark(function: func.FuncOp, words: Iterable[str]) -> None:
    """Adds remarks to a function, each once."""
    known = frag.sizes_of(function.attributes.get(REMARKS))
    found = list(dict.fromkeys((*known, *words)))
    if found:
        function.attributes[REMARKS] = ArrayAttr(map(StringAttr, found))
