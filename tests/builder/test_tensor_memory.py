"""Products in tensor memory from Python: IR of an example, runs, errors at the user's line."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import fragir
from fragir import bf16, e4m3, f16, f32, ue8m0
from fragir.builder import KernelBuilder
from fragir.compiler import parse
from fragir.errors import FragirError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def ring(pair: bool = False) -> KernelBuilder:
    with fragir.kernel("tcgen05_pair" if pair else "tcgen05_ring", target="sm_100a") as k:
        if pair:
            k.cluster(2)
        a, b = k.memory("a", bf16, (200, 104)), k.memory("b", bf16, (136, 104))
        c = k.memory("c", f32, (200, 136))
        of_b = k.part((64, 64), bf16, swizzle=128, pair="row" if pair else "")
        slots = k.ring(4, [k.part((128, 64), bf16, swizzle=128), of_b])
        sums = k.ring(2, [k.tensor_part((128, 64), f32)])
        with k.role("load", warps=(1, 1), packed=True):
            with k.for_tiles((200, 136), (128, 64), persistent=True) as (row, col):
                with k.loop(0, 104, 64) as loop:
                    sa, sb = (slot := slots.acquire()).parts
                    k.copy(a, (row, loop.index), sa, tma=True)
                    k.copy(b, (col, loop.index), sb, tma=True)
                    slot.publish()
        with k.role("multiply", warps=(1, 1), packed=True):
            with k.for_tiles((200, 136), (128, 64), persistent=True):
                (d,) = (held := sums.acquire()).parts
                with k.loop(0, 104, 64) as loop:
                    later = loop.index != 0
                    sa, sb = (slot := slots.wait()).parts
                    k.tcgen05_mma(sa, sb, d, accumulate=later, transposed_b=True, pair=pair)
                    slot.release()
                held.publish()
        with k.role("store", warpgroups=(1, 1), packed=True):
            with k.for_tiles((200, 136), (128, 64), persistent=True) as (row, col):
                (d,) = (full := sums.wait()).parts
                tile = k.tcgen05_load(d)
                full.release()
                k.store(tile, c, (row, col), masked=True)
    return k


def scaled() -> KernelBuilder:
    """One tile of mxfp8, whose scales lie in memory in chunks of 128 rows by four blocks."""
    with fragir.kernel("scaled", target="sm_100a") as k:
        a, b = k.memory("a", e4m3, (128, 128)), k.memory("b", e4m3, (64, 128))
        x, y = (k.memory(name, ue8m0, (1, 1, 2, 256)) for name in "xy")
        c = k.memory("c", f32, (128, 64))
        matrices = [k.part((rows, 128), e4m3, swizzle=128) for rows in (128, 64)]
        slots = k.ring(1, [*matrices, *[k.part((1, 1, 2, 256), ue8m0)] * 2])
        of_scales = [k.tensor_part((rows, 4), ue8m0, scales=True) for rows in (128, 64)]
        sums = k.ring(1, [k.tensor_part((128, 64), f32), *of_scales])
        with k.role("load", warps=(1, 1), packed=True):
            sa, sb, sx, sy = (slot := slots.acquire()).parts
            k.copy(a, (0, 0), sa, tma=True)
            k.copy(b, (0, 0), sb, tma=True)
            k.copy(x, (0, 0, 0, 0), sx, (0, 0), tma=True)
            k.copy(y, (0, 0, 0, 0), sy, (0, 0), tma=True)
            slot.publish()
        with k.role("multiply", warps=(1, 1), packed=True):
            d, sfa, sfb = (held := sums.acquire()).parts
            sa, sb, sx, sy = (slot := slots.wait()).parts
            k.tcgen05_copy(sx, sfa)
            k.tcgen05_copy(sy, sfb)
            k.tcgen05_mma(sa, sb, d, accumulate=False, transposed_b=True, scales=(sfa, sfb))
            slot.release()
            held.publish()
        with k.role("store", warpgroups=(1, 1), packed=True):
            d, *_ = (full := sums.wait()).parts
            halves = [k.tcgen05_load(d, column=at, columns=32) for at in (0, 32)]
            full.release()
            for number, half in enumerate(halves):
                k.store(half, c, (0, 32 * number))
    return k


@pytest.mark.parametrize("pair", [False, True])
def test_the_ring_is_that_of_the_example(pair: bool) -> None:
    made = ring(pair)
    written = parse((EXAMPLES / f"tcgen05_{'pair' if pair else 'ring'}.mlir").read_text())
    kernels = [fragir.compile(module, target="sm_100a") for module in (written, made.module)]
    first, second = (  # registers are called after the program's names
        [re.sub(r"%[\w]+", "%", line) for line in kernel.ptx.splitlines() if ".reg" not in line]
        for kernel in kernels
    )
    assert first == second
    assert parse(made.mlir).is_structurally_equivalent(made.module)


def test_a_matmul_of_pairs() -> None:
    with fragir.kernel("f", target="sm_100a") as k:
        a, b, c = (k.memory(n, f16, (m, 64)) for n, m in (("a", 256), ("b", 64), ("c", 256)))
        k.matmul(a, b, into=c, transposed_b=True, pair=True, tile=(128, 64, 64))
    assert "cta_group::2" in k.compile().ptx


def test_what_a_pair_divides() -> None:
    with fragir.kernel("f", target="sm_100a") as k:
        with pytest.raises(FragirError, match="divides 'row' or 'col'"):
            k.part((64, 64), f16, swizzle=128, pair="k")


def test_the_ring_runs() -> None:
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-3, 4, (rows, 104)).astype(np.float32).astype(ml_dtypes.bfloat16)
        for rows in (200, 136)
    )
    c = np.empty((200, 136), np.float32)
    report = ring().compile()(a, b, c, on="emulator", check=True)
    assert report.findings == []
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()


def test_scales() -> None:
    rng = np.random.default_rng(1)
    a, b = (
        rng.integers(-3, 4, (rows, 128)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
        for rows in (128, 64)
    )
    powers = [rng.integers(126, 130, (rows, 4)) for rows in (128, 128)]
    row, block = np.arange(128)[:, None], np.arange(4)
    chunks = [np.zeros((1, 1, 2, 256), np.uint8) for _ in powers]
    for chunk, power in zip(chunks, powers, strict=True):
        chunk.reshape(-1)[16 * (row % 32) + 4 * (row // 32) + block] = power
    c = np.empty((128, 64), np.float32)
    report = scaled().compile().launch((1, 1, 1), None, a, b, *chunks, c, check=True, on="emulator")
    assert report.findings == []
    left, right = (
        x.astype(np.float64) * 2.0 ** np.repeat(power[: len(x)] - 127, 32, axis=1)
        for x, power in zip((a, b), powers, strict=True)
    )
    assert (c == left @ right.T).all()


def refused(what: str) -> None:
    with fragir.kernel("f", target="sm_100a") as k:
        a = k.memory("a", f16, (128, 64))
        slots = k.ring(2, [k.part((128, 64), f16, swizzle=128), k.part((64, 64), f16, swizzle=128)])
        sums = k.ring(1, [k.tensor_part((128, 64), f32)])
        (d,) = sums.acquire().parts
        sa, sb = slots.wait().parts
        match what:
            case "global":
                k.tcgen05_mma(a, sb, d)
            case "shape":
                k.tcgen05_mma(sb, sa, d, transposed_b=True)
            case "sums":
                k.tcgen05_mma(sa, sb, sa, transposed_b=True)
            case "condition":
                k.tcgen05_mma(sa, sb, d, accumulate=1, transposed_b=True)  # pyright: ignore[reportArgumentType]
            case "scales":
                k.tcgen05_mma(sa, sb, d, scales=(d,), transposed_b=True)  # pyright: ignore[reportArgumentType]
            case "columns":
                k.tcgen05_load(d, column=32, columns=64)
            case "load":
                k.load(d, (0, 0), shape=(128, 64))
            case "loads":
                k.tcgen05_load(sa)
            case "copies":
                k.tcgen05_copy(sa, d)
            case "part":
                k.tensor_part((2, 128, 64), f32)
            case "roles":
                with k.role("load", warps=(1, 1)):
                    pass
                with k.role("multiply", warps=(1, 1), packed=True):
                    pass
            case _:
                raise AssertionError(what)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("global", "tcgen05.mma: a is <memory a 128x64 of f16>; tcgen05.mma reads shared memory "),
        ("shape", "frag.tcgen05_mma: 64x64 times 64x128 is not 128x64"),
        (
            "sums",
            "frag.tcgen05_mma: d is memref<128x64xf16, #frag.shared<swizzle = 128>>; the sums",
        ),
        ("condition", "accumulate is 1, no condition (compare something: index > 0)"),
        ("scales", "scales are (<tensor memory"),
        ("columns", "<tensor memory 128x64 of f32> has no 64 columns from 32 on"),
        ("load", "frag.load: "),
        ("loads", "frag.tcgen05_load loads from tensor memory"),
        ("copies", "frag.tcgen05_copy copies scales from shared memory"),
        ("part", "a part in tensor memory is a matrix, not 3-dimensional"),
        ("roles", "of the roles of a kernel all are packed, or none"),
    ],
)
def test_errors_point_at_the_line(what: str, words: str) -> None:
    with pytest.raises(FragirError) as caught:
        refused(what)
    error = caught.value
    assert error.sentence.startswith(words)
    assert error.file == __file__
    assert error.line is not None
    lines = Path(__file__).read_text().splitlines()
    begins = next(n for n, line in enumerate(lines, 1) if line.strip() == f'case "{what}":')
    assert begins < error.line <= begins + (3 if what == "roles" else 1)
