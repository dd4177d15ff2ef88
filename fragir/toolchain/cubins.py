"""The cache of cubins on disk, and of what nvdisasm says of them.

One file an entry: a line of JSON that describes it, then the cubin, nothing where the text is all.
Its name is a hash of everything it depends on: the PTX, the target, the version of the assembler,
or the cubin, the options and the version of nvdisasm. Writing is
atomic, so several processes may share the cache. A digest covers the whole entry, its name too:
what is damaged, edited, or no file counts as absent. When the files together pass the limit, those
used longest ago go first. Thousands of files take as long to count as ptxas to start, so a store
counts them with a chance: about once for each 128th of the limit that is stored.

    FRAGIR_CACHE        the folder; `off` switches the cache off
    FRAGIR_CACHE_SIZE   the limit in MiB, 256 unless set; 0 switches the cache off

Where cubins come from elsewhere, as on a machine without an assembler, they lie in a folder of
their own, written by `carry`: whichever assembler made them, they stand for their PTX and target.

    FRAGIR_CUBINS       that folder; it is looked into first and never written
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from fragir.errors import FragirError

FORMAT = 2
"""Goes into every key: raise it when what is stored changes."""

SUFFIX = ".cubin+log"
_PART = ".part"
_COUNTS = 128
"""How often files are counted while as much is stored as the limit lets stay."""
_ROOM = 16
"""The part of the limit that is left free then: what is stored till the next time fits there but
for one time in `exp(128 / 16)`."""
_ABANDONED = 3600
"""Seconds after which a file half written belongs to a process that is gone."""


class _Header(TypedDict):
    log: str
    sha256: str


@dataclass(frozen=True, slots=True)
class CacheState:
    """Where the cache is and how full, in bytes; `folder` is None where it is switched off."""

    folder: Path | None
    files: int
    size: int
    limit: int


def folder() -> Path | None:
    """The folder of the cache, or None where it is switched off."""
    chosen = os.environ.get("FRAGIR_CACHE", "")
    if chosen.lower() == "off" or limit() == 0:
        return None
    try:
        if chosen:
            return Path(chosen).expanduser()
        home = Path.home()
    except RuntimeError:  # no such user, or one without a home
        if not chosen:
            return None
        hint = "set it to a folder, or to `off`"
        raise FragirError(f"FRAGIR_CACHE is `{chosen}`: nobody's home", hint=hint) from None
    match sys.platform:
        case "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        case "darwin":
            base = home / "Library" / "Caches"
        case _:
            base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "fragir" / "cubins"


def limit() -> int:
    """The most bytes that the files may take together."""
    text = os.environ.get("FRAGIR_CACHE_SIZE", "256")
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise FragirError(f"FRAGIR_CACHE_SIZE is `{text}`", hint="set it to a number of MiB")
    return int(text) << 20


def key(tool: str, version: str, target: str, ptx: str) -> str:
    """The name of an entry: a hash of all that its content depends on."""
    return _digest(str(FORMAT), tool, version, target, ptx)


def _digest(*parts: str | bytes) -> str:
    """A hash of texts and bytes that also tells where each ends."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def load(name: str) -> tuple[bytes, str] | None:
    """The cubin and the log stored under a key, or None."""
    place = folder()
    found = None if place is None else _entry(place, name, limit())
    if place is not None and found is not None:
        with contextlib.suppress(OSError):
            os.utime(place / (name + SUFFIX))  # used now: goes last
    return found


def carry(place: Path, target: str, ptx: str, cubin: bytes, log: str) -> Path:
    """Writes an entry of a folder that FRAGIR_CUBINS may name; its file."""
    place.mkdir(parents=True, exist_ok=True)
    name = key("carried", "", target, ptx)
    path = place / (name + SUFFIX)
    part = path.with_suffix(_PART)
    part.write_bytes(_bytes_of(name, cubin, log))
    part.replace(path)
    return path


def carried_cubin(target: str, ptx: str) -> tuple[bytes, str] | None:
    """The cubin and the log of PTX that FRAGIR_CUBINS has, or None."""
    chosen = os.environ.get("FRAGIR_CUBINS")
    return _entry(Path(chosen), key("carried", "", target, ptx)) if chosen else None


def _entry(place: Path, name: str, most: int | None = None) -> tuple[bytes, str] | None:
    """The cubin and the log in a file of a folder, or None where it is none of `most` bytes."""
    path = place / (name + SUFFIX)
    try:
        first, _, cubin = _content(path, most).partition(b"\n")
        header: _Header = json.loads(first)
        log, digest = header["log"], header["sha256"]
        if digest != _digest(name, log, cubin):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return cubin, log


def _bytes_of(name: str, cubin: bytes, log: str) -> bytes:
    """What stands in an entry's file."""
    header: _Header = {"log": log, "sha256": _digest(name, log, cubin)}
    return json.dumps(header).encode() + b"\n" + cubin


def _content(path: Path, most: int | None) -> bytes:
    """The bytes of an entry; OSError for what is no regular file: a pipe would wait for ever."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        large = most is not None and status.st_size > most
        if large or not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no entry")
        return file.read()


def store(name: str, cubin: bytes, log: str) -> None:
    """Stores a cubin and its log. A cache that cannot be written is no error."""
    place = folder()
    if place is None:
        return
    data = _bytes_of(name, cubin, log)
    if len(data) > limit():
        return
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=place, suffix=_PART)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, place / (name + SUFFIX))
        except BaseException:  # a signal, too
            os.unlink(temporary)
            raise
        _shrink(place, len(data))


def state() -> CacheState:
    """Where the cache is and what it holds."""
    place = folder()
    sizes = [] if place is None else [size for _, size, _ in _files(place)]
    return CacheState(place, len(sizes), sum(sizes), limit())


def clear() -> int:
    """Deletes every entry; returns how many."""
    place = folder()
    return 0 if place is None else sum(_delete(path) for _, _, path in _files(place))


def _files(place: Path, suffix: str = SUFFIX) -> list[tuple[int, int, Path]]:
    """(time of last use in ns, size, path) of every entry, the one used longest ago first.

    What is no regular file is none of ours.
    """
    found: list[tuple[int, int, Path]] = []
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process deleted it
                status = entry.stat(follow_symlinks=False)
                if entry.name.endswith(suffix) and stat.S_ISREG(status.st_mode):
                    found.append((status.st_mtime_ns, status.st_size, Path(entry.path)))
    return sorted(found)


def _delete(path: Path) -> bool:
    with contextlib.suppress(OSError):
        path.unlink()
        return True
    return False


def _shrink(place: Path, stored: int) -> None:
    """Deletes entries until they fit, and what other processes left half written; with a chance in
    proportion to the bytes that were stored."""
    chance = _COUNTS * stored / limit()
    if chance < int.from_bytes(os.urandom(4), "big") / (1 << 32):
        return
    files = _files(place)
    over = sum(size for _, size, _ in files) - limit()
    if chance < 1 and over > -limit() // _ROOM:
        over += limit() // _ROOM
    for _, size, path in files:
        if over <= 0:
            break
        if _delete(path):
            over -= size
    before = time.time_ns() - _ABANDONED * 10**9
    for changed, _, path in _files(place, _PART):
        if changed < before:
            _delete(path)
