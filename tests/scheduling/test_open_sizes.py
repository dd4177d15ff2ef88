"""Schedules of products whose sizes only a launch knows: roles where tensor maps take the rows for
certain, and where no size of a sample is dearer by them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragir
from fragir.compiler import parse
from fragir.dialects import frag
from fragir.passes.tiling.choosing import choice_for
from fragir.passes.tiling.explained import explain_schedules
from fragir.passes.tiling.gemm_schedule import configuration_of
from fragir.passes.tiling.open_sizes import sample, sample_problems
from fragir.passes.tiling.schedule import schedule_for
from fragir.scheduling.choice import BETTER
from fragir.scheduling.cost import estimate

OLD = """epilogue {
  ^bb0(%sum: f32, %old: f32):
    %r = arith.addf %sum, %old : f32
    frag.yield %r : f32
  }"""


class Product(NamedTuple):
    """A product of these sizes, in words as a memref has them."""

    m: str = "?"
    n: str = "?"
    k: str = "?"
    element: str = "f16"
    out: str = "f16"
    words: str = ""
    promises: str = ""
    turned: bool = False
    groups: str = ""
    epilogue: str = ""
    rows: str = ""
    """The layout of A, if not row after row."""

    @property
    def text(self) -> str:
        """The program."""
        m, n, k, element = self.m, self.n, self.k, self.element
        a = f"memref<{m}x{k}x{element}{self.rows}>"
        matrix = f"{n}x{k}" if self.turned else f"{k}x{n}"
        many = f"{self.groups}x" if self.groups else ""
        b, c = f"memref<{many}{matrix}x{element}>", f"memref<{m}x{n}x{self.out}>"
        ends = f"memref<{self.groups}xi32>"
        argument = f", %ends: {ends}" if self.groups else ""
        grouped = (" groups %ends", f" groups {ends}") if self.groups else ("", "")
        promised = f" attributes {{frag.divisible = {{{self.promises}}}}}" if self.promises else ""
        turned = " transposed" if self.turned else ""
        return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}{argument}){promised} {{
          frag.matmul %a, %b{turned} into %c{grouped[0]} {self.words}
              : {a}, {b} into {c}{grouped[1]} {self.epilogue}
          func.return
        }}"""

    def matmul(self) -> frag.MatmulOp:
        """The operation."""
        return next(op for op in parse(self.text).walk() if isinstance(op, frag.MatmulOp))


def explained(product: Product) -> list[str]:
    (found,) = explain_schedules(parse(product.text), "sm_90a")
    return str(found).splitlines()


LAYER = Product("?", "4096", "4096")  # of a language model: as many rows as there are tokens
ANY = Product(promises="n = 8, k = 8")

# roles, cluster, roles that multiply
TABLE = [
    (LAYER, (True, 2, 1)),
    (LAYER._replace(n="14336"), (True, 2, 1)),  # 128 x 224: of 64 rows, too, one wave
    (LAYER._replace(element="f8E4M3FN", turned=True), (True, 2, 1)),
    (LAYER._replace(groups="8"), (True, 1, 1)),
    (LAYER._replace(groups="?"), (True, 1, 1)),
    (ANY, (True, 2, 1)),
    (ANY._replace(promises="n = 16, k = 16"), (True, 2, 1)),
    (ANY._replace(turned=True, promises="k = 8"), (True, 2, 1)),  # C has any rows
    (ANY._replace(promises="n = 4, k = 8"), None),
    (ANY._replace(promises=""), None),
    (LAYER._replace(n="4095"), None),
    (LAYER._replace(rows=", strided<[?, 1]>"), None),
    (LAYER._replace(rows=", strided<[4100, 1]>"), None),
    (LAYER._replace(rows=", strided<[4104, 1]>"), (True, 2, 1)),
    (LAYER._replace(words="{tile = array<i64: 128, 128, 64>}"), (True, 2, 1)),
    (LAYER._replace(words="{tile = array<i64: 128, 128, 64>, stages = 3 : i64}"), None),
    (LAYER._replace(words="{promote = 128 : i64}"), (True, 2, 1)),
    (LAYER._replace(element="f64", out="f64"), None),
]


@pytest.mark.parametrize(("product", "roles"), TABLE, ids=lambda x: str(tuple(x)) if x else "usual")
def test_roles_where_rows_are_known_to_fit(
    product: Product, roles: tuple[bool, int, int] | None
) -> None:
    op = product.matmul()
    choice = choice_for(op, "sm_90a")
    found = choice.schedule
    if roles is None:
        assert found == choice.usual == schedule_for(op, "sm_90a")
    else:
        assert (found.roles, found.cluster, found.consumers) == roles
    assert choice_for(op, "sm_80").schedule == schedule_for(op, "sm_80")


