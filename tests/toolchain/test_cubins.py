"""The cache of cubins: what it keeps, what it drops, and how it is switched off."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fragir.errors import FragirError
from fragir.toolchain import cubins, ptxas

LOG = "ptxas info    : Used 8 registers\n"


def stored(folder: Path) -> list[Path]:
    return sorted(folder.glob("*"))


def test_round_trip(cache_folder: Path) -> None:
    assert cubins.load("a") is None
    cubins.store("a", b"cubin\n\0\xff", LOG)
    assert cubins.load("a") == (b"cubin\n\0\xff", LOG)
    assert cubins.load("b") is None
    assert len(stored(cache_folder)) == 1
    assert cubins.clear() == 1
    assert cubins.load("a") is None


def test_key_depends_on_everything() -> None:
    base = ("ptxas", "13.2", "sm_80", "text")
    keys = {cubins.key(*base)}
    for index in range(4):
        parts = [*base]
        parts[index] += "0"
        keys.add(cubins.key(*parts))
    keys.add(cubins.key("ptxas", "13.2", "sm_80t", "ext"))
    assert len(keys) == 6


def _empty(data: bytes) -> bytes:
    return b""


def _truncated(data: bytes) -> bytes:
    return data[:-1]


def _changed(data: bytes) -> bytes:
    return data[:-1] + b"X"


def _other_json(data: bytes) -> bytes:
    return b"[]\n" + data


def _binary(data: bytes) -> bytes:
    return b"\xff\xfe" + data


@pytest.mark.parametrize("damage", [_empty, _truncated, _changed, _other_json, _binary])
def test_damaged_entry_counts_as_absent(
    cache_folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    cubins.store("a", b"cubin", LOG)
    (path,) = stored(cache_folder)
    path.write_bytes(damage(path.read_bytes()))
    assert cubins.load("a") is None
    cubins.store("a", b"cubin", LOG)
    assert cubins.load("a") == (b"cubin", LOG)


def test_limit_drops_what_was_used_longest_ago(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAGIR_CACHE_SIZE", "1")
    block = bytes(300_000)
    for age, name in enumerate("abc"):
        cubins.store(name, block, LOG)
        path = cache_folder / (name + cubins.SUFFIX)
        os.utime(path, (1000 + age, 1000 + age))
    assert cubins.load("a") is not None  # used now: b is the oldest
    cubins.store("d", block, LOG)
    assert [name for name in "abcd" if cubins.load(name)] == ["a", "c", "d"]
    state = cubins.state()
    assert state.files == 3
    assert state.size <= state.limit == 1 << 20


def test_entry_larger_than_the_limit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAGIR_CACHE_SIZE", "1")
    cubins.store("small", b"1", LOG)
    cubins.store("large", bytes(2 << 20), LOG)
    assert cubins.load("large") is None
    assert cubins.load("small") is not None


@pytest.mark.parametrize(("name", "value"), [("FRAGIR_CACHE", "off"), ("FRAGIR_CACHE_SIZE", "0")])
def test_off(cache_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    cubins.store("a", b"cubin", LOG)
    assert cubins.load("a") is None
    assert cubins.state().folder is None
    assert cubins.clear() == 0
    assert not cache_folder.exists()


def test_wrong_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAGIR_CACHE_SIZE", "1 GB")
    with pytest.raises(FragirError, match="FRAGIR_CACHE_SIZE is `1 GB`"):
        cubins.load("a")


def test_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FRAGIR_CACHE", str(tmp_path / "file" / "cache"))
    cubins.store("a", b"cubin", LOG)
    assert cubins.load("a") is None


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FRAGIR_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cubins.folder() == tmp_path / "fragir" / "cubins"


def test_assembling_uses_it(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
    first = ptxas.assemble(ptx, "sm_80")
    assert len(stored(cache_folder)) == 1

    def never(*_: object) -> None:
        raise AssertionError("assembled again")

    monkeypatch.setattr(ptxas, "_run", never)
    assert ptxas.assemble(ptx, "sm_80") == first
    with pytest.raises(AssertionError, match="again"):
        ptxas.assemble(ptx, "sm_86")
    with pytest.raises(AssertionError, match="again"):
        ptxas.assemble(ptx, "sm_80", cache=False)
