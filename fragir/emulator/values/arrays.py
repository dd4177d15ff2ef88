"""What an instruction computes as a function on numpy arrays, made from its text.

It is of the bits of the operands, in as many numpy calls as the text has operations, or the one
ufunc that it is, which writes straight into a register. `roads.py` has shorter ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import TypeAlias

import numpy as np

from fragir.emulator.numbers.rounding import decode, sum_odd
from fragir.emulator.numbers.types import FORMATS, Array, DType, dtype_of, where, width_of
from fragir.emulator.values import functions, reals
from fragir.emulator.values.language import (
    BOOL,
    FLOATS,
    INTEGERS,
    INTEGRAL,
    REAL,
    ROUNDINGS,
    Computation,
    Node,
    TextError,
    is_real,
    number,
    range_of,
    value_of,
    walk,
)
from fragir.ptx.opcodes.syntax import Line, Words

Function: TypeAlias = Callable[..., Array]


def of1(function: Callable[[Array], Array]) -> Function:
    """A function of one operand (says the type of a lambda)."""
    return function


def of2(function: Callable[[Array, Array], Array]) -> Function:
    """A function of two operands."""
    return function


def of3(function: Callable[[Array, Array, Array], Array]) -> Function:
    """A function of three operands."""
    return function


UFUNCS: dict[str, np.ufunc] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "~": np.bitwise_not,
    "neg": np.negative,
    "abs": np.absolute,
    "min": np.minimum,
    "max": np.maximum,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "not": np.logical_not,
}
_REALS: dict[str, Function] = {
    "+": sum_odd,
    "sqrt": reals.root_odd,
    "/": reals.quotient_odd,
}
#: Approximations are computed in f64 as it rounds.
_NEAR: dict[str, Function] = {
    "exp2": np.exp2,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "/": np.divide,
    "divide_approximately": reals.divide_approximately,
}


def dtype(kind: str) -> DType:
    """The dtype of a type of the language; floating-point numbers are bits."""
    if kind == BOOL:
        return np.dtype(np.bool_)
    if kind in FLOATS:
        return np.dtype(f"u{width_of(kind) // 8}")
    return np.dtype(np.float64) if kind == REAL else dtype_of(kind)


# -- the definition --------------------------------------------------------------------------------


class Writer:
    """Writes values as Python; `names`: what the text means beside the operands."""

    def __init__(self, value: Computation | None, immediates: dict[str, int]) -> None:
        self.words: Words = () if value is None else value.words
        self.immediates = immediates
        self.names: dict[str, object] = {"np": np, "where": where}
        self.near = False  # whether values are computed as f64 rounds
        self.values = False  # whether operands are values already

    def name(self, value: object, stem: str = "f") -> str:
        """A name for a constant or a function."""
        name = f"{stem}_{len(self.names)}"
        self.names[name] = value
        return name

    @property
    def mode(self) -> str:
        return next((w for w in self.words if w in ROUNDINGS), "rn")

    @property
    def whole(self) -> str | None:
        return next((INTEGRAL[w] for w in self.words if w in INTEGRAL), None)

    def text(self, node: Node) -> str:
        match node.op:
            case "operand":
                return node.value
            case "immediate":
                return str(self.immediates[node.value])
            case "number":
                return self.name(np.array(node.value, dtype(node.type)), "k")
            case "cast":
                return self._cast(node)
            case "select":
                return f"where({', '.join(map(self.text, node.args))})"
            case "<<" | ">>":
                return self._shift(node)
            case "<" | "<=" | ">" | ">=" | "==" | "!=":
                x, y = (self._comparison_side(a) for a in node.args)
                return f"({x} {node.op} {y})"
            case "and" | "or":
                x, y = map(self.text, node.args)
                return f"({x} {'&' if node.op == 'and' else '|'} {y})"
            case "not":
                return f"(~{self.text(node.args[0])})"
            case "call":
                found = functions.FUNCTIONS[node.value].arrays
                return self._call(found, node)
            case _ if is_real(node.type):
                return self.real(node) if node.type == REAL else self._bits(node)
            case "/" | "%":
                return self._call(functions.divide if node.op == "/" else functions.remainder, node)
            case "+" | "-" | "*" | "&" | "|" | "^":
                return self._operator(node)
            case "integer":
                return self._integer(node)
            case "truth":
                ones = self.name(np.array(-1).astype(dtype(node.type)), "k")
                zero = self.name(np.zeros((), dtype(node.type)), "k")
                return f"where({self.text(node.args[0])}, {ones}, {zero})"
            case "~" | "neg":
                return f"({'~' if node.op == '~' else '-'}{self.text(node.args[0])})"
            case "min" | "max" | "abs":
                inner = ", ".join(map(self.text, node.args))
                return f"{self.name(UFUNCS[node.op])}({inner})"
            case _:
                raise TextError(f"{node.op} of {node.type} is no operation on arrays")

    def _call(self, function: Function, node: Node) -> str:
        return f"{self.name(function)}({', '.join(map(self.text, node.args))})"

    def _cast(self, node: Node) -> str:
        (inner,) = node.args
        text = self.text(inner)
        if inner.type != BOOL and width_of(inner.type) == width_of(node.type):
            return f"{text}.view({self.name(dtype(node.type), 't')})"
        return f"{text}.astype({self.name(dtype(node.type), 't')})"

    def _operator(self, node: Node) -> str:
        x, y = node.args
        if node.op == "*" and all(a.op == "cast" and a.args[0].type in INTEGERS for a in node.args):
            # numpy widens as it multiplies, which saves two arrays
            inner = ", ".join(self.text(a.args[0]) for a in node.args)
            if x.args[0].type == y.args[0].type and x.type[0] == x.args[0].type[0]:
                kind = self.name(dtype(node.type), "t")
                return f"np.multiply({inner}, dtype={kind})"
        return f"({self.text(x)} {node.op} {self.text(y)})"

    def _shift(self, node: Node) -> str:
        x, n = node.args
        width = width_of(node.type)
        most = largest(n)
        if most is None or most >= width:
            return self._call(
                functions.shift_left if node.op == "<<" else functions.shift_right, node
            )
        amount = (
            Node("cast", node.type, (n,))
            if n.op != "number"
            else Node("number", node.type, value=n.value)
        )
        return f"({self.text(x)} {node.op} {self.text(amount)})"

    def _comparison_side(self, node: Node) -> str:
        """A side of a comparison: of f32 and f64 as they are, else as f64."""
        if not is_real(node.type):
            return self.text(node)
        if node.op == "operand" and self.values:
            return str(node.value)
        if node.type in ("f32", "f64"):
            return f"{self.text(node)}.view(np.float{node.type[1:]})"
        return self.real(node)

    # -- floating point ----------------------------------------------------------------------------

    def real(self, node: Node) -> str:
        """An exact value, or one rounded to odd."""
        if node.op == "operand" and self.values:
            return str(node.value)
        if node.type in ("f32", "f64"):
            single = self.text(node) + f".view(np.float{node.type[1:]})"
            return single if node.type == "f64" else f"{single}.astype(np.float64)"
        if node.type in FLOATS:
            form = self.name(FORMATS[node.type], "form")
            return f"{self.name(decode)}({self.text(node)}, {form})"
        if node.type in INTEGERS:
            return f"{self.name(reals.of_integer)}({self.text(node)})"
        args = list(map(self.real, node.args))
        if self.near and node.op in _NEAR:
            return f"{self.name(_NEAR[node.op])}({', '.join(args)})"
        match node.op:
            case "number":
                return self.name(np.array(node.value, np.float64), "k")
            case "-":
                return f"{self.name(sum_odd)}({args[0]}, -{args[1]})"
            case "*":
                return f"({args[0]} * {args[1]})"
            case "neg":
                return f"(-{args[0]})"
            case "integral":
                assert self.whole is not None
                return f"{self.name(reals.integral(self.whole))}({args[0]})"
            case _ if node.op in _REALS:
                return f"{self.name(_REALS[node.op])}({', '.join(args)})"
            case _:
                raise TextError(f"{node.op} is no exact operation")

    def _bits(self, node: Node) -> str:
        """A floating-point number as its bits."""
        form = node.type
        match node.op:
            case "round" | "approx":
                return self._round(node)
            case "truth":
                kind = dtype(form).type
                one, zero = self.name(kind(reals.one(form)), "k"), self.name(kind(0), "k")
                return f"where({self.text(node.args[0])}, {one}, {zero})"
            case "min" | "max":
                function = reals.extreme(
                    form, node.op == "max", *(w in node.value for w in ("NaN", "xorsign"))
                )
                return self._call(function, node)
            case "flush" | "sat" | "relu":
                table = {"flush": reals.flush, "sat": reals.within_one, "relu": reals.positive}
                return self._call(partial(table[node.op], form=form), node)
            case "oob":
                return f"{self.name(reals.inside)}({self.text(node.args[0])}, a, b)"
            case "neg" | "abs" | "copysign":
                sign = self.name(reals.sign_of(form), "k")
                args = list(map(self.text, node.args))
                if node.op == "neg":
                    return f"({args[0]} ^ {sign})"
                if node.op == "abs":
                    return f"({args[0]} & ~{sign})"
                return f"(({args[1]} & ~{sign}) | ({args[0]} & {sign}))"
            case _:
                raise TextError(f"{node.op} of {form} is no operation on arrays")

    def _round(self, node: Node) -> str:
        form, (exact,) = node.type, node.args
        if node.op == "approx":
            self.near = True
            if form == "f64" and "ftz" in self.words:
                self.values = True
                compute = self.function(["a"], self.real(exact))
                return f"{self.name(reals.upper_half(compute))}(a)"
            text = self.real(exact)
            self.near = False
            if form == "f64":
                encoded = self.name(partial(reals.encode, form=FORMATS["f64"]))
                return f"{encoded}({text})"
            return f"{self.name(reals.round_to(FORMATS[form], 'rn', False))}({text})"
        if form == "f64":
            return self._double(exact)
        if form == "f32" and self.mode == "rn" and (native := self._native(exact)):
            return f"{self.name(reals.canonical_f32)}({native})"
        function = self.name(reals.round_to(FORMATS[form], self.mode, "satfinite" in self.words))
        if self.mode == "rm" and exact.op in ("+", "-"):
            x, y = map(self.real, exact.args)
            y = f"(-{y})" if exact.op == "-" else y
            inner = self.function(
                ["x", "y"], f"{self.name(reals.cancelling_sum)}(x, y, {self.name(sum_odd)}(x, y))"
            )
            return f"{function}({self.name(inner)}({x}, {y}))"
        return f"{function}({self.real(exact)})"

    def _native(self, exact: Node) -> str:
        """One operation of f32, as numpy rounds it; "" for what is none."""
        single = [
            f"{self.text(a)}.view(np.float32)"
            if a.type == "f32"
            else self.name(np.array(a.value, np.float32), "k")
            for a in exact.args
            if a.type == "f32" or a.op == "number"
        ]
        if len(single) < len(exact.args) or not single:
            return ""
        if exact.op in ("+", "-", "*", "/"):
            return f"({single[0]} {exact.op} {single[1]})"
        return f"np.sqrt({single[0]})" if exact.op == "sqrt" else ""

    def function(self, arguments: list[str], text: str) -> Function:
        found: Function = eval(f"lambda {', '.join(arguments)}: {text}", self.names)
        return found

    def _double(self, exact: Node) -> str:
        if exact.type in INTEGERS:
            return f"{self.name(reals.double_of_integer(self.mode))}({self.text(exact)})"
        named = {"+": "add", "-": "sub", "*": "mul", "/": "div", "sqrt": "sqrt"}
        if exact.op == "+" and exact.args[0].op == "*":
            name, args = "fma", (*exact.args[0].args, exact.args[1])
        elif exact.op in named:
            name, args = named[exact.op], exact.args
        else:
            encoded = self.name(partial(reals.encode, form=FORMATS["f64"]))
            return f"{encoded}({self.real(exact)})"
        return f"{self.name(reals.double(name, self.mode))}({', '.join(map(self._side, args))})"

    def _side(self, node: Node) -> str:
        """An operand of f64, or 1 of as many lanes."""
        return (
            self.real(node) if node.op != "number" else f"np.full_like(a, {node.value}, np.float64)"
        )

    def _integer(self, node: Node) -> str:
        (exact,) = node.args
        assert self.whole is not None
        wide = width_of(node.type) == 64 or exact.type == "f64"
        nan = 1 << width_of(node.type) - 1 if wide else 0
        function = reals.to_integer(node.type, self.whole, *range_of(node.type), nan)
        return f"{self.name(function)}({self.real(exact)})"


def largest(node: Node) -> int | None:
    """The largest that an amount can be; None: anything."""
    match node.op:
        case "number":
            return int(node.value)
        case "cast":
            return largest(node.args[0]) if node.args[0].type[0] == "u" else None
        case "&" if node.args[1].op == "number":
            return int(node.args[1].value)
        case "min" if node.args[1].op == "number":
            return int(node.args[1].value)
        case "*" if node.args[0].op == "number":
            other = largest(node.args[1])
            return None if other is None else other * int(node.args[0].value)
        case "select":
            ends = [largest(a) for a in node.args[1:]]
            return None if None in ends else max(e for e in ends if e is not None)
        case _:
            return None


# -- functions -------------------------------------------------------------------------------------


def _over_elements(function: Function, value: Computation, count: int) -> Function:
    """Applied to all elements of packed registers; predicates are of all elements of theirs."""
    part = {o.type: dtype(o.type) for o in value.operands.values()}
    parts = [part[o.type] if o.kind != "pred" else None for o in value.operands.values()]
    whole = dtype_of(value.kinds["d"]) if value.kinds["d"] != "pred" else None

    def wrapped(*operands: Array) -> Array:
        # The last axis is the lane: contiguous copies let it be split.
        split = [
            np.repeat(x, count, axis=-1) if p is None else np.ascontiguousarray(x).view(p)
            for x, p in zip(operands, parts, strict=True)
        ]
        found = function(*split)
        return found if whole is None else np.ascontiguousarray(found).view(whole)

    return wrapped


def _compile_function(
    value: Computation,
    results: tuple[str, ...],
    immediates: tuple[int, ...],
    constants: Mapping[str, int],
) -> Function:
    writer = Writer(value, dict(zip(value.immediates, immediates, strict=True)))
    nodes = [value.results[name] for name in results]
    texts = [writer.text(_fold_constants(node, constants) if constants else node) for node in nodes]
    text = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    return writer.function(list(value.operands), text)


@lru_cache(maxsize=1 << 12)
def amounts(value: Computation) -> tuple[str, ...]:
    """The operands that say by how much something is shifted, or how many bits it has."""
    node = value.results["d"]
    places = [each.args[1] for each in walk(node) if each.op in ("<<", ">>")]
    places += [each for each in walk(node) if each.op == "call" and each.value == "ones"]
    return tuple(sorted({n.value for p in places for n in walk(p) if n.op == "operand"}))


def _fold_constants(node: Node, constants: Mapping[str, int]) -> Node:
    """With operands that are constants as numbers, and what is made of numbers alone as one."""
    if node.op == "operand" and node.value in constants:
        return number(constants[node.value], node.type)
    args = tuple(_fold_constants(a, constants) for a in node.args)
    made = Node(node.op, node.type, args, node.value)
    if args and node.type in INTEGERS and all(a.op == "number" for a in args):
        if not any(a.type not in INTEGERS for a in args):
            writer = Writer(None, {})
            with np.errstate(all="ignore"):
                return number(int(writer.function([], writer.text(made))()), node.type)
    return made


@lru_cache(maxsize=1 << 12)
def definition(
    value: Computation,
    results: tuple[str, ...] = ("d",),
    immediates: tuple[int, ...] = (),
    constants: tuple[tuple[str, int], ...] = (),
) -> Function:
    """The results, one or a tuple, as a function of the operands that are read, as bits.

    Of a packed type a predicate that it gives has twice the lanes, those of each element.
    `constants`: operands that are, which are given all the same.
    """
    if results == ("d",) and (only := _ufunc(value.results["d"], list(value.operands))):
        function: Function = only
    else:
        function = _compile_function(value, results, immediates, dict(constants))
    return _over_elements(function, value, value.elements) if value.elements > 1 else function


@cache
def operation(text: str, kind: str) -> Function:
    """A text of a, b and c of one type as a function of their bits, two of them or three."""
    count = 3 if "c" in text.split() else 2
    line = Line(f".{kind} d, {', '.join('abc'[:count])}")
    return definition(value_of(text, line, (kind,), 1 + count))


def _ufunc(node: Node, operands: list[str]) -> np.ufunc | None:
    """The one ufunc that an expression is."""
    found = UFUNCS.get(node.op)
    if found is None or any(a.op != "operand" or is_real(a.type) for a in node.args):
        return None
    return found if [a.value for a in node.args] == operands else None