def test_names_of_sizes_are_those_of_the_program() -> None:
    text = ANY._replace(promises="inner = 8, wide = 8").text
    named = text.replace("%a: memref<?x?xf16>", '%a: memref<?x?xf16> {frag.sizes = ["t", "inner"]}')
    named = named.replace(
        "%b: memref<?x?xf16>", '%b: memref<?x?xf16> {frag.sizes = ["inner", "wide"]}'
    )

    def roles(text: str) -> bool:
        op = next(op for op in parse(text).walk() if isinstance(op, frag.MatmulOp))
        return choice_for(op, "sm_90a").schedule.roles

    assert roles(named)
    assert not roles(text)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.tuples(*[st.integers(1, 700).map(lambda n: 8 * n)] * 3),
    st.sampled_from((("f16", "f16"), ("f16", "f32"), ("bf16", "f32"), ("f8E4M3FN", "f16"))),
    st.sampled_from(("", "4", "?")),
    st.booleans(),
)
def test_no_size_of_the_sample_is_dearer(
    known: list[bool],
    sizes: tuple[int, int, int],
    types: tuple[str, str],
    groups: str,
    turned: bool,
) -> None:
    m, n, k = (str(2 * size) if is_known else "?" for size, is_known in zip(sizes, known))
    m = "?" if groups else m
    if "?" not in (m, n, k):
        m = "?"
    product = Product(m, n, k, *types, promises="n = 16, k = 16", groups=groups, turned=turned)
    op = product.matmul()
    choice = choice_for(op, "sm_90a")
    if choice.schedule == choice.usual:
        return
    found, usual = configuration_of(choice.schedule), configuration_of(choice.usual)
    problems = sample_problems(op, "sm_90a")
    assert found.problem(problems[-1]) is None
    shares = [estimate(one, found).cycles / estimate(one, usual).cycles for one in problems]
    assert max(shares) <= 1
    assert shares[-1] <= 1 / BETTER


def test_the_sample() -> None:
    """Few of each size that is not known beside many of the others, and all of them alike."""
    found = list(sample(Product("?", "?", "512").matmul()))
    assert ((64, 4096, 512), 1) in found
    assert ((4096, 64, 512), 1) in found
    assert found[-1] == ((4096, 4096, 512), 1)
    assert list(sample(LAYER._replace(groups="6").matmul()))[-1] == ((1024, 4096, 4096), 6)


@pytest.mark.parametrize("rows", [0, 1, 130, 300])
@pytest.mark.parametrize(
    "product",
    [
        Product("?", "136", "200", out="f32", epilogue=OLD),
        Product("?", "264", "72", turned=True),
        ANY,
        Product("?", "?", "?", turned=True, promises="k = 8"),
    ],
    ids=str,
)
def test_chosen_roles_are_right(product: Product, rows: int) -> None:
    kernel = fragir.compile(product.text, target="sm_90a")
    assert kernel.tensor_maps
    n, k = (int(size) if size != "?" else 88 for size in (product.n, product.k))
    if product.turned and product.n == "?":
        n = 71  # rows of C are none of a tensor map's
    rng = np.random.default_rng(rows)
    a = rng.integers(-2, 3, (rows, k)).astype(np.float16)
    b = rng.integers(-2, 3, (n, k) if product.turned else (k, n)).astype(np.float16)
    start = rng.integers(-2, 3, (rows, n))
    c: Any = start.astype(np.float32 if product.out == "f32" else np.float16)
    report = kernel(a, b, c, on="emulator", check=True)
    assert not report.findings
    wide = (x.astype(np.float32) for x in (a, b.T if product.turned else b))
    exact = np.matmul(*wide) + (start if product.epilogue else 0)
    assert (c == exact.astype(c.dtype)).all()


def test_chosen_roles_of_groups_are_right() -> None:
    kernel = fragir.compile(Product("?", "136", "72", groups="4").text, target="sm_90a")
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (300, 72)).astype(np.float16)
    b = rng.integers(-2, 3, (4, 72, 136)).astype(np.float16)
    ends = np.array([5, 5, 270, 290], np.int32)
    c = np.full((300, 136), 7, np.float16)
    report = kernel(a, b, c, ends, on="emulator", check=True)
    assert not report.findings
    first = 0
    for group, end in enumerate(ends):
        exact = a[first:end].astype(np.float32) @ b[group].astype(np.float32)
        assert (c[first:end] == exact.astype(np.float16)).all()
        first = end
    assert (c[290:] == 7).all()


