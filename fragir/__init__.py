"""fragir: an IR for NVIDIA's tensor cores, from matrix programs to checked PTX.

>>> import fragir
>>> kernel = fragir.compile(program, target="sm_80")     # doctest: +SKIP
>>> kernel(a, b, c)                                      # doctest: +SKIP
"""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
