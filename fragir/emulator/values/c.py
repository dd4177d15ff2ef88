"""What an instruction computes as an expression of C, made from its text.

`native/source/straight_list.h` has the expressions of all rows; `make core` writes it anew. The
library says which it has: an instruction whose expression is among them can be part of a straight
run (`machine/straight.py`), whatever its opcode is called. `straight_math.h` has the functions that
are named.

Operands are a, b, c, d in the order of the statement, k is the immediate of the operation: the
constant of lop3, or, where an opcode has modifiers that are rare, those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from fragir.emulator.numbers.types import width_of
from fragir.emulator.values.language import (
    BOOL,
    FLOATS,
    INTEGERS,
    INTEGRAL,
    Computation,
    Node,
    bits_of,
    is_real,
    range_of,
    value_of,
    walk,
)
from fragir.ptx.opcodes.row import Opcode
from fragir.ptx.opcodes.syntax import Line, ModifierSlot, Words

#: Modifiers that an immediate tells of, and those that no function here knows.
ROUNDINGS = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}
MODIFIERS = {"ftz": 4, "sat": 8, "relu": 16, "NaN": 32}
_UNKNOWN = frozenset("oob xorsign satfinite rna rs cc".split())
_TOLD = frozenset((*ROUNDINGS, *MODIFIERS, *INTEGRAL))
_NAMES = "abcd"
_AGNOSTIC = frozenset("+ - * & | ^ ~ neg <<".split())


class CExpression(NamedTuple):
    """An expression of C; `text`: as the library names it."""

    result: str
    operands: tuple[str, ...]
    expression: str

    @property
    def text(self) -> str:
        return f"{self.result} {' '.join(self.operands)}: {self.expression}"


class NoExpression(Exception):
    """A value that is not computed in C."""


def immediate(words: Iterable[str]) -> int:
    """The modifiers of an opcode in the immediate of its function."""
    given = frozenset(words)
    whole = next((ROUNDINGS[m] for w, m in INTEGRAL.items() if w in given), 0)
    mode = next((n for w, n in ROUNDINGS.items() if w in given), whole)
    return mode | sum(bit for w, bit in MODIFIERS.items() if w in given)


# -- integers --------------------------------------------------------------------------------------


def _without_signs(node: Node) -> Node:
    """The same bits, unsigned wherever the sign does not matter."""
    kind = f"u{node.type[1:]}"
    if node.type[0] == "u" and node.op not in _AGNOSTIC:
        return node
    match node.op:
        case "operand":
            return Node("operand", kind, value=node.value)
        case "number":
            return Node("number", kind, value=node.value & (1 << width_of(kind)) - 1)
        case "cast" if node.args[0].type in INTEGERS:
            if width_of(node.args[0].type) >= width_of(kind):
                return Node("cast", kind, (_without_signs(node.args[0]),))
            return Node("cast", kind, node.args)
        case "<<":
            return Node("<<", kind, (_without_signs(node.args[0]), node.args[1]))
        case "select":
            test, x, y = node.args
            return Node("select", kind, (test, _without_signs(x), _without_signs(y)))
        case _ if node.op in _AGNOSTIC:
            return Node(node.op, kind, tuple(map(_without_signs, node.args)))
        case _:
            return Node("cast", kind, (node,))


class _Writer:
    """Writes one value; `by`: its modifiers are those of k."""

    def __init__(self, value: Computation, node: Node, by: bool) -> None:
        self.words, self.by = frozenset(value.words), by
        self.names = dict(zip(value.operands, _NAMES, strict=False))
        floats = {o.type for o in value.operands.values()} | {value.results["d"].type}
        #: The formats whose operands .ftz changes: that of `value_of`.
        self.flushed = floats & {"f32"} or floats
        self.seen: dict[str, set[str]] = {}
        for each in walk(node):
            if each.op == "operand":
                self.seen.setdefault(each.value, set()).add(each.type)
        #: The types of the parameters.
        self.types: dict[str, str] = {}
        for name, operand in value.operands.items():
            types = self.seen.get(name, set())
            only = next(iter(types)) if len(types) == 1 else operand.type
            self.types[name] = "u8" if only == BOOL else bits_of(only) if only in FLOATS else only

    def text(self, node: Node) -> str:
        match node.op:
            case "operand" if not is_real(node.type):
                kind = "u8" if node.type == BOOL else node.type
                name = self.names[node.value]
                return name if self.types[node.value] == kind else f"({kind}){name}"
            case "immediate":
                return "k"
            case "number":
                return self._number(node)
            case "cast":
                return f"({node.type}){self.text(node.args[0])}"
            case "select":
                test, x, y = map(self.text, node.args)
                return f"({test} ? {x} : {y})"
            case "==" | "!=" if node.args[0].type in INTEGERS:
                x, y = (self.text(_without_signs(a)) for a in node.args)
                return f"({x} {node.op} {y})"
            case "<" | "<=" | ">" | ">=" | "==" | "!=":
                x, y = (self.number(a) if is_real(a.type) else self.text(a) for a in node.args)
                return f"({x} {node.op} {y})"
            case "and" | "or":
                x, y = map(self.text, node.args)
                return f"({x} {'&' if node.op == 'and' else '|'} {y})"
            case "not":
                return f"!{self.text(node.args[0])}"
            case "integer":
                return self._integer(node)
            case _ if is_real(node.type):
                return self.bits(node)
            case "call":
                return self._call(node)
            case "<<" | ">>":
                return self._shift(node)
            case _:
                return self._integers(node)

    def _number(self, node: Node) -> str:
        value = int(node.value)
        if node.type in ("u32", "u16", "u8"):
            return f"{value}u" if node.type == "u32" else str(value)
        if node.type == "u64":
            return f"(u64){value}u"
        return f"({node.type}){value}" if value > -(1 << 31) else f"(({node.type}){value + 1} - 1)"

    def _narrow_text(self, kind: str, text: str) -> str:
        """C computes in 32 bits at least."""
        return f"({kind})({text})" if width_of(kind) < 32 else f"({text})"

    def _integers(self, node: Node) -> str:
        kind = node.type
        args = list(map(self.text, node.args))
        match node.op:
            case "+" | "-" | "*" | "&" | "|" | "^":
                return self._narrow_text(kind, f"{args[0]} {node.op} {args[1]}")
            case "~":
                return self._narrow_text(kind, f"~{args[0]}")
            case "neg":
                return self._narrow_text(kind, f"0 - {args[0]}")
            case "abs":
                return self._narrow_text(kind, f"{args[0]} < 0 ? 0 - {args[0]} : {args[0]}")
            case "min" | "max":
                return f"{node.op}_{kind}({', '.join(args)})"
            case "/" | "%" if kind[0] == "s":
                return f"({kind}){'divide' if node.op == '/' else 'rest_of'}({', '.join(args)})"
            case "/" | "%":
                zero = self._narrow_text(kind, f"~({kind})0") if node.op == "/" else args[0]
                return f"({args[1]} ? {args[0]} {node.op} {args[1]} : {zero})"
            case _:
                raise NoExpression(node.op)

    def _shift(self, node: Node) -> str:
        from fragir.emulator.values.arrays import largest

        x, n = node.args
        width, kind = width_of(node.type), node.type
        left, amount = self.text(x), self.text(n)
        most = largest(n)
        inside = self._narrow_text(kind, f"{left} {node.op} {amount}")
        if most is not None and most < width:
            return inside
        if kind[0] == "s" and node.op == ">>":
            last = width - 1
            return self._narrow_text(kind, f"{left} >> ({amount} < {last} ? {amount} : {last})")
        return f"({amount} < {width} ? {inside} : 0)"

    def _call(self, node: Node) -> str:
        args = list(map(self.text, node.args))
        kind = node.args[0].type
        width = width_of(kind)
        match node.value:
            case "high" if width == 64:
                return f"({kind})high_{kind}({', '.join(args)})"
            case "high":
                return f"({kind})(({kind[0]}{2 * width}){args[0]} * {args[1]} >> {width})"
            case "popc":
                return f"(u32)__builtin_popcount{'ll' * (width == 64)}({args[0]})"
            case "clz":
                return f"zeros{width}({args[0]})"
            case "brev":
                return f"({kind})(reverse({args[0]}) >> {64 - width})"
            case "ones" | "permute" | "look_up":
                return f"{node.value}({', '.join(args)})"
            case _:
                raise NoExpression(node.value)

    # -- floating point ----------------------------------------------------------------------------

    def number(self, node: Node) -> str:
        """A floating-point number, or one that is exact, as f32 or f64."""
        if node.type == "f32":
            return f"value32({self.text(node)})"
        if node.type == "f64":
            return f"value64({self.text(node)})"
        if node.type in ("f16", "bf16"):
            return f"{'half' if node.type == 'f16' else 'brain'}({self.text(node)})"
        if node.op == "number":
            if node.value == float("inf"):
                return "(f32)INFINITY"
            return f"{node.value!r}{'f' * float(node.value).is_integer()}"
        if node.op == "neg":
            return f"-{self.number(node.args[0])}"
        raise NoExpression(node.op)

    def _operand(self, text: str, kind: str) -> str:
        """The bits of an operand after .ftz of k."""
        if not self.by or kind not in ("f32", "f16") or kind not in self.flushed:
            return text
        return f"input32({text}, k)" if kind == "f32" else f"in_half({text}, k)"

    def _finish(self, text: str, kind: str) -> str:
        if not self.by or kind == "f64":
            return text
        name = {"f32": "finish32", "f16": "out_half", "bf16": "out_brain"}[kind]
        return f"{name}({text}, k)"

    def bits(self, node: Node) -> str:
        kind = node.type
        match node.op:
            case "operand":
                return self._operand(self.names[node.value], kind)
            case "flush" if kind == "f32":
                return f"flush32({self.text(node.args[0])})"
            case "flush" if kind in ("f16", "bf16"):
                return (
                    f"flush16({self.text(node.args[0])}, {'0x7C00' if kind == 'f16' else '0x7F80'})"
                )
            case "finish":
                return self._finish(self.text(node.args[0]), kind)
            case "neg" | "abs" | "copysign":
                return self._sign(node)
            case "min" | "max" if kind != "f64" and "xorsign" not in node.value:
                name = {"f32": "extreme32", "f16": "extreme_half", "bf16": "extreme_brain"}[kind]
                how = "k" if self.by else MODIFIERS["NaN"] if "NaN" in node.value else 0
                x, y = map(self.text, node.args)
                return f"{name}({x}, {y}, {int(node.op == 'max')}, {how})"
            case "round":
                return self._round(node.args[0], kind)
            case "approx":
                return self._near(node.args[0], kind)
            case _:
                raise NoExpression(node.op)

    def _sign(self, node: Node) -> str:
        kind = bits_of(node.type)
        sign = f"(({kind})1 << {width_of(kind) - 1})"
        args = list(map(self.text, node.args))
        if node.op == "neg":
            return self._narrow_text(kind, f"{args[0]} ^ {sign}")
        if node.op == "abs":
            return self._narrow_text(kind, f"{args[0]} & ~{sign}")
        return self._narrow_text(kind, f"({args[1]} & ~{sign}) | ({args[0]} & {sign})")

    def _round(self, exact: Node, kind: str) -> str:
        """The nearest number, of what is one operation on operands."""
        if exact.type in INTEGERS:
            return self._of_integer(exact, kind)
        if exact.type in FLOATS:
            return self._between_text(exact, kind)
        if exact.op == "integral":
            (inner,) = exact.args
            if kind != "f32" or inner.type != "f32" or not self.by:
                raise NoExpression("integral")
            return f"canonical32((f32)whole({self.number(inner)}, k))"
        if kind == "f64" or any(n.type in FLOATS and n.type != kind for n in walk(exact)):
            raise NoExpression("several formats")
        if kind == "f32":
            return self._single(exact)
        if not self.words.isdisjoint(("rz", "rm", "rp")):
            raise NoExpression("a rounding of 16 bits")
        return self._half(exact) if kind == "f16" else self._brain(exact)

    def _is_fused(self, exact: Node) -> bool:
        return exact.op == "+" and exact.args[0].op == "*"

    def _single(self, exact: Node) -> str:
        if self._is_fused(exact):
            (a, b), c = exact.args[0].args, exact.args[1]
            if self.by:
                x = f"(f64){self.number(a)} * {self.number(b)}"
                return f"add_mode32({x}, {self.number(c)}, k)"
            return f"fma32({self.text(a)}, {self.text(b)}, {self.text(c)})"
        if not self.by:
            return f"canonical32({self._one(exact)})"
        x, *rest = map(self.number, exact.args)
        match exact.op:
            case "+":
                return f"add_mode32({x}, {rest[0]}, k)"
            case "-":
                return f"add_mode32({x}, -(f64){rest[0]}, k)"
            case "*":
                return f"round32((f64){x} * {rest[0]}, k)"
            case _:
                raise NoExpression(exact.op)

    def _one(self, exact: Node) -> str:
        """One operation of f32."""
        if exact.op in ("+", "-", "*", "/"):
            x, y = map(self.number, exact.args)
            return f"{x} {exact.op} {y}"
        if exact.op == "sqrt":
            return f"__builtin_sqrtf({self.number(exact.args[0])})"
        raise NoExpression(exact.op)

    def _half(self, exact: Node) -> str:
        if exact.op == "*":
            x, y = map(self.number, exact.args)
            return f"half_of(canonical32({x} * {y}), RN)"
        if exact.op not in ("+", "-"):
            raise NoExpression(exact.op)
        x, y = (
            " * ".join(map(self.number, a.args)) if a.op == "*" else self.number(a)
            for a in exact.args
        )
        return f"half_of(sum_odd32({x}, {'-' * (exact.op == '-')}{y}), RN)"

    def _brain(self, exact: Node) -> str:
        if exact.op == "*":
            x, y = map(self.number, exact.args)
            return f"brain_odd((f64){x} * {y})"
        if self._is_fused(exact):
            (a, b), c = exact.args[0].args, exact.args[1]
            return f"brain_odd(sum_odd((f64){self.number(a)} * {self.number(b)}, {self.number(c)}))"
        if exact.op not in ("+", "-"):
            raise NoExpression(exact.op)
        x, y = map(self.number, exact.args)
        return f"brain_of(sum_odd32({x}, {'-' * (exact.op == '-')}{y}), RN)"

    def _near(self, exact: Node, kind: str) -> str:
        """An approximation that is one operation of f32, or a root below one."""
        if kind != "f32" or self.by:
            raise NoExpression("approx")
        if exact.op == "divide_approximately":
            return f"divide_approximately({', '.join(map(self.text, exact.args))})"
        if exact.op == "/" and exact.args[1].op == "sqrt":
            x = self.number(exact.args[1].args[0])
            return f"canonical32((f32)({exact.args[0].value!r} / __builtin_sqrt((f64){x})))"
        return f"canonical32({self._one(exact)})"

    # -- conversions -------------------------------------------------------------------------------

    def _of_integer(self, exact: Node, kind: str) -> str:
        text, small = self.text(exact), width_of(exact.type) <= 32
        near = not self.by
        match kind:
            case "f32" if near:
                return f"bits32((f32){text})"
            case "f32" if small:
                return f"round32((f64){text}, k)"
            case "f16" if small:
                return f"half_of(odd32({text}), {'RN' if near else 'k'})"
            case "bf16" if small:
                return f"brain_of(odd32({text}), {'RN' if near else 'k'})"
            case "f64" if small:
                return f"bits64((f64){text})"
            case _:
                raise NoExpression("a conversion of integers")

    def _between_text(self, exact: Node, kind: str) -> str:
        x, mode = self.number(exact), "k" if self.by else "RN"
        match kind, exact.type:
            case ("f32", "f64") if self.by:
                return f"round32({x}, k)"
            case "f32", "f64":
                return f"canonical32((f32){x})"
            case "f32", _:
                return f"canonical32({x})"
            case "f64", "f32":
                return f"canonical64((f64){x})"
            case (("f16" | "bf16"), "f32") if self.words.isdisjoint(("sat", "relu")):
                name = "half_of" if kind == "f16" else "brain_of"
                return f"{name}({self.text(exact)}, {mode})"
            case _:
                raise NoExpression("a conversion")

    def _integer(self, node: Node) -> str:
        (exact,) = node.args
        width = width_of(node.type)
        low, _ = range_of(node.type)
        nan = f"(u64)1 << {width - 1}" if width == 64 or exact.type == "f64" else "0"
        ends = f"INT{width}_MIN, INT{width}_MAX" if low else f"{f'UINT{width}_MAX'}"
        name = "to_signed" if low else "to_unsigned"
        return f"({node.type}){name}({self.number(exact)}, k, {ends}, {nan})"


# -- expressions of opcodes ------------------------------------------------------------------------


def _bare(node: Node) -> Node:
    """Without what modifiers that are in k do."""
    if node.op in ("flush", "sat", "relu"):
        return _bare(node.args[0])
    return Node(node.op, node.type, tuple(map(_bare, node.args)), node.value)


def _is_in_immediate(value: Computation, node: Node) -> bool:
    """Whether the modifiers of an opcode are told in k."""
    given = {w for w in value.words if w in MODIFIERS or w in ROUNDINGS or w in INTEGRAL} - {"rn"}
    if node.op == "integer":
        return True
    if node.type not in FLOATS:
        return False
    if {o.type for o in value.operands.values()} == {"f32"} or node.type == "f32":
        return not given <= {"ftz"}
    return bool(given)


def _is_narrowing(node: Node) -> bool:
    """A conversion of f32 to 16 bits, whose .ftz is one of the operand."""
    return node.op == "round" and node.type in ("f16", "bf16") and node.args[0].type == "f32"


@lru_cache(maxsize=1 << 12)
def expression(value: Computation) -> CExpression | None:
    """The expression of an opcode's first result; None where it is not computed in C."""
    if not _UNKNOWN.isdisjoint(value.words) or len(value.operands) > len(_NAMES):
        return None
    if value.elements > 2 or value.packed == "f32x2" or "cc" in value.operands:
        return None
    if len(value.results) > 1 and any(o.type == BOOL for o in value.operands.values()):
        return None  # combined with a predicate: the machine does that (`COMPARE`)
    node = value.results["d"]
    by = _is_in_immediate(value, node)
    if by:
        node = _bare(node)
        if node.op != "integer" and not _is_narrowing(node):
            node = Node("finish", node.type, (node,))
    if node.type in INTEGERS and node.op != "integer":
        node = _without_signs(node)
    if any(n.op == "truth" for n in walk(node)):  # of a set of masks there are too many
        return None
    try:
        writer = _Writer(value, node, by)
        text = writer.text(node)
    except NoExpression:
        return None
    result = "u8" if node.type == BOOL else bits_of(node.type)
    return CExpression(result, tuple(writer.types.values()), _without_brackets(text, result))


