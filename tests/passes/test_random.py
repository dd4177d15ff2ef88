"""Random bits: published vectors, Triton's numbers, every layout; the reference by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragir
from fragir.layout import Layout
from tests.properties.judge import examples

from .test_gather import memref, placements
from .test_ranks import tile

Array = npt.NDArray[Any]
LOW = (1 << 32) - 1


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Philox 4x32-10 one counter at a time, as the paper has it in section 3.4."""
    (r0, l0, r1, l1), (k0, k1) = counter, key
    for _ in range(10):
        first, second = 0xD2511F53 * r0, 0xCD9E8D57 * r1
        r0, l0 = (second >> 32) ^ l0 ^ k0, second & LOW
        r1, l1 = (first >> 32) ^ l1 ^ k1, first & LOW
        k0, k1 = (k0 + 0x9E3779B9) & LOW, (k1 + 0xBB67AE85) & LOW
    return [r0, l0, r1, l1]


def program(shape: Sequence[int], words: int, seed: str, layout: Layout | None, warps: int) -> str:
    """The four tiles of a counter of so many words from memory."""
    kind, zeros = tile(shape, "i32", layout), ", ".join("0" * len(shape))
    memory = memref(shape, "i32")
    loads = "\n".join(
        f"%t{i} = frag.load %c{i}[{zeros}] : {memory} -> {kind}" for i in range(words)
    )
    stores = "\n".join(f"frag.store %r{i}, %y{i}[{zeros}] : {kind}, {memory}" for i in range(4))
    arguments = ", ".join(
        [f"%c{i}: {memory}" for i in range(words)] + [f"%y{i}: {memory}" for i in range(4)]
    )
    given, constant = "", f"%seed: {seed}, "
    if not seed.startswith("i"):  # a number
        given, constant, seed = f"%seed = arith.constant {seed} : i64", "", "i64"
    return f"""
    func.func @k({constant}{arguments}) attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      {given}
      {loads}
      %r0, %r1, %r2, %r3 = frag.random %seed, {", ".join(f"%t{i}" for i in range(words))}
        : {seed}, {", ".join([kind] * words)}
      {stores}
      func.return
    }}
    """


#: The counter, the key and the bits: Random123's `kat_vectors`, philox 4x32, 10 rounds.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip


@pytest.mark.parametrize(("counter", "key", "bits"), KNOWN)
@pytest.mark.parametrize("constant", [False, True])
def test_published(counter: str, key: str, bits: str, constant: bool) -> None:
    c, k, wanted = ([int(word, 16) for word in text.split()] for text in (counter, key, bits))
    assert philox(c, k) == wanted
    seed = int(np.uint64(k[0] | k[1] << 32).astype(np.int64))
    text = program((64,), 4, str(seed) if constant else "i64", None, 1)
    kernel = fragir.compile(text)
    arguments = [np.full(64, word, np.uint32).view(np.int32) for word in c]
    results = [np.zeros(64, np.int32) for _ in range(4)]
    values = [*arguments, *results] if constant else [seed, *arguments, *results]
    kernel.launch((1,), (32,), *values, on="emulator", check=True)
    for word, found in zip(wanted, results, strict=True):
        assert (found.view(np.uint32) == word).all()


@examples(8)
@given(st.data())
def test_everywhere(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(64,), (7,), (16, 8), (2, 4, 8)]))
    warps, layout = data.draw(placements(shape))
    words = data.draw(st.integers(1, 4))
    type_ = data.draw(st.sampled_from(["i32", "i64"]))
    bits = int(type_[1:])
    seed = data.draw(st.integers(-(1 << bits - 1), (1 << bits - 1) - 1))
    kernel = fragir.compile(program(shape, words, type_, layout, warps))
    rng = np.random.default_rng(seed & LOW)
    counter = [rng.integers(-(1 << 31), 1 << 31, shape).astype(np.int32) for _ in range(words)]
    results = [np.zeros(shape, np.int32) for _ in range(4)]
    threads = (32 * warps,)
    report = kernel.launch(
        (1,), threads, seed, *counter, *results, on="emulator", check=True, schedule=1
    )
    assert report.findings == []
    key = [seed & LOW, seed >> 32 & LOW]
    for place in np.ndindex(*shape):
        words_here = [int(word[place]) & LOW for word in counter]
        wanted = philox([*words_here, *[0] * (4 - words)], key)
        assert [int(found[place]) & LOW for found in results] == wanted


def drawn(kind: str, count: int, seed: int) -> Array:
    """A kernel's uniform or normal numbers of the offsets from -100 on."""
    with fragir.kernel("draw", warps=(2, 1)) as k:
        y = k.memory("y", fragir.f32, ("n",))
        given_seed = k.scalar("seed", fragir.s64)
        k.grid("n / 256")
        start = k.block_id() * 256
        offsets = k.iota(0, (256,)) + start.cast(fragir.s32) - 100
        found = (
            k.uniform(given_seed, offsets) if kind == "uniform" else k.normal(given_seed, offsets)
        )
        k.store(found, y, (start,), masked=True)
    result = np.zeros(count, np.float32)
    k.compile()(result, seed, on="emulator")
    return result


def as_triton(word: int) -> np.float32:
    """`uint_to_uniform_float` of triton/language/random.py."""
    x = np.uint32(word).view(np.int32)
    return np.float32(-x - 1 if x < 0 else x) * np.float32(4.6566127342e-10)


def test_uniform() -> None:
    seed = 0x1234_5678_9ABC_DEF0
    found = drawn("uniform", 700, seed)
    key = [seed & LOW, seed >> 32]
    wanted = [as_triton(philox([(i - 100) & LOW, 0, 0, 0], key)[0]) for i in range(700)]
    assert found.tolist() == [float(x) for x in wanted]
    assert found.min() >= 0
    assert found.max() < 1
    assert as_triton((1 << 31) - 1) < 1


def test_normal() -> None:
    found = drawn("normal", 4000, 3)
    words = [philox([(i - 100) & LOW, 0, 0, 0], [3, 0]) for i in range(4000)]
    u = np.array([[as_triton(w[0]), as_triton(w[1])] for w in words], np.float64)
    wanted = np.sqrt(-2 * np.log(np.maximum(u[:, 0], 1e-7))) * np.cos(2 * np.pi * u[:, 1])
    assert np.abs(found - wanted).max() < 2e-5
    assert abs(found.mean()) < 0.05
    assert abs(found.std() - 1) < 0.03


def test_a_kernel_that_uses_one_tile() -> None:
    """The products of a counter that is zero but for its lowest word take no instruction."""
    one = fragir.compile(program((64,), 1, "i32", None, 2)).ptx
    four = fragir.compile(program((64,), 4, "i32", None, 2)).ptx
    assert four.count("mul.wide.u32") == 20
    assert one.count("mul.wide.u32") == 19  # the second round has both
