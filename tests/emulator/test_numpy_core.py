"""Runs of mma by numpy in pieces, against each instruction alone."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator.tensor_cores import Mma, numpy_core, tensor_instruction
from fragir.emulator.tensor_cores.compiled import FileRows

from .native.steps import registers, types_of

Array: TypeAlias = npt.NDArray[Any]

OPS = (
    ("m16n8k16.row.col.f32.f16.f16.f32", "sm_80"),
    ("m16n8k8.row.col.f32.bf16.bf16.f32", "sm_86"),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", "sm_90"),
    ("m16n8k16.row.col.f16.f16.f16.f16", "sm_90"),
    ("m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_89"),
    ("m8n8k4.row.col.f32.f16.f16.f32", "sm_70"),  # four products
    ("m8n8k4.row.row.f32.f16.f16.f16", "sm_70"),  # C narrower than D
)
WARPS = 40
FILE = 64  # registers


def operation(words: str, target: str) -> Mma:
    op = tensor_instruction(("mma", "sync", "aligned", *words.split(".")), target)
    assert isinstance(op, Mma)
    return op


def register_file(op: Mma, rng: np.random.Generator) -> Array:
    """The first half is made of elements of A's type, the other of C's."""
    _, a, _, c = types_of(op)
    halves = [registers(rng, name, "close", (FILE // 2, WARPS, 32)) for name in (a, c)]
    return np.concatenate(halves)


def products(op: Mma, rows: int, columns: int) -> tuple[Array, Array, Array, Array]:
    """Registers of D, A, B and C `[count, rows * columns]`: each of so many A by each B.

    C is D where it has as many registers, else behind all D.
    """
    i, j = (each.ravel() for each in np.indices((rows, columns)))
    a = i * op.a.count + np.arange(op.a.count)[:, None]
    b = rows * op.a.count + j * op.b.count + np.arange(op.b.count)[:, None]
    d, c = ((i * columns + j) * x.count + np.arange(x.count)[:, None] for x in (op.d, op.c))
    behind = 0 if op.d == op.c else rows * columns * op.d.count
    return FILE // 2 + d, a, b, FILE // 2 + behind + c


def one_by_one(op: Mma, file: Array, warps: Any, rows: tuple[Array, Array, Array, Array]) -> Array:
    """The file after instructions that all read it as it was."""
    after = file.copy()
    for d, a, b, c in zip(*(each.T for each in rows), strict=True):
        words = [np.array([file[row][warps] for row in vector]) for vector in (a, b, c)]
        for row, value in zip(d, op.execute(*words), strict=True):
            after[row][warps] = value
    return after


@pytest.mark.parametrize("warps", [slice(5, 8), slice(1, 40), np.array([1, 5, *range(9, 39)])])
@pytest.mark.parametrize(("words", "target"), OPS)
def test_each_product_is_that_of_one_instruction(
    words: str, target: str, warps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces of one instruction and of several, and by threads: the same bits."""
    op = operation(words, target)
    rows = products(op, 2, 2 if op.c == op.d else 1)
    file = register_file(op, np.random.default_rng(len(words)))
    wanted = one_by_one(op, file, warps, rows)
    assert (wanted != file).any()
    for size, jobs in ((1 << 11, 1), (1 << 17, 1), (1 << 18, 2)):
        monkeypatch.setattr(numpy_core, "PRODUCTS", size)
        monkeypatch.setattr(numpy_core, "SHARED", 8)
        got = file.copy()
        core = numpy_core.numpy_core(op, *(FileRows(got, each.astype(np.intp)) for each in rows))
        assert core is not None
        core(warps, jobs)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("size", [1 << 11, 1 << 18])
def test_a_later_instruction_may_write_what_an_earlier_one_reads(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    op = operation(*OPS[0])
    d, a, b, c = products(op, 1, 4)
    d[:, 3], d[:2, 2], d[2:, 2] = a[:, 0], b[:, 0], b[:, 1]
    file = register_file(op, np.random.default_rng(0))
    monkeypatch.setattr(numpy_core, "PRODUCTS", size)
    wanted = one_by_one(op, file, slice(0, WARPS), (d, a, b, c))
    core = numpy_core.numpy_core(
        op, *(FileRows(file, each.astype(np.intp)) for each in (d, a, b, c))
    )
    assert core is not None
    core(slice(0, WARPS))
    np.testing.assert_array_equal(file, wanted)


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("m16n8k32.row.col.s32.s8.s8.s32", "sm_80"),
        ("m8n8k4.row.col.f64.f64.f64.f64", "sm_80"),
        ("m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90"),  # computed as f16
    ],
)
def test_others_are_left_to_execute(words: str, target: str) -> None:
    op = operation(words, target)
    place = FileRows(np.zeros((8, 1, 32), np.uint32), np.zeros((4, 1), np.intp))
    assert numpy_core.numpy_core(op, place, place, place, place) is None


def test_registers_only() -> None:
    """An operand with an immediate is in no file."""
    place = FileRows(np.zeros((8, 1, 32), np.uint32), np.zeros((4, 1), np.intp))
    assert numpy_core.numpy_core(operation(*OPS[0]), place, place, place, None) is None
