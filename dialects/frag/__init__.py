"""The `frag` dialect: matrices as tiles, with and without a layout.

Matrix level: `frag.matmul` on memory. Tile level: `!frag.tile`s that the threads of a block hold,
loaded, multiplied (`frag.mma`, `frag.wgmma`), mapped, cast, converted and stored, and copies
between global and shared memory. A tile without a layout says what is computed; the pass
`frag-place` gives every tile the layout that its instruction demands.
"""

from fragir.dialects.catalogue import FRAG, FRAG_ATTRIBUTES, FRAG_NAMES
from fragir.dialects.frag.memory_layout import memory_layout as memory_layout  # not the module
from fragir.late_dialect import LateDialect, lazy_exports

Frag = LateDialect("frag", FRAG, FRAG_ATTRIBUTES)

# Types for checkers stand in __init__.pyi, which `python -m tests.docs.operations` writes.
__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    (*Frag.late.values(), *FRAG_ATTRIBUTES.values(), *FRAG_NAMES.values()),
    "Frag",
)
