"""Layouts as text, SVG and HTML."""

from __future__ import annotations
