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

Variables are `%laneid`, `%warpid`, `i` (the element), and any that a range such as
`x = {0,..,3}` declares; each becomes an axis. Operators bind as in Python. A line `held where ...`
says which slots hold anything. What is no layout is refused at the first element that shows it:

>>> from_formula("row = %laneid / 4; col = %laneid % 4 + (i * i) for i = {0,..,3}")
Traceback (most recent call last):
...
fragir.layout.layout.LayoutError: No layout is this function: at element 3 it gives (0, 9), but \
the steps before add up to (0, 5).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from fragir.errors import whole_number
from fragir.layout.condition import condition_for
from fragir.layout.given import names as names_of
from fragir.layout.given import takes
from fragir.layout.layout import Axis, Condition, Layout, LayoutError, Point
from fragir.layout.synthesis import LARGEST_FUNCTION, from_function

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Node: TypeAlias = Tree[Token] | Token

WARP = 32
_THREAD_NAMES = tuple(f"thread{'_' * n}" for n in range(8))
"""What the thread of a warpgroup is called; the first that means nothing else."""
MOST_TEXT = 20_000  # characters; the ISA's longest formula has some 700
_MOST_BITS = 64  # of a number
_MOST_ELEMENTS = 256  # a lane has no more registers

Environment = dict[str, int]
Evaluate = Callable[[Environment], int]

# The spellings of the axes in formulas; the first of each axis is printed.
VARIABLES = {
    "%laneid": "lane",
    "laneid": "lane",
    "%tid.x": "lane",
    "%tid": "lane",
    "%warpid": "warp",
    "warpid": "warp",
    "i": "element",
}

# Names that the ISA defines ahead of its formulas, whether or not they are used: never dimensions.
HELPERS = {"groupID", "threadID_in_group"}

OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "<<": lambda a, b: a << (b if b < _MOST_BITS else _refuse_shift(b)),
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "^": lambda a, b: a ^ b,
    "|": lambda a, b: a | b,
}


def _refuse_shift(by: int) -> int:
    raise ValueError(f"a shift by {by}")


COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}


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
    lanes = whole_number(lanes, "lanes", 1)
    if elements is not None:
        elements = whole_number(elements, "elements", 1)
    if dims is not None:
        dims = names_of(dims, "the dimensions")
    try:
        return _layout_of(text, elements, lanes, dims)
    except RecursionError:
        raise LayoutError("The formula is nested too deeply.") from None


def _layout_of(text: str, elements: int | None, lanes: int, dims: tuple[str, ...] | None) -> Layout:
    formula = _read(text)
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
    found = from_function(sizes, function, names)
    return replace(found, where=_predicate(formula, sizes))


def _function(
    formula: _Formula, axes: tuple[str, ...], names: tuple[str, ...]
) -> Callable[[Point], Point]:
    """From a slot, its coordinates in the order of `axes`, to the values of `names`."""

    def function(slot: Point) -> Point:
        environment = dict(zip(axes, slot, strict=True))
        try:
            return tuple([formula.value(name, environment) for name in names])
        except (ZeroDivisionError, ValueError) as error:
            place = _place(environment)
            raise LayoutError(f"The formula cannot be computed at {place}: {error}.") from None

    return function


def _inferred_elements(formula: _Formula, sizes: dict[str, int], names: tuple[str, ...]) -> int:
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
        extents = [1 + max(axis) for axis in zip(*seen, strict=True)]
        if len(seen) == prod(extents) and len(formula.reached) == alternatives:
            fitting.append(element + 1)
    if len(fitting) == 1:
        return fitting[0]
    several = f"; {', '.join(map(str, fitting[:4]))} ... would do" if fitting else ""
    raise LayoutError(
        f"The formula does not say how many elements a lane holds{several}.",
        hint="add a range such as i = {0,..,3}, or give elements=",
    )


@takes(Layout)
def to_formula(layout: Layout) -> str:
    """The layout as one closed formula per dimension; `from_formula` reads it back.

    Raises LayoutError for an axis whose name means another axis in formulas (`i`).
    """
    variables = {axis.name: _variable(axis.name) for axis in layout.axes}
    lines: list[str] = []
    declared = dict(variables)
    lanes = layout.sizes.get("lane", 0)
    if lanes > WARP:  # a warpgroup's threads: %laneid ends at 31
        taken = {*variables.values(), *layout.dims}
        thread = next(name for name in _THREAD_NAMES if name not in taken)
        lines.append(f"{thread} = %tid.x % {lanes}")
        variables["lane"], declared["lane"] = thread, "%tid.x"
    for dim, (name, start) in enumerate(zip(layout.dims, layout.origin, strict=True)):
        terms = [
            term
            for axis in layout.simplified().axes
            for term in _terms(axis, variables[axis.name], dim)
        ]
        if start or not terms:
            terms.append(str(start))
        lines.append(f"{name} = {' + '.join(terms)}")
    ranges = [f"{declared[axis.name]} = {_set(axis.size)}" for axis in layout.axes]
    if ranges and lines:
        lines[-1] += f" for {', '.join(ranges)}"
    if layout.where:
        conditions = [_condition_text(c, variables[c.axis]) for c in layout.where]
        lines.append(f"held where {' && '.join(conditions)}")
    return "\n".join(lines)


