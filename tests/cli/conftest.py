"""Runs the command line in this process, as a user's shell would see it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fragir.cli.main import main


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str


Fragir = Callable[..., Result]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and a cache of its own."""
    monkeypatch.setenv("FRAGIR_CACHE", str(tmp_path / ".cache"))
    for variable in ("FRAGIR_CACHE_SIZE", "FRAGIR_PTXAS", "FRAGIR_NVDISASM"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


_KEPT = os.environ.get("FRAGIR_CACHE")


@pytest.fixture
def kept_cubins(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache that all tests share, for those that run the same programs again and again."""
    if _KEPT is None:
        monkeypatch.delenv("FRAGIR_CACHE")
    else:
        monkeypatch.setenv("FRAGIR_CACHE", _KEPT)


@pytest.fixture
def fragir(capfd: pytest.CaptureFixture[str]) -> Fragir:
    def run(*arguments: str) -> Result:
        code = main(arguments)
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return run


STORE = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 value)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mad.wide.u32 %rd3, %r2, 4, %rd1;
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd3], %r1;
    ret;
}
"""


@pytest.fixture
def store(in_folder: Path) -> Path:
    """`store.ptx`: lane i writes value + i."""
    path = in_folder / "store.ptx"
    path.write_text(STORE)
    return path
