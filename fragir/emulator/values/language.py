"""The language in which a row of the table of opcodes says what its instruction computes.

    Opcode("avg", ".u16|u32|s16|s32 d, a, b", "(a & b) + ((a ^ b) >> 1)")
    Opcode("add", "{.RND}{.ftz}{.sat}.f32 d, a, b", "round(a + b)")

A text is Python's syntax of expressions, read by `ast`, with meanings of its own. From it are made
the step on numpy arrays (`arrays.py`), the C function of straight runs (`c.py`), and what the
checks must know of an instruction (`facts.py`).

*Names* are the operands of the syntax box, each with the type that it has there, and the words of
the box: `wrap` is true where the opcode has `.wrap`. Such conditions, `width` (the bits of the
first operand), `signed(x)` and `given(c)` (whether the statement has that operand) are known when
an opcode is read, and so is which branch is taken:

    x << (n & 31 if wrap else min(n, 32))

*Integers* are those of their type: `+ - *` and unary `-` wrap, `/` is towards zero (all ones where
the divisor is zero, the dividend being the remainder `%`), `& | ^ ~` are on bits, comparisons give
a predicate. `a << n` and `a >> n` take any n: from the width on nothing is left but copies of the
sign. Both sides have one type; a number takes that of the other side. `u64(x)` converts as PTX's
cvt does, `wide(x)` to the type of twice as many bits; `unsigned(x)` has the same bits.
`saturate(x)` is the nearest number of the result's type.

*Predicates* have `and or not`, `& | ^ ~`, `x if p else y`; as an integer one is 0 or 1.

*Floating point.* The operators and `sqrt` are exact: what comes out has no format until `round(x)`
gives it that of the result, by the rounding of the opcode (to nearest where it names none). Where
the opcode has .ftz, subnormal operands and results are zeros of their sign; .sat and .relu clamp
results, .oob makes them zero. `approx(x)` is the nearest number, too: what the instruction gives on
a machine is only near it. `-a`, `abs(a)`, `min`, `max`, `copysign` choose and change bits.
`convert(x)` is what cvt does: round, or the nearest integer by .rni and its like, or the low bits,
the nearest with .sat. `bits(a)` are those of an operand, whatever they mean.

*Packed types* (f16x2, u8x4): the text is of one element.

A text of several results assigns them: `d = a - b; cc = a >= b`, where `cc` is the carry of a lane;
other names on the left are intermediate values. A line that is only an expression is `d`.
`compare(a, b)` is what the opcode's word says, see `COMPARISONS`; `property(a)` and `combine(p, c)`
likewise.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias

from fragir.emulator.numbers.types import FORMATS, width_of
from fragir.emulator.values.functions import FUNCTIONS
from fragir.ptx.opcodes.syntax import Line, Words

#: What a comparison's word asks of two values. Of integers lo to hs are lt to ge.
COMPARISONS: dict[str, str] = {
    **{w: f"a {s} b" for w, s in zip("eq lt le gt ge".split(), "== < <= > >=".split())},
    **{w: f"a {s} b" for w, s in zip("lo ls hi hs".split(), "< <= > >=".split())},
    "ne": "a < b or a > b",
    "equ": "not (a < b or a > b)",
    "neu": "a != b",
    "ltu": "not a >= b",
    "leu": "not a > b",
    "gtu": "not a <= b",
    "geu": "not a < b",
    "num": "not (a != a or b != b)",
    "nan": "a != a or b != b",
}
#: What testp asks of a value; `least` is the smallest normal number.
PROPERTIES: dict[str, str] = {
    "finite": "abs(a) < inf",
    "infinite": "abs(a) == inf",
    "number": "a == a",
    "notanumber": "a != a",
    "normal": "a == 0 or abs(a) >= least and abs(a) < inf",  # zeros are (section 9.7.3.1)
    "subnormal": "abs(a) < least and abs(a) > 0",
}
_BOOL = {"and": "a and b", "or": "a or b", "xor": "a ^ b"}
_WORDS = {"compare": COMPARISONS, "property": PROPERTIES, "combine": _BOOL}

#: Types of results besides those of operands: a predicate, and a value of no format yet.
BOOL, REAL = "bool", "real"
INTEGERS = frozenset(f"{s}{n}" for s in "us" for n in (8, 16, 32, 64))
FLOATS = frozenset(("f16", "bf16", "f32", "f64", "tf32"))
#: Packed types: an element, and how many.
PACKED: dict[str, tuple[str, int]] = {
    "f16x2": ("f16", 2),
    "bf16x2": ("bf16", 2),
    "f32x2": ("f32", 2),
    "u16x2": ("u16", 2),
    "s16x2": ("s16", 2),
    "u8x4": ("u8", 4),
    "s8x4": ("s8", 4),
}
#: Functions of exact values.
REALS = frozenset("sqrt exp2 log2 sin cos tanh divide_approximately".split())
ROUNDINGS = ("rn", "rz", "rm", "rp", "rna")
#: To an integer, and the rounding that it is.
INTEGRAL = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


class TextError(ValueError):
    """A text that says nothing: the author of a row is told, when the row is used first."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value: `op` of other values. `value`: an operand's name, a number, a function's name."""

    op: str
    type: str
    args: tuple[Node, ...] = ()
    value: Any = None


