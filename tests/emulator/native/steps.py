"""Every mma, wgmma and wmma, by numpy and by the compiled core on the same registers."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.tensor_cores import Mma, Wgmma, tensor_instruction
from fragir.emulator.tensor_cores.compiled import (
    CompiledMma,
    CompiledWgmma,
    FileRows,
)
from fragir.errors import FragirError
from fragir.isa import instructions

Array: TypeAlias = npt.NDArray[Any]

TARGETS = ("sm_70", "sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")
_WMMA = [
    f"{head}mma{tail}.sync.aligned.{layouts}.{shape}.{types}"
    for shapes, typed, head, tail in (
        ("m16n16k16 m32n8k16 m8n32k16", "f16.f16 f32.f32 f16.f32 f32.f16", "", ""),
        ("m16n16k16 m32n8k16 m8n32k16", "f32.bf16.bf16.f32", "", ""),
        ("m16n16k16 m32n8k16 m8n32k16", "s32.s8.s8.s32 s32.u8.u8.s32", "", ""),
        ("m16n16k8", "f32.tf32.tf32.f32", "", ""),
        ("m8n8k4", "f64.f64.f64.f64", "", ""),
        ("m8n8k32", "s32.s4.s4.s32 s32.u4.u4.s32", "", ""),
        ("m8n8k128", "s32.b1.b1.s32", "", ".xor.popc"),
        ("m8n8k128", "s32.b1.b1.s32", "", ".and.popc"),
    )
    for shape in shapes.split()
    for types in typed.split()
    for layouts in ("row.col", "col.row")
]


@dataclass(frozen=True)
class Case:
    """One instruction on one target."""

    mnemonic: str
    target: str

    @property
    def op(self) -> Mma | Wgmma:
        return _operation(self.mnemonic, self.target)

    def __str__(self) -> str:
        return f"{self.mnemonic} {self.target}"


@cache
def _operation(mnemonic: str, target: str) -> Any:
    return tensor_instruction(tuple(mnemonic.split(".")), target)


def _how(op: Mma | Wgmma) -> tuple[object, ...]:
    """What two targets must share for their arithmetic to be one."""
    plan = op.plan
    return (op.opcode, plan.compute)


def cases() -> list[Case]:
    """Every tensor-core product that the emulator has, once for each arithmetic."""
    names = [i.mnemonic for i in instructions() if i.mnemonic.startswith(("mma", "wgmma.mma"))]
    names += [f"wmma.{each}" for each in _WMMA]
    found: dict[tuple[object, ...], Case] = {}
    for name, target in itertools.product(names, TARGETS):
        try:
            op = _operation(name, target)
        except FragirError:
            continue
        found.setdefault(_how(op), Case(name, target))
    return list(found.values())


# -- operands --------------------------------------------------------------------------------------

KINDS = ("any bits", "close", "tiny", "special", "cancelling")
_FORMATS = {
    # exponent bits, fraction bits, where the element lies in its register, how often
    "f16": (5, 10, 16),
    "bf16": (8, 7, 16),
    "tf32": (8, 23, 32),
    "f32": (8, 23, 32),
    "f64": (11, 52, 64),
    "e4m3": (4, 3, 8),
    "e5m2": (5, 2, 8),
    "e3m2": (3, 2, 8),
    "e2m3": (2, 3, 8),
}


def registers(rng: np.random.Generator, name: str, kind: str, shape: tuple[int, ...]) -> Array:
    """Words of registers that hold elements of a type."""
    dtype = np.uint64 if name == "f64" else np.uint32
    width = 64 if name == "f64" else 32
    words = rng.integers(0, 1 << width, shape, dtype, endpoint=False)
    if name not in _FORMATS or kind == "any bits":
        return words
    exponent, fraction, size = _FORMATS[name]
    bias, top = (1 << (exponent - 1)) - 1, (1 << exponent) - 1
    result = np.zeros(shape, dtype)
    for part in range(width // size):
        sign = rng.integers(0, 2, shape, dtype)
        bits = rng.integers(0, 1 << fraction, shape, dtype)
        around = {"close": (-2, 3), "tiny": (-bias, -bias + 3), "special": (-3, 4)}
        low, high = around.get(kind, (-1, 1))
        field = np.clip(rng.integers(low, high, shape) + bias, 0, top - 1).astype(dtype)
        if kind == "special":
            chosen = rng.random(shape)
            field = np.where(chosen < 0.02, dtype(top), field).astype(dtype)
            bits = np.where(chosen < 0.012, dtype(0), bits).astype(dtype)
            field = np.where((chosen > 0.9), dtype(0), field).astype(dtype)
        if kind == "tiny":
            bits = np.where(rng.random(shape) < 0.2, dtype(0), bits).astype(dtype)
        code = sign << dtype(exponent + fraction) | field << dtype(fraction) | bits
        result |= code << dtype(part * size)
    return result


def types_of(op: Mma | Wgmma) -> tuple[str, str, str, str]:
    """The types of D, A, B and C."""
    known = {"s8", "u8", "s4", "u4", "b1", "s32", "e2m1", *_FORMATS}
    words = [w for w in op.opcode if w in known]
    if isinstance(op, Wgmma):
        return words[0], words[1], words[2], words[0]
    if len(words) == 2:
        return words[0], "f16", "f16", words[1]
    return words[0], words[1], words[2], words[3]


def metadata(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Sparse metadata: nibbles whose two indices ascend, as the ISA wants them."""
    choice = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], np.uint32)
    nibbles = choice[rng.integers(0, len(choice), (*shape, 8))]
    return (nibbles << (4 * np.arange(8, dtype=np.uint32))).sum(axis=-1, dtype=np.uint32)


