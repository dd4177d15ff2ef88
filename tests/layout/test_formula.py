"""Formulas in the PTX ISA's notation, against the fragments they describe."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.layout import Axis, Condition, Layout, LayoutError, Mode, from_formula, layout

Place = Callable[[int, int, int], tuple[int, int]]

HEAD = """
groupID           = %laneid >> 2
threadID_in_group = %laneid % 4
"""

# PTX ISA 9.2, section 9.7.14.5: the formula as on the page, and g = lane >> 2, t = lane & 3, i to
# (row, col) as it must come out, written independently of it.
FRAGMENTS: list[tuple[str, str, int, Place]] = [
    (
        "m16n8k16 f16 A",
        """
row =      groupID            for ai where  0 <= i < 2 || 4 <= i < 6
          groupID + 8         Otherwise

col =  (threadID_in_group * 2) + (i & 0x1)          for ai where i <  4
(threadID_in_group * 2) + (i & 0x1) + 8      for ai where i >= 4
""",
        8,
        lambda g, t, i: (g + 8 * (i >> 1 & 1), 2 * t + (i & 1) + 8 * (i >> 2)),
    ),
    (
        "m16n8k16 f16 B",
        """
row =  (threadID_in_group * 2) + (i & 0x1)           for bi where i <  2
       (threadID_in_group * 2) + (i & 0x1) + 8       for bi where i >= 2

col = groupID
""",
        4,
        lambda g, t, i: (2 * t + (i & 1) + 8 * (i >> 1), g),
    ),
    (
        "m16n8 accumulator",
        """
row =      groupID                               for ci where i <  2
          groupID + 8                             for ci where i >= 2

col =  (threadID_in_group * 2) + (i & 0x1)        for ci where i = {0,..,3}
""",
        4,
        lambda g, t, i: (g + 8 * (i >> 1), 2 * t + (i & 1)),
    ),
    (
        "m16n8k8 tf32 A",
        """
row =      groupID            for a0 and a2
           groupID + 8        for a1 and a3

col =  threadID_in_group       for a0 and a1
       threadID_in_group + 4   for a2 and a3
""",
        4,
        lambda g, t, i: (g + 8 * (i & 1), t + 4 * (i >> 1)),
    ),
    (
        "m16n8k8 tf32 B",
        """
row =  threadID_in_group         for b0
       threadID_in_group + 4     for b1
col =  groupID
""",
        2,
        lambda g, t, i: (t + 4 * i, g),
    ),
    (
        "m16n8k32 s8 A",
        """
row =      groupID                                          for ai where  0 <= i < 4 || 8 <= i < 12
          groupID + 8                                      otherwise

col =  (threadID_in_group * 4) + (i & 0x3)                  for ai where i < 8
      (threadID_in_group * 4) + (i & 0x3) + 16             for ai where i >= 8
""",
        16,
        lambda g, t, i: (g + 8 * (i >> 2 & 1), 4 * t + (i & 3) + 16 * (i >> 3)),
    ),
    (
        "m16n8k64 s4 B",
        """
row =  (threadID_in_group * 8) + (i & 0x7)          for bi where i <  8
       (threadID_in_group * 8) + (i & 0x7) + 32     for bi where i >= 8
col =  groupID
""",
        16,
        lambda g, t, i: (8 * t + (i & 7) + 32 * (i >> 3), g),
    ),
    (
        "m8n8k16 s8 A",
        "row = groupID; col = (threadID_in_group * 4) + i  for ai where i = {0,..,3}",
        4,
        lambda g, t, i: (g, 4 * t + i),
    ),
    (
        "m8n8k4 f64 A",
        "row = groupID for any ai; col = threadID_in_group for any a_i",
        1,
        lambda g, t, i: (g, t),
    ),
    (
        "m8n8k4 f16 B .row",
        """
row =   %laneid % 4
col =          i      if %laneid < 16
             i+4      otherwise
""",
        4,
        lambda g, t, i: (t, i + 4 * (g >> 2)),
    ),
    (
        "m8n8k4 f32 C",
        """
row =            X           if %laneid < 16
                X + 4        otherwise
                where X = (%laneid & 0b1) + (i & 0b10)  for ci where i = {0,..,7}