def _without_brackets(text: str, result: str) -> str:
    """Without parentheses and a conversion around all of it, which the result has anyway."""
    text = text.removeprefix(f"({result})") if _encloses(text.removeprefix(f"({result})")) else text
    return text[1:-1] if _encloses(text) else text


def _encloses(text: str) -> bool:
    """Whether the first parenthesis is closed by the last character."""
    if not text.startswith("("):
        return False
    depth = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return at == len(text) - 1
    return False


# -- the list of all -------------------------------------------------------------------------------

#: What `mov` and address arithmetic are made of, and pairs of numbers of 16 bits.
MOVES: tuple[CExpression, ...] = (
    *(CExpression(f"u{n}", (f"u{n}",), "a") for n in (8, 16, 32, 64)),
    *(
        CExpression(f"u{part}", (f"u{whole}",), "a >> k")
        for part, whole in ((8, 16), (8, 32), (8, 64), (16, 32), (16, 64), (32, 64))
    ),
    CExpression("u32", ("u16", "u16"), "a | (u32)b << 16"),
    CExpression("u64", ("u32", "u32"), "a | (u64)b << 32"),
    CExpression("u64", ("u16",) * 4, "a | (u64)b << 16 | (u64)c << 32 | (u64)d << 48"),
    CExpression("u32", ("u8",) * 4, "a | (u32)b << 8 | (u32)c << 16 | (u32)d << 24"),
)
#: By the type of the pair: the nearest, and by k.
PAIRS: dict[str, tuple[CExpression, CExpression]] = {
    kind: (
        CExpression("u32", ("u32", "u32"), f"(u32){name}(a, RN) << 16 | {name}(b, RN)"),
        CExpression("u32", ("u32", "u32"), f"(u32){name}(a, k) << 16 | {name}(b, k)"),
    )
    for kind, name in (("f16x2", "half_of"), ("bf16x2", "brain_of"))
}
#: The sum of two addresses.
ADDRESSES = CExpression("u64", ("u64", "u64"), "a + b")
_JOINS: dict[tuple[str, ...], CExpression] = {e.operands: e for e in MOVES if len(e.operands) > 1}


