"""What lanes do for the operations of `frag`, arith, func, memref and scf, a subject a file.

The rows of `fragir.dialects.catalogue` name the functions; each file is imported when a program has
one of its operations.
"""

from fragir.dialects.interfaces import LOWERINGS

LOWERINGS.found_in(__name__)