col = (i & 0b100) + (%laneid & 0b10) + (i & 0b1)            for ci where i = {0,..,7}
""",
        8,
        lambda g, t, i: ((t & 1) + (i & 2) + 4 * (g >> 2), (i & 4) + (t & 2) + (i & 1)),
    ),
]


@pytest.mark.parametrize(("text", "elements", "place"), [f[1:] for f in FRAGMENTS])
def test_formulas_of_the_isa(text: str, elements: int, place: Place) -> None:
    value = from_formula(HEAD + text, elements=elements)
    assert value.names == ("lane", "element")
    assert value.dims == ("row", "col")
    for lane in range(32):
        for i in range(elements):
            assert value(lane=lane, element=i) == place(lane >> 2, lane & 3, i), (lane, i)
    assert from_formula(value.formula()) == value


def test_elements_are_read_off_ranges_and_names() -> None:
    for name, text, elements, _ in FRAGMENTS:
        if name in ("m16n8 accumulator", "m16n8k8 tf32 A", "m16n8k8 tf32 B", "m8n8k16 s8 A"):
            assert from_formula(HEAD + text).size("element") == elements


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=[name for name, *_ in FRAGMENTS])
def test_elements_are_found_where_one_number_fits(fragment: tuple[str, str, int, Place]) -> None:
    """A pasted formula means without `elements` what it means with the right number."""
    name, text, elements, _ = fragment
    if name == "m8n8k4 f16 B .row":  # four lanes hold each element: no number is right by itself
        with pytest.raises(LayoutError, match="how many elements"):
            from_formula(HEAD + text)
        return
    found = from_formula(HEAD + text).array()
    expected = from_formula(HEAD + text, elements=elements).array()
    assert found.reshape(expected.shape).tolist() == expected.tolist()


def test_number_of_elements_is_not_guessed() -> None:
    with pytest.raises(
        LayoutError, match=r"how many elements a lane holds; 2, 4, 6, 8 \.\.\. would"
    ):
        from_formula("row = %laneid >> 2; col = %laneid % 4 * 2 + i % 2 + i / 2 * 8")
    with pytest.raises(LayoutError, match="how many elements a lane holds\\."):
        from_formula("row = %laneid & 7; col = i & 3")


def test_on_one_line() -> None:
    value = from_formula(
        "groupID = %laneid >> 2; threadID_in_group = %laneid % 4; row = groupID for ai where "
        "0 <= i < 2 || 4 <= i < 6; groupID + 8 Otherwise; col = (threadID_in_group * 2) + (i & 0x1)"
        " for ai where i < 4; (threadID_in_group * 2) + (i & 0x1) + 8 for ai where i >= 4",
        elements=8,
    )
    assert str(value) == "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]"


def test_broken_lines_and_words() -> None:
    value = from_formula(
        "row = (%laneid\n / 4) +\n 8 * (i\n >> 1)\n for all ci\ncol = 2 * (%laneid - 4 * (%laneid"
        " / 4)) + (i ^ (i & 2)) where not (i != i) and (i < 2 or 2 <= i < 4)",
        elements=4,
    )
    assert str(value) == "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]"


def test_other_axes_and_predicates() -> None:
    value = from_formula(
        "row = 16 * %warpid + i for %warpid = {0,..,2}, i = {0, 1}\nheld where %laneid < 16"
    )
    assert str(value) == ("lane [32:0] warp [3:16] element [2:1] where lane/16%2==0 dims (row)")


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    rank = draw(st.integers(1, 3))
    names = draw(st.permutations(("lane", "element", "warp", "block")))
    numbers = st.tuples(*[st.integers(0, 9)] * rank)
    mode = st.builds(Mode, st.integers(1, 4), numbers)
    axes = [
        Axis(name, tuple(draw(st.lists(mode, max_size=2))))
        for name in names[: draw(st.integers(1, 3))]
    ]
    conditions = [
        Condition(a.name, d, m, v)
        for a in axes
        for d in (1, 2, 3)
        for m in (2, 3)
        for v in range(m)
        if v * d < a.size
    ]
    where = draw(st.lists(st.sampled_from(conditions), max_size=2)) if conditions else []
    return layout(*axes, offset=draw(numbers), where=where)


@given(layouts())
@settings(deadline=None, max_examples=200)
def test_printed_formulas_read_back(value: Layout) -> None:
    again = from_formula(value.formula())
    assert again.names == value.names
    assert again.equivalent(value)
    if not value.where:
        assert again == value.simplified()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row = %laneid ** 2", r"cannot be read from '\*' on"),
        ("row = (%laneid", "from the end on"),
        ("row = lain", "does not say what lain is"),
        ("row = row + 1", "does not say what row, col is"),
        ("x = y; y = x; row = x", "defines x by itself"),
        ("row = 1; row = 2", "defines row twice"),
        ("groupID + 8 otherwise", "begins without a name"),
        ("row = 5 if %laneid < 16", "does not say what row is at lane 16"),
        ("row = %laneid % 3", "lane 3"),
        ("row = %laneid / (i - i) for i = {0,..,3}", "cannot be computed"),
        ("row = 4 - %laneid", "goes back"),
        ("row = %laneid * i for i = {0,..,3}", "at lane 1, element 1 it gives"),
        ("row = i for i < {0,..,3}", "cannot be read"),
        ("row = i where i < {0,..,3}", "A set stands behind '='"),
        ("row = i for i = {0,..,3}; held where i = {0, 1, 3}", "No condition"),
        ("row = i for i = {0,..,3}; held where i < %laneid", "about one variable"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        from_formula(text)


def test_syntax_errors_name_the_place() -> None:
    with pytest.raises(LayoutError) as caught:
        from_formula("row = %laneid >> 2\ncol = (i & & 1)")
    assert (caught.value.line, caught.value.col) == (2, 12)
    assert caught.value.source == "col = (i & & 1)"


@pytest.mark.parametrize(
    ("row", "stride", "offset"),
    [
        ("%laneid + 32", 1, 32),
        ("%laneid - 0", 1, 0),
        ("%laneid * 3", 3, 0),
        ("%laneid << 2", 4, 0),
        ("%laneid ^ 64", 1, 64),  # bits that no lane has
        ("%laneid | 32", 1, 32),
        ("(%laneid | 32) & 31", 1, 0),
    ],
)
def test_operators(row: str, stride: int, offset: int) -> None:
    value = from_formula(f"row = {row}", dims=("row",))
    assert [value(lane=lane) for lane in range(32)] == [(stride * x + offset,) for x in range(32)]


def test_axes_named_like_a_variable_are_refused() -> None:
    with pytest.raises(LayoutError, match="In a formula i means element"):
        Layout.parse("i [4:(1,0)]").formula()
