"""The cache of cubins: what it keeps, what it drops, and how it is switched off."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fragir.errors import FragirError
from fragir.toolchain import cubins, ptxas, sass

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


def _edited_log(data: bytes) -> bytes:
    return data.replace(b"Used 8 registers", b"Used 26 registers")


def _field(name: str, value: str) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        first, _, cubin = data.partition(b"\n")
        fields = {key: json.dumps(old) for key, old in json.loads(first).items()} | {name: value}
        text = ", ".join(f'"{key}": {new}' for key, new in fields.items())
        return b"{" + text.encode() + b"}\n" + cubin

    return damage


def _nested(data: bytes) -> bytes:
    return b"[" * 100_000 + b"\n" + data


DAMAGES = [
    *(_empty, _truncated, _changed, _other_json, _binary, _edited_log, _nested),
    *(_field("log", value) for value in ("null", "5", "[]", "{}", '""', r'"\ud800"', '["x"]')),
    *(_field("sha256", value) for value in ("null", "1", '"0"', "[]", "1e999", "9" * 5000)),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_entry_counts_as_absent(
    cache_folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    cubins.store("a", b"cubin", LOG)
    (path,) = stored(cache_folder)
    intact = path.read_bytes()
    path.write_bytes(damage(intact))
    assert path.read_bytes() != intact
    assert cubins.load("a") is None
    cubins.store("a", b"cubin", LOG)
    assert cubins.load("a") == (b"cubin", LOG)


def test_entry_under_another_name_counts_as_absent(cache_folder: Path) -> None:
    cubins.store("a", b"cubin", LOG)
    (path,) = stored(cache_folder)
    path.rename(cache_folder / ("b" + cubins.SUFFIX))
    assert cubins.load("b") is None


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    (path / "inside").mkdir(parents=True)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.skipif(os.name != "posix", reason="POSIX's kinds of files")
@pytest.mark.parametrize("make", [_fifo, _folder, _loop, _device, _huge])
def test_what_is_no_entry_counts_as_absent(
    cache_folder: Path, make: Callable[[Path], None]
) -> None:
    """And is replaced where it can be; nothing waits for it, and the others still come and go."""
    cache_folder.mkdir()
    path = cache_folder / ("a" + cubins.SUFFIX)
    make(path)
    assert cubins.load("a") is None
    cubins.store("b", b"cubin", LOG)
    assert cubins.load("b") == (b"cubin", LOG)
    cubins.store("a", b"cubin", LOG)
    kept = cubins.load("a")
    assert kept == (None if make is _folder else (b"cubin", LOG))
    assert cubins.state().files == (1 if make is _folder else 2)
    assert cubins.clear() == (1 if make is _folder else 2)
    assert cubins.state().size == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may read all")
def test_entry_that_cannot_be_read_counts_as_absent(cache_folder: Path) -> None:
    cubins.store("a", b"cubin", LOG)
    (path,) = stored(cache_folder)
    path.chmod(0)
    assert cubins.load("a") is None
    cubins.store("a", b"cubin", LOG)
    assert cubins.load("a") == (b"cubin", LOG)


def test_what_is_in_the_way_does_not_stop_the_shrinking(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAGIR_CACHE_SIZE", "1")
    oldest = cache_folder / ("0" + cubins.SUFFIX)
    oldest.mkdir(parents=True)
    os.utime(oldest, (1, 1))
    for name in "abcdef":
        cubins.store(name, bytes(300_000), LOG)
    assert cubins.state().size <= 1 << 20


def test_half_written_files_of_dead_processes_go(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAGIR_CACHE_SIZE", "1")
    cache_folder.mkdir()
    old, new = cache_folder / "old.part", cache_folder / "new.part"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1000, 1000))
    cubins.store("a", bytes(10_000), LOG)
    assert [path.name for path in stored(cache_folder)] == [f"a{cubins.SUFFIX}", "new.part"]


def test_files_are_counted_now_and_then(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with every small entry, and often enough that the limit holds."""
    monkeypatch.setenv("FRAGIR_CACHE_SIZE", "1")
    counted: list[Path] = []
    scandir = os.scandir

    def counting(path: Path) -> Any:
        counted.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counting)
    for number in range(300):
        cubins.store(str(number), bytes(4000), LOG)
    times = len(counted) // 2  # entries, and what is half written
    assert 90 < times < 210  # each with a chance of 128 * 4000 / 1 MiB: 150, give or take 9
    assert cubins.state().size <= 1 << 20


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


