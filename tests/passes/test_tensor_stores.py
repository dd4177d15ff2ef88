"""A of products in tensor memory, which threads store there: frag.tcgen05_store."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from xdsl.ir import Attribute

import fragir
from fragir import Kernel, bf16, e4m3, e5m2, f16, f32, s8, s32, tf32
from fragir.builder import KernelBuilder
from fragir.dialects.elements import element_bits
from fragir.emulator import EmulationError
from fragir.errors import FragirError


class Form(NamedTuple):
    """A product; `cut`: A is stored in pieces of so many columns."""

    element: Attribute
    numpy: Any
    shape: tuple[int, int, int]
    groups: int = 1
    cut: int = 0
    sums: Attribute = f32


FORMS = {
    "f16": Form(f16, np.float16, (128, 64, 64)),
    "pieces": Form(f16, np.float16, (128, 32, 96), cut=48),
    "rows": Form(bf16, ml_dtypes.bfloat16, (256, 64, 80)),
    "groups": Form(bf16, ml_dtypes.bfloat16, (128, 64, 64), groups=2),
    "tf32": Form(tf32, np.float32, (128, 64, 40), cut=8),
    "e4m3": Form(e4m3, ml_dtypes.float8_e4m3fn, (128, 32, 96)),
    "e5m2": Form(e5m2, ml_dtypes.float8_e5m2, (256, 16, 64), groups=2),
    "s8": Form(s8, np.int8, (128, 64, 128), cut=64, sums=s32),
    "sums of f16": Form(f16, np.float16, (128, 64, 64), sums=f16),
    "wide": Form(f16, np.float16, (128, 256, 256), groups=2, cut=64),
}


def product(form: Form) -> KernelBuilder:
    """A comes through registers, B by TMA."""
    m, n, depth = form.shape
    cut = form.cut or depth
    with fragir.kernel("product", target="sm_100a") as k:
        a, b = k.memory("a", form.element, (m, depth)), k.memory("b", form.element, (n, depth))
        c = k.memory("c", form.sums, (m, n))
        swizzle = 128 if depth * element_bits(form.element) % 1024 == 0 else 32
        of_b = k.ring(1, [k.part((n, depth), form.element, swizzle=swizzle)])
        of_a = k.ring(2, [k.tensor_part((m, depth), form.element, operand=True)])
        sums = k.ring(1, [k.tensor_part((m, n), form.sums)])
        with k.role("load", warps=(1, 1), packed=True):
            slot = of_b.acquire()
            k.copy(b, (0, 0), slot.parts[0], tma=True)
            slot.publish()
        with k.role("multiply", warps=(1, 1), packed=True):
            (left,), (right,) = (stored := of_a.wait()).parts, (slot := of_b.wait()).parts
            free = sums.acquire()
            k.tcgen05_mma(left, right, free.parts[0], accumulate=False, transposed_b=True)
            stored.release()
            slot.release()
            free.publish()
        with k.role("store", warpgroups=(1, form.groups), packed=True):
            slot = of_a.acquire()
            for at in range(0, depth, cut):
                tile = k.load(a, (0, at), shape=(m, cut))
                k.tcgen05_store(tile, slot.parts[0], column=at)
            slot.publish()
            full = sums.wait()
            tile = k.tcgen05_load(full.parts[0])
            full.release()
            k.store(tile, c, (0, 0))
    return k


def run(kernel: Kernel, *arrays: Any) -> None:
    report = kernel.launch((1, 1, 1), None, *arrays, on="emulator", check=True)
    assert report.findings == []
    assert report.schedules.every
    for entry in kernel.assembled.entries.values():
        assert (entry.spill_loads, entry.spill_stores) == (0, 0)
    assert not kernel.assembled.warnings


@pytest.mark.parametrize("name", FORMS)
def test_products_of_what_threads_store(name: str) -> None:
    form = FORMS[name]
    m, n, depth = form.shape
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (rows, depth)).astype(form.numpy) for rows in (m, n))
    types: dict[Attribute, Any] = {f32: np.float32, f16: np.float16, s32: np.int32}
    c = np.zeros((m, n), types[form.sums])
    kernel = product(form).compile()
    run(kernel, a, b, c)
    assert np.array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)


LACKS = {
    "the stores are not waited for": ("tcgen05.wait::st", "race"),
    "the operand is not awaited": ("@%p9 bra", "race"),
    "nobody says that it is there": ("arrive.shared::cta.b64 _, [%mbarriers0+24]", "deadlock"),
}


@pytest.mark.parametrize("what", LACKS)
def test_what_is_left_out_is_found(what: str) -> None:
    words, kind = LACKS[what]
    form = FORMS["f16"]
    m, n, depth = form.shape
    whole = product(form).compile()
    kept = [line for line in whole.ptx.splitlines() if words not in line]
    assert len(kept) == whole.ptx.count("\n") - 1
    kernel = dataclasses.replace(whole, ptx="\n".join(kept) + "\n")
    arrays = [np.zeros((rows, depth), np.float16) for rows in (m, n)]
    c = np.zeros((m, n), np.float32)
    try:
        report = kernel.launch((1, 1, 1), None, *arrays, c, on="emulator", check=True)
        found = {one.kind for one in report.findings}
    except EmulationError as error:
        found = {error.kind}
    assert kind in found


def test_a_part_holds_one_thing() -> None:
    with (
        pytest.raises(FragirError, match="holds scales or an operand"),
        fragir.kernel("f") as k,
    ):
        k.tensor_part((128, 64), f16, scales=True, operand=True)
