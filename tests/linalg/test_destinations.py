"""Random functions whose tensors are computed in the place of others, are parts of others, are put
into others and returned several times. Nothing is rounded: program, reference and numpy are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func

import fragir
from fragir.dialects.linalg.destinations import homes_of
from fragir.reference import evaluate

Array = npt.NDArray[np.float32]
Choose = Callable[[Sequence[Any]], Any]

WHOLE, PART = "tensor<8x8xf32>", "tensor<4x4xf32>"
SAME, TURNED = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (j, i)>"
KINDS = ["add", "sub", "abs", "into itself", "turned into itself", "insert", "change a part"]


class Destinations:
    """A function of 8x8 tensors, whose operations name a tensor before them as their output."""

    def __init__(self, choose: Choose, seed: int):
        rng = np.random.default_rng(seed)
        self._choose = choose
        count = choose([1, 2, 3])
        self.arrays: list[Array] = [
            rng.integers(-4, 5, (8, 8)).astype(np.float32) for _ in range(count)
        ]
        self._held = [(f"%x{at}", array) for at, array in enumerate(self.arrays)]
        self._lines: list[str] = []
        for number in range(choose([1, 2, 3, 4, 5, 6])):
            self._held.append((f"%v{number}", self._operation(number, choose(KINDS))))
        self._returned = [choose(self._held[-3:]) for _ in range(choose([1, 1, 2, 3]))]
        self.results = [array for _, array in self._returned]

    def __str__(self) -> str:
        arguments = ", ".join(f"%x{at}: {WHOLE}" for at in range(len(self.arrays)))
        types = ", ".join([WHOLE] * len(self._returned))
        names = ", ".join(name for name, _ in self._returned)
        head, end = f"func.func @f({arguments}) -> ({types}) {{", f"return {names} : {types}\n}}"
        return "\n  ".join([head, *self._lines, end])

    def _operation(self, number: int, kind: str) -> Array:
        """Writes `%vNUMBER`; its value."""
        (x, a), (y, b), (z, c) = (self._choose(self._held) for _ in range(3))
        result, say = f"%v{number}", self._lines.append
        if kind in ("add", "sub"):
            out = self._choose([z, f"%empty{number}"])
            if out != z:
                say(f"{out} = tensor.empty() : {WHOLE}")
            named = f"linalg.{kind} ins({x}, {y} : {WHOLE}, {WHOLE})"
            say(f"{result} = {named} outs({out} : {WHOLE}) -> {WHOLE}")
            return a + b if kind == "add" else a - b
        if kind == "abs":
            say(f"{result} = linalg.abs ins({x} : {WHOLE}) outs({z} : {WHOLE}) -> {WHOLE}")
            return np.abs(a)
        if kind in ("into itself", "turned into itself"):
            turned = kind.startswith("turned")
            maps = f"[{TURNED if turned else SAME}, {SAME}]"
            say(
                f"{result} = linalg.generic {{indexing_maps = {maps}, "
                'iterator_types = ["parallel", "parallel"]} '
                f"ins({x} : {WHOLE}) outs({z} : {WHOLE}) {{ ^bb0(%a: f32, %o: f32): "
                f"%s = arith.addf %a, %o : f32  linalg.yield %s : f32 }} -> {WHOLE}"
            )
            return (a.T if turned else a) + c
        row, column = self._choose([0, 1, 4]), self._choose([0, 3, 4])
        at, above = (row, column), (self._choose([0, 1, 2, 3]), self._choose([0, 2, 4]))
        if kind == "change a part":  # of the tensor that it goes back into
            (x, a), above = (z, c), at
        part, source = a[above[0] : above[0] + 4, above[1] : above[1] + 4], f"%part{number}"
        say(f"{source} = tensor.extract_slice {x}{list(above)} [4, 4] [1, 1] : {WHOLE} to {PART}")
        if kind == "change a part" or self._choose([False, True]):
            say(
                f"%new{number} = linalg.generic {{indexing_maps = [{SAME}], "
                f'iterator_types = ["parallel", "parallel"]}} outs({source} : {PART}) {{ '
                f"^bb0(%o: f32): %s = arith.addf %o, %o : f32  linalg.yield %s : f32 }} -> {PART}"
            )
            source, part = f"%new{number}", part + part
        say(
            f"{result} = tensor.insert_slice {source} into {z}{list(at)} [4, 4] [1, 1] : "
            f"{PART} into {WHOLE}"
        )
        value = c.copy()
        value[row : row + 4, column : column + 4] = part
        return value


def outcomes(function: func.FuncOp, given: list[Array], new: list[Array]) -> list[Array]:
    """The arrays with what a function returns: those that it is computed in the place of, or new
    ones.
    """
    end = function.body.block.last_op
    assert isinstance(end, func.ReturnOp)
    left = iter(new)
    return [next(left) if x is None else given[x.index] for x in homes_of(end.operands)]


def judge(text: str, arrays: list[Array], results: list[Array]) -> None:
    (function,) = fragir.parse(text).ops
    assert isinstance(function, func.FuncOp)
    end = function.body.block.last_op
    assert end is not None
    homes = homes_of(end.operands)
    compiled = fragir.compile(text, target="sm_80")
    given = [array.copy() for array in arrays]
    new = [np.full((8, 8), np.nan, np.float32) for home in homes if home is None]
    report = compiled(*given, *new, on="emulator", check=True)
    assert report.findings == []
    for found, wanted in zip(outcomes(function, given, new), results, strict=True):
        np.testing.assert_array_equal(found, wanted)
    written = {home.index for home in homes if home is not None}
    for at, (now, before) in enumerate(zip(given, arrays, strict=True)):
        assert at in written or np.array_equal(now, before)
    blank = [np.zeros((8, 8), np.float32) for _ in new]
    outcome = evaluate(function, [*map(np.copy, arrays), *blank])
    values = [held.value for held in outcome if held is not None]
    reference = outcomes(function, values[: len(arrays)], values[len(arrays) :])
    for found, wanted in zip(reference, results, strict=True):
        np.testing.assert_array_equal(found, wanted)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_places_are_shared_only_where_nothing_is_lost(data: st.DataObject) -> None:
    made = Destinations(lambda options: data.draw(st.sampled_from(options)), 0)
    judge(str(made), made.arrays, made.results)


@pytest.mark.parametrize("returned", ["%v, %v", "%v, %w", "%w, %v", "%w, %v, %w"])
def test_a_result_returned_twice(returned: str) -> None:
    """Once in the argument's place, once new; before or after a reshape of it."""
    types = ", ".join([WHOLE] * (returned.count(",") + 1))
    text = f"""func.func @f(%x: {WHOLE}) -> ({types}) {{
  %e = tensor.empty() : {WHOLE}
  %v = linalg.abs ins(%x : {WHOLE}) outs(%e : {WHOLE}) -> {WHOLE}
  %w = linalg.add ins(%v, %v : {WHOLE}, {WHOLE}) outs(%x : {WHOLE}) -> {WHOLE}
  return {returned} : {types}
}}"""
    x = np.arange(-32, 32, dtype=np.float32).reshape(8, 8)
    values = {"%v": np.abs(x), "%w": 2 * np.abs(x)}
    judge(text, [x], [values[name] for name in returned.split(", ")])


