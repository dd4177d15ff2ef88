"""Random functions of linalg on tensors, and what they compute by numpy.

A function has a few arguments and a chain of operations: elementwise ones with operands transposed
and broadcast, sums and maxima along some dimensions, products as einsum writes them, softmax.
Dimensions of one element (`_`) stay where something was summed, or are made; operations share the
tensors that they begin from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]
LETTERS = "abcd"


@dataclass(frozen=True)
class Value:
    """A tensor: its name, its dimensions by letters, and its elements."""

    name: str
    dims: str
    array: Any

    @property
    def letters(self) -> str:
        """Its dimensions but those of one element."""
        return self.dims.replace("_", "")

    @property
    def narrow(self) -> Any:
        """Its elements by its letters."""
        units = tuple(at for at, d in enumerate(self.dims) if d == "_")
        return np.squeeze(self.array, units)


class RandomFunction:
    """Text, arguments and result; `choose` takes one of several, as hypothesis does."""

    def __init__(self, choose: Choose, operations: int, dynamic: bool = False):
        self._choose, self._dynamic = choose, dynamic
        self.sizes = {letter: choose([1, 3, 8, 17, 33]) for letter in LETTERS}
        self.values: list[Value] = []
        self._lines: list[str] = []
        self._count = 0
        self._begun: dict[tuple[str, str | None], str] = {}
        for _ in range(choose([1, 2, 3])):
            dims = self._dims(choose([1, 2, 2, 3]))
            rng = np.random.default_rng(len(self.values))
            array = rng.standard_normal([self.sizes[d] for d in dims]).astype(np.float32)
            self.values.append(Value(f"%x{len(self.values)}", dims, array))
        self.arguments = list(self.values)
        for _ in range(operations):
            choose([self._map, self._map, self._map, self._sum, self._product, self._softmax])()
        self.result = self.values[-1]

    # --- text ---------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The function."""
        arguments = ", ".join(f"{x.name}: {self._type(x.dims)}" for x in self.arguments)
        type_, body = self._type(self.result.dims), "\n".join(self._lines)
        constants = "  %zero = arith.constant 0.0 : f32\n  %least = arith.constant -3.0e38 : f32\n"
        sizes = ""
        if self._dynamic:
            known: dict[str, str] = {}
            for x in self.arguments:
                for at, d in enumerate(x.dims):
                    known.setdefault(
                        d,
                        f"  %c{d} = arith.constant {at} : index\n  %n{d} = tensor.dim "
                        f"{x.name}, %c{d} : {self._type(x.dims)}\n",
                    )
            sizes = "".join(known.values())
        return (
            f"func.func @f({arguments}) -> {type_} {{\n{constants}{sizes}{body}\n"
            f"  return {self.result.name} : {type_}\n}}\n"
        )

    def _type(self, dims: str) -> str:
        known = self._known if self._dynamic else ""
        sizes = ["?" if d in known else str(self.sizes.get(d, 1)) for d in dims]
        return f"tensor<{''.join(f'{size}x' for size in sizes)}f32>"

    @property
    def _known(self) -> str:
        """The letters that arguments have, whose sizes a launch tells."""
        return "".join(x.letters for x in self.arguments)

    def _dims(self, count: int) -> str:
        letters, found = list(LETTERS), ""
        for _ in range(count):
            found += self._choose(letters)
            letters.remove(found[-1])
        return found

    def _fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _empty(self, dims: str, start: str | None = None) -> str:
        """A tensor to begin from, filled or not, new or one that others began from."""
        if (dims, start) not in self._begun or self._choose([True, False]):
            self._begun[dims, start] = self._filled(dims, start)
        return self._begun[dims, start]

    def _filled(self, dims: str, start: str | None) -> str:
        name, type_ = self._fresh(), self._type(dims)
        sizes = ", ".join(f"%n{d}" for d in dims if self._dynamic and d in self._known)
        self._lines.append(f"  {name} = tensor.empty({sizes}) : {type_}")
        if start is None:
            return name
        filled = self._fresh()
        self._lines.append(
            f"  {filled} = linalg.fill ins({start} : f32) outs({name} : {type_}) -> {type_}"
        )
        return filled

    def _generic(
        self, inputs: Sequence[Value], loops: str, out: str, lines: Sequence[str], start: str | None
    ) -> str:
        target = self._empty(out, start)
        places = [*(v.dims for v in inputs), out]
        if out.count("_") == 1 and self._choose([True, False]):  # a loop of one turn
            loops += "z"
            places = [x.replace("_", "z") if x.count("_") == 1 else x for x in places]
        dims = ", ".join(loops)
        maps = ", ".join(
            f"affine_map<({dims}) -> ({', '.join(x).replace('_', '0')})>" for x in places
        )
        kinds = ", ".join('"parallel"' if d in out + "z" else '"reduction"' for d in loops)
        types = ", ".join(self._type(x.dims) for x in inputs)
        name = self._fresh()
        arguments = ", ".join(f"%e{at}: f32" for at in range(len(inputs)))
        body = "\n".join(f"    {line}" for line in lines)
        self._lines.append(
            f"  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}\n"
            f"      ins({', '.join(x.name for x in inputs)} : {types}) "
            f"outs({target} : {self._type(out)}) {{\n  ^bb0({arguments}, %old: f32):\n{body}\n"
            f"  }} -> {self._type(out)}"
        )
        return name

    # --- operations ---------------------------------------------------------------------------

    def _spread(self, x: Value, loops: str) -> Any:
        """An array with a dimension for each loop."""
        order = sorted(range(len(x.letters)), key=lambda at: loops.index(x.letters[at]))
        array = x.narrow.transpose(order)
        return array.reshape([self.sizes[d] if d in x.dims else 1 for d in loops])

    def _permuted(self, letters: str) -> str:
        left, found = list(letters), ""
        while left:
            found += self._choose(left)
            left.remove(found[-1])
        return found

    def _map(self) -> None:
        count = self._choose([1, 2])
        inputs = [self._choose(self.values[-3:]) for _ in range(count)]
        letters = "".join(dict.fromkeys("".join(x.letters for x in inputs)))
        loops = self._permuted(letters)
        arrays = [self._spread(x, loops).astype(np.float32) for x in inputs]
        if count == 2:
            word, function = self._choose(
                [("addf", np.add), ("subf", np.subtract), ("maximumf", np.maximum)]
            )
            lines = [f"%r = arith.{word} %e0, %e1 : f32"]
            array = function(*arrays)
        else:
            lines, array = self._choose(
                [
                    (["%r = math.absf %e0 : f32"], np.abs(arrays[0])),
                    (["%r = arith.maximumf %e0, %zero : f32"], np.maximum(arrays[0], 0)),
                    (["%r = arith.addf %e0, %e0 : f32"], arrays[0] + arrays[0]),
                ]
            )
        out = loops
        if self._choose([False, False, True]):
            at = self._choose(range(len(loops) + 1))
            out = loops[:at] + "_" + loops[at:]
        name = self._generic(inputs, loops, out, [*lines, "linalg.yield %r : f32"], None)
        array = np.broadcast_to(array, [self.sizes[d] for d in loops])
        self.values.append(Value(name, out, array.reshape([self.sizes.get(d, 1) for d in out])))

    def _sum(self) -> None:
        x = self._choose(self.values[-3:])
        kept = "".join(d for d in x.letters if self._choose([True, False]))
        if kept == x.letters:
            kept = kept[1:]
        stay = self._choose([False, True])  # what is summed, as one element
        out = "".join(d if d in kept else "_" for d in x.dims) if stay else self._permuted(kept)
        most = self._choose([True, False])
        word, start = ("maximumf", "%least") if most else ("addf", "%zero")
        lines = [f"%r = arith.{word} %old, %e0 : f32", "linalg.yield %r : f32"]
        name = self._generic([x], x.letters, out, lines, start)
        gone = tuple(at for at, d in enumerate(x.letters) if d not in kept)
        array = np.asarray((np.max if most else np.sum)(x.narrow, axis=gone))
        array = array.transpose([kept.index(d) for d in out if d != "_"])
        self.values.append(Value(name, out, array.reshape([self.sizes.get(d, 1) for d in out])))

    def _product(self) -> None:
        x, y = (self._choose(self.values[-3:]) for _ in range(2))
        letters = "".join(dict.fromkeys(x.letters + y.letters))
        both = [d for d in letters if d in x.dims and d in y.dims]
        inner = [d for d in both if self._choose([True, True, False])]
        if not inner:
            return
        out = self._permuted("".join(d for d in letters if d not in inner))
        lines = [
            "%p = arith.mulf %e0, %e1 : f32",
            "%r = arith.addf %old, %p : f32",
            "linalg.yield %r : f32",
        ]
        name = self._generic([x, y], self._permuted(letters), out, lines, "%zero")
        array = np.einsum(f"{x.letters},{y.letters}->{out}", x.narrow, y.narrow)
        self.values.append(Value(name, out, array))

    def _softmax(self) -> None:
        x = self._choose(self.values[-3:])
        if not x.dims:
            return
        at, type_ = len(x.dims) - 1, self._type(x.dims)
        target, name = self._empty(x.dims), self._fresh()
        self._lines.append(
            f"  {name} = linalg.softmax dimension({at}) ins({x.name} : {type_}) "
            f"outs({target} : {type_}) -> {type_}"
        )
        powers = np.exp(x.array - x.array.max(at, keepdims=True))
        self.values.append(Value(name, x.dims, powers / powers.sum(at, keepdims=True)))
