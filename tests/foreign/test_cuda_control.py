"""Branches, calls and local memory, as nvcc compiles them with and without optimisation."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from .judge import cuda, execute

N = 100
i32 = np.int32


@pytest.fixture(scope="module", params=["kept", "-G"])
def ptx(request: pytest.FixtureRequest) -> str:
    options = () if request.param == "kept" else (request.param,)
    return cuda("control", "sm_75", *options)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def wrapped(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


def test_trip_counts_that_differ(ptx: str, rng: np.random.Generator) -> None:
    x = rng.integers(1, 10**6, N).astype(np.uint32)
    steps = np.zeros_like(x)
    execute(ptx, "collatz", [x, steps, N])

    def collatz(n: int) -> int:
        count = 0
        while n != 1:
            n, count = 3 * n + 1 if n & 1 else n // 2, count + 1
        return count

    assert [int(s) for s in steps] == [collatz(int(n)) for n in x]


def test_loops_left_early(ptx: str, rng: np.random.Generator) -> None:
    limits, out = rng.integers(0, 60, 64).astype(i32), np.zeros(64, i32)
    execute(ptx, "nested", [limits, out, 64], block=(64,))

    def total(limit: int) -> int:
        sum_ = 0
        for a in range(limit):
            if a * a > limit:
                break
            for b in range(a, limit, 3):
                if (a ^ b) % 5 == 4:
                    continue
                if b > 20:
                    return sum_
                sum_ += a * b + 1
        return sum_

    sums = np.array([total(int(v)) for v in limits])
    assert (out == sums + sums.reshape(-1, 2)[:, ::-1].ravel()).all()


def test_function_pointers(ptx: str, rng: np.random.Generator) -> None:
    which, x, y = rng.integers(-99, 99, (3, N)).astype(i32)
    out = np.zeros(N, i32)
    execute(ptx, "pointers", [which, x, y, out, N])

    def either(a: int, b: int) -> int:
        return a * b if a & 1 else b - a

    functions: list[Callable[[int, int], int]] = [
        lambda a, _: 2 * a,
        lambda a, b: a - b,
        lambda a, b: a * b,
        either,
    ]
    rows = zip(which.tolist(), x.tolist(), y.tolist(), strict=True)
    assert out.tolist() == [functions[w & 3](a, b) for w, a, b in rows]


def test_structures(ptx: str, rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 1000, N).astype(i32), np.zeros(N, i32)
    first, second, third = 3, 44.0, (5, 6, 7)
    execute(ptx, "structures", [struct.pack("<i4xd3h2x", first, second, *third), x, out, N])
    for i, v in enumerate(int(v) for v in x):
        changed = [v if j == i % 3 else third[j] for j in range(3)]
        assert out[i] == 44 + 10 * (first + v) + 100 * changed[2] + 1000 * changed[0]


def interpret(code: list[int], thread: int) -> int:
    """The virtual machine of the kernel `interpreter`."""
    stack, top, at = [0] * 17, 0, 0
    while at < len(code):
        op = code[at]
        if op in (0, 1):
            stack[top & 15], top = (thread if op == 0 else at), top + 1
        elif op in (2, 3, 4):
            if top > 1:
                top -= 1
                a, b = stack[(top - 1) & 15], stack[top & 15]
                stack[(top - 1) & 15] = wrapped((a + b, a * b, a ^ b)[op - 2])
        elif top > 0:
            last = (top - 1) & 15
            if op == 5:
                stack[top & 15], top = stack[last], top + 1
            elif op in (6, 7):
                stack[last] = wrapped(-stack[last] if op == 6 else stack[last] * 2)
            elif op == 8:
                at += stack[last] & 1
            elif op == 9:
                top -= 1
            else:
                stack[last] = wrapped(stack[last] + op)
        top = min(top, 16)
        at += 1
    return stack[(top - 1) & 15] if top > 0 else -1


def test_a_switch(ptx: str, rng: np.random.Generator) -> None:
    code, out = rng.integers(0, 13, (N, 40)).astype(np.uint8), np.zeros(N, i32)
    execute(ptx, "interpreter", [code, 40, out, N])
    assert [int(v) for v in out] == [interpret([int(c) for c in code[i]], i) for i in range(N)]


def test_a_jump_table(ptx: str, rng: np.random.Generator) -> None:
    x, out = rng.integers(-99, 99, N).astype(i32), np.zeros(N, i32)
    execute(ptx, "jump", [x, out, N])
    assert (out == np.choose(x & 3, [x + 100, x * x, x * x, -x]) + (x & 8)).all()


def test_an_array_in_local_memory(ptx: str, rng: np.random.Generator) -> None:
    values, out = rng.normal(size=(64, 20)).astype(np.float32), np.zeros((64, 20), np.float32)
    execute(ptx, "local_sort", [values, out, 20], block=(64,))
    assert (out == np.sort(values, axis=1)).all()


@pytest.mark.parametrize("schedule", [None, 1])
def test_a_lock_for_each_lane(ptx: str, rng: np.random.Generator, schedule: int | None) -> None:
    where, sums, lock = rng.integers(0, 5, N).astype(i32), np.zeros(5, i32), np.zeros(5, i32)
    execute(ptx, "locks", [lock, sums, where, N], schedule=schedule)
    assert (sums == np.bincount(where, weights=np.arange(N), minlength=5)).all()
    assert not lock.any()


def test_constants_and_globals(ptx: str, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=N).astype(np.float32), np.zeros(N + 1, np.float32)
    execute(ptx, "polynomial", [x, y, N])
    total = np.zeros_like(x)
    for c in (2, 1e-3, 3, 0.0625, -0.125, 0.25, -0.5, 1):
        total = total * x + np.float32(c)
    assert (y[:N] == total).all()
    assert y[N] == 32
