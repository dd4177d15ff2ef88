"""Accesses to arrays of more than 4 GiB, beyond 2 GiB of their beginnings: every element arrives.

A task is one access (load, store, gather, scatter, atomics, copies, a product, a generic) to one
kind of memory (sizes and strides that a launch says, that the type says, some of both) on one
target. It runs on the emulator; pages that nobody touches take no memory there, nor in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

import fragir
from fragir.sweeps import Plan, Result, Sweep, Task, sample

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
TARGETS = ("sm_80", "sm_90a")
ELEMENTS = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i8": np.int8}
ROWS, COLUMNS = 16_384, 140_032  # of a matrix, the latter in bytes: 2.3 GB
LONG = 2_300_000_256  # bytes of a row
FEW = (2, 64, 64)


class Memory(NamedTuple):
    """An array: its type, and its shape and strides by the bytes of an element."""

    type: str
    """`$0`, `$1` and `$2` are sizes, `%0` and `%1` strides, E the elements."""
    shape: Callable[[int], Shape]
    strides: Callable[[int], Shape] | None = None

    def named(self, element: str, size: int) -> str:
        text = self.type
        for n, number in enumerate(self.shape(size)):
            text = text.replace(f"${n}", str(number))
        for n, number in enumerate(self.strides(size) if self.strides else ()):
            text = text.replace(f"%{n}", str(number))
        return text.replace("E", element)

    def array(self, dtype: Any) -> Array:
        """Zeros in as much memory as the strides span."""
        size = np.dtype(dtype).itemsize
        shape = self.shape(size)
        if self.strides is None:
            return np.zeros(shape, dtype)
        strides = self.strides(size)
        span = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + 1
        steps = [stride * size for stride in strides]
        return np.lib.stride_tricks.as_strided(np.zeros(span, dtype), shape, steps)


def _matrices(size: int) -> Shape:
    return (2, ROWS, COLUMNS // size)


def _long_rows(size: int) -> Shape:
    return (1, 2, LONG // size)


def _few(size: int) -> Shape:
    return FEW


def _far(size: int) -> Shape:
    return (ROWS * COLUMNS // size, COLUMNS // size, 1)


def _far_rows(size: int) -> Shape:
    """The rows of a matrix are 4 GB long together."""
    return (64, 64_000_000 // size, 1)


MEMORIES = {
    "dynamic": Memory("memref<?x?x?xE>", _matrices),
    "static": Memory("memref<$0x$1x$2xE>", _matrices),
    "static-rows": Memory("memref<?x$1x?xE>", _matrices),
    "static-columns": Memory("memref<?x?x$2xE>", _matrices),
    "static-matrix": Memory("memref<?x$1x$2xE>", _matrices),
    "long-rows": Memory("memref<?x?x?xE>", _long_rows),
    "strides": Memory("memref<?x?x?xE, strided<[?, ?, 1]>>", _few, _far),
    "row-strides": Memory("memref<?x?x?xE, strided<[?, ?, 1]>>", _few, _far_rows),
    "strides-of-static": Memory("memref<$0x$1x$2xE, strided<[?, ?, 1]>>", _few, _far),
    "static-strides": Memory("memref<$0x$1x$2xE, strided<[%0, %1, 1]>>", _few, _far),
    "static-row-strides": Memory("memref<$0x$1x$2xE, strided<[%0, %1, 1]>>", _few, _far_rows),
    "static-stride": Memory("memref<?x?x?xE, strided<[%0, ?, 1]>>", _few, _far),
}

#: Whose strides a launch says.
SAID = ("strides", "strides-of-static")

_HEAD = """
func.func @k(%x: MEMORY, %y: memref<8x64xE>, %rows: memref<8xi32>, %bs: memref<8x64xi32>,
             %is: memref<8x64xi32>, %js: memref<8x64xi32>, %b: index, %i: index, %j: index)
    attributes {frag.warps = array<i64: 1, 1>} {
  BODY
  func.return
}
"""
_FROM_Y = "%t = frag.load %y[0, 0] : memref<8x64xE> -> !frag.tile<8x64xE>\n"
_TO_Y = "\nfrag.store %t, %y[0, 0] : !frag.tile<8x64xE>, memref<8x64xE>"
_ROWS = "%n = frag.load %rows[0] : memref<8xi32> -> !frag.tile<8xi32>\n"
_PLACES = "".join(
    f"%p{n} = frag.load %{n}s[0, 0] : memref<8x64xi32> -> !frag.tile<8x64xi32>\n" for n in "bij"
)
_INDICES = "!frag.tile<8x64xi32>, !frag.tile<8x64xi32>, !frag.tile<8x64xi32>"
_SHARED = "memref<8x64xE, #frag.shared>"
_WAIT = f"""
frag.commit
frag.wait 0
frag.barrier
%t = frag.load %s[0, 0] : {_SHARED} -> !frag.tile<8x64xE>"""
_ALLOC = f"%s = memref.alloc() : {_SHARED}\n"

#: Into the small array, or out of it into the large one (`True`).
ACCESSES: dict[str, tuple[str, bool]] = {
    "load": ("%t = frag.load %x[%b, %i, %j] : MEMORY -> !frag.tile<8x64xE>" + _TO_Y, False),
    "masked-load": (
        "%t = frag.load %x[%b, %i, %j] masked : MEMORY -> !frag.tile<8x64xE>" + _TO_Y,
        False,
    ),
    "store": (_FROM_Y + "frag.store %t, %x[%b, %i, %j] masked : !frag.tile<8x64xE>, MEMORY", True),
    "loop": (
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
        "%b1 = arith.addi %b, %c1 : index\n"
        "%u = frag.load %y[0, 0] : memref<8x64xE> -> !frag.tile<8x64xE>\n"
        "%t = scf.for %z = %c0 to %b1 step %c1 iter_args(%w = %u) -> (!frag.tile<8x64xE>) {\n"
        "%v = frag.load %x[%z, %i, %j] masked : MEMORY -> !frag.tile<8x64xE>\n"
        "scf.yield %v : !frag.tile<8x64xE>\n}" + _TO_Y,
        False,
    ),
    "gather-rows": (
        _ROWS + "%t = frag.gather %x[%b, %n, %j] masked : MEMORY, index, !frag.tile<8xi32>, index"
        " -> !frag.tile<8x64xE>" + _TO_Y,
        False,
    ),
    "gather": (
        _PLACES + f"%t = frag.gather %x[%pb, %pi, %pj] masked : MEMORY, {_INDICES}"
        " -> !frag.tile<8x64xE>" + _TO_Y,
        False,
    ),
    "scatter": (
        _PLACES + _FROM_Y + "frag.scatter %t, %x[%pb, %pi, %pj] masked"
        f" : !frag.tile<8x64xE>, MEMORY, {_INDICES}",
        True,
    ),
    "atomic": (
        _FROM_Y + "frag.atomic add %t, %x[%b, %i, %j] masked"
        " : !frag.tile<8x64xE>, MEMORY, index, index, index",
        True,
    ),
    "cp-async": (
        _ALLOC + f"frag.copy async %x[%b, %i, %j] to %s[] masked : MEMORY to {_SHARED}"
        + _WAIT + _TO_Y,
        False,
    ),
    "subview": (
        "%v = memref.subview %x[%b, %i, %j] [1, 8, 64] [1, 1, 1] : MEMORY to"
        " memref<8x64xE, strided<[?, 1], offset: ?>>\n"
        "%t = frag.load %v[0, 0] : memref<8x64xE, strided<[?, 1], offset: ?>>"
        " -> !frag.tile<8x64xE>" + _TO_Y,
        False,
    ),
}  # fmt: skip
_WHOLE = """
#m = affine_map<(b, i, j) -> (b, i, j)>
func.func @copy(%x: FROM, %y: TO) {
  linalg.generic {indexing_maps = [#m, #m],
                  iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : FROM) outs(%y : TO) {
  ^bb0(%a: E, %o: E):
    linalg.yield %a : E
  }
  func.return
}
"""
_PRODUCT = """
func.func @product(%a: memref<2x64x16xf16>, %b: memref<2x16x64xf16>, %x: MEMORY) {
  frag.matmul %a, %b into %x : memref<2x64x16xf16>, memref<2x16x64xf16> into MEMORY
  func.return
}
"""
WHOLE = ("read-all", "write-all", "product")


def program(access: str, memory: Memory, element: str) -> str:
    """Of one tile, which is as high as memory, or 8 rows."""
    size = np.dtype(ELEMENTS[element]).itemsize
    high = min(8, memory.shape(size)[1])
    text = _HEAD.replace("BODY", ACCESSES[access][0]).replace("MEMORY", memory.named(element, size))
    return text.replace("E", element).replace("8x", f"{high}x").replace(" 8,", f" {high},")


def tile_access(name: str, memory: Memory, element: str, target: str) -> list[str]:
    """One tile at the end of the last matrix."""
    kernel = fragir.compile(program(name, memory, element), target=target)
    writes, dtype = ACCESSES[name][1], ELEMENTS[element]
    big = memory.array(dtype)
    tile = (min(8, big.shape[1]), 64)
    begin = [n - t for n, t in zip(big.shape, (1, *tile), strict=True)]
    part = np.s_[begin[0], begin[1] :, begin[2] :]
    given = np.arange(prod(tile)).reshape(tile).astype(dtype)
    small = given if writes else np.zeros(tile, dtype)
    if not writes:
        big[part] = given
    rows, columns = np.indices(tile, np.int32)
    every = (np.full(tile, begin[0]), rows + begin[1], columns + begin[2])
    places = [place.astype(np.int32) for place in every]
    kernel(big, small, places[1][:, 0].copy(), *places, *begin, on="emulator")
    wrong = int(np.sum(big[part] != given)) + int(np.sum(small != given))
    return [f"{wrong} elements are wrong"] if wrong else []


def whole_access(name: str, memory: Memory, element: str, target: str) -> list[str]:
    """All elements, which are few and far apart."""
    if name == "product":
        element = "f32"
    dtype = ELEMENTS[element]
    type_ = memory.named(element, np.dtype(dtype).itemsize)
    big, rng = memory.array(dtype), np.random.default_rng(1)
    if name == "product":
        kernel = fragir.compile(_PRODUCT.replace("MEMORY", type_), target=target)
        a, b = (rng.integers(-2, 3, n).astype(np.float16) for n in ((2, 64, 16), (2, 16, 64)))
        kernel(a, b, big, on="emulator")
        wanted = a.astype(np.float32) @ b.astype(np.float32)
        return [] if np.array_equal(big, wanted) else ["the product is wrong"]
    few = "memref<?x?x?xE>" if "?x?x?" in type_ else "memref<2x64x64xE>"
    ways = ("FROM", "TO") if name == "read-all" else ("TO", "FROM")
    text = _WHOLE.replace(ways[0], type_).replace(ways[1], few).replace("E", element)
    kernel = fragir.compile(text, target=target)
    small, wanted = np.zeros(FEW, dtype), rng.integers(-99, 99, FEW).astype(dtype)
    source, result = (big, small) if name == "read-all" else (small, big)
    source[...] = wanted
    kernel(source, result, on="emulator")
    return [] if np.array_equal(result, wanted) else ["elements are wrong"]


def _cases() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for number, memory in enumerate(MEMORIES):
        few = MEMORIES[memory].strides is not None
        for at, access in enumerate((*ACCESSES, *(WHOLE if few else ()))):
            for turn, target in enumerate(TARGETS):
                element = list(ELEMENTS)[(number + at + 2 * turn) % len(ELEMENTS)]
                # a size or stride that a launch says has 32 bits
                refused = access == "atomic" or memory in ("long-rows", *SAID)
                found.append(
                    (access, memory, "f32" if refused and element == "i8" else element, target)
                )
    return found


def tasks(plan: Plan) -> Sequence[Any]:
    return sample(_cases(), plan)


def run(task: Task) -> Result:
    access, memory, element, target = task.what
    check = whole_access if access in WHOLE else tile_access
    found = check(access, MEMORIES[memory], element, target)
    return {"findings": [f"{access} of {memory}, {element}, {target}: {each}" for each in found]}


SWEEP = Sweep(tasks, run, seconds=120.0, memory=12 << 30)
