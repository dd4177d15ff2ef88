"""The explorer: one page with every instruction, any layout, conversions and descriptors.

>>> from fragir.explore import page
>>> page().startswith("<!DOCTYPE html>")
True
"""

from __future__ import annotations

from fragir.explore.document import page

__all__ = ["page"]