@pytest.mark.parametrize("shape", [(4, 4), (1, 3), (3, 1), (1, 1), (2, 8)])
def test_a_small_part_is_changed_by_one_thread_an_element(shape: tuple[int, int]) -> None:
    rows, columns = shape
    part = f"memref<{rows}x{columns}xf32, strided<[8, 1], offset: 9>>"
    text = f"""func.func @f(%x: memref<12x8xf32>) {{
  %p = memref.subview %x[1, 1] [{rows}, {columns}] [1, 1] : memref<12x8xf32> to {part}
  linalg.generic {{indexing_maps = [{SAME}], iterator_types = ["parallel", "parallel"]}}
      outs(%p : {part}) {{
    ^bb0(%o: f32):
      %s = arith.addf %o, %o : f32
      linalg.yield %s : f32
  }}
  return
}}"""
    if columns == 8:
        text = text.replace("[1, 1] [2", "[1, 0] [2").replace("offset: 9", "offset: 8")
    x = np.arange(96, dtype=np.float32).reshape(12, 8)
    wanted = x.copy()
    first = 0 if columns == 8 else 1
    wanted[1 : 1 + rows, first : first + columns] *= 2
    report = fragir.compile(text, target="sm_80")(x, on="emulator", check=True)
    assert report.findings == []
    np.testing.assert_array_equal(x, wanted)
