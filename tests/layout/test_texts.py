"""Texts and layouts without limit: an answer or one clear error, at once."""

from __future__ import annotations

import random
import time

import pytest

from benchmarks.sweeps import layout_texts
from fragir import layout
from fragir.isa import lookup
from fragir.layout import Layout, LayoutError, LinearLayout, SharedLayout, Swizzle
from fragir.sweeps import Task

MANY = "9" * 5000
REFUSED = {
    "a range of 10^8": lambda: layout.from_formula(
        "row = i; col = %laneid for i = {0,..,99999999}"
    ),
    "10^9 lanes": lambda: layout.from_formula("row = %laneid; col = i", elements=2, lanes=10**9),
    "a shift by 10^12": lambda: layout.from_formula("row = 1 << 999999999999; col = %laneid"),
    "a number that doubles in 80 lines": lambda: layout.from_formula(
        "a0 = %laneid + 1\n" + "".join(f"a{n + 1} = a{n} * a{n}\n" for n in range(80)) + "row = a80"
    ),
    "deep brackets in a formula": lambda: layout.from_formula(
        "row = " + "(1 + " * 3000 + "i" + ")" * 3000 + "; col = 0 for i = {0,1}"
    ),
    "a long formula": lambda: layout.from_formula("row = i" + "\n" * 100_000),
    "deep brackets in CuTe's text": lambda: layout.from_cute("(" * 50_000, (16, 8)),
    "deep pairs in CuTe's text": lambda: layout.from_cute(
        "(" * 900 + "1" + ")" * 900 + ":1", (2, 2)
    ),
    "a long number in CuTe's text": lambda: layout.from_cute(f"{MANY}:1", dims=("a",), axes=("b",)),
    "deep brackets over F2": lambda: LinearLayout.parse('f2:{"lane": ' + "[" * 50_000),
    "a long number over F2": lambda: LinearLayout.parse(f'f2:{{"lane": [[{MANY}, 0]]}}'),
    "a long number in a layout": lambda: Layout.parse(f"lane [{MANY}:(0,1)]"),
    "spaces before a swizzle": lambda: SharedLayout.parse(
        "row [8:1]" + " " * 100_000 + "swizzle ("
    ),
    "a swizzle of 10^9 bits": lambda: Swizzle(10**9, 4, 10**9),
    "a table of 2^31": lambda: Layout.parse("lane [2147483648:(0,1)]").table(),
    "holders of 2^31": lambda: Layout.parse("lane [65536:(0,1)] element [32768:(1,0)]").inverse(
        0, 0
    ),
    "points of 2^40": lambda: layout.restrict(
        Layout.parse("lane [1099511627776:(0,1)] element [2:(1,0)] where lane%3==1"), element=1
    ),
    "a conversion of 2^31": lambda: layout.sources(
        Layout.parse("lane [32:(0,1)] element [67108864:(1,0)]"),
        Layout.parse("lane [32:(0,1)] element [67108864:(1,0)]"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    start = time.process_time()
    with pytest.raises(LayoutError) as caught:
        REFUSED[name]()
    assert time.process_time() - start < 1
    assert len(str(caught.value)) < 700


def test_answers_about_huge_layouts() -> None:
    """What modes say does not depend on how many slots there are."""
    start = time.process_time()
    huge = Layout.parse("lane [65536:(0,1)] element [32768:(1,0)]")
    assert huge.is_bijection()
    assert huge.is_bijection((32768, 65536))
    assert not huge.is_bijection((65536, 32768))
    assert not Layout.parse("lane [2147483648:(0,2)]").is_bijection()
    assert not Layout.parse("lane [2147483648:(0,1)] where lane/2%2==0").is_bijection()
    assert Layout.parse("lane [2147483648:(0,1)] where lane/2147483648%2==0").is_bijection()
    assert layout.inverse(huge).equivalent(
        Layout.parse("row [32768:(0,1)] col [65536:(1,0)] dims (lane,element)")
    )
    names = "".join(f"a{n + 1} = a{n} + a{n}\n" for n in range(40))  # 2^40 evaluations if not kept
    doubled = layout.from_formula(f"a0 = i\n{names}row = a40\ncol = %laneid for i = {{0,1}}")
    assert doubled == Layout.parse("lane [32:(0,1)] element [2:(1099511627776,0)]")
    assert time.process_time() - start < 1


def test_bijections_by_looking_at_every_slot() -> None:
    """Random layouts of few slots, with and without overlap, gaps, offsets and replication."""
    rng = random.Random(3)
    found = [0, 0]
    for _ in range(600):
        sizes = [rng.choice((1, 2, 2, 3, 4)) for _ in range(rng.choice((2, 3, 4)))]
        covered = [1, 1]
        modes: list[str] = []
        for size in sizes:
            dim = rng.randrange(2)
            stride = [0, 0]
            stride[dim] = covered[dim] if rng.random() < 0.9 else rng.choice((0, 1, 2, 3, 5))
            if rng.random() < 0.05:
                stride[1 - dim] = rng.choice((1, 2))
            covered[dim] *= size
            modes.append(f"{size}:({stride[0]},{stride[1]})")
        rng.shuffle(modes)
        cut = rng.randrange(len(modes) + 1)
        text = f"lane [{' '.join(modes[:cut])}] element [{' '.join(modes[cut:])}]"
        text += rng.choice(("", "", " offset (1,2)", " where lane/1%2==0", " where lane/64%2==0"))
        one = Layout.parse(text)
        expected = layout_texts.bijective(one)
        assert one.is_bijection() == expected, text
        found[expected] += 1
    assert min(found) > 100


def test_mutated_texts() -> None:
    """`fragir sweep layout-texts` runs many more."""
    result = layout_texts.run(Task(0, None, 1, {"batch": 60}))
    assert result["findings"] == []
    assert 5 < result["layouts"] < 60


def test_the_formula_of_a_warpgroup_names_its_threads() -> None:
    """%laneid ends at 31: 128 threads are %tid.x % 128."""
    made = lookup("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16").operands["d"].layout
    assert made is not None
    text = made.formula()
    assert "%laneid" not in text
    first, *_, last = text.splitlines()
    assert first == "thread = %tid.x % 128"
    assert last.endswith("for %tid.x = {0,..,127}, i = {0,..,11}")
    assert layout.from_formula(text) == made.simplified()


def test_the_formula_of_a_warp_is_as_before() -> None:
    text = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1)]").formula()
    assert text.startswith("row = (%laneid >> 2)\n")