def _variable(axis: str) -> str:
    spelt = next((name for name, meant in VARIABLES.items() if meant == axis), axis)
    if spelt == axis and axis in VARIABLES:
        raise LayoutError(f"In a formula {axis} means {VARIABLES[axis]}; rename the axis {axis}.")
    return spelt


def _terms(axis: Axis, variable: str, dim: int) -> Iterator[str]:
    place = 1
    for mode in axis.modes:
        digit, loose = _quotient(variable, place)
        if place * mode.size < axis.size:
            digit = f"({digit}) % {mode.size}" if loose else f"{digit} % {mode.size}"
            loose = False
        stride = mode.stride[dim]
        if stride == 1:
            yield f"({digit})" if loose else digit
        elif stride:
            yield f"({digit}) * {stride}" if loose else f"{digit} * {stride}"
        place *= mode.size


def _quotient(variable: str, place: int) -> tuple[str, bool]:
    """The variable divided by a place, and whether it must be bracketed in a product or sum."""
    if place == 1:
        return variable, False
    if place & (place - 1) == 0:
        return f"{variable} >> {place.bit_length() - 1}", True
    return f"{variable} / {place}", False


def _condition_text(condition: Condition, variable: str) -> str:
    digit, loose = _quotient(variable, condition.divisor)
    return f"{f'({digit})' if loose else digit} % {condition.modulus} == {condition.value}"


def _set(size: int) -> str:
    return "{0}" if size == 1 else f"{{0,..,{size - 1}}}"


# Reading


@dataclass
class _Formula:
    """The statements of a formula: for every name its alternatives, each with its guard."""

    definitions: dict[str, list[tuple[Evaluate, Evaluate]]] = field(
        default_factory=lambda: dict[str, list[tuple[Evaluate, Evaluate]]]()
    )
    used: set[str] = field(default_factory=lambda: set[str]())
    ranges: dict[str, int] = field(default_factory=lambda: dict[str, int]())
    predicates: list[tuple[set[str], Evaluate]] = field(
        default_factory=lambda: list[tuple[set[str], Evaluate]]()
    )
    evaluating: set[str] = field(default_factory=lambda: set[str]())
    reached: set[tuple[str, int]] = field(default_factory=lambda: set[tuple[str, int]]())

    def targets(self, axes: set[str]) -> tuple[str, ...]:
        """The names that no line uses, in order."""
        used = self.used - axes
        return tuple(n for n in self.definitions if n not in used and n not in HELPERS)

    def value(self, name: str, environment: Environment) -> int:
        """The value of a defined name for given coordinates; the first guard that holds decides."""
        if name in self.evaluating:
            raise LayoutError(f"The formula defines {name} by itself.")
        self.evaluating.add(name)
        try:
            for number, (value, guard) in enumerate(self.definitions[name]):
                if guard(environment):
                    self.reached.add((name, number))
                    # kept, so that a name costs one evaluation however often it is used
                    environment[name] = value(environment)
                    return environment[name]
        finally:
            self.evaluating.discard(name)
        raise LayoutError(f"The formula does not say what {name} is at {_place(environment)}.")


def _place(environment: Environment) -> str:
    return ", ".join(f"{axis} {x}" for axis, x in environment.items())


def _sizes(formula: _Formula, elements: int | None, lanes: int) -> dict[str, int]:
    sizes: dict[str, int] = {}
    if "lane" in formula.used and "lane" not in formula.ranges:
        sizes["lane"] = lanes
    sizes.update(formula.ranges)
    if elements is not None:
        sizes["element"] = elements
    return sizes


def _predicate(formula: _Formula, sizes: dict[str, int]) -> tuple[Condition, ...]:
    where: list[Condition] = []
    for used, evaluate in formula.predicates:
        axes = [name for name in used if name in sizes]
        if len(axes) != 1 or len(used) != 1:
            raise LayoutError("A condition of 'held where' must be about one variable.")
        axis = axes[0]
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


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    grammar = Path(__file__).with_name("formula.lark").read_text()
    return Lark(grammar, parser="lalr", lexer="contextual", maybe_placeholders=False)


