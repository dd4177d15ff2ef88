"""PTX as text: syntax tree, reader, writer, spelling. Lark is loaded by `parse` and not before."""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
