"""`--arg KIND:VALUE`, without running anything."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir.cli.arguments import ArrayArgument, Loaded, StructArgument, parse, read_array
from fragir.errors import FragirError

Fragir = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("u32:7", b"\7\0\0\0"),
        ("u32:0x10", b"\x10\0\0\0"),
        ("s16:-2", b"\xfe\xff"),
        ("u64:18446744073709551615", b"\xff" * 8),
        ("s64:-9223372036854775808", bytes(7) + b"\x80"),
        ("b32:3f800000", struct.pack("<f", 1)),
        ("b8:0xff", b"\xff"),
        ("f32:1.5", struct.pack("<f", 1.5)),
        ("f64:-inf", struct.pack("<d", float("-inf"))),
        ("f16:1", b"\x00\x3c"),
        ("bf16:1", b"\x80\x3f"),
        ("bytes:00ff10", b"\x00\xff\x10"),
        ("bytes:@s.bin", StructArgument("s.bin")),
        ("in:a.npy", ArrayArgument("a.npy", written=False)),
        ("out:a:b.npy", ArrayArgument("a:b.npy", written=True)),
        ("inout:a.npy", ArrayArgument("a.npy", written=True)),
    ],
)
def test_parse(text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no argument"),
        ("a.npy", "no argument"),
        ("u33:1", "no argument"),
        ("u32", "no argument"),
        ("u32:", "nothing behind the colon"),
        ("in:", "nothing behind the colon"),
        ("u32:-1", "0 to 4294967295"),
        ("u32:1.5", "no integer"),
        ("s8:128", "-128 to 127"),
        ("b16:12345", "out of range"),
        ("b16:xyz", "no integer"),
        ("f32:one", "no number"),
        ("f32:1e40", "does not fit"),
        ("f16:70000", "does not fit"),
        ("bytes:123", "no hexadecimal"),
        ("bytes:zz", "no hexadecimal"),
        ("null:", "no argument"),
    ],
)
def test_refused(text: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        parse(text)


def test_same_file_is_one_buffer(in_folder: Path) -> None:
    np.save("a.npy", np.arange(4, dtype=np.int16))
    (in_folder / "link.npy").symlink_to("a.npy")
    (in_folder / "s.bin").write_bytes(b"struct")
    texts = ["in:a.npy", "out:./a.npy", "inout:link.npy", "null", "u8:1", "bytes:@s.bin"]
    loaded = Loaded([parse(text) for text in texts])
    values = loaded.values()
    assert values[0] is values[1] is values[2]
    assert values[3:] == [None, b"\1", b"struct"]
    values[0][:] = 7
    assert loaded.values()[0].tolist() == [0, 1, 2, 3]
    results = loaded.results(values)
    assert len(results) == 1
    (name,) = results
    (in_folder / "b.npy").write_bytes(results[name])
    written = np.load("b.npy")
    assert written.dtype == np.int16
    assert written.tolist() == [7, 7, 7, 7]


def test_input_only_is_not_written(in_folder: Path) -> None:
    np.save("a.npy", np.zeros(4))
    loaded = Loaded([parse("in:a.npy")])
    assert loaded.results(loaded.values()) == {}


PAIR = np.array([(1, 2.5), (-3, 0.5)], dtype=[("a", "<i2"), ("b", "<f8")])


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.zeros((0, 3)),
        np.array(5.0),
        np.zeros(3, dtype="V2"),
        PAIR,
    ],
)
def test_every_plain_array(in_folder: Path, array: np.ndarray) -> None:
    np.save("a.npy", array)
    found = read_array("a.npy")
    assert found.flags.c_contiguous
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype="<i4").reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype="<f2").reshape(2, 3)),
        np.array(5, "<u8"),
        np.array([1 + 2j], "<c8"),
        PAIR,
    ],
)
def test_big_endian_numbers_are_converted(in_folder: Path, array: np.ndarray) -> None:
    swapped = array.astype(array.dtype.newbyteorder(">"))
    assert swapped.tobytes() != array.tobytes()
    np.save("a.npy", swapped)
    found = read_array("a.npy")
    assert (found.dtype, found.tobytes()) == (array.dtype, array.tobytes())


def test_big_endian_file_on_the_emulator(fragir: Fragir, store: Path) -> None:
    added = "ld.global.u32 %r3, [%rd3]; add.u32 %r1, %r1, %r3"
    store.write_text(store.read_text().replace("add.u32 %r1, %r1, %r2", added))
    for order in "<>":
        np.save("x.npy", np.arange(32, dtype=f"{order}u4"))
        assert fragir("emulate", "store.ptx", "--arg", "inout:x.npy", "--arg", "u32:7").code == 0
        assert np.load("x.npy").tolist() == list(range(7, 39))


def test_big_endian_file_is_judged(fragir: Fragir, in_folder: Path) -> None:
    """The same numbers in both byte orders give the same verdict and the same error."""
    memory = "memref<16x16xf16>, memref<16x16xf16> into memref<16x16xf32>"
    (in_folder / "p.mlir").write_text(
        "func.func @f(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf32>) {\n"
        f"  frag.matmul %a, %b into %c : {memory}\n  func.return\n}}\n"
    )
    numbers = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float16)
    found: list[tuple[int, float, float]] = []
    for order in "<>":
        np.save("a.npy", numbers.astype(f"{order}f2"))
        result = fragir("run", "p.mlir", "--on", "emulator", "--arg", "a=a.npy", "--json")
        document = json.loads(result.out)
        found.append((result.code, document["max_error"], document["bound"]))
    assert found[0] == found[1]
    assert found[0][0] == 0


def test_more_than_one_array(in_folder: Path) -> None:
    """Replacing the file would lose the second."""
    with open("two.npy", "wb") as file:
        np.save(file, np.zeros(3))
        np.save(file, np.ones(3))
    with pytest.raises(FragirError, match=r"two\.npy: \d+ bytes follow the array"):
        read_array("two.npy")


def test_elements_without_bytes(in_folder: Path) -> None:
    np.save("none.npy", np.zeros(3, "V0"))
    with pytest.raises(FragirError, match="have no bytes"):
        read_array("none.npy")


def test_no_array(in_folder: Path) -> None:
    np.save("full.npy", np.zeros(100))
    full = (in_folder / "full.npy").read_bytes()
    contents = {
        "empty.npy": b"",
        "text.npy": b"1, 2, 3\n",
        "short.npy": full[:-1],
        "header.npy": full[:20],
        "version.npy": full[:6] + b"\x09" + full[7:],
        "zip.npy": b"PK\3\4" + full,
    }
    for name, content in contents.items():
        (in_folder / name).write_bytes(content)
        with pytest.raises(FragirError, match=r"no \.npy array") as caught:
            read_array(name)
        assert caught.value.file == name
        assert "\n" not in str(caught.value)


def test_pickles_are_not_loaded(in_folder: Path) -> None:
    np.save("p.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FragirError, match=r"p\.npy: this is no \.npy array"):
        read_array("p.npy")
