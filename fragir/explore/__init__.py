"""The explorer: one page with every instruction, any layout, conversions and descriptors."""

from __future__ import annotations
