"""Triton's process while a kit is made, in an environment of its own."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))


@contextmanager
def triton(wanted: bool) -> Generator[Any]:
    """`neighbours.Worker` of Triton's kernels, or None where it is not wanted or cannot be had."""
    from neighbours import TRITON, Neighbour, worker

    found = worker(Neighbour(TRITON.name, TRITON.requirements, "triton_kernels.py"), wanted)
    try:
        yield found
    finally:
        if found is not None:
            found.close()
