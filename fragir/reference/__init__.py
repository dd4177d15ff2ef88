"""What a program at matrix or tile level means, in numpy, with rigorous error bounds.

    function = ...                       # func.func with frag, linalg, arith, scf, memref
    results = evaluate(function, [a, b, c], target="sm_80", grid=(2, 2, 1))
    compare(results[2], c_from_the_gpu)

Shares no function with `fragir.emulator`. docs/accuracy.md derives the bounds.
"""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