def _read(text: str) -> _Formula:
    from lark.exceptions import UnexpectedInput

    folded = fold(text)
    try:
        tree = _parser().parse(folded)  # pyright: ignore[reportUnknownMemberType]  # Lark's stub
    except UnexpectedInput as error:
        position = error.pos_in_stream
        token = cast("Token | None", getattr(error, "token", None))
        if position is None or (token is not None and token.type == "$END"):
            position = len(text.rstrip())
        before = text[:position]
        start = before.rfind("\n") + 1
        found = repr(text[position]) if position < len(text.rstrip()) else "the end"
        raise LayoutError(
            f"The formula cannot be read from {found} on.",
            file="<formula>",
            line=before.count("\n") + 1,
            col=position - start + 1,
            source=text[start:].split("\n", 1)[0],
        ) from None
    try:
        return _Builder().formula(tree)
    except ValueError as error:  # a number like 09, or one of 5,000 digits
        raise LayoutError(f"The formula has a number that cannot be read: {error}.") from None


_CONTINUES = re.compile(r"\s*(?:for\b|if\b|otherwise\b|else\b|[-+*/&|^<>=,)]|%\s|where\b)", re.I)
_LOCAL = re.compile(r"\s*where\s+(?!i\b)[A-Za-z_]\w*\s*=(?!=)\s*(?!\{)", re.I)
_OTHERWISE_WHERE = re.compile(r"(?<=otherwise)\s(?=\s*where\b)", re.I)


def fold(text: str) -> str:
    """The text with statements ended by ";" and without line breaks; all offsets stay.

    A line break ends a statement unless it stands in brackets, behind an operator, or before an
    operator or guard.
    """
    text = _OTHERWISE_WHERE.sub(";", text)
    folded: list[str] = []
    depth = 0
    last = ";"
    for index, char in enumerate(text):
        depth += (char in "({[") - (char in ")}]")
        if char == "\n":
            after = index + 1
            continues = _CONTINUES.match(text, after) and not _LOCAL.match(text, after)
            char = " " if depth > 0 or last in "-+*/&|^<>=,%" or continues else ";"
        if not char.isspace():
            last = char
        folded.append(char)
    return "".join(folded)


