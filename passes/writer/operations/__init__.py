"""How the operations of the lane level are written, a subject a file.

The rows of `fragir.dialects.catalogue` name the functions; each file is imported when a program has
one of its operations.
"""

from fragir.dialects.interfaces import WRITERS

WRITERS.found_in(__name__)
