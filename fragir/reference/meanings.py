"""What operations mean: the rows of `fragir.dialects.catalogue` name functions of this room.

Those of arith, math and structured linalg are attached, whole dialects at once.
"""

from fragir.dialects.interfaces import MEANINGS
from fragir.reference import contraction as contraction
from fragir.reference import scalars as scalars

MEANINGS.found_in("fragir.reference")
