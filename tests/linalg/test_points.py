"""Kernels that compute each element from its place: any loops, maps and bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import fragir
from tests.examples.judged import judged
from tests.linalg.generics import contraction, generic, multiply_add

SIZES = {"m": 37, "n": 21, "k": 19, "b": 3, "p": 5, "q": 7}
ARRAYS: dict[str, Any] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
}
TYPES = (("f32", "f32", "f32"), ("f16", "f16", "f32"), ("i8", "i8", "i32"), ("f64", "f64", "f64"))
SPECS = (
    "mk,kn->mn",
    "bmk,bkn->bmn",
    "mpk,pkn->mn",
    "mkb,kbn->bmn",
    "mbk,kpn->mbpn",
    "mk,k->m",
    "k,kn->n",
    "k,k->",
    "m,n->mn",
    "mpkq,nkq->mpn",
    "mkq,qnk->nm",
    "bmk,bk->bm",
)


def einsum(spec: str) -> Callable[..., Any]:
    def product(a: Any, b: Any) -> Any:
        return np.einsum(spec, a, b)

    return product


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("types", TYPES, ids=lambda types: types[0])
def test_contractions(spec: str, types: tuple[str, str, str]) -> None:
    """Any loops of batches, rows, columns and sums, in any order."""
    text = contraction(spec, SIZES, types)
    judged(text, {}, {"o": einsum(spec)}, target="sm_80", inputs="normal")


@pytest.mark.parametrize(
    ("spec", "dynamic"),
    [("mpk,pkn->mn", "mnkp"), ("mk,k->m", "k"), ("k,k->", "k"), ("mbk,kpn->mbpn", "mbpn")],
)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_sizes_of_a_launch(spec: str, dynamic: str, target: str) -> None:
    """And what the output holds counts."""
    text = contraction(spec, SIZES, ("f16", "f16", "f32"), dynamic, old=True)
    kernel = fragir.compile(text, target=target)
    rng = np.random.default_rng(0)
    (a, b), o = spec.split("->")[0].split(","), spec.split("->")[1]
    x, y, z = (
        np.asarray(rng.integers(-4, 5, [SIZES[c] for c in part]), type_)
        for part, type_ in ((a, np.float16), (b, np.float16), (o, np.float32))
    )
    wanted = z + np.einsum(spec, x.astype(np.float32), y.astype(np.float32))
    assert kernel(x, y, z, on="emulator", check=True).findings == []
    assert np.array_equal(z, wanted)


def test_names_of_sizes() -> None:
    """Sizes that a loop has in common have one name."""
    kernel = fragir.compile(
        contraction("mk,k->m", SIZES, ("f32", "f32", "f32"), "mk"), target="sm_80"
    )
    assert [argument.dims for argument in kernel.signature] == [
        ("n0", "n1"),
        ("n1",),
        ("n0",),
    ]


# Convolutions ------------------------------------------------------------------------------------


def convolution(
    shape: tuple[int, int, int, int, int],
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    types: tuple[str, str, str],
    channels_last: bool,
) -> tuple[str, list[Any], Any]:
    """Of n images, h x w places, c channels, f filters: the function, arrays, the result."""
    n, h, w, c, f = shape
    (kh, kw), (sh, sw), (dh, dw) = window, strides, dilations
    height, width = (h - 1) * sh + (kh - 1) * dh + 1, (w - 1) * sw + (kw - 1) * dw + 1
    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(-3, 4, size).astype(ARRAYS[type_])
        for size, type_ in (((n, height, width, c), types[0]), ((kh, kw, c, f), types[1]))
    )
    wanted = np.zeros((n, h, w, f), ARRAYS[types[2]])
    for i, j in np.ndindex(kh, kw):
        rows = slice(i * dh, i * dh + (h - 1) * sh + 1, sh)
        part = x[:, rows, j * dw : j * dw + (w - 1) * sw + 1 : sw].astype(wanted.dtype)
        wanted += np.einsum("nhwc,cf->nhwf", part, y[i, j].astype(wanted.dtype))
    if channels_last:
        at = f"d1 * {sh} + d4 * {dh}, d2 * {sw} + d5 * {dw}"
        maps = (f"d0, {at}, d6", "d4, d5, d6, d3", "d0, d1, d2, d3")
    else:
        at = f"d2 * {sh} + d5 * {dh}, d3 * {sw} + d6 * {dw}"
        maps = (f"d0, d4, {at}", "d1, d4, d5, d6", "d0, d1, d2, d3")
        x, y = x.transpose(0, 3, 1, 2), y.transpose(3, 2, 0, 1)
        wanted = wanted.transpose(0, 3, 1, 2)
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    o = np.zeros(wanted.shape, wanted.dtype)
    operands = [(n, a.shape, t) for n, a, t in zip("xyo", (x, y, o), types, strict=True)]
    zero = "0.0" if types[2][0] == "f" else "0"
    text = generic(operands, maps, "pppprrr", multiply_add(*types), 1, zero)
    return text, [x, y, o], wanted


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("types", TYPES[:3], ids=lambda types: types[0])
@pytest.mark.parametrize(
    ("shape", "window", "strides", "dilations"),
    [
        ((2, 7, 5, 3, 6), (3, 3), (1, 1), (1, 1)),
        ((1, 6, 9, 32, 20), (3, 2), (2, 1), (1, 2)),
        ((1, 8, 8, 40, 17), (1, 1), (1, 1), (1, 1)),
    ],
)
def test_convolutions(
    shape: Any, window: Any, strides: Any, dilations: Any, types: Any, channels_last: bool
) -> None:
    text, arrays, wanted = convolution(shape, window, strides, dilations, types, channels_last)
    kernel = fragir.compile(text, target="sm_90a")
    assert ("mma.sync" in kernel.ptx) == (types[0] != "f32")
    assert kernel(*arrays, on="emulator", check=True).findings == []
    assert np.array_equal(arrays[-1], wanted)


def test_a_convolution_within_the_bound() -> None:
    text, arrays, _ = convolution((1, 6, 9, 32, 20), (3, 2), (2, 1), (1, 2), TYPES[1], True)
    o = arrays[-1]

    def answer(x: Any, y: Any) -> Any:
        total = np.zeros(o.shape)
        for i, j in np.ndindex(3, 2):
            part = x[:, i : i + 11 : 2, 2 * j : 2 * j + 9]
            total += np.einsum("nhwc,cf->nhwf", part, y[i, j])
        return total

    judged(text, {}, {"o": answer}, target="sm_80")


# Reductions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("shape", "kept", "element", "name", "start"),
    [
        ((5, 700), [0], "f32", "addf", "0.0"),
        ((9000,), [], "f32", "addf", "0.0"),
        ((13, 17, 11), [2], "f32", "addf", None),
        ((13, 17, 11), [1], "f32", "maximumf", "-1.0"),
        ((3, 12000), [0], "f32", "maximumf", None),
        ((6, 5, 4, 3), [3, 0], "i32", "addi", "0"),
        ((300, 7), [1], "f16", "addf", None),
        ((0, 7), [1], "f32", "addf", "0.0"),
        ((7, 0), [0], "f32", "addf", None),
    ],
)
def test_reductions(
    shape: Sequence[int],
    kept: Sequence[int],
    element: str,
    name: str,
    start: str | None,
    dynamic: bool,
) -> None:
    """To any of its dimensions, also none; of long rows; onto what the output holds."""
    sizes = (
        [["?"] * len(shape), ["?"] * len(kept)] if dynamic else [shape, [shape[d] for d in kept]]
    )
    body = f"  ^bb0(%u: {element}, %old: {element}):\n    %s = arith.{name} %old, %u : {element}\n"
    body += f"    linalg.yield %s : {element}\n"
    every = [f"d{d}" for d in range(len(shape))]
    maps = [", ".join(every), ", ".join(every[d] for d in kept)]
    iterators = "".join("p" if d in kept else "r" for d in range(len(shape)))
    operands = [("a", sizes[0], element), ("o", sizes[1], element)]
    kernel = fragir.compile(generic(operands, maps, iterators, body, 1, start), target="sm_80")
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, shape).astype(ARRAYS[element])
    o = np.asarray(rng.integers(-3, 4, [shape[d] for d in kept]), ARRAYS[element])
    function = np.maximum if name == "maximumf" else np.add
    begin = o if start is None else np.full(o.shape, float(start), o.dtype)
    gone = tuple(d for d in range(len(shape)) if d not in kept)
    rows = function.reduce(a, axis=gone)
    wanted = function(begin, rows.transpose([sorted(kept).index(d) for d in kept]))
    assert kernel(a, o, on="emulator", check=True).findings == []
    assert np.array_equal(o, wanted)


ARGMAX = """  ^bb0(%u: f32, %most: f32, %at: i32):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i32
    %more = arith.cmpf ogt, %u, %most : f32
    %a = arith.select %more, %u, %most : f32
    %b = arith.select %more, %here, %at : i32
    linalg.yield %a, %b : f32, i32
