"""How a product is cut and in which order its tiles are computed: what that costs a machine.

    product = GemmProblem(4096, 4096, 4096, "f16", "f32", "f16", False, False, "sm_90a", DEVICES[4])
    for configuration, cost in rank(product): ...

Plain Python on numbers of tiles, bytes and cycles; nothing here knows the IR, and nothing is run.
"""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