def mma_case(
    op: Mma, rng: np.random.Generator, kind: str, warps: int, library: ctypes.CDLL
) -> tuple[Array, Array]:
    """D by numpy and by the compiled core: `[count, warps, 32]`."""
    _, a_type, b_type, c_type = types_of(op)
    one = "close" if kind == "cancelling" else kind
    a = registers(rng, a_type, one, (op.a.count, warps, 32))
    b = registers(rng, b_type, one, (op.b.count, warps, 32))
    c: Array = registers(rng, c_type, one, (op.c.count, warps, 32))
    options: dict[str, Any] = {}
    words: dict[str, Any] = {}
    if op.e is not None:
        words["e"] = metadata(rng, (1, warps, 32))
        options["selector"] = int(rng.choice(op.selectors))
    if op.scales:
        blocks = op.plan.scale_blocks
        for side, threads in (("a", 2), ("b", 4)):
            low, high = (0, 256) if kind in ("any bits", "special") else (120, 136)
            codes = rng.integers(low, high, (1, warps, 32, 4), np.uint32)
            words[f"sf{side}"] = (codes << (8 * np.arange(4, dtype=np.uint32))).sum(
                axis=-1, dtype=np.uint32
            )
            byte = int(rng.choice(range(0, 4, blocks)))
            options[f"select_{side}"] = (byte, int(rng.integers(threads)))
    if kind == "cancelling" and op.d == op.c and c_type in _FORMATS:
        first = op.execute(a, b, np.zeros_like(c), **options, **words)
        size = _FORMATS[c_type][2]
        signs = sum(1 << (size * (i + 1) - 1) for i in range(c.dtype.itemsize * 8 // size))
        c = first ^ c.dtype.type(signs)
        c ^= rng.integers(0, 4, c.shape, c.dtype)
    wanted = op.execute(a, b, c, **options, **words)
    places = (1, None, None, None, None)
    compiled = CompiledMma(library, op, *places, **options)
    got = np.zeros_like(wanted)
    arrays = {"d": got, "a": a, "b": b, "c": c}
    compiled(slice(0, warps), arrays=arrays, **{k: v[0] for k, v in words.items()})
    return wanted, got


def wgmma_case(
    op: Wgmma, rng: np.random.Generator, kind: str, groups: int, library: ctypes.CDLL
) -> Iterator[tuple[Array, Array]]:
    """D by numpy and by the core, A from registers and from shared memory."""
    d_type, a_type, b_type, _ = types_of(op)
    one = "close" if kind == "cancelling" else kind
    size = 1 << 18
    for from_shared in (False, True):
        memory = registers(rng, b_type, one, (size // 4,)).view(np.uint8)
        if from_shared and a_type != b_type:
            half = registers(rng, a_type, one, (size // 8,)).view(np.uint8)
            memory[: size // 2] = half
        warps = 4 * groups + 4
        file = registers(rng, d_type, one, (op.d.count + 4, warps, 32))
        file[op.d.count :] = registers(rng, a_type, one, (4, warps, 32))
        first = 4 * rng.permutation(groups + 1)[:groups]
        swizzle = int(rng.integers(4))
        transposes = bool(op.transposes and rng.random() < 0.5)

        def descriptors(low: int, swizzle: int = swizzle) -> Array:
            start = rng.integers(low, low + 64, groups, np.uint64) * np.uint64(8)
            return (
                start
                | np.uint64(8) << np.uint64(16)
                | np.uint64(64) << np.uint64(32)
                | np.uint64(swizzle) << np.uint64(62)
            )

        a_words, b_words = descriptors(0), descriptors(1024)
        options: dict[str, Any] = {}
        if op.scales_inputs:
            options = {"scale_a": int(rng.choice([1, -1])), "scale_b": int(rng.choice([1, -1]))}
        if op.transposes:
            options["transpose_b"] = transposes
            if from_shared:
                options["transpose_a"] = transposes
        e = None
        if op.e is not None:
            e = metadata(rng, (1, groups, 4, 32))
            options["selector"] = int(rng.choice(op.selectors))
        scale_d = rng.random(groups) < 0.8
        every = (first[:, None] + np.arange(4)).ravel()
        shape = (-1, groups, 4, 32)
        d = file[: op.d.count, every].reshape(shape)
        a: Array = a_words if from_shared else file[op.d.count :, every].reshape(shape)

        def read(addresses: Array, memory: Array = memory) -> Array:
            return memory.reshape(-1, 16)[addresses >> 4]

        wanted = op.execute(d, a, b_words, read, scale_d=scale_d, e=e, **options)
        got = file.copy()
        rows = np.arange(op.d.count)[:, None]
        left_rows = FileRows(got, np.arange(op.d.count, op.d.count + 4)[:, None])
        operands = FileRows(got, rows), None if from_shared else left_rows
        compiled = CompiledWgmma(library, op, *operands, **options)
        left = op.addresses(a_words, left=True, transposed=transposes) if from_shared else None
        right = op.addresses(b_words, left=False, transposed=transposes)
        home = np.zeros(groups, np.int64)
        compiled(first, memory, home, left, right, scale_d, e)
        yield wanted.reshape(op.d.count, -1, 32), got[: op.d.count, every]


def results(
    op: Mma | Wgmma, rng: np.random.Generator, kind: str, count: int, library: ctypes.CDLL
) -> Iterator[tuple[Array, Array]]:
    """D by numpy and by the compiled core, for `count` warps or warpgroups."""
    if isinstance(op, Wgmma):
        yield from wgmma_case(op, rng, kind, count, library)
    else:
        yield mma_case(op, rng, kind, count, library)


@cache
def by_arithmetic() -> list[list[Case]]:
    """The cases in groups that compute alike: they differ in shape, or in where operands lie."""
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in cases():
        op = case.op
        sparse = op.plan.metadata is not None
        groups.setdefault((op.opcode[0], sparse, op.plan.compute), []).append(case)
    return list(groups.values())
