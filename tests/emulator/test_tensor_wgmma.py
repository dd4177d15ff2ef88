"""wgmma against numpy on whole matrices, operands laid out in shared memory element by element.

The addresses here are computed per element from the canonical layouts of the ISA (and of CuTe); the
emulator computes them per 16-byte chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator.tensor_cores import ReadShared, Wgmma, tensor_instruction
from fragir.errors import FragirError

Array: TypeAlias = npt.NDArray[Any]

STORED: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
    "f32": np.float32,
    "s32": np.int32,
}
WIDTH = {"none": 1, "32B": 2, "64B": 4, "128B": 8}
FIELD = {"none": 0, "128B": 1, "64B": 2, "32B": 3}


@dataclass(frozen=True)
class Layout:
    """Where element (mn, k) of an operand lies; strides in bytes."""

    mode: str
    major: str  # "K" or "MN"
    start: int
    leading: int
    stride: int
    size: int  # bytes of an element

    def address(self, mn: int, k: int) -> int:
        w, t, s = WIDTH[self.mode], 16 // self.size, self.size
        match self.major, self.mode:
            case "K", "none":
                offset = (
                    16 * (mn % 8) + self.stride * (mn // 8) + s * (k % t) + self.leading * (k // t)
                )
            case "K", _:
                offset = 16 * w * (mn % 8) + self.stride * (mn // 8) + s * k
            case _, "none":
                offset = (
                    s * (mn % t) + self.stride * (mn // t) + 16 * (k % 8) + self.leading * (k // 8)
                )
            case _:
                offset = s * (mn % (w * t)) + self.leading * (mn // (w * t))
                offset += 16 * w * (k % 8) + self.stride * (k // 8)
        address = self.start + offset
        return address ^ (((address >> 7) & (w - 1)) << 4)

    @property
    def descriptor(self) -> int:
        return (
            (self.start & 0x3FFFF) >> 4
            | (self.leading >> 4) << 16
            | (self.stride >> 4) << 32
            | FIELD[self.mode] << 62
        )

    def store(self, memory: npt.NDArray[np.uint8], values: Array) -> set[int]:
        """Writes `[mn, k]`, already of the stored type; returns the bytes' addresses."""
        used: set[int] = set()
        for mn, k in np.ndindex(values.shape):
            at = self.address(mn, k)
            memory[at : at + self.size] = np.frombuffer(values[mn, k].tobytes(), np.uint8)
            used.update(range(at, at + self.size))
        assert len(used) == values.size * self.size, "elements overlap: the test is wrong"
        return used