def widen(result: int, kind: str) -> CExpression:
    """An integer as another of some bits, by the sign of its type."""
    return CExpression(f"u{result}", (kind,), "a")


def part_of(part: int, whole: int) -> CExpression:
    """Some bits of a register, shifted down by the immediate."""
    return CExpression(f"u{part}", (f"u{whole}",), "a >> k")


def join_parts(parts: int, width: int) -> CExpression | None:
    """Parts of some bits, the lowest first, as one register."""
    return _JOINS.get((f"u{width}",) * parts)


def _choices(slot: ModifierSlot) -> Iterable[str]:
    """The words of a slot for which there are expressions of their own; "" for none of them."""
    words: list[str] = [] if slot.required else [""]
    for word in slot.words:
        if word not in _UNKNOWN:
            words.append(word)
    return words


def opcodes_of_line(row: Opcode, line: Line) -> Iterator[Words]:
    """Every opcode of a line for which there may be an expression, in the order of the row."""
    for words in product(*map(_choices, line.slots)):
        yield (*row.head, *filter(None, words))


def expressions(rows: Iterable[Opcode]) -> dict[str, CExpression]:
    """All expressions of rows, each under the name of the first opcode that has it."""
    found: dict[CExpression, str] = {}
    names: set[str] = set()

    def add(expression: CExpression | None, name: str) -> None:
        if expression is None or expression in found:
            return
        name = re.sub(r"\W", "_", name)
        found[expression] = name if name not in names else f"{name}_{len(names)}"
        names.add(found[expression])

    for number, each in enumerate(MOVES, 1):
        add(each, f"mov_{number}")
    for row in rows:
        lines = [line for line in row.box if not line.missing and isinstance(row.decode, str)]
        for line in lines:
            for words in opcodes_of_line(row, line):
                counts = line.counts(words)
                value = value_of(row.decode, line, words, counts[-1], row.known)  # type: ignore[arg-type]
                made = expression(value)
                by = made is not None and bool(re.search(r"\bk\b", made.expression))
                kept = [w for w in words if not by or w not in _TOLD]
                add(made, "_".join([*kept, *["by"] * by]))
    for kind, pair in PAIRS.items():
        for each in pair:
            add(each, f"cvt_{kind}_f32")
    for bits, kind in product((8, 16, 32, 64), sorted(INTEGERS)):
        add(widen(bits, kind), f"cvt_u{bits}_{kind}")
    return {name: each for each, name in found.items()}


def header(rows: Iterable[Opcode]) -> str:
    """The text of straight_list.h."""
    lines = [
        "/* The functions of straight-line runs, made of the texts of the table of opcodes:",
        " * `make core` writes them. OF1(name, R, A, expression of a), OF2, OF3, OF4: the result",
        " * has type R, operands a, b, c, d have types A, B, C, D; k is the immediate. */",
    ]
    for name, each in expressions(rows).items():
        types = ", ".join((each.result, *each.operands))
        lines.append(f"OF{len(each.operands)}({name}, {types}, {each.expression})")
    return "\n".join(lines) + "\n"
