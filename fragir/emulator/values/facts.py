"""What the checks must know of a row: where bits go, what address comes out of addresses.

Rows that say what they compute do not say this too: it follows from the expression. What a row says
of itself goes before (bfe, prmt and their like move bits in ways that an expression does not show).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from fragir.emulator.values.functions import FUNCTIONS
from fragir.emulator.values.language import (
    BOOL,
    INTEGERS,
    REALS,
    Computation,
    Node,
    value_of,
    walk,
)
from fragir.ptx.opcodes.row import (
    Address,
    Bits,
    Logic,
    Moves,
    Opcode,
    by_bytes,
    is_always,
    is_never,
)

#: The bits of a and b for which a truth table says what comes out.
_TABLE = {"a": 0xF0, "b": 0xCC}


class Facts(NamedTuple):
    """`cancels`: two equal operands give a result that does not depend on them."""

    bits: Bits
    address: Address
    cancels: bool


@lru_cache(maxsize=1 << 10)
def facts(row: Opcode) -> Facts:
    """Those of a row."""
    if not isinstance(row.decode, str):
        return Facts(row.bits or "mixed", row.address or "unknown", row.cancels)
    what = _first(row, row.decode)
    node = what.results["d"]
    bits = row.bits or _moves(what, node) or _logic(what, node) or "mixed"
    return Facts(bits, row.address or _address(node), _cancels(node))


def _first(row: Opcode, text: str) -> Computation:
    """The plainest form: by its first line, without what may be left out."""
    line = next(line for line in row.box if not line.missing)
    words = (*row.head, *(slot.words[0] for slot in line.slots if slot.required))
    return value_of(text, line, words, line.counts(words)[0], row.known)


def _bare(node: Node) -> Node:
    """Without what changes no more than the format."""
    while node.op in ("cast", "flush", "round", "approx", "integral", "integer", "truth"):
        (node,) = node.args
    return node


# -- bits ------------------------------------------------------------------------------------------


def _moves(what: Computation, node: Node) -> Moves | None:
    """Every bit of the result is one of an operand."""
    places = {name: operand.place for name, operand in what.operands.items()}
    if (node.op == "cast" and node.args[0].type in INTEGERS) or node.op == "operand":
        inner = node.args[0] if node.op == "cast" else node
        return Moves((), is_always) if inner.op == "operand" else None
    if node.op in ("<<", ">>") and all(n.op == "operand" for n in node.args):
        amount = places[node.args[1].value]
        return Moves((amount,), by_bytes(amount))
    if node.op == "call" and FUNCTIONS[node.value].moves:
        return Moves((), is_never)
    if node.op == "select" and all(n.op == "operand" for n in node.args[1:]):
        test = node.args[0]
        steering = {places[n.value] for n in walk(test) if n.op == "operand"}
        return Moves(tuple(sorted(steering)), is_always if test.op == "operand" else is_never)
    return None


def _logic(what: Computation, node: Node) -> Logic | None:
    """A truth table of the operands' bits."""
    if any(
        n.op not in ("operand", "&", "|", "^", "~", "and", "or", "not", "!=") for n in walk(node)
    ):
        return None
    if any(n.op == "!=" and n.type == BOOL and n.args[0].type != BOOL for n in walk(node)):
        return None
    table = 0
    for bit in range(8):
        given = {name: _TABLE[name] >> bit & 1 for name in what.operands}
        table |= _bit(node, given) << bit
    return Logic(table, len(what.operands))


def _bit(node: Node, given: dict[str, int]) -> int:
    if node.op == "operand":
        return given[node.value]
    args = [_bit(n, given) for n in node.args]
    match node.op:
        case "&" | "and":
            return args[0] & args[1]
        case "|" | "or":
            return args[0] | args[1]
        case "^" | "!=":
            return args[0] ^ args[1]
        case _:
            return 1 - args[0]


# -- addresses -------------------------------------------------------------------------------------


def _address(node: Node) -> Address:
    node = _bare(node)
    if node.op in ("min", "max") and any(n.op == "number" for n in node.args):  # clamped
        return _address(next(n for n in node.args if n.op != "number"))
    kinds = [_address(n) for n in node.args]
    plain = all(_bare(n).op == "operand" for n in node.args)
    match node.op:
        case "operand":
            return "same"
        case "number" | "/" | "%":
            return "number"
        case _ if node.op in REALS:
            return "number"
        case "call" if FUNCTIONS[node.value].counts:
            return "number"
        case "select" if all(kind == "number" for kind in kinds[1:]):
            return "number"
        case "==" | "!=" | "<" | "<=" | ">" | ">=":
            return "number"
        case "+" if _is_product(node.args[0]):
            return "product"
        case "-" if set(kinds) == {"number"}:
            return "number"
        case "+" | "|" | "^" if plain:
            return "sum"
        case "-" if plain:
            return "difference"
        case "&" if plain:
            return "masked"
        case ">>" if plain:
            return "shifted"
        case "select" if all(kind == "same" for kind in kinds[1:]):
            return "either"
        case "min" | "max":
            return "either"
        case _:
            return "unknown"


def _is_product(node: Node) -> bool:
    node = _bare(node)
    if node.op == ">>":
        node = _bare(node.args[0])
    return node.op == "*" or (node.op == "call" and node.value == "high")


def _cancels(node: Node) -> bool:
    node = _bare(node)
    plain = [_bare(n) for n in node.args]
    return node.op in ("-", "^") and all(n.op == "operand" for n in plain)
