"""Random programs of tiles mean the same before and after stock `canonicalize`, and get smaller."""

from __future__ import annotations

import random
from itertools import permutations
from math import prod

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.canonicalize import CanonicalizePass

import fragir
from fragir.dialects.elements import element_name, element_type
from fragir.dialects.frag.canonical import is_exact
from fragir.dialects.shorthands import memref_type
from fragir.reference import evaluate
from fragir.reference.formats import FLOATS, INTEGERS, decode, round_to, storage

Shape = tuple[int, ...]
EXACT = ("f16", "bf16", "f32", "s32")
KINDS = ("cast", "convert", "transpose", "reshape", "slice", "concat", "split", "join")
#: An operation, and one behind it that a pattern sees.
PAIRS = (
    ("cast", "cast"),
    ("convert", "convert"),
    ("transpose", "transpose"),
    ("reshape", "reshape"),
    ("slice", "slice"),
    ("concat", "slice"),
    ("slice", "concat"),
    ("join", "split"),
    ("split", "join"),
)


class Program:
    """Text of a function that makes tiles of tiles; each line gives a name a shape and a type."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.tiles: list[tuple[str, Shape, str]] = []

    def add(self, text: str, *made: tuple[Shape, str], after: str = "") -> None:
        """A line, which gives tiles; the types of its results stand at its end."""
        names = [f"%t{len(self.tiles) + number}" for number in range(len(made))]
        types = ", ".join(self.type(*each) for each in made)
        self.lines.append(f"  {', '.join(names)} = {text} -> {types}{after}")
        self.tiles += [(name, *each) for name, each in zip(names, made, strict=True)]

    @staticmethod
    def type(shape: Shape, element: str) -> str:
        return f"!frag.tile<{'x'.join(map(str, shape))}x{element_type(element)}>"

    def step(self, kind: str, number: int = -1) -> None:
        """One more operation, on a tile by its number, and where it takes two on one like it."""
        name, shape, element = self.tiles[number]
        type_ = self.type(shape, element)
        match kind:
            case "cast":
                self.add(f"frag.cast {name} : {type_}", (shape, self.random.choice(EXACT)))
            case "convert":
                self.add(f"frag.convert {name} : {type_}", (shape, element))
            case "transpose":
                order = self.random.choice(list(permutations(range(len(shape)))))
                new = tuple(shape[dim] for dim in order)
                self.add(f"frag.transpose {name} {list(order)} : {type_}", (new, element))
            case "reshape":
                count = prod(shape)
                rows = self.random.choice([n for n in range(1, count + 1) if count % n == 0])
                self.add(f"frag.reshape {name} : {type_}", ((rows, count // rows), element))
            case "slice":
                steps = [self.random.choice((1, 1, 2)) for _ in shape]
                offsets = [self.random.randrange(size) for size in shape]
                left = [-(-(s - o) // t) for s, o, t in zip(shape, offsets, steps, strict=True)]
                self.cut(number, offsets, [self.random.randint(1, most) for most in left], steps)
            case "concat":
                other = self.random.choice(self.like(shape, element))
                dim = self.random.randrange(len(shape))
                new = tuple(size * (1 + (n == dim)) for n, size in enumerate(shape))
                if prod(new) <= 256:
                    text = f"frag.concat {name}, {other[0]} dim {dim} : {type_}, {type_}"
                    self.add(text, (new, element))
            case "split":
                if len(shape) > 1 and shape[-1] == 2:
                    part = (shape[:-1], element)
                    self.add(f"frag.split {name} : {type_}", part, part)
            case _:
                other = self.random.choice(self.like(shape, element))
                if len(shape) < 3 and prod(shape) <= 128:
                    text = f"frag.join {name}, {other[0]} : {type_}, {type_}"
                    self.add(text, ((*shape, 2), element))

    def cut(self, number: int, offsets: list[int], new: list[int], steps: list[int]) -> None:
        """A part of a tile."""
        name, shape, element = self.tiles[number]
        strides = f" strides {steps}" if max(steps) > 1 else ""
        text = f"frag.slice {name} {offsets}{strides} : {self.type(shape, element)}"
        self.add(text, (tuple(new), element))

    def halves(self) -> None:
        """Two parts of the second tile, mostly behind each other, put together."""
        _, shape, element = self.tiles[1]
        dim, step = self.random.choice(((0, 1), (1, 1), (1, 2), (2, 1)))
        steps = [step if n == dim else 1 for n in range(3)]
        new = [size // 2 // step if n == dim else size // 2 for n, size in enumerate(shape)]
        first = [self.random.randrange(2) if n != dim else 0 for n in range(3)]
        behind = [at + new[n] * step * (n == dim) for n, at in enumerate(first)]
        if self.random.random() < 0.3:  # not behind each other
            behind = [*behind[:dim], first[dim], *behind[dim + 1 :]]
        self.cut(1, first, new, steps)
        self.cut(1, behind, new, steps)
        (one, *_), (other, *_) = self.tiles[-2:]
        type_ = self.type(tuple(new), element)
        whole = tuple(size * (1 + (n == dim)) for n, size in enumerate(new))
        self.add(f"frag.concat {one}, {other} dim {dim} : {type_}, {type_}", (whole, element))

    def like(self, shape: Shape, element: str) -> list[tuple[str, Shape, str]]:
        """The tiles of a shape and type: of the first ones, else any."""
        alike = [tile for tile in self.tiles if tile[1:] == (shape, element)]
        return [tile for tile in alike if tile in self.tiles[:3]] or alike

    def text(self, outputs: list[int]) -> str:
        """The function; tiles by their numbers, as f32, go to memory."""
        arguments = ["%a: memref<8x8xf32>"]
        for number in outputs:
            name, shape, element = self.tiles[number]
            flat, memory = (prod(shape),), f"memref<{prod(shape)}xf32>"
            self.add(f"frag.reshape {name} : {self.type(shape, element)}", (flat, element))
            last = self.tiles[-1]
            if element != "f32":
                self.add(f"frag.cast {last[0]} : {self.type(*last[1:])}", (flat, "f32"))
            arguments.append(f"%d{len(arguments)}: {memory}")
            place = f"%d{len(arguments) - 1}[0]"
            stored = f"{self.tiles[-1][0]}, {place} : {self.type(flat, 'f32')}, {memory}"
            self.lines.append(f"  frag.store {stored}")
        body = "\n".join(self.lines)
        return f"func.func @f({', '.join(arguments)}) {{\n{body}\n  func.return\n}}"


def begun(seed: int) -> Program:
    """A program with a tile of 4x8x2, the second one."""
    program = Program(seed)
    program.add("frag.load %a[0, 0] : memref<8x8xf32>", ((8, 8), "f32"))
    program.add(f"frag.reshape %t0 : {program.type((8, 8), 'f32')}", ((4, 8, 2), "f32"))
    program.add(f"frag.transpose %t0 [1, 0] : {program.type((8, 8), 'f32')}", ((8, 8), "f32"))
    return program


def only(module: ModuleOp) -> func.FuncOp:
    """The one function of a module."""
    (function,) = module.ops
    assert isinstance(function, func.FuncOp)
    return function


def hold(text: str, seed: int) -> int:
    """The same values before and after; how many operations fewer there are."""
    before, after = fragir.parse(text), fragir.parse(text)
    CanonicalizePass().apply(Context(), after)
    after.verify()
    function, simpler = only(before), only(after)
    a = np.random.default_rng(seed).integers(-100, 100, (8, 8)).astype(np.float32)
    types = [memref_type(argument.type) for argument in function.body.block.args]
    zeros = [np.zeros(type_.get_shape(), np.float32) for type_ in types[1:]]
    wanted = evaluate(function, [a, *zeros], target="sm_80")
    found = evaluate(simpler, [a, *zeros], target="sm_80")
    for one, other in zip(wanted[1:], found[1:], strict=True):
        assert one is not None
        assert other is not None
        np.testing.assert_array_equal(one.value, other.value, text)
    return len(list(function.walk())) - len(list(simpler.walk()))


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pairs_keep_their_meaning(pair: tuple[str, str]) -> None:
    program, outputs = begun(seed=1), list[int]()
    for _ in range(24):
        count = len(program.tiles)
        if pair == ("slice", "concat"):
            program.halves()
        else:
            program.step(pair[0], int(pair[0] != "join"))  # which adds a third dimension
            program.step(pair[1], program.random.randrange(count, len(program.tiles)))
        outputs.append(len(program.tiles) - 1)
    text = program.text(outputs)
    assert pair == ("convert", "convert") or hold(text, 1) > 0


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_keep_their_meaning(seed: int) -> None:
    program = begun(seed)
    for _ in range(16):
        program.step(program.random.choice(KINDS), program.random.choice((-1, -1, -2)))
    assert hold(program.text([-1, -2, -3]), seed) >= 0


def test_exact_types_are_those_that_keep_every_value() -> None:
    """Every value of the types of at most 16 bits, by the reference's formats."""
    small = {name for name in ("f16", "bf16", "e4m3", "e5m2", "s8", "u8", "s16", "pred")}
    for source in sorted(small):
        bits = 1 if source == "pred" else storage(source).itemsize * 8
        if source in FLOATS:
            raw = np.arange(1 << bits).astype(f"uint{bits}").view(storage(source))
            values = decode(raw, source)
            values = values[np.isfinite(values)]
        else:
            row = INTEGERS[source]
            low = -(1 << bits - 1) if row.signed else 0
            values = np.arange(low, low + (1 << bits)).astype(np.float64)
        for target in (
            "f16",
            "bf16",
            "f32",
            "f64",
            "e4m3",
            "e5m2",
            "s8",
            "u8",
            "s16",
            "s32",
            "u32",
        ):
            if target in FLOATS:
                kept = bool((round_to(values, FLOATS[target]) == values).all())
            elif source in FLOATS:
                kept = False
            else:
                to = INTEGERS[target]
                limit = 1 << to.bits - to.signed
                kept = bool(
                    (values < limit).all() and (values >= (-limit if to.signed else 0)).all()
                )
            assert is_exact(source, target) == kept, (source, target)
    assert is_exact("f32", "f64")
    assert not is_exact("s32", "f32")
    assert is_exact("s32", "f64")
    assert element_name(element_type("s8")) == "s8"
