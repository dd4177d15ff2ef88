"""Two products in a row of random types and shapes, no order written: nothing moves between lanes.

(Q K^T) V by wgmma and by mma, with other readers of K, in types whose sums and A operands have
other columns in a lane: the rows of K lie in shared memory in the order that suits, and results
are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragir import compile as compile_program
from fragir.sweeps import Plan, Result, Sweep, Task

M = 64
TYPES = {"f8E4M3FN": ("f32", 1), "f8E5M2": ("f32", 1), "si8": ("i32", 1), "tf32": ("f32", 4)}
MOVES = ("shfl", "st.shared", "stmatrix", "movmatrix", "selp")
COPIES = ("q", "k", "v")


def shared(rows: int, cols: int, narrow: str) -> str:
    size = TYPES[narrow][1]
    swizzle = next(width for width in (128, 64, 32) if cols * size % width == 0)
    return f"memref<{rows}x{cols}x{narrow}, #frag.shared<swizzle = {swizzle}>>"


def chain(
    narrow: str,
    keys: int = 64,
    depth: int = 64,
    *,
    k_lies: str = "",
    between: str = "",
    more: str = "",
    arguments: str = "",
    convert: str = "",
) -> str:
    """`between` is from %s to %h, `more` stands behind; `convert` is the layout of %s from %d."""
    wide = TYPES[narrow][0]
    qs, ks, vs = (shared(*shape, narrow) for shape in ((M, depth), (keys, depth), (depth, keys)))
    if k_lies:
        ks = f'{ks.split(", #")[0]}, #frag.layout<"{k_lies}">, #frag.shared>'
    q, k, v = (m.split(", #")[0] + ">" for m in (qs, ks, vs))
    sums, o = f"!frag.tile<{M}x{keys}x{wide}>", f"!frag.tile<{M}x{depth}x{wide}>"
    s, p = sums, f"!frag.tile<{M}x{keys}x{narrow}>"
    first, moved = "%s", ""
    if convert:
        s, p = (f"{tile[:-1]}, {convert}>" for tile in (s, p))
        if convert == "open":
            s, p = sums, f"!frag.tile<{M}x{keys}x{narrow}>"
        first, moved = "%d", f"%s = frag.convert %d assert_free : {sums} -> {s}"
    return f"""
    func.func @k(%q: {q}, %k: {k}, %v: {v}, %o: memref<{M}x{depth}x{wide}>{arguments}) {{
      %qs = memref.alloc() : {qs}
      %ks = memref.alloc() : {ks}
      %vs = memref.alloc() : {vs}
      frag.copy async %q[0, 0] to %qs[] : {q} to {qs}
      frag.copy async %k[0, 0] to %ks[] : {k} to {ks}
      frag.copy async %v[0, 0] to %vs[] : {v} to {vs}
      frag.commit
      frag.wait 0
      frag.barrier
      %zero = arith.constant {"0.0" if wide == "f32" else "0"} : {wide}
      %c = frag.fill %zero : {sums}
      {first} = frag.wgmma %qs, %ks transposed, %c : {qs}, {ks}, {sums}
      {moved}
      {between}
      %p = frag.cast {"%h" if between else "%s"} : {s} -> {p}
      %z = frag.fill %zero : {o}
      %r = frag.wgmma %p, %vs transposed, %z : {p}, {vs}, {o}
      frag.store %r, %o[0, 0] : {o}, memref<{M}x{depth}x{wide}>
      {more.format(ks=ks, sums=sums)}
      func.return
    }}"""


def by_warps(narrow: str, keys: int, depth: int) -> str:
    """The same by frag.mma, all operands through shared memory."""
    wide = TYPES[narrow][0]
    shapes = {"q": (M, depth), "k": (keys, depth), "v": (depth, keys)}
    lies = {name: shared(*shape, narrow) for name, shape in shapes.items()}
    given = {name: memory.split(", #")[0] + ">" for name, memory in lies.items()}
    s, o = f"!frag.tile<{M}x{keys}x{wide}>", f"!frag.tile<{M}x{depth}x{wide}>"
    a, b, p, v = (
        f"!frag.tile<{rows}x{cols}x{narrow}>"
        for rows, cols in ((M, depth), (depth, keys), (M, keys), (keys, depth))
    )
    filled = "\n".join(
        f"""%{name}s = memref.alloc() : {lies[name]}
      frag.copy %{name}[0, 0] to %{name}s[] : {given[name]} to {lies[name]}"""
        for name in COPIES
    )
    return f"""
    func.func @k(%q: {given["q"]}, %k: {given["k"]}, %v: {given["v"]},
                 %o: memref<{M}x{depth}x{wide}>) attributes {{frag.warps = array<i64: 4, 1>}} {{
      {filled}
      frag.barrier
      %zero = arith.constant {"0.0" if wide == "f32" else "0"} : {wide}
      %c = frag.fill %zero : {s}
      %z = frag.fill %zero : {o}
      %a = frag.load %qs[0, 0] : {lies["q"]} -> {a}
      %b = frag.load %ks[0, 0] transposed : {lies["k"]} -> {b}
      %w = frag.load %vs[0, 0] transposed : {lies["v"]} -> {v}
      %s = frag.mma %a, %b, %c : {a}, {b}, {s} -> {s}
      %p = frag.cast %s : {s} -> {p}
      %r = frag.mma %p, %w, %z : {p}, {v}, {o} -> {o}
      frag.store %r, %o[0, 0] : {o}, memref<{M}x{depth}x{wide}>
      func.return
    }}"""


def drawn(shape: tuple[int, int], narrow: str, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Small numbers, few of them, so that sums are exact in every type."""
    import ml_dtypes

    numbers = rng.integers(-1, 2, shape) * (rng.random(shape) < 0.2)
    types: dict[str, Any] = {
        "f8E4M3FN": ml_dtypes.float8_e4m3fn,
        "f8E5M2": ml_dtypes.float8_e5m2,
        "si8": np.int8,
        "tf32": np.float32,
    }
    return numbers.astype(types[narrow])


