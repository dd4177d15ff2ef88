"""Where instructions want memory to begin."""

from __future__ import annotations

TENSOR_BOX = 128
"""Bytes: the place in shared memory that a tensor copy's box goes to or comes from."""
