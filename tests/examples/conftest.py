"""No address of the examples is formed in 32 bits: all PTX that is written here is looked at."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.passes.narrow_distances import watched


@pytest.fixture(autouse=True)
def distances_have_64_bits(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    with watched(monkeypatch):
        yield
