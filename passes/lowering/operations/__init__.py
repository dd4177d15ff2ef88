"""What lanes do for the operations of `frag`, arith, func, memref and scf, a subject a file.

Importing this attaches all of them to `fragir.dialects.interfaces.LOWERINGS`.
"""

from fragir.passes.lowering.operations import control as control
from fragir.passes.lowering.operations import memories as memories
from fragir.passes.lowering.operations import products as products
from fragir.passes.lowering.operations import scalars as scalars
from fragir.passes.lowering.operations import tiles as tiles
