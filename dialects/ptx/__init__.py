"""The `ptx` dialect: what one lane does.

Scalars and register vectors (`vector<8xf16>` is four 32-bit registers, elements packed lowest
first), `arith`, `math` and `scf` for what every machine has, and the operations below for what
only a GPU has. One operation is one PTX instruction, or the same instruction once per register of
its vector operands. `index` is 32 bits wide.
"""

from fragir.dialects.catalogue import PTX, PTX_ATTRIBUTES, PTX_NAMES
from fragir.dialects.ptx.registers import CAST_RULES as CAST_RULES
from fragir.dialects.ptx.types import registers as registers  # not the module above
from fragir.late_dialect import LateDialect, lazy_exports

Ptx = LateDialect("ptx", PTX, PTX_ATTRIBUTES)

# Types for checkers stand in __init__.pyi, which `python -m tests.docs.operations` writes.
__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    (*Ptx.late.values(), *PTX_ATTRIBUTES.values(), *PTX_NAMES.values()),
    "Ptx",
)
