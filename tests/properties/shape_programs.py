"""Random programs of operations that count a tile's elements otherwise, and numpy beside them."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragir.layout import Axis, Layout, Mode
from fragir.layout.modes import tile_dims

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
    element: str
    result: str
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
    found = Layout(tuple(Axis(n, tuple(axes[n])) for n in names), tile_dims(len(shape)))
    return _flipped(rng, found) if rng.random() < 0.3 else found


def _flipped(rng: Random, layout: Layout) -> Layout:
    """The layout with one digit of two of an axis flipping, too, what another one moves."""
    from fragir.layout import XorMode

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


class _Chain:
    """The text of a program while it grows, and the tiles it may go on with."""

    def __init__(self, rng: Random, warps: int):
        self.rng, self.warps = rng, warps
        self.lines: list[str] = []
        self.tiles: list[tuple[str, str, Array]] = []

    def add(self, array: Array, element: str, text: str, layout: Layout | None = None) -> None:
        name = f"%t{len(self.tiles)}"
        self.lines.append(f"{name} = {text}{tile(array.shape, element, layout)}")
        if layout is not None:  # what follows may lie elsewhere
            plain = tile(array.shape, element)
            self.lines.append(
                f"{name}c = frag.convert {name} : {tile(array.shape, element, layout)} -> {plain}"
            )
            name += "c"
        self.tiles.append((name, element, array))

    def step(self) -> None:
        name, element, x = self.rng.choice(self.tiles[-3:])
        kinds = ["transpose", "reshape", "reshape", "slice", "slice", "concat", "join", "split"]
        getattr(self, self.rng.choice([*kinds, "map", "cast"]))(name, element, x)

    def transpose(self, name: str, element: str, x: Array) -> None:
        order = list(range(x.ndim))
        self.rng.shuffle(order)
        text = f"frag.transpose {name} {order} : {tile(x.shape, element)} -> "
        self.add(x.transpose(order), element, text)

    def reshape(self, name: str, element: str, x: Array) -> None:
        left, shape = x.size, list[int]()
        for _ in range(self.rng.randint(0, 3)):
            size = self.rng.choice([d for d in range(1, left + 1) if left % d == 0])
            shape.append(size)
            left //= size
        shape.append(left)
        self.rng.shuffle(shape)
        text = f"frag.reshape {name} : {tile(x.shape, element)} -> "
        self.add(x.reshape(shape), element, text)

    def slice(self, name: str, element: str, x: Array) -> None:
        parts: list[range] = []
        for size in x.shape:
            pieces = [d for d in range(1, size + 1) if size % d == 0]
            step = self.rng.choice([1, 1, 1, 2, 3])
            block = self.rng.choice(pieces)
            start = self.rng.choice([0, self.rng.randrange(0, size, block)])
            count = self.rng.randint(1, max(1, (size - start) // block)) * block
            parts.append(range(start, min(size, start + count), step))
        if x[tuple(slice(p.start, p.stop, p.step) for p in parts)].size < 4:
            return
        strides = [p.step for p in parts]
        text = f"frag.slice {name} {[p.start for p in parts]} "
        text += f"strides {strides} " if max(strides) > 1 else ""
        found = x[tuple(slice(p.start, p.stop, p.step) for p in parts)]
        self.add(found, element, f"{text}: {tile(x.shape, element)} -> ")

    def concat(self, name: str, element: str, x: Array) -> None:
        dim = self.rng.randrange(x.ndim)
        rest = [n for d, n in enumerate(x.shape) if d != dim]
        for other, type_, y in reversed(self.tiles):
            if type_ == element and y.ndim == x.ndim and x.size + y.size <= 4096:
                if [n for d, n in enumerate(y.shape) if d != dim] == rest:
                    text = f"frag.concat {name}, {other} dim {dim} : {tile(x.shape, element)}, "
                    self.add(
                        np.concatenate([x, y], dim),
                        element,
                        f"{text}{tile(y.shape, element)} -> ",
                    )
                    return

    def join(self, name: str, element: str, x: Array) -> None:
        same = [t for t in self.tiles if t[1] == element and t[2].shape == x.shape]
        if x.ndim == 4 or x.size > 2048:
            return
        other, _, y = self.rng.choice(same)
        type_ = tile(x.shape, element)
        self.add(
            np.stack([x, y], -1), element, f"frag.join {name}, {other} : {type_}, {type_} -> "
        )

    def split(self, name: str, element: str, x: Array) -> None:
        if x.shape[-1] % 2 or x.ndim == 4:
            return
        if x.shape[-1] != 2 or x.ndim == 1:
            shape = (*x.shape[:-1], x.shape[-1] // 2, 2)
            self.add(
                x.reshape(shape),
                element,
                f"frag.reshape {name} : {tile(x.shape, element)} -> ",
            )
            name, element, x = self.tiles[-1]
        part, count = tile(x.shape[:-1], element), len(self.tiles)
        self.lines.append(
            f"%t{count}, %t{count + 1} = frag.split {name} : {tile(x.shape, element)} "
            f"-> {part}, {part}"
        )
        self.tiles += [(f"%t{count}", element, x[..., 0]), (f"%t{count + 1}", element, x[..., 1])]

    def map(self, name: str, element: str, x: Array) -> None:
        if element == "si8":
            return
        same = [t for t in self.tiles if t[1] == element and t[2].shape == x.shape]
        other, _, y = self.rng.choice(same)
        type_, kind = tile(x.shape, element), "i" if element == "i32" else "f"
        if np.abs(x).max() + np.abs(y).max() > 1000:
            return
        count = len(self.tiles)
        self.lines.append(
            f"%t{count} = frag.map {name}, {other} : {type_}, {type_} -> {type_} {{\n"
            f"^bb0(%u: {element}, %v: {element}):\n"
            f"  %r = arith.add{kind} %u, %v : {element}\n  frag.yield %r : {element}\n}}"
        )
        self.tiles.append((f"%t{count}", element, x + y))

    def cast(self, name: str, element: str, x: Array) -> None:
        if element in CASTS:
            new = self.rng.choice(CASTS[element])
            text = f"frag.cast {name} : {tile(x.shape, element)} -> "
            self.add(x.astype(TYPES[new]), new, text)

def shape_program(seed: int, steps: int = 6) -> ShapeProgram:
    """The program of a seed."""
    rng = Random(seed)
    warps, shape = rng.choice(WARPS), rng.choice(SHAPES)
    element = rng.choice(sorted(TYPES))
    values = np.random.default_rng(seed)
    x, y = (values.integers(-9, 10, shape).astype(TYPES[element]) for _ in range(2))
    chain = _Chain(rng, warps)
    memory = f"memref<{'x'.join(map(str, shape))}x{element}>"
    zeros = ", ".join("0" * len(shape))
    for name, array in (("%x", x), ("%y", y)):
        layout = any_layout(rng, shape, warps) if rng.random() < 0.7 else None
        chain.add(array, element, f"frag.load {name}[{zeros}] : {memory} -> ", layout)
    for _ in range(steps):
        chain.step()
    name, result, found = chain.tiles[-1]
    if rng.random() < 0.5:
        layout = any_layout(rng, found.shape, warps)
        chain.lines.append(
            f"%last = frag.convert {name} : {tile(found.shape, result)} -> "
            f"{tile(found.shape, result, layout)}"
        )
        name, stored = "%last", tile(found.shape, result, layout)
    else:
        stored = tile(found.shape, result)
    target = f"memref<{'x'.join(map(str, found.shape))}x{result}>"
    body = "\n".join(f"  {line}" for line in chain.lines)
    text = (
        f"func.func @k(%x: {memory}, %y: {memory}, %z: {target}) "
        f"attributes {{frag.warps = array<i64: {warps}, 1>}} {{\n{body}\n"
        f"  frag.store {name}, %z[{', '.join('0' * found.ndim)}] : {stored}, {target}\n"
        "  func.return\n}\n"
    )
    assert prod(found.shape) == found.size
    return ShapeProgram(text, warps, element, result, x, y, found)
