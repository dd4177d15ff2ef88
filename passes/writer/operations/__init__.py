"""How the operations of the lane level are written, a subject a file.

Importing this attaches all of them to `fragir.dialects.interfaces.WRITERS`.
"""

from fragir.passes.writer.operations import control as control
from fragir.passes.writer.operations import memory as memory
from fragir.passes.writer.operations import naming as naming
from fragir.passes.writer.operations import products as products
from fragir.passes.writer.operations import values as values