class Trial(NamedTuple):
    """One program, its type and its numbers of keys and of columns of Q."""

    program: str
    narrow: str
    keys: int
    depth: int


LOADED = """
      %e = frag.load %ks[0, 0] : {{ks}} -> !frag.tile<{tile}>
      frag.store %e, %k[0, 0] : !frag.tile<{tile}>, memref<{tile}>"""


def trial(random: Random) -> Trial:
    """A random program; where K is loaded as a tile too, all threads have a part of it."""
    narrow, kind = random.choice(sorted(TYPES)), random.choice(("wgmma", "loaded", "mma"))
    unit, size = 32 // TYPES[narrow][1], TYPES[narrow][1]
    keys, depth = unit * random.randint(1, 8), unit * random.randint(1, 4)
    if kind == "mma":
        keys, depth = unit * random.randint(1, 4), unit * random.randint(1, 2)
        return Trial(by_warps(narrow, keys, depth), narrow, keys, depth)
    more = ""
    if kind == "loaded":
        keys = 32 * random.randint(1, 4) * 4 // size
        more = LOADED.format(tile=f"{keys}x{depth}x{narrow}")
    return Trial(chain(narrow, keys, depth, more=more), narrow, keys, depth)


def check(given: Trial, seed: int) -> list[str]:
    """What is wrong with a program, executed on the emulator."""
    kernel = compile_program(given.program, target="sm_90a")
    found = [f"{word} in the PTX of {given.program}" for word in MOVES if word in kernel.ptx]
    rng = np.random.default_rng(seed)
    shapes = (M, given.depth), (given.keys, given.depth), (given.depth, given.keys)
    q, k, v = (drawn(shape, given.narrow, rng) for shape in shapes)
    o = np.zeros((M, given.depth), np.int32 if given.narrow == "si8" else np.float32)
    given_k = k.copy()
    kernel(q, k, v, o, on="emulator")
    first = q.astype(float) @ given_k.astype(float).T
    wrong = int(np.sum(o != first @ v.astype(float).T)) + int(np.sum(k != given_k))
    if wrong and np.abs(first).max() <= 8:  # else sums are rounded
        found.append(f"{wrong} elements are wrong: {given.program}")
    return found


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    random, findings = task.random(), list[str]()
    batch = task.parameters["batch"]
    for number in range(batch):
        findings += check(trial(random), number)
    return {"findings": findings, "programs": batch}


SWEEP = Sweep(tasks, run, {"batch": 20}, seconds=600.0)