class _Builder:
    """From the syntax tree to functions of the coordinates."""

    def __init__(self) -> None:
        self.result = _Formula()

    def formula(self, tree: Tree[Token]) -> _Formula:
        current: str | None = None
        for statement in _trees(tree):
            match statement.data:
                case "definition":
                    current = _words(statement, "NAME")[0]
                    if current in self.result.definitions:
                        raise LayoutError(f"The formula defines {current} twice.")
                    self.result.definitions[current] = [self.alternative(_trees(statement)[0])]
                case "continuation":
                    if current is None:
                        raise LayoutError("The formula begins without a name and '='.")
                    self.result.definitions[current].append(self.alternative(_trees(statement)[0]))
                case _:
                    self.held(_trees(statement)[0])
        return self.result

    def held(self, tree: Tree[Token]) -> None:
        parts = _trees(tree) if tree.data == "all_of" else [tree]
        for part in parts:
            outer, self.result.used = self.result.used, set[str]()
            evaluate = self.expression(part)
            self.result.predicates.append((self.result.used, evaluate))
            self.result.used = outer | self.result.used

    def alternative(self, tree: Tree[Token]) -> tuple[Evaluate, Evaluate]:
        value, *guards = _trees(tree)
        return self.expression(value), self.guard(guards[0] if guards else None)

    def guard(self, tree: Tree[Token] | None) -> Evaluate:
        match tree.data if tree is not None else "otherwise":
            case "guard":
                parts = [self.guard(part) for part in _trees(cast("Tree[Token]", tree))]
                return lambda e: all(part(e) for part in parts)
            case "any" | "otherwise":
                return lambda e: True
            case "elements":
                words = _words(cast("Tree[Token]", tree), "ELEMENT_N")
                numbers = {int(re.sub(r"\D", "", word)) for word in words}
                self.declare("element", max(numbers) + 1)
                return lambda e: e["element"] in numbers
            case "ranges":
                pairs: list[tuple[Evaluate, set[int]]] = []
                for part in _trees(cast("Tree[Token]", tree)):
                    variable, values = _trees(part)
                    pairs.append((self.expression(variable), self.values(values, variable)))
                return lambda e: all(variable(e) in values for variable, values in pairs)
            case "condition":
                return self.expression(_trees(cast("Tree[Token]", tree))[0])
            case _:
                return self.expression(cast("Tree[Token]", tree))

    def values(self, tree: Tree[Token], of: Tree[Token]) -> set[int]:
        """The numbers of a set; where it is one of a variable, the set declares its range."""
        tokens = [cast("Token", child) for child in tree.children]
        numbers: list[int] = []
        for index, token in enumerate(tokens):
            if token.type == "DOTS":
                if not 0 < index < len(tokens) - 1:
                    raise LayoutError("A range {a,..,b} needs a number on both sides of the dots.")
                last = int(tokens[index + 1], 0)
                if last - numbers[-1] > LARGEST_FUNCTION:
                    raise LayoutError(
                        f"The range {numbers[-1]},..,{last} is too long; at most "
                        f"{LARGEST_FUNCTION} slots are computed."
                    )
                numbers.extend(range(numbers[-1] + 1, last))
            else:
                numbers.append(int(token, 0))
        name = _single(of)
        if name is not None and name not in self.result.definitions:
            self.declare(VARIABLES.get(name, name), max(numbers) + 1)
        return set(numbers)

    def declare(self, axis: str, size: int) -> None:
        self.result.ranges[axis] = max(size, self.result.ranges.get(axis, 0))

    def expression(self, node: Node) -> Evaluate:
        if isinstance(node, str):
            raise AssertionError(node)
        trees = _trees(node)
        match node.data:
            case "number":
                number = int(_words(node, "NUMBER")[0], 0)
                return lambda e: number
            case "variable":
                return self.variable(cast("Token", node.children[0]))
            case "any_of":
                parts = [self.expression(tree) for tree in trees]
                return lambda e: any(part(e) for part in parts)
            case "all_of":
                parts = [self.expression(tree) for tree in trees]
                return lambda e: all(part(e) for part in parts)
            case "not_":
                part = self.expression(trees[0])
                return lambda e: not part(e)
            case "comparison":
                return self.comparison(node)
            case _:
                return self.arithmetic(node)

    def arithmetic(self, node: Tree[Token]) -> Evaluate:
        first, *others = [self.expression(tree) for tree in _trees(node)]
        operators = [OPERATORS[child] for child in node.children if isinstance(child, str)]
        for operate, other in zip(operators, others, strict=True):
            first = _binary(operate, first, other)
        return first

    def comparison(self, node: Tree[Token]) -> Evaluate:
        first, *others = _trees(node)
        left = self.expression(first)
        checks: list[Callable[[int, Environment], tuple[bool, int]]] = []
        signs = [str(child) for child in node.children if isinstance(child, str)]
        for sign, other in zip(signs, others, strict=True):
            if other.data == "set":
                if sign not in ("=", "=="):
                    raise LayoutError(f"A set stands behind '=', not behind '{sign}'.")
                checks.append(_member(self.values(other, first)))
            else:
                checks.append(_compare(COMPARISONS[sign], self.expression(other)))

        def evaluate(e: Environment) -> bool:
            value = left(e)
            for check in checks:
                holds, value = check(value, e)
                if not holds:
                    return False
            return True

        return evaluate

    def variable(self, token: Token) -> Evaluate:
        result = self.result
        name = str(token)
        axis = VARIABLES.get(name, name)
        result.used.add(axis)

        def evaluate(e: Environment) -> int:
            if axis in e:
                return e[axis]
            if name in result.definitions:
                return result.value(name, e)
            raise LayoutError(f"The formula does not say what {name} is.")

        return evaluate


def _binary(operate: Callable[[int, int], int], left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(e: Environment) -> int:
        value = operate(left(e), right(e))
        if value.bit_length() > _MOST_BITS:
            raise ValueError(f"a number of more than {_MOST_BITS} bits")
        return value

    return evaluate


def _member(values: set[int]) -> Callable[[int, Environment], tuple[bool, int]]:
    return lambda value, e: (value in values, value)


def _compare(
    holds: Callable[[int, int], bool], other: Evaluate
) -> Callable[[int, Environment], tuple[bool, int]]:
    def check(value: int, e: Environment) -> tuple[bool, int]:
        right = other(e)
        return holds(value, right), right

    return check


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if not isinstance(child, str)]


def _words(tree: Tree[Token], kind: str) -> list[str]:
    return [str(c) for c in tree.children if isinstance(c, str) and c.type == kind]


def _single(tree: Tree[Token]) -> str | None:
    """The name of a variable that stands alone."""
    while tree.data != "variable":
        if len(tree.children) != 1 or not _trees(tree):
            return None
        tree = _trees(tree)[0]
    return str(tree.children[0])
