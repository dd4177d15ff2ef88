"""Tiles transposed, reshaped, cut and put together in random programs, beside numpy.

Chains of these operations, of `frag.map` and `frag.cast`, over random shapes, element types, warps
and layouts (odd sizes, copies, exclusive or), compiled, assembled and run with every check.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragir import compile as compile_program
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode, XorMode
from fragir.layout.distribution import dims_of
from fragir.sweeps import Plan, Result, Sweep, Task

Array = npt.NDArray[Any]

SHAPES = (
    (128,), (96,), (64, 32), (16, 24), (12, 20), (32, 2), (2, 8, 32), (3, 4, 24), (8, 16, 2),
    (2, 2, 4, 16), (2, 1, 3, 32),
)  # fmt: skip
#: Element types, in whose arithmetic small whole numbers are exact, and arrays of them.
TYPES: dict[str, type[Any]] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32, "si8": np.int8,
}  # fmt: skip
#: What one type may be cast to.
CASTS = {"f16": ("f32",), "f32": ("f16", "f64"), "f64": ("f32",), "si8": ("f32", "f16")}
WARPS = (1, 2, 3, 4)


class ShapeProgram(NamedTuple):
    """A kernel of two inputs of a shape and an output, and what it computes."""

    text: str
    warps: int
    first: Array
    second: Array
    expected: Array


def any_layout(rng: Random, shape: tuple[int, ...], warps: int) -> Layout:
    """All elements over so many warps, digits of every dimension anywhere, at times flipped; lanes
    that find nothing left hold copies."""
    left, steps = list(shape), [1] * len(shape)
    axes: dict[str, list[Mode]] = {"element": [], "lane": [], "warp": []}
    rooms = {"lane": 32, "warp": warps}
    while any(n > 1 for n in left):
        dim = rng.choice([d for d, n in enumerate(left) if n > 1])
        factor = next(p for p in range(2, left[dim] + 1) if left[dim] % p == 0)
        fitting = [name for name, room in rooms.items() if room % factor == 0]
        axis = rng.choice(["element", *fitting])
        axes[axis].append(Mode(factor, tuple(steps[dim] * (d == dim) for d in range(len(shape)))))
        if axis != "element":
            rooms[axis] //= factor
        left[dim] //= factor
        steps[dim] *= factor
    for name, room in rooms.items():
        if room > 1:
            axes[name].append(Mode(room, (0,) * len(shape)))
    names = ("warp", "lane", "element")
    found = Layout(tuple(Axis(n, tuple(axes[n])) for n in names), dims_of(len(shape)))
    return _flipped(rng, found) if rng.random() < 0.3 else found


def _flipped(rng: Random, layout: Layout) -> Layout:
    """The layout with one digit of two of an axis flipping, too, what another one moves."""
    digits = [
        (a, m) for a, axis in enumerate(layout.axes) for m, mode in enumerate(axis.modes)
        if mode.size == 2 and any(mode.stride)
    ]  # fmt: skip
    if len(digits) < 2 or any(n & (n - 1) for n in layout.shape):
        return layout
    (a, m), (b, n) = rng.sample(digits, 2)
    moved = layout.axes[b].modes[n].stride
    axes = [list(axis.modes) for axis in layout.axes]
    step = tuple(x ^ y for x, y in zip(axes[a][m].stride, moved, strict=True))
    axes[a][m] = XorMode(2, step)
    axes[b][n] = XorMode(2, moved)
    found = (Axis(x.name, tuple(modes)) for x, modes in zip(layout.axes, axes, strict=True))
    return Layout(tuple(found), layout.dims)


def tile(shape: tuple[int, ...], element: str, layout: Layout | None = None) -> str:
    size = "x".join(map(str, shape))
    return f"!frag.tile<{size}x{element}" + (f', #frag.layout<"{layout}">>' if layout else ">")


class _Known(NamedTuple):
    """A tile of the program, and what it holds."""

    name: str
    type: str
    element: str
    array: Array


class _Chain:
    """The text of a program while it grows, and the tiles that it may go on with."""

    def __init__(self, rng: Random):
        self.rng = rng
        self.lines: list[str] = []
        self.tiles: list[_Known] = []

    def add(self, array: Array, element: str, text: str, layout: Layout | None = None) -> None:
        name, type_ = f"%t{len(self.tiles)}", tile(array.shape, element, layout)
        self.lines.append(f"{name} = {text} -> {type_}")
        self.tiles.append(_Known(name, type_, element, array))

    def step(self) -> None:
        kinds = ["transpose", "reshape", "reshape", "slice", "slice", "concat", "join", "split"]
        getattr(self, self.rng.choice([*kinds, "map", "cast"]))(self.rng.choice(self.tiles[-3:]))

    def transpose(self, t: _Known) -> None:
        order = self.rng.sample(range(t.array.ndim), t.array.ndim)
        text = f"frag.transpose {t.name} {order} : {t.type}"
        self.add(t.array.transpose(order), t.element, text)

    def reshape(self, t: _Known) -> None:
        left, shape = t.array.size, list[int]()
        for _ in range(self.rng.randint(0, 3)):
            shape.append(self.rng.choice([d for d in range(1, left + 1) if left % d == 0]))
            left //= shape[-1]
        shape.append(left)
        self.rng.shuffle(shape)
        self.add(t.array.reshape(shape), t.element, f"frag.reshape {t.name} : {t.type}")

    def slice(self, t: _Known) -> None:
        parts: list[slice] = []
        for size in t.array.shape:
            step = self.rng.choice([1, 1, 1, 2, 3])
            block = self.rng.choice([d for d in range(1, size + 1) if size % d == 0])
            start = self.rng.choice([0, self.rng.randrange(0, size, block)])
            count = self.rng.randint(1, max(1, (size - start) // block)) * block
            parts.append(slice(start, min(size, start + count), step))
        found = t.array[tuple(parts)]
        if found.size >= 4:
            strides = [part.step for part in parts]
            text = f"frag.slice {t.name} {[part.start for part in parts]}"
            text += f" strides {strides}" if max(strides) > 1 else ""
            self.add(found, t.element, f"{text} : {t.type}")

    def concat(self, t: _Known) -> None:
        x, dim = t.array, self.rng.randrange(t.array.ndim)
        rest = np.delete(x.shape, dim).tolist()
        for u in reversed(self.tiles):
            y = u.array
            if u.element == t.element and y.ndim == x.ndim and x.size + y.size <= 4096:
                if np.delete(y.shape, dim).tolist() == rest:
                    text = f"frag.concat {t.name}, {u.name} dim {dim} : {t.type}, {u.type}"
                    self.add(np.concatenate([x, y], dim), t.element, text)
                    return

    def join(self, t: _Known) -> None:
        u = self._like(t)
        if t.array.ndim < 4 and t.array.size <= 2048:
            text = f"frag.join {t.name}, {u.name} : {t.type}, {u.type}"
            self.add(np.stack([t.array, u.array], -1), t.element, text)

    def split(self, t: _Known) -> None:
        shape = t.array.shape
        if shape[-1] % 2 or len(shape) == 4:
            return
        if shape[-1] != 2 or len(shape) == 1:
            shape = (*shape[:-1], shape[-1] // 2, 2)
            self.add(t.array.reshape(shape), t.element, f"frag.reshape {t.name} : {t.type}")
            t = self.tiles[-1]
        part, count = tile(shape[:-1], t.element), len(self.tiles)
        names = f"%t{count}", f"%t{count + 1}"
        self.lines.append(f"{', '.join(names)} = frag.split {t.name} : {t.type} -> {part}, {part}")
        for place, name in enumerate(names):
            self.tiles.append(_Known(name, part, t.element, t.array[..., place]))

    def map(self, t: _Known) -> None:
        u, element = self._like(t), t.element
        if element == "si8" or np.abs(t.array).max() + np.abs(u.array).max() > 1000:
            return
        if u.type != t.type:
            return
        body = f"^bb0(%u: {element}, %v: {element}):\n"
        body += f"%r = arith.add{'i' if element == 'i32' else 'f'} %u, %v : {element}\n"
        name = f"%t{len(self.tiles)}"
        self.lines.append(
            f"{name} = frag.map {t.name}, {u.name} : {t.type}, {u.type} -> {t.type} "
            f"{{\n{body}frag.yield %r : {element}\n}}"
        )
        self.tiles.append(_Known(name, t.type, element, t.array + u.array))

    def cast(self, t: _Known) -> None:
        if t.element in CASTS and "layout" not in t.type:
            new = self.rng.choice(CASTS[t.element])
            self.add(t.array.astype(TYPES[new]), new, f"frag.cast {t.name} : {t.type}")

    def _like(self, t: _Known) -> _Known:
        """A tile of the same shape and type."""
        same = [u for u in self.tiles if u.element == t.element and u.array.shape == t.array.shape]
        return self.rng.choice(same)


def shape_program(seed: int, steps: int = 6) -> ShapeProgram:
    """The program of a seed."""
    rng = Random(seed)
    warps, shape, element = rng.choice(WARPS), rng.choice(SHAPES), rng.choice(sorted(TYPES))
    values = np.random.default_rng(seed)
    inputs = [values.integers(-9, 10, shape).astype(TYPES[element]) for _ in range(2)]
    chain, memory = _Chain(rng), f"memref<{'x'.join(map(str, shape))}x{element}>"
    even = prod(shape) % (32 * warps) == 0 and warps != 3  # rows in order go round
    for name, array in zip(("%x", "%y"), inputs, strict=True):
        layout = None if even and rng.random() < 0.3 else any_layout(rng, shape, warps)
        text = f"frag.load {name}[{', '.join('0' * len(shape))}] : {memory}"
        chain.add(array, element, text, layout)
    for _ in range(steps):
        chain.step()
    last = chain.tiles[-1]
    name, found, type_ = last.name, last.array, last.type
    if rng.random() < 0.5:
        type_ = tile(found.shape, last.element, any_layout(rng, found.shape, warps))
        chain.lines.append(f"%last = frag.convert {name} : {last.type} -> {type_}")
        name = "%last"
    target = f"memref<{'x'.join(map(str, found.shape))}x{last.element}>"
    store = f"frag.store {name}, %z[{', '.join('0' * found.ndim)}] : {type_}, {target}"
    body = "\n".join([*chain.lines, store, "func.return"])
    text = (
        f"func.func @k(%x: {memory}, %y: {memory}, %z: {target}) "
        f"attributes {{frag.warps = array<i64: {warps}, 1>}} {{\n{body}\n}}\n"
    )
    return ShapeProgram(text, warps, inputs[0], inputs[1], found)


def check(program: ShapeProgram, target: str, assemble: bool) -> list[str]:
    """What is wrong with a program: warnings of ptxas, findings of the emulator, elements."""
    kernel = compile_program(program.text, target=target)
    found = [str(warning) for warning in kernel.assembled.warnings] if assemble else []
    result = np.full(program.expected.shape, 77, program.expected.dtype)
    arrays, threads = (program.first, program.second, result), (32 * program.warps,)
    report = kernel.launch((1,), threads, *arrays, on="emulator", check=True)
    found += map(str, report.findings)
    wrong = int(np.sum(result != program.expected))
    return [*found, f"{wrong} of {result.size} elements are wrong"] if wrong else found


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 200)


#: Reasons for which a program may be refused.
REFUSALS = ("registers of every lane", "threads do not divide")


def run(task: Task) -> Result:
    random, findings, refused = task.random(), list[str](), 0
    for _ in range(task.parameters["batch"]):
        program = shape_program(random.getrandbits(48))
        try:
            wrong = check(program, random.choice(("sm_80", "sm_90a")), task.parameters["ptxas"])
        except FragirError as error:
            # lanes that must hold all of a dimension may have to hold too much
            fair = any(reason in error.message for reason in REFUSALS)
            refused += fair
            wrong = [] if fair else [str(error)]
        findings += [f"{each}: {program.text}" for each in wrong]
    return {"findings": findings, "programs": task.parameters["batch"], "refused": refused}


SWEEP = Sweep(tasks, run, {"batch": 10, "ptxas": True}, seconds=600.0)
