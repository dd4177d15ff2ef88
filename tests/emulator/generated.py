"""Kernels that the passes write, with what they must compute: subjects of mutation.

Sizes are small, but every ring is gone through more than once, tiles go beyond the edges, and a
kernel with clusters has two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard
from unittest import mock

import numpy as np
import numpy.typing as npt

import fragir
import fragir.emulator
from benchmarks.sweeps.pipelines import Config, data, text_of
from tests.passes.block_scaled import FP4, Case

from .mutation import Subject

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = (208, 144, 304)
"""M, N and K: two tiles or more along each, none whole."""


def product(
    target: str,
    schedule: str,
    element: str,
    turned: tuple[bool, bool] = (False, False),
    epilogue: str = "none",
    out: str = "",
    sizes: tuple[int, int, int] = SIZES,
) -> Config:
    """A `frag.matmul` of any size."""
    return Config(target, schedule, element, turned, epilogue, sizes, False, out)


SMALL = "tile = array<i64: 128, 64, 32>, stages = 3 : i64"
BYTES = "tile = array<i64: 128, 64, 64>, stages = 2 : i64"
WARPS = "tile = array<i64: 64, 64, 32>, stages = 3 : i64"

PRODUCTS = {
    "wgmma f16": product("sm_90a", SMALL, "f16"),
    "wgmma f16 to f16": product("sm_90a", SMALL, "f16", out="f16"),
    "wgmma tf32 turned": product("sm_90a", SMALL, "tf32", (True, False)),
    "wgmma e4m3 C^T": product("sm_90a", BYTES, "f8E4M3FN", epilogue="old"),
    "roles f16": product("sm_90a", f"roles, {SMALL}", "f16"),
    "roles bf16 both turned": product("sm_90a", f"roles, {SMALL}", "bf16", (True, True), "bias"),
    "roles e4m3": product("sm_90a", f"roles, {BYTES}", "f8E4M3FN", (False, True)),
    "roles s8 copied": product("sm_90a", f"roles, {BYTES}", "si8", (True, False)),
    "cluster f16": product("sm_90a", f"roles, cluster = 2 : i64, {SMALL}", "f16"),
    "cluster f16 to f16": product(
        "sm_90a", f"roles, cluster = 2 : i64, {SMALL}", "f16", (False, True), out="f16"
    ),
    "ping-pong f16": product(
        "sm_90a",
        "roles, consumers = 2 : i64, tile = array<i64: 64, 64, 32>, stages = 3 : i64",
        "f16",
        out="f16",
        sizes=(208, 272, 112),  # each role has two tiles of a block
    ),
    "roles e4m3 promoted, groups": product(
        "sm_90a", f"roles, {SMALL}", "f8E4M3FN", (False, True), sizes=(208, 80, 144)
    )._replace(scales="blocks", groups=True, batch="y"),
    "tensor f16": product("sm_100a", SMALL.replace("32", "64"), "f16", sizes=(208, 144, 176)),
    "tensor s8 turned": product(
        "sm_100a", BYTES, "si8", (True, False), "old", sizes=(208, 144, 304)
    ),
    "tensor pair f16": product(
        "sm_100a", f"pair, {SMALL.replace('32', '64')}", "f16", sizes=(208, 208, 304)
    ),
    "tensor pair s8 turned": product(
        "sm_100a", f"pair, {BYTES}", "si8", (True, False), "old", sizes=(208, 272, 176)
    ),
    "tensor cluster f16": product(
        "sm_100a",
        f"cluster = 2 : i64, {SMALL.replace('32', '64')}",
        "f16",
        (False, True),
        sizes=(208, 208, 304),
    ),
    "mma f16": product("sm_80", WARPS, "f16"),
    "mma s8": product("sm_80", WARPS, "si8", (False, True), "old"),
    "mma f64": product("sm_80", WARPS, "f64", sizes=(136, 72, 80)),
    "mma f16, turned": product("sm_120a", WARPS, "f16", (True, True), out="f16"),
    "split-K roles": product(  # tiles are no multiple of blocks: one's parts are several blocks'
        "sm_90a", f"roles, {SMALL}", "f16", out="f16", sizes=(272, 80, 304)
    )._replace(parts="split_k = 2 : i64"),
    "stream-K warps": product("sm_80", WARPS, "f16", out="f16", sizes=(80, 144, 208))._replace(
        parts="stream_k = 3 : i64"
    ),
    "split-K added by roles": product(
        "sm_90a", f"roles, {SMALL}", "f16", epilogue="old", sizes=(144, 80, 304)
    )._replace(parts="split_k = 2 : i64", through=False),
}


class Made(NamedTuple):
    """A kernel, values for its arguments, and what one of them must be in the end."""

    kernel: fragir.Kernel
    values: Sequence[Any]
    expected: Any
    which: int = 2
    resident: int | None = None


def multiplied(config: Config) -> Made:
    """A matrix product on small whole numbers, which is exact."""
    kernel = fragir.compile(text_of(config), target=config.target)
    # the ring of two sums in tensor memory goes round where a block has three tiles
    return Made(kernel, *data(config), resident=1 if "tcgen05" in kernel.ptx else None)


def attention(keys: int) -> Made:
    """Two warpgroups, blocks of 128 keys, four tiles of one block: what the kernel itself makes
    of them."""
    text = (EXAMPLES / "attention/forward_overlapped.mlir").read_text("utf-8")
    kernel = fragir.compile(text, target="sm_90a")
    rng = np.random.default_rng(3)
    q, k, v = (
        rng.standard_normal(shape).astype(np.float16)
        for shape in ((4, 70, 64), (1, keys, 64), (1, keys, 64))
    )
    o = np.zeros_like(q)
    values: list[Any] = [q, k, v, o, np.zeros((4, 70), np.float32), 1]
    kernel(*values, on="emulator", resident=1)
    return Made(kernel, values, o.copy(), 3, 1)


def ring_by_hand() -> Made:
    """A ring of four slots, five turns."""
    text = (EXAMPLES / "wgmma_ring.mlir").read_text("utf-8")
    kernel = fragir.compile(text, target="sm_90a")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, 320), (320, 128)))
    c = np.zeros((128, 128), np.float32)
    return Made(kernel, [a, b, c], a.astype(np.float32) @ b.astype(np.float32))


def block_scaled(case: Case) -> Made:
    """Four tiles of one block, so that the ring of two sums goes round."""
    kernel = fragir.compile(case.text, target="sm_100a")
    arguments, expected = case.data()
    return Made(kernel, arguments, expected, len(arguments) - 1, resident=1)


SCALED = {
    "tensor mxfp8": Case((208, 144, 304), attributes="{stages = 2 : i64}"),
    "tensor nvfp4 by threads": Case(
        (392, 72, 320),
        *(FP4, FP4, "f8E4M3FN", 16),
        lie=("rows", "turned"),
        attributes="{stages = 2 : i64}",
    ),
}

# three blocks of keys and four, one of them cut by the mask beside the last: the last has another
# slot, and its slot another phase
OTHERS = {
    "attention": (lambda: attention(290), lambda: attention(418)),
    "ring by hand": (ring_by_hand,),
    **{name: (partial(block_scaled, case),) for name, case in SCALED.items()},
}
NAMES = (*PRODUCTS, *OTHERS)


def subject(name: str, made: Made) -> Subject:
    """What launching the kernel runs on the emulator."""
    first, values = _launched(made)
    arguments = first["arguments"]
    result = next(
        number
        for number, argument in enumerate(arguments)
        if _is_array(argument) and np.shares_memory(argument, values[made.which])
    )
    return Subject(
        name,
        made.kernel.ptx,
        lambda: list(_launched(made)[0]["arguments"]),
        first["block"][0],
        tuple(first["grid"]),
        (first["cluster"] or (1,))[0],
        first["shared"],
        (result, made.expected),
    )


def _launched(made: Made) -> tuple[dict[str, Any], list[Any]]:
    """What the emulator is asked to run for copies of the kernel's values, and the copies."""
    calls: list[dict[str, Any]] = []

    def record(*_: Any, **named: Any) -> fragir.emulator.Report:
        calls.append(named)
        return fragir.emulator.Report()

    values = [_copied(value) for value in made.values]
    with mock.patch.object(fragir.emulator, "run", record):
        made.kernel(*values, on="emulator", resident=made.resident)
    return calls[0], values


def _is_array(value: object) -> TypeGuard[npt.NDArray[Any]]:
    return isinstance(value, np.ndarray)


def _copied(value: object) -> object:
    return value.copy() if _is_array(value) else value


@cache
def launches(name: str) -> tuple[Subject, ...]:
    """A kernel by its name, launched once or more."""
    if name in OTHERS:
        return tuple(subject(name, make()) for make in OTHERS[name])
    return (subject(name, multiplied(PRODUCTS[name])),)
