"""Reading the notation of the PTX ISA: from the text of a formula to functions of coordinates."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from fragir.layout.modes import LayoutError
from fragir.layout.synthesis import LARGEST_FUNCTION
from fragir.layout.text import VARIABLES

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Node: TypeAlias = Tree[Token] | Token

_MOST_BITS = 64  # of a number

Environment = dict[str, int]
Evaluate = Callable[[Environment], int]

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


@dataclass
class FormulaStatements:
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
        raise LayoutError(f"The formula does not say what {name} is at {place_of(environment)}.")


def place_of(environment: Environment) -> str:
    return ", ".join(f"{axis} {x}" for axis, x in environment.items())


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    grammar = Path(__file__).with_name("formula.lark").read_text()
    return Lark(grammar, parser="lalr", lexer="contextual", maybe_placeholders=False)


def read(text: str) -> FormulaStatements:
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
        self.result = FormulaStatements()

    def formula(self, tree: Tree[Token]) -> FormulaStatements:
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
