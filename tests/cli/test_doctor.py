"""`fragir doctor`."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from fragir.cli.doctor import REQUIRED
from fragir.emulator.native import library

Fragir = Callable[..., Any]


def test_sound(fragir: Fragir) -> None:
    result = fragir("doctor", "--json")
    assert (result.code, result.err) == (0, "")
    document = json.loads(result.out)
    assert document["problems"] == []
    assert all(document["packages"][name] for name in REQUIRED)
    assert document["ptxas"][0]["version"] == version("nvidia-cuda-nvcc")
    assert (document["gpu"] is None) == isinstance(document["gpu_reason"], str)


def test_table(fragir: Fragir) -> None:
    result = fragir("doctor")
    assert (result.code, result.err) == (0, "")
    words = [line.split()[0] for line in result.out.splitlines()]
    assert {"python", "xdsl", "numpy", "lark", "ptxas", "nvdisasm", "GPU", "cache"} <= set(words)


def test_missing_tools(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(package: str, name: str) -> None:
        return None

    monkeypatch.setattr("fragir.toolchain.find._in_package", nothing)
    monkeypatch.setenv("FRAGIR_TOOLS", "none")
    monkeypatch.setenv("PATH", "")
    result = fragir("doctor", "--json")
    assert result.code == 1
    (problem,) = json.loads(result.out)["problems"]
    assert "ptxas was not found" in problem
    assert "pip install nvidia-cuda-nvcc" in problem
    result = fragir("doctor")
    assert result.code == 1
    assert "problem: ptxas was not found" in result.out


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("FRAGIR_PTXAS", "/none/ptxas", "FRAGIR_PTXAS is set to"),
        ("FRAGIR_NVDISASM", "/none/nvdisasm", "FRAGIR_NVDISASM is set to"),
        ("FRAGIR_CACHE_SIZE", "much", "FRAGIR_CACHE_SIZE is"),
        ("FRAGIR_CORE", "fast", "FRAGIR_CORE is 'fast', it must be one of compiled, numpy"),
    ],
)
def test_wrong_settings(
    fragir: Fragir, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    result = fragir("doctor", "--json")
    assert result.code == 1
    (problem,) = json.loads(result.out)["problems"]
    assert words in problem
    assert fragir("doctor").code == 1


def test_cache_switched_off(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAGIR_CACHE", "off")
    assert json.loads(fragir("doctor", "--json").out)["cache"]["folder"] is None
    assert "switched off" in fragir("doctor").out


def test_cache_in_use(fragir: Fragir, store: Path, in_folder: Path) -> None:
    fragir("assemble", "store.ptx", "--target", "sm_80")
    cache = json.loads(fragir("doctor", "--json").out)["cache"]
    assert cache["folder"] == str(in_folder / ".cache")
    assert cache["files"] == 1
    assert 0 < cache["bytes"] < cache["limit"]


def test_core_in_use(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAGIR_CORE", "")
    core = json.loads(fragir("doctor", "--json").out)["core"]
    assert core["name"] == library.core()
    assert (core["level"] is None) == (core["name"] != "compiled")
    assert (core["reason"] is None) == (core["name"] == "compiled")
    monkeypatch.setenv("FRAGIR_CORE", "numpy")
    document = json.loads(fragir("doctor", "--json").out)
    asked = {"name": "numpy", "level": None, "reason": "FRAGIR_CORE asks for it"}
    assert document["core"] == asked
    assert document["problems"] == []


def test_core_that_was_not_built(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    """No problem, but said with a way out."""
    missing = library.CompiledLibrary(reason="it was not built")
    monkeypatch.delenv("FRAGIR_CORE", raising=False)
    monkeypatch.setattr(library, "compiled_library", lambda: missing)
    result = fragir("doctor")
    assert result.code == 0
    text = " ".join(result.out.split())
    assert "core numpy the compiled core: it was not built" in text
    assert "gcc or clang" in text
