"""Products with scales of several matrices: of a batch, of groups of rows, and of sums in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func

import fragir
from benchmarks.sweeps.pipelines import GROUPS, NAMES, Config, check, data, text_of
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.passes.tiling.choosing import choice_for
from fragir.reference import evaluate
from fragir.reference.formats import encode

NN, NT, TN, TT = (False, False), (False, True), (True, False), (True, True)
SIZES, SMALL = (80, 144, 208), (48, 80, 112)


def config(target: str, schedule: str, element: str, scales: str, **more: Any) -> Config:
    made = Config(target, schedule, element, NT, "none", SIZES, False, scales=scales)
    return made._replace(**more)


CLUSTER, PING_PONG = "roles, cluster = 2 : i64", "roles, consumers = 2 : i64"
E4M3, E5M2 = "f8E4M3FN", "f8E5M2"
# a sample: `fragir sweep pipelines` has the grid
CASES = [
    # a batch
    config("sm_90a", "", E4M3, "blocks", sizes=SMALL, batch="abcxy", out="bf16"),
    config("sm_90a", CLUSTER, E4M3, "blocks across", sizes=SMALL, batch="acy", static=True),
    config(
        "sm_90a", "roles", "bf16", "numbers", sizes=SMALL, batch="abcx", turned=NN, epilogue="old"
    ),
    # groups of rows
    config("sm_90a", "roles", E4M3, "blocks across", batch="xy", groups=True),
    config("sm_90a", PING_PONG, E4M3, "lines", groups=True, static=True),
    config("sm_90a", "roles", E5M2, "numbers", batch="xy", groups=True, turned=NN),
    config("sm_89", "", E4M3, "blocks", batch="y", groups=True, epilogue="old"),
    config("sm_120a", PING_PONG, "bf16", "lines", groups=True, turned=TT, sizes=SMALL),
    # parts of sums
    config(
        "sm_120a",
        "roles",
        "f16",
        "lines",
        parts="stream_k = 3 : i64",
        batch="abcx",
        turned=TN,
        sizes=SMALL,
    ),
    config("sm_90a", "roles", E4M3, "blocks", parts="stream_k = 3 : i64"),
    config(
        "sm_90a", "roles", E4M3, "lines", parts="split_k = 2 : i64", epilogue="old", through=False
    ),
    config(
        "sm_90a", CLUSTER, E5M2, "numbers", parts="split_k = 2 : i64", epilogue="old", through=False
    ),
    config(
        "sm_80",
        "",
        "f16",
        "promoted",
        parts="split_k = 3 : i64",
        sizes=SMALL,
        batch="abc",
        turned=NN,
    ),
]


def name(case: Config) -> str:
    words = (case.target, case.schedule, case.scales, case.parts, case.batch)
    return " ".join(words) + " groups" * case.groups


@pytest.mark.parametrize("case", CASES, ids=name)
def test_products(case: Config) -> None:
    """Exact, silent in every check under three schedules, and nothing that ptxas says."""
    assert check(case) == []


def function_of(text: str) -> func.FuncOp:
    return next(op for op in fragir.parse(text).walk() if isinstance(op, func.FuncOp))


def random_data(case: Config, seed: int) -> list[Any]:
    """Arguments of any numbers in place of whole ones."""
    rng = np.random.default_rng(seed)

    def normal(like: Any) -> Any:
        shape: tuple[int, ...] = like.shape
        return rng.standard_normal(shape)

    def scales(like: Any) -> Any:
        shape: tuple[int, ...] = like.shape
        return rng.uniform(0.5, 2, shape).astype(np.float32)

    arguments, _ = data(case)
    for at in (0, 1):
        arguments[at] = encode(normal(arguments[at]), NAMES.get(case.element, case.element))
    count = 3 + (case.epilogue == "bias")
    arguments[2] = normal(arguments[2]).astype(np.float32)
    for at, value in enumerate(arguments[count:], count):
        if isinstance(value, float):
            arguments[at] = float(np.float32(rng.uniform(0.5, 2)))
        elif value.dtype == np.float32 and value.any():  # scales, not memory for parts
            arguments[at] = scales(value)
    if case.groups:
        ends = np.sort(rng.integers(0, case.sizes[0] + 1, len(GROUPS)))
        arguments[-1] = ends.astype(np.int32)
    return arguments


def within_bound(case: Config, seed: int, **how: Any) -> None:
    text = text_of(case)
    given = random_data(case, seed)
    wanted = evaluate(function_of(text), given, target=case.target)[2]
    assert wanted is not None
    given[2] = given[2].copy()
    kernel = fragir.compile(text, target=case.target)
    assert not kernel(*given, on="emulator", check=True, **how).findings
    error = np.abs(given[2].astype(np.float64) - wanted.value)
    assert (error <= wanted.bound).all()
    terms = np.abs(wanted.value).max(initial=0.0)
    assert wanted.bound.max(initial=0.0) <= 0.5 * max(1.0, terms)  # and it says something


FORMS = ("numbers", "rows", "columns", "blocks", "blocks across", "lines", "promoted")
SEVERAL = ("abcxy", "abcx", "bcy", "acxy", "abc")


@st.composite
def products(draw: st.DrawFn) -> Config:
    """Small products of any form on any road."""
    target, schedule = draw(
        st.sampled_from((("sm_90a", ""), ("sm_90a", "roles"), ("sm_89", ""), ("sm_120a", "roles")))
    )
    element = draw(st.sampled_from((E4M3, E5M2)))
    kind = draw(st.sampled_from(("batch", "groups", "parts")))
    sizes = draw(st.tuples(*[st.integers(1, 6)] * 3))
    m, n, k = (16 * size for size in sizes)
    case = Config(
        target,
        schedule,
        element,
        draw(st.sampled_from((NN, NT, TN, TT))),
        "none",
        # rows of multiples of 16 bytes, for roles; others without
        (m, n, k) if schedule else (m - draw(st.integers(0, 15)), n - draw(st.integers(0, 15)), k),
        False,
        scales=draw(st.sampled_from(FORMS)),
    )
    if kind == "batch" or (kind == "parts" and draw(st.booleans())):
        case = case._replace(batch=draw(st.sampled_from(SEVERAL)))
    if kind == "groups":
        return case._replace(groups=True, batch=draw(st.sampled_from(("", "xy"))))
    if kind == "parts":
        parts = draw(st.sampled_from(("split_k = 2 : i64", "stream_k = 2 : i64")))
        through = draw(st.booleans())
        return case._replace(parts=parts, through=through, epilogue="none" if through else "old")
    return case


@settings(max_examples=8, deadline=None)
@given(products(), st.integers(0, 99), st.sampled_from((None, 1, 2)), st.integers(1, 4))
def test_sums_are_within_the_bound(
    case: Config, seed: int, schedule: int | None, resident: int
) -> None:
    within_bound(case, seed, schedule=schedule, resident=resident)


@pytest.mark.parametrize("words", ["split_k = 3 : i64", "stream_k = 3 : i64"])
@pytest.mark.parametrize("scales", ["rows", "blocks"])
@pytest.mark.parametrize("through", [True, False])
def test_parts_are_within_the_bound(words: str, scales: str, through: bool) -> None:
    """Of sums in f16, whose own error is small beside those of scaling and adding."""
    case = config("sm_80", "", "f16", scales, parts=words, through=through, batch="abcxy")
    within_bound(case._replace(epilogue="none" if through else "old"), 3, resident=5)


def test_a_part_that_is_scaled_late_is_another() -> None:
    """The bound of parts is not one that anything lies in: a scale less is outside."""
    case = config("sm_80", "", "f16", "rows", parts="split_k = 3 : i64")
    text, given = text_of(case), random_data(case, 1)
    wanted = evaluate(function_of(text), given, target="sm_80")[2]
    assert wanted is not None
    given[3] = given[3] * np.float32(1.01)
    fragir.compile(text, target="sm_80")(*given, on="emulator")
    assert (np.abs(given[2] - wanted.value) > wanted.bound).mean() > 0.9


@pytest.mark.parametrize("seed", range(6))
def test_infinities_and_what_overflows(seed: int) -> None:
    """What is certain of infinities, NaN and numbers near the largest: parts may overflow alone."""
    rng = np.random.default_rng(seed)
    through = bool(seed % 2)
    scales = ("rows", "lines", "numbers")[seed % 3]
    case = config("sm_80", "", "f16", scales, turned=NN, sizes=SMALL, through=through)
    case = case._replace(parts="split_k = 2 : i64", epilogue="none" if through else "old")
    given = random_data(case, seed)
    for matrix in given[:2]:
        flat = matrix.reshape(-1)
        flat[rng.choice(flat.size, 9, replace=False)] = [np.inf, -np.inf, np.nan, *[60000] * 6]
    for at in (3, 4):
        if not isinstance(given[at], float):
            flat = given[at].reshape(-1)
            flat[rng.integers(0, flat.size)] = rng.choice([np.inf, 1e38, 0.0, -2.0, 1e-40])
    text = text_of(case)
    wanted = evaluate(function_of(text), given, target="sm_80")[2]
    assert wanted is not None
    fragir.compile(text, target="sm_80")(*given, on="emulator")
    found = given[2].astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(found - wanted.value) <= wanted.bound
    alike = (found == wanted.value) | (np.isnan(found) & wanted.nan)
    assert (near | alike | wanted.unknown).all()
    assert not wanted.unknown.all()


def test_names() -> None:
    """A launch knows the sizes of matrices from scales as from other memory."""
    text = """
