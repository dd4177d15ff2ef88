"""Functions of tensors that are cut, joined, padded and shaped anew between what computes, as torch
and JAX print them, and what they compute by numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Cut:
    """A tensor of f32: its name, and its elements."""

    name: str
    array: Any

    @property
    def type(self) -> str:
        return type_of(self.array.shape)


def type_of(shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


class CopiedFunction:
    """A function line by line; each method adds an operation and gives its result."""

    def __init__(self, *shapes: tuple[int, ...]):
        rng = np.random.default_rng(len(shapes))
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        self.arguments = [Cut(f"%x{at}", array) for at, array in enumerate(arrays)]
        self._lines: list[str] = []
        self._count = 0

    def text(self, *results: Cut) -> str:
        arguments = ", ".join(f"{x.name}: {x.type}" for x in self.arguments)
        types, names = (
            ", ".join(w) for w in zip(*((x.type, x.name) for x in results), strict=True)
        )
        lines = "\n  ".join(
            ["%zero = arith.constant 0.0 : f32", *self._lines, f"return {names} : {types}"]
        )
        return f"func.func @f({arguments}) -> ({types}) {{\n  {lines}\n}}\n"

    def _put(self, words: str, array: Any) -> Cut:
        self._count += 1
        made = Cut(f"%v{self._count}", np.ascontiguousarray(array))
        self._lines.append(f"{made.name} = {words}")
        return made

    def _empty(self, shape: Sequence[int]) -> str:
        self._count += 1
        self._lines.append(f"%e{self._count} = tensor.empty() : {type_of(shape)}")
        return f"%e{self._count}"

    def _generic(
        self, inputs: Sequence[Cut], maps: Sequence[str], body: str, array: Any, sums: bool = False
    ) -> Cut:
        """Maps are letters of loops, the result's last; `body` computes `%r` of `%a0`, `%a1`."""
        out, letters = maps[-1], "".join([maps[0] if sums else maps[-1], *maps])
        loops = [letter for letter in dict.fromkeys(letters) if letter != "0"]
        into = self._empty(array.shape)
        if sums:
            self._count += 1
            fill = f"%f{self._count}"
            self._lines.append(
                f"{fill} = linalg.fill ins(%zero : f32) outs({into} : {type_of(array.shape)}) "
                f"-> {type_of(array.shape)}"
            )
            into = fill
        kinds = ", ".join('"parallel"' if x in out else '"reduction"' for x in loops)
        shown = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(words)})>" for words in maps
        )
        given = ", ".join(x.name for x in inputs), ", ".join(x.type for x in inputs)
        arguments = "".join(f"%a{at}: f32, " for at in range(len(inputs)))
        return self._put(
            f"linalg.generic {{indexing_maps = [{shown}], iterator_types = [{kinds}]}} "
            f"ins({given[0]} : {given[1]}) outs({into} : {type_of(array.shape)}) {{\n"
            f"  ^bb0({arguments}%o: f32):\n    {body}\n    linalg.yield %r : f32\n"
            f"  }} -> {type_of(array.shape)}",
            array,
        )

    # --- what computes ------------------------------------------------------------------------

    def negated(self, x: Cut) -> Cut:
        letters = "abcdef"[: x.array.ndim]
        return self._generic([x], [letters] * 2, "%r = arith.negf %a0 : f32", -x.array)

    def combined(self, op: str, x: Cut, y: Cut) -> Cut:
        """`addf`, `subf` or `mulf` of a tensor and one that broadcasts to its shape."""
        letters = "abcdef"[: x.array.ndim]
        own = letters[x.array.ndim - y.array.ndim :]
        words = [
            "0" if size == 1 and x.array.shape[x.array.ndim - y.array.ndim + at] > 1 else letter
            for at, (letter, size) in enumerate(zip(own, y.array.shape, strict=True))
        ]
        does: dict[str, Callable[[Any, Any], Any]] = {
            "addf": np.add, "subf": np.subtract, "mulf": np.multiply,
        }  # fmt: skip
        maps = [letters, "".join(words), letters]
        return self._generic(
            [x, y], maps, f"%r = arith.{op} %a0, %a1 : f32", does[op](x.array, y.array)
        )

    def summed(self, x: Cut) -> Cut:
        """Along the last dimension."""
        letters = "abcdef"[: x.array.ndim]
        body = "%r = arith.addf %o, %a0 : f32"
        return self._generic([x], [letters, letters[:-1]], body, x.array.sum(-1), True)

    def product(self, x: Cut, y: Cut) -> Cut:
        """Of matrices."""
        body = "%p = arith.mulf %a0, %a1 : f32\n    %r = arith.addf %o, %p : f32"
        return self._generic([x, y], ["mk", "kn", "mn"], body, x.array @ y.array, True)

    # --- what only puts elements elsewhere ----------------------------------------------------

    def part(self, x: Cut, first: Sequence[int], sizes: Sequence[int]) -> Cut:
        place = tuple(slice(a, a + n) for a, n in zip(first, sizes, strict=True))
        ones = [1] * len(sizes)
        words = f"{list(first)} {list(sizes)} {ones} : {x.type} to {type_of(sizes)}"
        return self._put(f"tensor.extract_slice {x.name}{words}", x.array[place])

    def joined(self, dim: int, *parts: Cut) -> Cut:
        array = np.concatenate([x.array for x in parts], dim)
        names, types = ", ".join(x.name for x in parts), ", ".join(x.type for x in parts)
        words = f"tensor.concat dim({dim}) {names} : ({types}) -> {type_of(array.shape)}"
        return self._put(words, array)

    def inserted(self, dim: int, *parts: Cut) -> Cut:
        """The same as insertions one after the other."""
        array = np.concatenate([x.array for x in parts], dim)
        made, first = Cut(self._empty(array.shape), array), 0
        for x in parts:
            offsets = [first if d == dim else 0 for d in range(array.ndim)]
            words = (
                f"{offsets} {list(x.array.shape)} {[1] * array.ndim} : {x.type} into {made.type}"
            )
            made = self._put(f"tensor.insert_slice {x.name} into {made.name}{words}", array)
            first += x.array.shape[dim]
        return made

    def set_apart(self, x: Cut, first: Sequence[int], steps: Sequence[int], zeros: int) -> Cut:
        """Elements at steps, with zeros between and so many behind them."""
        ends = [a + (n - 1) * s + 1 for a, n, s in zip(first, x.array.shape, steps, strict=True)]
        array = np.zeros([end + zeros for end in ends], np.float32)
        where = [slice(a, end, s) for a, end, s in zip(first, ends, steps, strict=True)]
        array[tuple(where)] = x.array
        kind, empty = type_of(array.shape), self._empty(array.shape)
        filled = self._put(f"linalg.fill ins(%zero : f32) outs({empty} : {kind}) -> {kind}", array)
        place = f"{list(first)} {list(x.array.shape)} {list(steps)}"
        words = f"{x.name} into {filled.name}{place} : {x.type} into {kind}"
        return self._put(f"tensor.insert_slice {words}", array)

    def padded(self, x: Cut, low: Sequence[int], high: Sequence[int]) -> Cut:
        array = np.pad(x.array, list(zip(low, high, strict=True)))
        names = ", ".join(f"%i{at}: index" for at in range(x.array.ndim))
        return self._put(
            f"tensor.pad {x.name} low{list(low)} high{list(high)} {{\n  ^bb0({names}):\n"
            f"    tensor.yield %zero : f32\n  }} : {x.type} to {type_of(array.shape)}",
            array,
        )

    def turned(self, x: Cut, order: Sequence[int]) -> Cut:
        array = np.transpose(x.array, order)
        into = self._empty(array.shape)
        return self._put(
            f"linalg.transpose ins({x.name} : {x.type}) outs({into} : {type_of(array.shape)}) "
            f"permutation = {list(order)}",
            array,
        )

    def apart(self, x: Cut, dim: int, sizes: Sequence[int]) -> Cut:
        """A dimension as several."""
        old = x.array.shape
        shape = (*old[:dim], *sizes, *old[dim + 1 :])
        groups = [[d] for d in range(dim)]
        groups += [[dim + at for at in range(len(sizes))]]
        groups += [[d + len(sizes) - 1] for d in range(dim + 1, len(old))]
        return self._put(
            f"tensor.expand_shape {x.name} {groups} output_shape {list(shape)} : "
            f"{x.type} into {type_of(shape)}",
            x.array.reshape(shape),
        )

    def together(self, x: Cut, dim: int, count: int) -> Cut:
        """Several dimensions as one."""
        old: tuple[int, ...] = x.array.shape
        shape = (*old[:dim], prod(old[dim : dim + count]), *old[dim + count :])
        groups = [[d] for d in range(dim)] + [list(range(dim, dim + count))]
        groups += [[d] for d in range(dim + count, len(old))]
        words = f"{groups} : {x.type} into {type_of(shape)}"
        return self._put(f"tensor.collapse_shape {x.name} {words}", x.array.reshape(shape))