def dense(mode: str, major: str, start: int, mn: int, k: int, size: int) -> Layout:
    """The densest canonical layout of an operand."""
    w = WIDTH[mode]
    match major, mode:
        case "K", "none":
            leading, stride = 16 * mn, 128
        case "K", _:
            leading, stride = 16, 128 * w
        case _, "none":
            leading, stride = 128, 128 * (k // 8)
        case _:
            leading, stride = 128 * w * (k // 8), 128 * w
    return Layout(mode, major, start, leading, stride, size)


def decode_op(words: str) -> Wgmma:
    op = tensor_instruction(("wgmma", "mma_async", *words.split(".")), "sm_90a")
    assert isinstance(op, Wgmma)
    return op


def reader(memory: npt.NDArray[np.uint8], touched: set[int]) -> ReadShared:
    """`memory`: `[G, bytes]`. Notes every address that is read."""

    def read(addresses: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
        assert addresses.dtype == np.uint32
        assert (addresses % 16 == 0).all()
        touched.update(int(x) + i for x in addresses[0] for i in range(16))
        index = addresses.astype(np.int64)[:, :, None] + np.arange(16)
        return memory[np.arange(len(memory))[:, None, None], index]

    return read


def small(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    low, high = {"u8": (0, 255), "s8": (-128, 128)}.get(name, (-3, 4))
    return rng.integers(low, high, shape).astype(STORED[name])


def accumulators(values: Array, name: str) -> npt.NDArray[np.uint32]:
    """`[G, 64, N]` -> registers, by the rule of the ISA's figures typed here."""
    groups, _, n = values.shape
    count = n // 2
    result = np.zeros((count, groups, 4, 32), np.uint64)
    stored: Any = np.float16 if name == "f16" else STORED[name]
    codes = values.astype(stored)
    codes = codes.view(f"u{codes.itemsize}").astype(np.uint64)
    for i in range(count):
        for thread in range(128):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2)
            column = 8 * (i // 4) + 2 * (thread % 4) + i % 2
            result[i, :, thread // 32, thread % 32] = codes[:, row, column]
    if name == "f16":
        return (result[0::2] | result[1::2] << np.uint64(16)).astype(np.uint32)
    return result.astype(np.uint32)


@dataclass(frozen=True)
class Case:
    types: tuple[str, str, str]
    n: int
    mode_a: str = "128B"
    mode_b: str = "128B"
    major_a: str = "K"
    major_b: str = "K"

    @property
    def k(self) -> int:
        return 32 // np.dtype(STORED[self.types[1]]).itemsize

    @property
    def words(self) -> str:
        return f"sync.aligned.m64n{self.n}k{self.k}.{'.'.join(self.types)}"


def cases() -> list[Case]:
    result: list[Case] = []
    for mode in WIDTH:
        for major_a in ("K", "MN"):
            for major_b in ("K", "MN"):
                # N is a multiple of the swizzle width where N is contiguous.
                n = 64 if mode == "128B" else 32
                result.append(Case(("f32", "f16", "f16"), n, mode, mode, major_a, major_b))
        for types in (
            ("f32", "tf32", "tf32"),
            ("f32", "e4m3", "e5m2"),
            ("f16", "e5m2", "e5m2"),
            ("s32", "s8", "u8"),
        ):
            result.append(Case(types, 24, mode, mode))
    for n in (8, 40, 128, 256):
        result.append(Case(("f32", "bf16", "bf16"), n))
        result.append(Case(("f16", "f16", "f16"), n, "none", "64B"))
    result.append(Case(("f32", "f16", "f16"), 192, "32B", "128B", "MN", "MN"))
    return result


def shown(case: Case) -> str:
    operands = f"{case.mode_a}-{case.major_a}-{case.mode_b}-{case.major_b}"
    return f"n{case.n}-{'.'.join(case.types)}-{operands}"


def setting(
    case: Case, groups: int
) -> tuple[Array, Array, npt.NDArray[np.uint8], Layout, Layout, set[int]]:
    rng = np.random.default_rng(8)
    _, left, right = case.types
    a, b = small(left, (groups, 64, case.k), rng), small(right, (groups, case.n, case.k), rng)
    memory = rng.integers(0, 256, (groups, 1 << 16), dtype=np.uint8)
    layout_a = dense(case.mode_a, case.major_a, 1024, 64, case.k, a.itemsize)
    layout_b = dense(case.mode_b, case.major_b, 32768, case.n, case.k, b.itemsize)
    used: set[int] = set()
    for group in range(groups):
        used = layout_a.store(memory[group], a[group]) | layout_b.store(memory[group], b[group])
    return a, b, memory, layout_a, layout_b, used


@pytest.mark.parametrize("case", cases(), ids=shown)
def test_operands_from_shared_memory(case: Case) -> None:
    op = decode_op(case.words)
    groups = 2
    a, b, memory, layout_a, layout_b, used = setting(case, groups)
    rng = np.random.default_rng(9)
    old = rng.integers(-9, 9, (groups, 64, case.n)).astype(np.float64)
    touched: set[int] = set()
    words_a = np.full(groups, layout_a.descriptor, np.uint64)
    words_b = np.full(groups, layout_b.descriptor, np.uint64)
    turn_a, turn_b = case.major_a == "MN", case.major_b == "MN"
    result = op.execute(
        accumulators(old, case.types[0]),
        words_a,
        words_b,
        reader(memory, touched),
        transpose_a=turn_a,
        transpose_b=turn_b,
    )
    exact = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    assert result.shape == (op.d.count, groups, 4, 32)
    np.testing.assert_array_equal(result, accumulators(exact + old, case.types[0]))
    assert touched == used
    addresses = op.shared_addresses(words_a, words_b, transpose_a=turn_a, transpose_b=turn_b)
    assert {int(x) + i for x in addresses[0] for i in range(16)} == used
    only_b = op.shared_addresses(None, words_b, transpose_b=turn_b)
    assert set(only_b[0].tolist()) < set(addresses[0].tolist())


def a_registers(values: Array) -> npt.NDArray[np.uint32]:
    """A `[G, 64, K]` of stored type -> registers `[4, G, 4, 32]`, typed from the figures."""
    codes = values.view(f"u{values.itemsize}").astype(np.uint32)
    per, bits = 4 // values.itemsize, 8 * values.itemsize
    result = np.zeros((4, len(values), 4, 32), np.uint32)
    for i in range(4 * per):
        register, e = divmod(i, per)
        for thread in range(128):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (register % 2)
            column = per * (thread % 4) + e + 4 * per * (register // 2)
            code = codes[:, row, column] << np.uint32(e * bits)
            result[register, :, thread // 32, thread % 32] |= code
    return result


@pytest.mark.parametrize("groups", [1, 3, 40])
@pytest.mark.parametrize(
    "types",
    [("f32", "f16", "f16"), ("f32", "tf32", "tf32"), ("s32", "u8", "u8"), ("f16", "e4m3", "e4m3")],
)
def test_a_from_registers(types: tuple[str, str, str], groups: int) -> None:
    """Also with more warpgroups than columns, which are computed in another order."""
    case = Case(types, 16)
    a, b, memory, _, layout_b, used = setting(case, groups)
    touched: set[int] = set()
    result = decode_op(case.words).execute(
        accumulators(np.zeros((groups, 64, 16)), types[0]),
        a_registers(a),
        np.full(groups, layout_b.descriptor, np.uint64),
        reader(memory, touched),
    )
    exact = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    np.testing.assert_array_equal(result, accumulators(exact, types[0]))
    assert touched < used


def test_scale_d_and_negations() -> None:
    case = Case(("f32", "bf16", "bf16"), 32)
    op = decode_op(case.words)
    a, b, memory, layout_a, layout_b, _ = setting(case, 2)
    exact = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    old = np.full((2, 64, 32), 5.0)
    old[1] = np.nan
    registers = accumulators(old, "f32")
    left, right = (np.full(2, each.descriptor, np.uint64) for each in (layout_a, layout_b))
    read = reader(memory, set())
    scale_d = np.array([True, False])
    expected = exact + np.array([5.0, 0.0])[:, None, None]
    result = op.execute(registers, left, right, read, scale_d=scale_d)
    np.testing.assert_array_equal(result, accumulators(expected, "f32"))
    for signs in ((-1, 1), (1, -1), (-1, -1)):
        result = op.execute(
            registers, left, right, read, scale_d=False, scale_a=signs[0], scale_b=signs[1]
        )
        signed = exact * signs[0] * signs[1] + 0.0
        np.testing.assert_array_equal(result, accumulators(signed, "f32"))


def test_steps_along_k_inside_a_swizzle_row() -> None:
    """Four K steps of a 128-byte row: the start address advances by 32 bytes each."""
    op = decode_op("sync.aligned.m64n16k16.f32.f16.f16")
    rng = np.random.default_rng(3)
    a, b = small("f16", (64, 64), rng), small("f16", (16, 64), rng)
    memory = np.zeros((1, 1 << 16), np.uint8)
    layout_a = dense("128B", "K", 2048, 64, 64, 2)
    layout_b = dense("128B", "K", 16384, 16, 64, 2)
    layout_a.store(memory[0], a)
    layout_b.store(memory[0], b)
    total = accumulators(np.zeros((1, 64, 16)), "f32")
    for k in range(4):
        words = [np.array([each.descriptor + 2 * k], np.uint64) for each in (layout_a, layout_b)]
        total = op.execute(total, words[0], words[1], reader(memory, set()))
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_array_equal(total, accumulators(exact[None], "f32"))


def test_base_offset_moves_the_pattern() -> None:
    """An operand whose pattern starts 384 bytes past a multiple of 1024: base offset 3."""
    op = decode_op("sync.aligned.m64n8k16.f32.f16.f16")
    plain = dense("128B", "K", 4096, 64, 16, 2)
    moved = dense("128B", "K", 4096 + 384, 64, 16, 2)
    words = np.array([plain.descriptor, moved.descriptor | 3 << 49], np.uint64)
    addresses = op.shared_addresses(words, words)
    np.testing.assert_array_equal(addresses[1], addresses[0] + 384)


def test_single_bits() -> None:
    op = decode_op("sync.aligned.m64n8k256.s32.b1.b1.and.popc")
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 2, (mn, 256)) for mn in (64, 8))
    memory = np.zeros((1, 1 << 16), np.uint8)
    layouts = dense("none", "K", 0, 64, 32, 1), dense("32B", "K", 4096, 8, 32, 1)
    for layout, bits in zip(layouts, (a, b), strict=True):
        layout.store(memory[0], np.packbits(bits, axis=1, bitorder="little"))
    words = [np.array([layout.descriptor], np.uint64) for layout in layouts]
    zero = np.zeros((4, 1, 4, 32), np.uint32)
    result = op.execute(zero, words[0], words[1], reader(memory, set()))
    np.testing.assert_array_equal(result, accumulators((a @ b.T)[None], "s32"))


SPARSE: list[tuple[str, str, int, Callable[[int, int, int], tuple[int, int]]]] = [
    # type, result, selectors, (row in warp, chunk, F) -> (lane, nibble)
    ("f16", "f32", 2, lambda r, c, f: (4 * (r % 8) + 2 * f + c // 4, 4 * (r // 8) + c % 4)),
    ("tf32", "f32", 2, lambda r, c, f: (4 * (r % 8) + 2 * f + c // 4, 4 * (r // 8) + c % 4)),
    ("s8", "s32", 1, lambda r, c, f: (4 * (r % 8) + 2 * (c // 8) + r // 8, c % 8)),
    ("e4m3", "f32", 1, lambda r, c, f: (4 * (r % 8) + 2 * (c // 8) + r // 8, c % 8)),
]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("entry", SPARSE, ids=lambda entry: entry[0])
def test_sparse(
    entry: tuple[str, str, int, Callable[[int, int, int], tuple[int, int]]], shared: bool
) -> None:
    name, result_type, selectors, where = entry
    size = np.dtype(STORED[name]).itemsize
    k = 64 // size
    op = decode_op(f"sp.sync.aligned.m64n16k{k}.{result_type}.{name}.{name}")
    assert op.selectors == tuple(range(selectors))
    rng = np.random.default_rng(2)
    kept, b = small(name, (64, k // 2), rng), small(name, (16, k), rng)
    memory = np.zeros((1, 1 << 16), np.uint8)
    layout_a = dense("32B", "K", 0, 64, k // 2, size)
    layout_b = dense("64B", "K", 16384, 16, k, size)
    layout_a.store(memory[0], kept)
    layout_b.store(memory[0], b)
    width, number = (2, 1) if name == "tf32" else (4, 2)
    for selector in op.selectors:
        full = np.zeros((64, k))
        metadata = rng.integers(0, 1 << 32, (1, 1, 4, 32), dtype=np.uint32)
        for row, chunk in np.ndindex(64, k // width):
            columns: list[int] = sorted(rng.choice(width, number, replace=False).tolist())
            nibble = (0b0100, 0b1110)[columns[0]] if width == 2 else columns[0] | columns[1] << 2
            for position, column in enumerate(columns):
                full[row, chunk * width + column] = kept[row, chunk * number + position]
            lane, at = where(row % 16, chunk, selector)
            metadata[0, 0, row // 16, lane] &= ~np.uint32(0xF << 4 * at)
            metadata[0, 0, row // 16, lane] |= np.uint32(nibble << 4 * at)
        left = np.array([layout_a.descriptor], np.uint64) if shared else a_registers(kept[None])
        result = op.execute(
            np.zeros((8, 1, 4, 32), np.uint32),
            left,
            np.array([layout_b.descriptor], np.uint64),
            reader(memory, set()),
            e=metadata,
            selector=selector,
        )
        exact = full @ b.astype(np.float64).T
        np.testing.assert_array_equal(result, accumulators(exact[None], result_type))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sync.aligned.m64n12k16.f32.f16.f16", ".m64n12k16 is no modifier"),
        ("sync.aligned.m64n40k32.s32.s8.s8", "no such shape"),
        ("sync.aligned.m64n8k16.bf16.bf16.bf16", ".bf16 does not stand here"),
        ("sync.aligned.m64n8k16.f32.f16.bf16", "no product of f16 and bf16"),
        ("sync.aligned.m64n8k256.s32.b1.b1.xor.popc", ".xor is no modifier of wgmma.mma_async"),
        ("sync.aligned.m64n8k16.satfinite.f32.f16.f16", "satfinite is for"),
    ],
)
def test_refusals_say_why(words: str, message: str) -> None:
    with pytest.raises(FragirError, match=message):
        decode_op(words)


def test_refused_elsewhere() -> None:
    opcode = ("wgmma", "mma_async", "sync", "aligned", "m64n8k16", "f32", "f16", "f16")
    for target in ("sm_90", "sm_100a", "sm_80"):
        with pytest.raises(FragirError, match="wgmma needs sm_90a"):
            tensor_instruction(opcode, target)


def test_only_16_bit_operands_are_transposed() -> None:
    op = decode_op("sync.aligned.m64n8k32.f32.e4m3.e4m3")
    word = np.zeros(1, np.uint64)
    with pytest.raises(FragirError, match="only 16-bit operands"):
        op.shared_addresses(None, word, transpose_b=True)