"""


def test_two_outputs() -> None:
    operands = [("x", (6, 50), "f32"), ("v", (6,), "f32"), ("i", (6,), "i32")]
    text = generic(operands, ["d0, d1", "d0", "d0"], "pr", ARGMAX, 2)
    x = np.random.default_rng(0).permutation(300).reshape(6, 50).astype(np.float32)
    given = {"x": x, "v": np.full(6, -1.0, np.float32), "i": np.zeros(6, np.int32)}

    def most(x: Any) -> Any:
        return x.max(1)

    def where(x: Any) -> Any:
        return x.argmax(1)

    answers: Mapping[str, Callable[..., Any]] = {"v": most, "i": where}
    judged(text, {}, answers, given=given)


def test_pooling() -> None:
    operands = [("x", (2, 9, 11, 5), "f32"), ("w", (3, 3), "f32"), ("o", (2, 4, 5, 5), "f32")]
    maps = ["d0, d1 * 2 + d4, d2 * 2 + d5, d3", "d4, d5", "d0, d1, d2, d3"]
    body = "  ^bb0(%u: f32, %v: f32, %old: f32):\n    %m = arith.maximumf %u, %old : f32\n"
    body += "    linalg.yield %m : f32\n"
    text = generic(operands, maps, "pppprr", body, 1, "0xFF800000")

    def answer(x: Any) -> Any:
        return np.max([x[:, i : i + 7 : 2, j : j + 9 : 2] for i, j in np.ndindex(3, 3)], axis=0)

    judged(text, {}, {"o": answer})


def test_depthwise() -> None:
    operands = [("x", (2, 8, 9, 6), "f32"), ("w", (3, 2, 6), "f32"), ("o", (2, 6, 8, 6), "f32")]
    maps = ["d0, d1 + d4, d2 + d5, d3", "d4, d5, d3", "d0, d1, d2, d3"]
    text = generic(operands, maps, "pppprr", multiply_add("f32", "f32", "f32"), 1, "0.0")

    def answer(x: Any, w: Any) -> Any:
        return sum(x[:, i : i + 6, j : j + 8] * w[i, j] for i, j in np.ndindex(3, 2))

    judged(text, {}, {"o": answer})


# Places ------------------------------------------------------------------------------------------

COPY = "  ^bb0(%u: f32, %old: f32):\n    linalg.yield %u : f32\n"


@pytest.mark.parametrize(
    ("shapes", "maps", "places"),
    [
        (((9, 9), (9,)), ("d0, d0", "d0"), np.arange(9) * 10),
        (((40,), (5, 6)), ("d0 * 7 + d1", "d0, d1"), np.add.outer(np.arange(5) * 7, np.arange(6))),
        (((5, 4), (20,)), ("d0 floordiv 4, d0 mod 4", "d0"), np.arange(20)),
        (((5, 4), (3,)), ("d0 + 1, 2", "d0"), np.arange(3) * 4 + 6),
    ],
)
def test_places(shapes: Any, maps: Sequence[str], places: Any) -> None:
    """Diagonals, windows, parts of others: by the number of each element of a."""
    operands = [("a", shapes[0], "f32"), ("o", shapes[1], "f32")]
    text = generic(operands, maps, "p" * len(shapes[1]), COPY)

    def answer(a: Any) -> Any:
        return a.reshape(-1)[places]

    judged(text, {}, {"o": answer})


def test_rows_of_a_table() -> None:
    """A body reads memory at places that it computes."""
    body = """  ^bb0(%u: i32, %old: f32):
    %a = arith.index_cast %u : i32 to index
    %b = linalg.index 1 : index
    %e = memref.load %t[%a, %b] : memref<30x12xf32>
    linalg.yield %e : f32