#: A number without a type yet, or a condition that is known.
Known: TypeAlias = int | float | bool
Term: TypeAlias = Node | Known


class ReadOperand(NamedTuple):
    """One operand: its place in the statement, the type that it is read as, and its own."""

    place: int
    kind: str  # a word of PTX
    type: str  # of one element


@dataclass(frozen=True, eq=False)
class Computation:
    """What an opcode computes.

    `operands`: those that are read, in the order of the statement; `results` by their names, d
    first; `immediates`: operands that are constants of the statement; `elements` in a register.
    """

    words: Words
    operands: dict[str, ReadOperand]
    immediates: dict[str, int]
    kinds: dict[str, str]  # of results
    results: dict[str, Node]
    elements: int
    packed: str  # the packed type, "" for none


# -- reading a text ------------------------------------------------------------------------------


@cache
def parse_definitions(text: str) -> tuple[tuple[str, ast.expr], ...]:
    """Names and what they are, in the order of the text."""
    try:
        body = ast.parse("\n".join(line.strip() for line in text.strip().splitlines())).body
    except SyntaxError as error:
        raise TextError(f"{text!r} is no expression: {error.msg}") from None
    found: list[tuple[str, ast.expr]] = []
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.append((name, value))
            case ast.Expr(value=value):
                found.append(("d", value))
            case _:
                raise TextError(f"{text!r}: neither an expression nor name = expression")
    if not any(name == "d" for name, _ in found):
        raise TextError(f"{text!r} gives no d")
    return tuple(found)


def type_of(kind: str) -> str:
    """The type of one element of a word of PTX: u32 of b32, f16 of f16x2."""
    if kind == "pred":
        return BOOL
    if kind in PACKED:
        return PACKED[kind][0]
    return f"u{kind[1:]}" if kind[0] == "b" and kind != "bf16" else kind


def bits_of(kind: str) -> str:
    """The unsigned type of a type's bits: u16 of bf16."""
    return BOOL if kind == BOOL else f"u{width_of(kind)}"


def wider(kind: str) -> str:
    """u32 of u16."""
    return f"{kind[0]}{2 * int(kind[1:])}"


