"""Every test has a cache of its own, and may put a stand-in in the CUDA driver's place."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fragir.toolchain import driver

# The folder of tests is no package: the module beside this one is loaded by its path.
_spec = importlib.util.spec_from_file_location("fake_cuda", Path(__file__).parent / "fake_cuda.py")
assert _spec is not None
assert _spec.loader is not None
_fake_cuda: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fake_cuda)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes the stand-in, with parameters of these sizes, and puts it in the driver's place."""

    def make_fake(*sizes: int) -> Any:
        fake = _fake_cuda.FakeCuda(sizes)
        monkeypatch.setattr(driver, "_bindings", lambda: fake)
        monkeypatch.setattr(driver, "_modules", type(driver._modules)())  # pyright: ignore[reportPrivateUsage]
        return fake

    return make_fake


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FRAGIR_CACHE", str(folder))
    monkeypatch.delenv("FRAGIR_CACHE_SIZE", raising=False)
    for variable in ("FRAGIR_PTXAS", "FRAGIR_NVDISASM"):
        monkeypatch.delenv(variable, raising=False)
    return folder
