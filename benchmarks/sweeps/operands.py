"""Random products whose operands lie in every order, with rows of every length, and random copies.

Products of random types, sizes (promised, static or not), tiles, warps and stages on several
targets, A and B transposed or not, with and without what C held: exact against numpy, and silent in
every check of the emulator. Copies of rows that begin anywhere into shared memory of any swizzle:
every bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

import fragir
from fragir.errors import FragirError
from fragir.reference.formats import decode, encode
from fragir.sweeps import Plan, Result, Sweep, Task

SUMS = {"si8": "i32", "ui8": "i32", "f64": "f64"}
ARRAYS: dict[str, Any] = {"i32": np.int32, "f32": np.float32, "f64": np.float64}
NAMES = {"si8": "s8", "ui8": "u8", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
BYTES = {"tf32": 4, "f64": 8, "f16": 2, "si8": 1, "ui8": 1, "f8E4M3FN": 1, "f8E5M2": 1}
SIZES = (1, 7, 16, 33, 64, 65, 96, 128, 130, 200, 255)


class Program(NamedTuple):
    """A kernel's text, its target, and what it is given and gives."""

    text: str
    target: str
    element: str
    shapes: tuple[tuple[int, int], tuple[int, int]]
    at: tuple[int, int] = (0, 0)


def divisors(random: Random, names: str, sizes: Sequence[int]) -> str:
    """A promise of what divides the sizes, or none."""
    entries = [
        f"{name} = {next(n for n in (64, 16, 8, 4, 2) if size % n == 0)}"
        for name, size in zip(names, sizes, strict=True)
        if size % 2 == 0
    ]
    if not entries or random.random() < 0.5:
        return ""
    return f"frag.divisible = {{{', '.join(entries)}}}"


