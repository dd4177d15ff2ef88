"""Every test has a cache of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FRAGIR_CACHE", str(folder))
    monkeypatch.delenv("FRAGIR_CACHE_SIZE", raising=False)
    for variable in ("FRAGIR_PTXAS", "FRAGIR_NVDISASM"):
        monkeypatch.delenv(variable, raising=False)
    return folder
