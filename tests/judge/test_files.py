"""PTX out of fatbins, of bytes that are put together here."""

from __future__ import annotations

import struct

import pytest

from fragir.judge.files import NoPtxError, is_image, ptx_of

TEXT = b".version 8.0\n.target sm_%d\n.address_size 64\n"


def entry(kind: int, machine: int, data: bytes, flags: int = 0x11) -> bytes:
    data += bytes(-len(data) % 8)
    head = struct.pack(
        "<HHIQIIHHIIIQ", kind, 0x0101, 80, len(data), 0, 64, 0, 9, machine, 0, 0, flags
    )
    return head.ljust(80, b"\0") + data


def fatbin(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


CUBIN = entry(2, 90, b"\x7fELF" + bytes(60))


def test_the_newest_ptx_is_taken() -> None:
    image = fatbin(entry(1, 80, TEXT % 80), CUBIN, entry(1, 90, TEXT % 90), entry(1, 75, TEXT % 75))
    assert is_image(image)
    assert ptx_of(image, "k.fatbin") == (TEXT % 90).decode()


def test_a_fatbin_within_a_program() -> None:
    image = b"\x7fELF" + bytes(100) + fatbin(CUBIN) + bytes(8) + fatbin(entry(1, 80, TEXT % 80))
    assert is_image(image)
    assert ptx_of(image, "a.out") == (TEXT % 80).decode()


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (fatbin(CUBIN), "no PTX in this file"),
        (b"\x7fELF" + bytes(500), "no PTX in this file"),
        (fatbin(entry(1, 80, b"\x28\xb5\x2f\xfd", 0x8011)), r"compressed \(zstd\).*cuobjdump"),
        (fatbin(entry(1, 80, b"\x13\x0a", 0x2011)), r"compressed \(LZ4\)"),
        (fatbin(entry(1, 80, TEXT % 80))[:100], "no PTX in this file"),
        (fatbin(entry(1, 80, b"\xff\xfe\xff")), "no text"),
    ],
)
def test_what_has_none(image: bytes, words: str) -> None:
    with pytest.raises(NoPtxError, match=words):
        ptx_of(image, "k.fatbin")


def test_text_is_no_image() -> None:
    assert not is_image(TEXT)