@pytest.mark.parametrize("groups", ["", "3"])
def test_chosen_roles_of_scaled_products_are_right(groups: str) -> None:
    """Scales of blocks, powers of two, so that sums stay exact."""
    m, n, k = 300, 128, 256
    given = 3 if groups else 1
    many = f"{groups}x" if groups else ""
    a, b, c = f"memref<?x{k}xf16>", f"memref<{many}{n}x{k}xf16>", f"memref<?x{n}xf32>"
    rows, columns = f"memref<?x{k // 128}xf32>", f"memref<{many}{k // 128}x{n // 128}xf32>"
    ends = ("%ends", f"memref<{groups}xi32>") if groups else ("", "")
    text = f"""func.func @f(%a: {a}, %b: {b}, %c: {c}, %x: {rows}, %y: {columns}
                            {f", %ends: {ends[1]}" if groups else ""}) {{
      frag.matmul %a scaled %x by [1, 128], %b transposed scaled %y by [128, 128]
          into %c {f"groups {ends[0]}" if groups else ""}
          : {a} scaled {rows}, {b} scaled {columns} into {c} {f"groups {ends[1]}" if groups else ""}
      func.return
    }}"""
    kernel = fragir.compile(text, target="sm_90a")
    assert kernel.tensor_maps
    rng = np.random.default_rng(0)
    left = rng.integers(-2, 3, (m, k)).astype(np.float16)
    right = rng.integers(-2, 3, (given, n, k)).astype(np.float16)
    by_row = (2.0 ** rng.integers(-1, 2, (m, 2))).astype(np.float32)
    by_block = (2.0 ** rng.integers(-1, 2, (given, 2, 1))).astype(np.float32)
    limits = np.array([40, 40, m], np.int32)
    found = np.zeros((m, n), np.float32)
    arrays = [left, right, found, by_row, by_block, limits]
    if not groups:
        arrays = [left, right[0], found, by_row, by_block[0]]
    assert not kernel(*arrays, on="emulator", check=True).findings
    wide_left = left.astype(np.float32) * by_row.repeat(128, 1)
    wide_right = right.astype(np.float32) * by_block[:, :, 0].repeat(128, 1)[:, None]
    of_row = np.searchsorted(limits, np.arange(m), "right") if groups else np.zeros(m, int)
    exact = np.stack([wide_left[i] @ wide_right[of_row[i]].T for i in range(m)])
    assert (found == exact).all()


@pytest.mark.parametrize(
    "product",
    [
        LAYER,
        Product("4096", "4096", "4096", "f8E4M3FN", "bf16", "{promote = 512 : i64}"),
        Product("?", "4096", "4096", "f8E4M3FN", "f32", "{promote = 512 : i64}", groups="8"),
        ANY._replace(out="f32", epilogue=OLD),
        LAYER._replace(element="si8", out="i32"),
        LAYER._replace(groups="8", out="f32", epilogue=OLD),
    ],
    ids=lambda x: str(tuple(x)),
)
def test_chosen_roles_neither_spill_nor_wait(product: Product) -> None:
    kernel = fragir.compile(product.text, target="sm_90a")
    assert product.groups or "setmaxnreg" in kernel.ptx
    assert kernel.assembled.warnings == []
    assert kernel.notes == []


def test_it_is_explained() -> None:
    lines = explained(LAYER)
    assert lines[0].startswith("frag.matmul in f: 4096 x 4096 x 4096 (m = 4096 assumed), f16 in")
    assert lines[-1] == (
        "chosen: 128x128x64, 2x1 warpgroups, 6 stages, cooperative, clusters of 2, persistent, "
        "grouped 4, C by shared memory: 1.26 times as fast as the usual 128x128x64, 2x1 "
        "warpgroups, 3 stages; of m = 64, 256, 1024, 4096, 8192 it is slower for none"
    )
    assert sum(line.startswith("> ") for line in lines) == 1
    grouped = explained(LAYER._replace(groups="?"))
    assert grouped[0].startswith(
        "frag.matmul in f: 8 of 1024 x 4096 x 4096 (rows of a group = 1024, groups = 8 assumed)"
    )
    assert "of rows of a group = 16, 64, 256, 1024, 4096 it is slower for none" in grouped[-1]


def test_a_promise_that_would_help_is_named() -> None:
    assert explained(Product())[-1] == (
        "remark: 128x128x64, 2x1 warpgroups, 6 stages, cooperative, clusters of 2, persistent, "
        "grouped 4 would be a tenth faster or more: promise that rows are multiples of 16 bytes, "
        "frag.divisible = {k = 8, n = 8}"
    )
    assert explained(LAYER._replace(n="4095"))[-1].startswith("chosen")
    assert "k = 16" in explained(Product(n="64", element="f8E4M3FN", turned=True, out="f32"))[-1]
