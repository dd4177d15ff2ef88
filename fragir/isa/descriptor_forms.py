"""Now `fragir.isa.operand_tiles`."""

from fragir.deprecation import moved_module

__getattr__ = moved_module(__name__, "fragir.isa.operand_tiles", gone="0.3")
