"""Layouts: which lane holds which element of a matrix.

`fragir.layout.layout` explains the model; every subject has a file of its own. What is named here
is the room's public face, each imported when it is first used. (As an attribute,
`fragir.layout.layout` is the constructor; its module is for `from` imports only.)
"""

import lazy_loader

from fragir.layout.layout import layout as layout  # the constructor, not its module

# The names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