"""
    operands = [("i", (17,), "i32"), ("o", (17, 12), "f32")]
    text = generic(operands, ["d0", "d0, d1"], "pp", body).replace(
        "@f(", "@f(%t: memref<30x12xf32>, "
    )
    places = np.random.default_rng(0).integers(0, 30, 17).astype(np.int32)

    def answer(t: Any) -> Any:
        return t[places]

    judged(text, {}, {"o": answer}, given={"i": places})


def test_rows_of_a_table_by_long_indices() -> None:
    """As PyTorch has them: i64, also what is computed and summed in."""
    body = """  ^bb0(%x: i64, %old: f32, %sum: i64):
    %a = arith.index_cast %x : i64 to index
    %b = linalg.index 1 : index
    %e = memref.load %t[%a, %b] : memref<30x12xf32>
    %large = arith.constant 5000000000 : i64
    %y = arith.muli %x, %large : i64
    %z = arith.addi %sum, %y : i64
    linalg.yield %e, %z : f32, i64
"""
    operands = [("i", (17,), "i64"), ("o", (17, 12), "f32"), ("s", (17, 12), "i64")]
    text = generic(operands, ["d0", "d0, d1", "d0, d1"], "pp", body, 2)
    text = text.replace("@f(", "@f(%t: memref<30x12xf32>, ")
    places = np.random.default_rng(0).integers(0, 30, 17)

    def answer(t: Any) -> Any:
        return t[places]

    def total(s: Any) -> Any:
        return s + places[:, None] * 5_000_000_000

    judged(text, {}, {"o": answer, "s": total}, given={"i": places})


@pytest.mark.parametrize("kept", [[0], [1], []])
def test_long_sums(kept: list[int]) -> None:
    operands = [("a", (9, 300), "i64"), ("o", [(9, 300)[d] for d in kept], "i64")]
    body = "  ^bb0(%u: i64, %old: i64):\n    %s = arith.addi %old, %u : i64\n"
    maps = ["d0, d1", ", ".join(f"d{d}" for d in kept)]
    iterators = "".join("p" if d in kept else "r" for d in range(2))
    text = generic(operands, maps, iterators, body + "    linalg.yield %s : i64\n", 1, "0")

    def answer(a: Any) -> Any:
        return a.sum(tuple(d for d in range(2) if d not in kept))

    a = np.random.default_rng(0).integers(-1 << 50, 1 << 50, (9, 300))
    judged(text, {}, {"o": answer}, given={"a": a})
