"""Layouts: which lane holds which element of a matrix. `fragir.layout.layout` explains them."""

from __future__ import annotations

from fragir.layout.layout import Axis, Condition, Layout, LayoutError, Mode, axis, layout

__all__ = ["Axis", "Condition", "Layout", "LayoutError", "Mode", "axis", "layout"]