@pytest.mark.parametrize("size", ["1 GB", "-1", "1.5", "٣", "9" * 5000])
def test_wrong_size(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setenv("FRAGIR_CACHE_SIZE", size)
    with pytest.raises(FragirError, match=f"FRAGIR_CACHE_SIZE is `{size}`"):
        cubins.load("a")


@pytest.mark.skipif(os.name != "posix", reason="~NAME is a POSIX home")
def test_homes_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAGIR_CACHE", "~no-such-user/x")
    with pytest.raises(FragirError, match="FRAGIR_CACHE is `~no-such-user/x`"):
        cubins.load("a")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("FRAGIR_CACHE")
    monkeypatch.setattr(Path, "home", homeless)
    assert cubins.folder() is None
    cubins.store("a", b"cubin", LOG)
    assert cubins.load("a") is None


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
    (path,) = stored(cache_folder)
    registers = first.entries["k"].registers
    edited = path.read_bytes().replace(b"Used %d " % registers, b"Used %d " % (registers + 1))
    assert edited != path.read_bytes()
    path.write_bytes(edited)
    with pytest.raises(AssertionError, match="again"):
        ptxas.assemble(ptx, "sm_80")


def test_a_disassembly_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """By cubin and options; what nvdisasm refuses is not."""
    cubin = ptxas.assemble(EMPTY, "sm_80").cubin
    plain, lines = sass.disassemble(cubin), sass.disassemble(cubin, lines=True)
    assert "EXIT" in plain
    calls: list[Sequence[str]] = []
    execute = sass.execute

    def counted(command: Sequence[str], *, cwd: Path | None = None) -> Any:
        calls.append(command)
        return execute(command, cwd=cwd)

    monkeypatch.setattr(sass, "execute", counted)
    assert sass.disassemble(cubin) == plain
    assert sass.disassemble(cubin, lines=True) == lines
    assert calls == []
    for _ in range(2):
        with pytest.raises(FragirError, match="cannot read this cubin"):
            sass.disassemble(b"no cubin")
    assert len(calls) == 2
    cubins.clear()
    assert sass.disassemble(cubin) == plain
    assert len(calls) == 3


EMPTY = """.version 7.0
.target sm_80
.address_size 64
.visible .entry k() { ret; }
"""


# Carried ones -------------------------------------------------------------------------------------


def test_carried_cubins_need_no_ptxas(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder written here stands for its PTX and target there, whatever assembler there is."""
    folder = tmp_path / "carried"
    made = ptxas.carry(folder, KERNEL, "sm_90a")
    (entry,) = folder.iterdir()
    assert b"Compile time" not in entry.read_bytes()
    first = entry.read_bytes()
    ptxas.carry(folder, KERNEL, "sm_90a")
    assert entry.read_bytes() == first  # the same PTX makes the same entry
    cubins.clear()

    def nothing(*_: object) -> Any:
        raise FragirError("no ptxas here")

    monkeypatch.setattr(ptxas, "find", nothing)
    with pytest.raises(FragirError, match="no ptxas here"):
        ptxas.assemble(KERNEL, "sm_90a")
    monkeypatch.setenv("FRAGIR_CUBINS", str(folder))
    monkeypatch.setenv("FRAGIR_CACHE_SIZE", "0")  # which is the cache's
    found = ptxas.assemble(KERNEL, "sm_90a", cache=False)
    assert found.cubin == made.cubin
    assert found.entries["empty"].registers == made.entries["empty"].registers
    # nothing else is in it: another target, another text, a version that is asked for
    for ptx, target, version in (
        (KERNEL, "sm_90", None),
        (KERNEL + " ", "sm_90a", None),
        (KERNEL, "sm_90a", "13"),
    ):
        with pytest.raises(FragirError, match="no ptxas here"):
            ptxas.assemble(ptx, target, version=version)
    assert list(folder.iterdir()) == [entry]
    entry.write_bytes(first[:-1])
    with pytest.raises(FragirError, match="no ptxas here"):
        ptxas.assemble(KERNEL, "sm_90a")


KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry empty() { ret; }
"""


def test_what_ptx_is_assembled_for() -> None:
    """Machine code runs on its own generation only; features of one machine on that one."""
    for target, gpu, wanted in (
        ("sm_80", "sm_90", "sm_90"),
        ("sm_90", "sm_90", "sm_90"),
        ("sm_90a", "sm_90", "sm_90a"),
        ("sm_80", "sm_80", "sm_80"),
        ("sm_100f", "sm_100", "sm_100f"),
        ("sm_75", "sm_120", "sm_120"),
    ):
        assert ptxas.target_for(target, gpu) == wanted