def matmul(random: Random) -> tuple[Program, tuple[bool, bool], bool]:
    """A product; whether A and B are transposed, and whether it adds to C."""
    element = random.choice(sorted(BYTES))
    narrow = ["sm_89"] if element.startswith("f8") else ["sm_80"]
    target = random.choice([*narrow, "sm_90a", "sm_90a"])
    left, right = random.random() < 0.5, random.random() < 0.5
    m, n, k = sizes = [random.choice(SIZES) for _ in range(3)]
    dynamic = random.random() < 0.6
    shapes = (k, m) if left else (m, k), (n, k) if right else (k, n)

    def memory(shape: tuple[int, int], type_: str) -> str:
        return f"memref<{'?x?' if dynamic else f'{shape[0]}x{shape[1]}'}x{type_}>"

    words: list[str] = []
    if random.random() < 0.6:
        step = {"tf32": 32, "f64": 16, "f16": 32}.get(element, 64)
        tile = (32, 64, 96, 128, 256), (16, 24, 32, 64, 128, 192, 256), (step, 2 * step, step // 2)
        chosen = ", ".join(str(random.choice(extents)) for extents in tile)
        words.append(f"tile = array<i64: {chosen}>")
    if random.random() < 0.3:
        words.append(f"stages = {random.randint(1, 4)} : i64")
    if random.random() < 0.2:
        words.append(f"warps = array<i64: {random.choice([1, 2])}, {random.choice([1, 2, 4])}>")
    out = SUMS.get(element, "f32")
    a, b, c = memory(shapes[0], element), memory(shapes[1], element), memory((m, n), out)
    adds = random.random() < 0.5
    epilogue = f""" epilogue {{
  ^bb0(%sum: {out}, %old: {out}):
    %r = {"arith.addi" if out == "i32" else "arith.addf"} %sum, %old : {out}
    frag.yield %r : {out}
  }}"""
    promise = divisors(random, "mnk", sizes) if dynamic else ""
    text = f"""
func.func @gemm(%a: {a}, %b: {b}, %c: {c}) attributes {{{promise}}} {{
  frag.matmul %a{" transposed" * left}, %b{" transposed" * right} into %c {{{", ".join(words)}}}
      : {a}, {b} into {c}{epilogue * adds}
  func.return
}}
"""
    return Program(text, target, element, shapes), (left, right), adds


def copy(random: Random) -> tuple[Program, tuple[int, int]]:
    """A copy of a tile, which may lie outside of its matrix, and the tile."""
    element = random.choice(["f16", "si8", "si8", "tf32", "f64"])
    size = BYTES[element]
    rows, cols = (
        random.choice([8, 16, 24, 40, 64]),
        random.choice([8, 32, 48, 64, 128, 256]) // size,
    )
    swizzles = [0, *(w for w in (32, 64, 128) if cols * size % w == 0)]
    shape = random.choice([1, 5, 30, 64]), random.choice([*SIZES, 2, 3, 66, 68, 72, 256])
    written = [random.choice(["?", str(extent)]) for extent in shape]
    matrix = f"memref<{'x'.join(written)}x{element}>"
    promise = divisors(random, "n", shape[1:]) if written[1] == "?" else ""
    column = "0" if promise or random.random() < 0.3 else "%j"
    at = random.choice([0, 1, shape[0] - 1, -2]), random.choice([0, 1, 3, 8, shape[1] - 1, -9])
    shared = f"memref<{rows}x{cols}x{element}, #frag.shared<swizzle = {random.choice(swizzles)}>>"
    held, result = (f"{kind}<{rows}x{cols}x{element}>" for kind in ("!frag.tile", "memref"))
    words = [f"frag.warps = array<i64: {random.choice([1, 2, 3, 4, 8])}, 1>", promise]
    text = f"""
func.func @copy(%a: {matrix} {{frag.sizes = ["m", "n"]}}, %d: {result}, %i: index, %j: index)
    attributes {{{", ".join(word for word in words if word)}}} {{
  %s = memref.alloc() : {shared}
  frag.copy async %a[%i, {column}] to %s[] masked : {matrix} to {shared}
  frag.commit
  frag.wait 0
  frag.barrier
  %t = frag.load %s[0, 0] : {shared} -> {held}
  frag.store %t, %d[0, 0] : {held}, {result}
  func.return
}}
"""
    target = random.choice(["sm_75", "sm_80"]) if element in ("f16", "si8") else "sm_80"
    place = at if column == "%j" else (at[0], 0)
    return Program(text, target, element, (shape, shape), place), (rows, cols)


def numbers(rng: np.random.Generator, element: str, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Small whole numbers, as stored and as they mean."""
    name = NAMES.get(element, element)
    stored = encode(rng.integers(0 if element == "ui8" else -3, 4, shape).astype(float), name)
    return stored, decode(stored, name).astype(float)


def compiled(program: Program) -> fragir.Kernel | None:
    """The kernel; None where the program is refused, for a tile that nothing cuts so, say."""
    try:
        return fragir.compile(program.text, target=program.target)
    except FragirError as error:
        if "this is a fault of fragir's" in str(error):
            raise
        return None


def check_product(random: Random, seed: int) -> list[str] | None:
    """What is wrong with a product; None where it is refused."""
    program, turned, adds = matmul(random)
    kernel = compiled(program)
    if kernel is None:
        return None
    rng = np.random.default_rng(seed)
    (a, left), (b, right) = (numbers(rng, program.element, shape) for shape in program.shapes)
    left, right = (x.T if turn else x for x, turn in zip((left, right), turned, strict=True))
    out = ARRAYS[SUMS.get(program.element, "f32")]
    c = rng.integers(-5, 5, (left.shape[0], right.shape[1])).astype(out)
    expected = left @ right + c * adds
    report = kernel(a, b, c, on="emulator", check=True, schedule=seed % 3 or None)
    return told(program, report.findings, int(np.sum(c != expected)))


def check_copy(random: Random, seed: int) -> list[str] | None:
    """What is wrong with a copy; None where it is refused."""
    program, tile = copy(random)
    kernel = compiled(program)
    if kernel is None:
        return None
    array, _ = numbers(np.random.default_rng(seed), program.element, program.shapes[0])
    found, expected = np.ones(tile, array.dtype), np.zeros(tile, array.dtype)
    (i, j), (rows, cols) = program.at, array.shape
    top, bottom = max(0, -i), max(0, min(tile[0], rows - i))
    first, last = max(0, -j), max(0, min(tile[1], cols - j))
    if top < bottom and first < last:
        expected[top:bottom, first:last] = array[i + top : i + bottom, j + first : j + last]
    report = kernel.launch(1, None, array, found, i, j, on="emulator", check=True)
    return told(program, report.findings, int(np.sum(found != expected)))


def told(program: Program, findings: Sequence[object], wrong: int) -> list[str]:
    """Findings and wrong elements, each with the program."""
    said = [f"{finding}: {program}" for finding in findings]
    return [*said, f"{wrong} elements are wrong: {program}"] if wrong else said


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    random, findings, refused = task.random(), list[str](), 0
    batch = task.parameters["batch"]
    for number in range(batch):
        check = check_copy if number % 3 == 2 else check_product
        told_of = check(random, number)
        refused += told_of is None
        findings += told_of or []
    return {"findings": findings, "programs": batch, "refused": refused}


SWEEP = Sweep(tasks, run, {"batch": 20}, seconds=600.0)
