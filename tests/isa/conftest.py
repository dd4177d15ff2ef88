"""The assembler of these tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .assembler import NoPtxas, Ptxas, installed


class _Skipping(Ptxas):
    """Skips the test with the reason where a target has no ptxas."""

    def program(self, target: str) -> Path:
        try:
            return super().program(target)
        except NoPtxas as error:
            pytest.skip(str(error))


@pytest.fixture(scope="session")
def ptxas() -> Ptxas:
    """The assemblers; a skip with a reason where there is none."""
    try:
        found = installed()
    except NoPtxas as error:
        pytest.skip(str(error))
    return _Skipping(found.new, found.old)


@pytest.fixture(scope="session")
def full_sweep() -> bool:
    """Whether to ask ptxas about the whole table, not a sample."""
    return os.environ.get("FRAGIR_FULL_SWEEP") == "1"