func.func @gemm(%a: memref<?x?xf8E4M3FN>, %b: memref<?x?x?xf8E4M3FN>, %c: memref<?x?xf32>,
                %x: memref<?x?xf32>, %y: memref<?x?x?xf32>, %ends: memref<?xi32>) {
  frag.matmul %a scaled %x by [1, 128], %b transposed scaled %y transposed by [128, 128] into %c
      groups %ends : memref<?x?xf8E4M3FN> scaled memref<?x?xf32>,
      memref<?x?x?xf8E4M3FN> scaled memref<?x?x?xf32> into memref<?x?xf32> groups memref<?xi32>
  func.return
}
"""
    kernel = fragir.compile(text, target="sm_90a")
    assert [argument.dims for argument in kernel.signature] == [
        ("m", "k"),
        ("g", "n", "k"),
        ("m", "n"),
        ("m", "k_by_128"),
        ("g", "n_by_128", "k_by_128"),
        ("g",),
    ]
    shapes: list[Any] = [(16, 128), (3, 16, 128), (16, 16), (16, 1), (2, 1, 1), (3,)]
    kinds = (np.uint8, np.uint8, np.float32, np.float32, np.float32, np.int32)
    arrays = [np.zeros(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    with pytest.raises(FragirError, match="g"):
        kernel(*arrays, on="emulator")


@pytest.mark.parametrize(
    "case",
    [
        config("sm_90a", "", E4M3, "blocks", batch="abcxy", static=True, sizes=(1024, 1024, 1024)),
        config("sm_90a", "", E4M3, "rows", parts="split_k = 2 : i64", static=True),
        config("sm_90a", "roles", E4M3, "blocks", batch="y", groups=True, static=True),
    ],
    ids=name,
)
def test_the_choice(case: Config) -> None:
    """A turn is one partial sum, whatever is chosen."""
    (product,) = [op for op in fragir.parse(text_of(case)).walk() if isinstance(op, frag.MatmulOp)]
    schedule = choice_for(product, "sm_90a").schedule
    assert product.promotion() in (None, schedule.tile[2])


@pytest.mark.parametrize("scales", ["blocks", "rows"])
@pytest.mark.parametrize("words", ["stages = 3 : i64", "tile = array<i64: 64, 64, 32>", ""])
def test_parts_that_are_chosen(scales: str, words: str) -> None:
    """Of few tiles and a long K; the tile suits the scales."""
    case = config("sm_90a", words, E4M3, scales, static=True, parts="split_k = 8 : i64", out="bf16")
    text = text_of(case._replace(sizes=(128, 128, 65536)))
    text = text.replace(", split_k = 8 : i64", "").replace("split_k = 8 : i64", "")
    (product,) = [op for op in fragir.parse(text).walk() if isinstance(op, frag.MatmulOp)]
    assert product.parts() is None
    schedule = choice_for(product, "sm_90a").schedule
    assert schedule.parts is not None
    assert schedule.parts[0] > 1
    assert product.promotion() in (None, schedule.tile[2])
