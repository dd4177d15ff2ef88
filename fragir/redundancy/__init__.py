"""What of a kernel's synchronisation is redundant: `not_needed` of PTX and some launches."""

import lazy_loader

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
