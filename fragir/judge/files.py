"""Judges files: PTX, or what nvcc makes of it, a fatbin or any file with one in it.

A container begins with the magic number 0xBA55ED50 and a head of 16 bytes: version and size of the
head (16 bits each), bytes behind it (64 bits). Then come entries: kind (16 bits; 1 is PTX, 2 a
cubin), version (16), size of the head (32), bytes behind it (64), compressed bytes (32), where
options stand (32), minor and major version (16 each), the machine (32), and from byte 40 on flags
(64 bits). As nvcc 13.0 writes it; NVIDIA publishes no description.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fragir.errors import FragirError
from fragir.judge.judging import MOST_CHARACTERS, Judging, judge
from fragir.judge.verdict import Judgement, Reason

MAGIC = struct.pack("<I", 0xBA55ED50)
_HEAD = struct.Struct("<4sHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_PTX = 1
#: Flags of an entry: which compression.
_COMPRESSED = {0x2000: "LZ4", 0x8000: "zstd"}
_HINT = "`cuobjdump -xptx all FILE` writes the PTX, and `nvcc --no-compress` does not compress it"


class NoPtxError(FragirError):
    """A file of machine code has no PTX that could be judged."""


@dataclass(frozen=True)
class _Entry:
    kind: int
    machine: int
    flags: int
    data: bytes


def is_image(data: bytes) -> bool:
    """Whether a file is no text of PTX but a fatbin or an ELF file."""
    return data.startswith((MAGIC, b"\x7fELF"))


def ptx_of(data: bytes, name: str) -> str:
    """The PTX in a fatbin or ELF file, for the newest machine that there is PTX for.

    Raises NoPtxError where there is none, or it is compressed.
    """
    found = [entry for entry in _entries(data) if entry.kind == _PTX]
    if not found:
        raise NoPtxError("there is no PTX in this file, and machine code is not judged", name)
    newest = max(found, key=lambda entry: entry.machine)
    for flag, how in _COMPRESSED.items():
        if newest.flags & flag:
            raise NoPtxError(f"the PTX in this file is compressed ({how})", name, hint=_HINT)
    try:
        return newest.data.rstrip(b"\0").decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoPtxError("the PTX in this file is no text", name, hint=_HINT) from error


def _entries(data: bytes) -> Iterator[_Entry]:
    """What all containers of a file hold; what is cut off is left out."""
    start = data.find(MAGIC)
    while start >= 0 and start + _HEAD.size <= len(data):
        _, _, head, size = _HEAD.unpack_from(data, start)
        at, end = start + head, min(start + head + size, len(data))
        while at + _ENTRY.size <= end:
            kind, _, head, size, _, _, _, _, machine, _, _, flags = _ENTRY.unpack_from(data, at)
            if head < _ENTRY.size or at + head + size > end:
                break
            yield _Entry(kind, machine, flags, data[at + head : at + head + size])
            at += head + size
        start = data.find(MAGIC, max(end, start + len(MAGIC)))


def judge_file(path: str, case: str, how: Judging) -> Judgement:
    """The verdict on a file: PTX, or a fatbin, cubin or program with PTX in it.

    Raises BrokenCaseError, and FragirError where the file cannot be read.
    """
    try:
        if os.path.getsize(path) > 4 * MOST_CHARACTERS:
            raise FragirError(f"this file has more than {4 * MOST_CHARACTERS} bytes", path)
        data = Path(path).read_bytes()
    except OSError as error:
        raise FragirError(f"cannot read this file: {error.strerror}", path) from error
    try:
        text = ptx_of(data, path) if is_image(data) else data.decode("utf-8")
    except NoPtxError as error:
        return Judgement([Reason("unsupported", "unsupported", error.sentence, file=path)])
    except UnicodeDecodeError as error:
        raise FragirError("this is no PTX: it is no text", path) from error
    return judge(text, case, how, name=path)
