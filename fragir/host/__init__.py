"""Programs of several kernels: memory for what one hands to the next, and launches in order.

program = fragir.compile(text)        # a function that needs several kernels
print(program.plan)
program(x, w, out, on="emulator")
"""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
