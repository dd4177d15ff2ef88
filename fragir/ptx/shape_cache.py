"""The shapes that this process knows: those that come with the package, and those of its texts."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from fragir.ptx.operands import Operands
from fragir.ptx.shapes import Shapes
from fragir.ptx.word_classes import DIRECTIVE_WORDS


class Learnt(NamedTuple):
    """The shapes, by start symbol of the grammar."""

    operands: Operands
    statement: Shapes
    linked_declaration: Shapes
    item: Shapes
    parameter: Shapes
    head_directives: Shapes


@cache
def learnt() -> Learnt:
    return Learnt(Operands(), *(Shapes(start, DIRECTIVE_WORDS) for start in Learnt._fields[1:]))


def forget(*, shipped: bool = False) -> None:
    """Forget what was learnt from texts; with `shipped`, what came with the package too."""
    for shapes in learnt():
        shapes.forget(shipped)
