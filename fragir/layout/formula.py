"""The formulas of the PTX ISA: read into layouts, and printed from them.

A formula can be pasted as it stands on the ISA's pages. Names that other lines use are definitions,
the others are the matrix dimensions. This is A of `mma.m16n8k16` for f16 (PTX ISA 9.2, section
9.7.14.5.8):

>>> a = from_formula('''
... groupID = %laneid >> 2
... threadID_in_group = %laneid % 4
... row = groupID            for ai where  0 <= i < 2 || 4 <= i < 6
...       groupID + 8        Otherwise
... col = (threadID_in_group * 2) + (i & 0x1)          for ai where i <  4
...       (threadID_in_group * 2) + (i & 0x1) + 8      for ai where i >= 4
... ''')
>>> print(a)
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]
>>> print(a.formula())
row = (%laneid >> 2) + (i >> 1) % 2 * 8
col = %laneid % 4 * 2 + i % 2 + (i >> 2) * 8 for %laneid = {0,..,31}, i = {0,..,7}
>>> from_formula(a.formula()) == a
True

A formula may exclusive-or (`^`); then the layout has modes that are:

>>> print(from_formula("row = i ^ (%laneid % 4); col = %laneid / 4 for i = {0,..,3}"))
lane [4:^(1,0) 8:(0,1)] element [4:(1,0)]

Variables are `%laneid`, `%warpid`, `i` (the element), and any that a range such as
`x = {0,..,3}` declares; each becomes an axis. Operators bind as in Python. A line `held where ...`
says which slots hold anything. What is no layout is refused at the first element that shows it:

>>> from_formula("row = %laneid / 4; col = %laneid % 4 + (i * i) for i = {0,..,3}")
Traceback (most recent call last):
...
fragir.layout.modes.LayoutError: No layout is this function: at element 3 it gives (0, 9), but \
the steps before add up to (0, 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import prod

from fragir.errors import require_whole_number
from fragir.layout.arguments import require_names as names_of
from fragir.layout.arguments import takes
from fragir.layout.formula_reader import FormulaStatements, place_of, read
from fragir.layout.layout import Layout
from fragir.layout.modes import Condition, LayoutError, Point
from fragir.layout.parts import condition_for
from fragir.layout.synthesis import LARGEST_FUNCTION, from_function

MOST_TEXT = 20_000  # characters; the ISA's longest formula has some 700
_MOST_ELEMENTS = 256  # a lane has no more registers


@takes(str)
def from_formula(
    text: str,
    *,
    elements: int | None = None,
    lanes: int = 32,
    dims: tuple[str, ...] | None = None,
) -> Layout:
    """The layout that a formula describes.

    `elements` is the number of elements a lane holds; it may be left out where a range such as
    `i = {0,..,3}` or names such as `a0, a1` say it, and where only one number makes the formula
    hold every element of a matrix once. The dimensions are the names that no other line uses, or
    `dims`. Raises LayoutError for a syntax error (with its place), for a formula that leaves an
    element undefined, and for one that is no layout, naming the element.
    """
    if len(text) > MOST_TEXT:
        raise LayoutError(f"A formula of {len(text)} characters; at most {MOST_TEXT} are read.")
    lanes = require_whole_number(lanes, "lanes", 1)
    if elements is not None:
        elements = require_whole_number(elements, "elements", 1)
    if dims is not None:
        dims = names_of(dims, "the dimensions")
    try:
        return _layout_of(text, elements, lanes, dims)
    except RecursionError:
        raise LayoutError("The formula is nested too deeply.") from None


def _layout_of(text: str, elements: int | None, lanes: int, dims: tuple[str, ...] | None) -> Layout:
    formula = read(text)
    sizes = _sizes(formula, elements, lanes)
    if prod(sizes.values()) > LARGEST_FUNCTION:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise LayoutError(
            f"The formula has too many slots ({listed}); at most {LARGEST_FUNCTION} are computed."
        )
    names = dims if dims is not None else formula.targets({*sizes, "element"})
    missing = [name for name in names if name not in formula.definitions]
    if missing or not names:
        raise LayoutError(f"The formula does not say what {', '.join(missing) or 'row, col'} is.")
    if "element" in formula.used and "element" not in sizes:
        sizes["element"] = _inferred_elements(formula, sizes, names)
    function = _function(formula, tuple(sizes), names)
    found = from_function(sizes, function, names, exclusive=True)
    return replace(found, where=_predicate(formula, sizes))


def _function(
    formula: FormulaStatements, axes: tuple[str, ...], names: tuple[str, ...]
) -> Callable[[Point], Point]:
    """From a slot, its coordinates in the order of `axes`, to the values of `names`."""

    def function(slot: Point) -> Point:
        environment = dict(zip(axes, slot, strict=True))
        try:
            return tuple([formula.value(name, environment) for name in names])
        except (ZeroDivisionError, ValueError) as error:
            place = place_of(environment)
            raise LayoutError(f"The formula cannot be computed at {place}: {error}.") from None

    return function


def _inferred_elements(
    formula: FormulaStatements, sizes: dict[str, int], names: tuple[str, ...]
) -> int:
    """How many elements a lane holds, if one number alone fits; else LayoutError.

    A number fits if it makes the formula a bijection in which every alternative has its say.
    """
    function = _function(formula, (*sizes, "element"), names)
    slots = list(product(*map(range, sizes.values())))
    seen = set[Point]()
    fitting: list[int] = []
    wanted = formula.used.union(names)
    alternatives = sum(len(formula.definitions.get(name, ())) for name in wanted)
    for element in range(min(_MOST_ELEMENTS, LARGEST_FUNCTION // len(slots))):
        try:
            points = [function((*slot, element)) for slot in slots]
        except LayoutError:
            break
        seen.update(points)
        if len(seen) < (element + 1) * len(slots) or any(x < 0 for p in points for x in p):
            break
        extents = [1 + max(axis) for axis in zip(*seen, strict=True)]  # any order
        if len(seen) == prod(extents) and len(formula.reached) == alternatives:
            fitting.append(element + 1)
    if len(fitting) == 1:
        return fitting[0]
    several = f"; {', '.join(map(str, fitting[:4]))} ... would do" if fitting else ""
    raise LayoutError(
        f"The formula does not say how many elements a lane holds{several}.",
        hint="add a range such as i = {0,..,3}, or give elements=",
    )


def _sizes(formula: FormulaStatements, elements: int | None, lanes: int) -> dict[str, int]:
    sizes: dict[str, int] = {}
    if "lane" in formula.used and "lane" not in formula.ranges:
        sizes["lane"] = lanes
    sizes.update(formula.ranges)
    if elements is not None:
        sizes["element"] = elements
    return sizes


def _predicate(formula: FormulaStatements, sizes: dict[str, int]) -> tuple[Condition, ...]:
    where: list[Condition] = []
    for used, evaluate in formula.predicates:
        axis = _variable_of(formula, used, evaluate, sizes)
        try:
            held = [bool(evaluate({axis: x})) for x in range(sizes[axis])]
        except (ZeroDivisionError, ValueError) as error:
            raise LayoutError(f"The condition of 'held where' fails: {error}.") from None
        if all(held):
            continue
        condition = condition_for(axis, held)
        if condition is None:
            raise LayoutError(f"No condition (x / a) % b == c says which {axis} holds anything.")
        where.append(condition)
    return tuple(where)


def _variable_of(
    formula: FormulaStatements,
    used: set[str],
    evaluate: Callable[[dict[str, int]], int],
    sizes: dict[str, int],
) -> str:
    """The axis that a condition is about, by itself or by names that are defined by it."""
    direct = used - formula.definitions.keys()
    for axis in [name for name in sizes if not direct or name in direct]:
        try:
            evaluate({axis: 0})
        except LayoutError:  # something else is needed too
            continue
        except (ZeroDivisionError, ValueError):
            pass
        return axis
    raise LayoutError("A condition of 'held where' must be about one variable.")


@takes(Layout)
def to_formula(layout: Layout) -> str:
    """The layout as one closed formula per dimension; `from_formula` reads it back.

    Raises LayoutError for an axis whose name means another axis in formulas (`i`).
    """
    return layout.formula()
