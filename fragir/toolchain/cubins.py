"""The cache of cubins on disk.

One file an entry: a line of JSON that describes it, then the cubin. Its name is a hash of
everything the cubin depends on: the PTX, the target, the version of the assembler. Writing is
atomic, so several processes may share the cache; a damaged file counts as absent. When the files
together pass the limit, those used longest ago go first.

    FRAGIR_CACHE        the folder; `off` switches the cache off
    FRAGIR_CACHE_SIZE   the limit in MiB, 256 unless set; 0 switches the cache off
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from fragir.errors import FragirError

FORMAT = 1
"""Goes into every key: raise it when what is stored changes."""

SUFFIX = ".cubin+log"


class _Header(TypedDict):
    log: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class State:
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
    if chosen:
        return Path(chosen).expanduser()
    home = Path.home()
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
    if not text.isascii() or not text.isdigit():
        raise FragirError(f"FRAGIR_CACHE_SIZE is `{text}`", hint="set it to a number of MiB")
    return int(text) << 20


def key(tool: str, version: str, target: str, ptx: str) -> str:
    """The name of an entry: a hash of all that its content depends on."""
    parts = (str(FORMAT), tool, version, target, ptx)
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def load(name: str) -> tuple[bytes, str] | None:
    """The cubin and the log stored under a key, or None."""
    place = folder()
    if place is None:
        return None
    path = place / (name + SUFFIX)
    try:
        first, _, cubin = path.read_bytes().partition(b"\n")
        header: _Header = json.loads(first)
        log, size, digest = header["log"], header["size"], header["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if len(cubin) != size or hashlib.sha256(cubin).hexdigest() != digest:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used now: goes last
    return cubin, log


def store(name: str, cubin: bytes, log: str) -> None:
    """Stores a cubin and its log. A cache that cannot be written is no error."""
    place = folder()
    if place is None:
        return
    digest = hashlib.sha256(cubin).hexdigest()
    header: _Header = {"log": log, "size": len(cubin), "sha256": digest}
    data = json.dumps(header).encode() + b"\n" + cubin
    if len(data) > limit():
        return
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=place, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, place / (name + SUFFIX))
        except OSError:
            os.unlink(temporary)
            raise
        _shrink(place)


def state() -> State:
    """Where the cache is and what it holds."""
    place = folder()
    sizes = [] if place is None else [size for _, size, _ in _files(place)]
    return State(place, len(sizes), sum(sizes), limit())


def clear() -> int:
    """Deletes every entry; returns how many."""
    place = folder()
    files = [] if place is None else _files(place)
    for _, _, path in files:
        path.unlink(missing_ok=True)
    return len(files)


def _files(place: Path) -> list[tuple[float, int, Path]]:
    """(time of last use, size, path) of every entry, the one used longest ago first."""
    found: list[tuple[float, int, Path]] = []
    for path in place.glob(f"*{SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):  # another process deleted it
            status = path.stat()
            found.append((status.st_mtime_ns, status.st_size, path))
    return sorted(found)


def _shrink(place: Path) -> None:
    files = _files(place)
    over = sum(size for _, size, _ in files) - limit()
    for _, size, path in files:
        if over <= 0:
            break
        path.unlink(missing_ok=True)
        over -= size