def range_of(kind: str) -> tuple[int, int]:
    """The smallest and the largest integer of a type."""
    bits = int(kind[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def operand_kinds(line: Line, words: Sequence[str]) -> list[tuple[str, str]]:
    """Name and type of every operand of a line, by the words that an opcode has of it."""
    given = list(words)
    types: list[str] = []
    for slot in line.types:
        for word in given:
            if word in slot.words:
                types.append(word)
                given = given[given.index(word) + 1 :]
                break
    found: list[tuple[str, str]] = []
    for operand in line.operands:
        kind = operand.kind
        if not kind:
            kind = (types[0] if operand.is_written else types[-1]) if types else ""
        elif kind.isdigit():
            kind = types[int(kind) - 1]
        elif kind == "wide":
            kind = wider(types[-1])
        found.append((operand.name, kind))
    return found


# -- making values -------------------------------------------------------------------------------

_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%"}
_BITWISE = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_SHIFTS = {ast.LShift: "<<", ast.RShift: ">>"}
_ORDER: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
#: The same of what is known, by the names of Python's own functions.
_PYTHON = "add sub mul and_ or_ xor lshift rshift eq ne lt le gt ge".split()
_KNOWN: dict[str, Callable[[Any, Any], Any]] = dict(
    zip("+ - * & | ^ << >> == != < <= > >=".split(), (getattr(operator, n) for n in _PYTHON))
)


def is_real(kind: str) -> bool:
    return kind == REAL or kind in FLOATS


def number(value: Known, kind: str) -> Node:
    if kind == BOOL:
        return Node("number", BOOL, value=bool(value))
    if kind in INTEGERS:
        _, high = range_of(kind)
        bits = int(value) & (1 << int(kind[1:])) - 1
        return Node("number", kind, value=bits - (1 << int(kind[1:])) if bits > high else bits)
    return Node("number", REAL if kind in FLOATS else kind, value=float(value))


def cast(x: Node, kind: str) -> Node:
    """An integer or predicate as another integer type."""
    if x.type == kind:
        return x
    if x.op == "number":
        return number(x.value, kind)
    return Node("cast", kind, (x,))


class Maker:
    """Makes the values of one text, for an opcode with its words."""

    def __init__(self, text: str, words: frozenset[str], known: frozenset[str], first: str) -> None:
        """`known`: all words of the box; `first`: the type of the first operand that is read."""
        self.text, self.words, self.known = text, words, known
        self.first = first
        self.names: dict[str, Term] = {}
        self.result = ""  # the type of what is made

    def fail(self, message: str) -> TextError:
        return TextError(f"{self.text!r} of .{'.'.join(sorted(self.words))}: {message}")

    # -- nodes -----------------------------------------------------------------------------------

    def term(self, node: ast.expr) -> Term:
        match node:
            case ast.Constant(value=int() | float() as value):
                return value
            case ast.Name(id=name):
                return self._name(name)
            case ast.UnaryOp(op=sign, operand=operand):
                return self._unary(sign, self.term(operand))
            case ast.BinOp(left=left, op=kind, right=right):
                symbol = {**_ARITHMETIC, **_BITWISE, **_SHIFTS}.get(type(kind))  # type: ignore[arg-type]
                if symbol is None:
                    raise self.fail(f"no operator {type(kind).__name__}")
                return self.binary(symbol, self.term(left), self.term(right))
            case ast.Compare(left=left, ops=[order], comparators=[right]):
                symbol = _ORDER.get(type(order))
                if symbol is None:
                    raise self.fail(f"no comparison {type(order).__name__}")
                return self.binary(symbol, self.term(left), self.term(right))
            case ast.BoolOp(op=join, values=[first, *rest]):
                result = self.term(first)
                for other in rest:
                    result = self._both(isinstance(join, ast.And), result, other)
                return result
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choice(self.term(test), body, orelse)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, args)
            case _:
                raise self.fail(f"what is {ast.unparse(node)}?")

    def node(self, term: Term, kind: str) -> Node:
        """A term with a type; a number takes it."""
        if isinstance(term, Node):
            return term
        return number(term, kind)

    def _name(self, name: str) -> Term:
        if name in self.names:
            return self.names[name]
        if name in self.known:
            return name in self.words
        if name == "width":
            return width_of(self.first)
        if name == "inf":
            return float("inf")
        if name == "least":
            return 2.0 ** FORMATS[self.first].lowest
        if name == "sign":
            return 1 << width_of(self.first) - 1
        raise self.fail(f"{name} is neither an operand nor a word")

    def _unary(self, sign: ast.unaryop, x: Term) -> Term:
        if isinstance(sign, ast.Not):
            if isinstance(x, Node):
                return Node("not", BOOL, (self._require_predicate(x),))
            return not x
        if not isinstance(x, Node):
            return -x if isinstance(sign, ast.USub) else ~int(x)
        if isinstance(sign, ast.USub) and x.type != BOOL:
            return Node("neg", x.type, (x,))
        if not isinstance(sign, ast.Invert) or is_real(x.type):
            raise self.fail(f"{type(sign).__name__} of a {x.type}")
        return Node("not" if x.type == BOOL else "~", x.type, (x,))

    def _require_predicate(self, x: Node) -> Node:
        if x.type != BOOL:
            raise self.fail(f"a {x.type} is no condition")
        return x

    def binary(self, symbol: str, x: Term, y: Term) -> Term:
        if not isinstance(x, Node) and not isinstance(y, Node):
            return _KNOWN[symbol](x, y)
        if symbol in _SHIFTS.values():
            left = self.node(x, self.result)
            return Node(symbol, left.type, (left, self.node(y, "u32")))
        if isinstance(x, Node):
            left, right = x, self.node(y, x.type)
        else:
            assert isinstance(y, Node)
            left, right = self.node(x, y.type), y
        real = is_real(left.type) and is_real(right.type)
        if left.type != right.type and not real:
            raise self.fail(f"{left.type} {symbol} {right.type}")
        if symbol in _ORDER.values():
            return Node(symbol, BOOL, (left, right))
        if symbol in _BITWISE.values():
            if real:
                raise self.fail(f"{symbol} of floating-point numbers")
            if left.type == BOOL:
                symbol = {"&": "and", "|": "or", "^": "!="}[symbol]
        elif left.type == BOOL:
            raise self.fail(f"{symbol} of predicates")
        return Node(symbol, REAL if real else left.type, (left, right))

    def _both(self, conjunction: bool, x: Term, other: ast.expr) -> Term:
        if not isinstance(x, Node):
            return self.term(other) if bool(x) == conjunction else x
        y = self.term(other)
        if not isinstance(y, Node):
            return x if bool(y) == conjunction else y
        return Node(
            "and" if conjunction else "or",
            BOOL,
            (self._require_predicate(x), self._require_predicate(y)),
        )

    def _choice(self, test: Term, body: ast.expr, orelse: ast.expr) -> Term:
        if not isinstance(test, Node):
            return self.term(body if test else orelse)
        x, y = self.term(body), self.term(orelse)
        return self.select(self._require_predicate(test), x, y)

    def select(self, test: Node, x: Term, y: Term) -> Node:
        kind = x.type if isinstance(x, Node) else y.type if isinstance(y, Node) else self.result
        left, right = self.node(x, kind), self.node(y, kind)
        if left.type != right.type:
            raise self.fail(f"{left.type} or {right.type}")
        return Node("select", kind, (test, left, right))

    # -- functions -------------------------------------------------------------------------------

    def _call(self, name: str, arguments: Sequence[ast.expr]) -> Term:
        if name in _WORDS:
            return self._by_word(name, arguments)
        if name == "given":
            (asked,) = arguments
            return isinstance(asked, ast.Name) and asked.id in self.names
        args = [self.term(a) for a in arguments]
        if name in INTEGERS or name == "result":
            (x,) = args
            kind = self.result if name == "result" else name
            return cast(self.node(x, kind), kind)
        nodes = [a for a in args if isinstance(a, Node)]
        if not nodes:
            if name in ("min", "max"):
                return min(args) if name == "min" else max(args)  # type: ignore[type-var]
            nodes = [self.node(args[0], "u32")]
        kind = nodes[0].type
        typed = [self.node(a, kind) for a in args]
        match name:
            case "bits":
                x = typed[0].args[0] if typed[0].op == "flush" else typed[0]
                if x.op != "operand":
                    raise self.fail("bits are those of an operand")
                return Node("operand", bits_of(kind), value=x.value)
            case "convert":
                return self._convert(typed[0])
            case "signed":
                return kind[0] == "s"
            case "unsigned":
                return cast(typed[0], f"u{width_of(kind)}")
            case "wide":
                return cast(typed[0], wider(kind))
            case "saturate":
                return self._saturate(typed[0])
            case "min" | "max":
                x = typed[0]
                for y in typed[1:]:
                    x = self._extreme(name, x, y)
                return x
            case "abs":
                if kind[0] == "u":
                    raise self.fail(f"abs of a {kind}")
                return Node(name, kind, (typed[0],))
            case "round" | "approx" | "truth":
                return Node(name, self.result, (typed[0],))
            case "integer":
                return Node(name, self.result, (typed[0],))
            case "integral":
                return Node(name, REAL, (typed[0],))
            case "copysign":
                return Node(name, kind, tuple(typed))
            case _ if name in REALS:
                return Node(name, REAL, tuple(typed))
            case _:
                pass
        if name not in FUNCTIONS:
            raise self.fail(f"there is no function {name}")
        return Node("call", FUNCTIONS[name].type or kind, tuple(typed), name)

    def _convert(self, x: Node) -> Node:
        """cvt, by the types."""
        whole = not self.words.isdisjoint(INTEGRAL)
        if self.result in FLOATS:
            exact = Node("integral", REAL, (x,)) if whole and is_real(x.type) else x
            return Node("round", self.result, (exact,))
        if is_real(x.type):
            if not whole:
                raise self.fail(f"a {x.type} as a {self.result} needs .rni, .rzi, ...")
            return Node("integer", self.result, (x,))
        return self._saturate(x) if "sat" in self.words else cast(x, self.result)

    def _saturate(self, x: Node) -> Node:
        """The nearest number of the result's type."""
        (low, high), (least, most) = range_of(self.result), range_of(x.type)
        x = self._extreme("max", x, low) if low > least else x
        return cast(self._extreme("min", x, high) if high < most else x, self.result)

    def _extreme(self, name: str, x: Node, y: Term) -> Node:
        y = self.node(y, x.type)
        if x.type != y.type:
            raise self.fail(f"{name} of {x.type} and {y.type}")
        flags = tuple(w for w in ("NaN", "xorsign") if w in self.words and is_real(x.type))
        return Node(name, x.type, (x, y), flags)

    def _by_word(self, name: str, arguments: Sequence[ast.expr]) -> Term:
        """What a word of the opcode says of the arguments."""
        table = _WORDS[name]
        word = next((w for w in table if w in self.words), None)
        if word is None and name == "combine":
            return self.term(arguments[0])
        if word is None:
            raise self.fail(f"none of .{', .'.join(table)}")
        args = [self.term(a) for a in arguments]
        inner = Maker(self.text, frozenset(), frozenset(), self.first)
        inner.names = dict(zip("ab", args, strict=False))
        if word == "ne" and isinstance(args[0], Node) and not is_real(args[0].type):
            return self.binary("!=", args[0], args[1])
        ((_, text),) = parse_definitions(table[word])
        return inner.term(text)

    # -- results ---------------------------------------------------------------------------------

    def make(self, node: ast.expr, kind: str) -> Node:
        """An expression as a result of a type."""
        self.result = kind
        found = self.node(self.term(node), kind)
        if found.type == kind:
            return found
        if kind in FLOATS and found.type == bits_of(kind):
            return found
        if kind in INTEGERS and (found.type in INTEGERS or found.type == BOOL):
            return cast(found, kind)
        raise self.fail(f"a {found.type} as a {kind}")


# -- a value of an opcode ------------------------------------------------------------------------

_SECOND = re.compile(r"\|(\w+)")


@lru_cache(maxsize=1 << 12)
def value_of(
    text: str, line: Line, words: Words, count: int, known: frozenset[str] = frozenset()
) -> Computation:
    """What an opcode with these words, in the order of its row, computes from `count` operands.

    `known`: words of other lines of the row, which the text may ask for.

    TextError where the text does not fit its line.
    """
    given = frozenset(words)
    kinds = operand_kinds(line, words)[:count]
    named = [name for name, _ in kinds]
    read = kinds[1:]
    packed = next((kind for _, kind in kinds if kind in PACKED), "")
    elements = PACKED[packed][1] if packed else 1
    first = next((type_of(kind) for _, kind in read if kind not in ("pred", "imm")), "u32")
    maker = Maker(text, given, known.union(line.known, words) - {*named}, first)
    floats = {type_of(kind) for _, kind in kinds} & FLOATS
    # f64 has no .ftz but in approximations, which flush by themselves.
    flushed = floats & {"f32"} or floats - {"f64"} if "ftz" in given else frozenset[str]()
    operands: dict[str, ReadOperand] = {}
    immediates: dict[str, int] = {}
    for index, (name, kind) in enumerate(read, 1):
        if kind == "imm":
            immediates[name] = index
            maker.names[name] = Node("immediate", "u32", value=name)
            continue
        own = type_of(kind)
        raw = bits_of(kind) if own in FLOATS or kind in PACKED else kind
        operands[name] = ReadOperand(index, raw, own)
        node = Node("operand", own, value=name)
        maker.names[name] = Node("flush", own, (node,)) if own in flushed else node
    if "cc" in text:
        operands["cc"] = ReadOperand(-1, "pred", BOOL)
        maker.names["cc"] = Node("operand", BOOL, value="cc")
    wanted = {"d": kinds[0][1], "cc": "pred"}
    if second := _SECOND.search(line.text.partition("!")[0].partition(" ")[2]):
        wanted[second[1]] = "pred"
    results: dict[str, Node] = {}
    for name, expression in parse_definitions(text):
        if name not in wanted:
            maker.result = ""
            maker.names[name] = maker.term(expression)
            continue
        kind = wanted[name]
        own = type_of(kind)
        if elements > 1 and kind not in PACKED and own in INTEGERS:
            own = f"{own[0]}{width_of(kind) // elements}"  # set of packed numbers: masks
        node = maker.make(expression, own)
        if node.type in FLOATS:
            node = _apply_modifiers(node, given, own in flushed)
        results[name] = maker.names[name] = node
    used = {n.value for node in results.values() for n in walk(node) if n.op == "operand"}
    if "cc" not in used:
        operands.pop("cc", None)
    return Computation(
        words,
        operands,
        immediates,
        {name: bits_of(k) if type_of(k) in FLOATS else k for name, k in wanted.items()},
        results,
        elements,
        packed,
    )


def _apply_modifiers(node: Node, words: frozenset[str], flushed: bool) -> Node:
    """What the modifiers of an opcode make of a floating-point result."""
    if flushed:
        node = Node("flush", node.type, (node,))
    for word in ("sat", "relu", "oob"):
        if word in words:
            node = Node(word, node.type, (node,))
    return node


def walk(node: Node) -> Iterator[Node]:
    """A value and all that it is made of."""
    yield node
    for part in node.args:
        yield from walk(part)
