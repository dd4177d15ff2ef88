"""Now `fragir.compilation.pipeline`."""

from fragir.deprecation import moved_module

__getattr__ = moved_module(__name__, "fragir.compilation.pipeline", gone="0.3")
