"""Now `fragir.isa.canonical`."""

from fragir.deprecation import moved_module

__getattr__ = moved_module(__name__, "fragir.isa.canonical", gone="0.3")
