"""Initial values of variables as bytes (PTX ISA 9.2, sections 4.5 and 5.4.4).

ptxas decides what is not written there: an array needs braces and a scalar has none, integers
take no floating-point numbers nor the other way round, `.b32` and `.b64` take both, and elements
follow each other without gaps where inner braces hold fewer than there is room for.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.program.entities import Symbol, type_size
from fragir.emulator.program.expressions import constant_or_none
from fragir.emulator.program.program import Program
from fragir.ptx import tree

_FLOATS = {"f32": "<f", "f64": "<d", "b32": "<f", "b64": "<d"}
_INTEGERS = {f"{sign}{width}" for sign in "sub" for width in (8, 16, 32, 64)} | {"b128"}
#: Spaces whose variables have addresses that an initial value can hold.
_ADDRESSED = {"global": GLOBAL_BASE, "const": 0, "function": 0}


def image(program: Program, symbol: Symbol) -> bytes:
    """The bytes that a variable begins with. FragirError where they are none of its type."""
    variable, declaration = symbol.variable, symbol.declaration
    if variable is None or declaration is None or variable.initializer is None:
        return b""
    kind = declaration.type
    if kind not in _INTEGERS and kind not in _FLOATS:
        text = f"{symbol.name} is a .{kind}, which has no initial value"
        raise program.error(text, variable.at)
    extents = [None if d is None else program.constant(d) for d in variable.dimensions]
    if declaration.vector is not None:
        extents.append(int(declaration.vector[1:]))
    values = list(_elements(program, symbol, variable.initializer, extents))
    return b"".join(_value(program, value, kind) for value in values)


def _elements(
    program: Program, symbol: Symbol, node: tree.Operand, extents: list[int | None]
) -> Iterator[tree.Operand]:
    """The values of an initialiser in order; braces go as deep as the variable has dimensions."""
    if not extents:
        if isinstance(node, tree.Vector):
            raise program.error(f"an element of {symbol.name} is one value, not a list", node.at)
        yield node
        return
    if not isinstance(node, tree.Vector):
        raise program.error(f"{symbol.name} is an array: its values stand in braces", node.at)
    most = extents[0]
    if most is not None and len(node.elements) > most:
        raise program.error(
            f"{symbol.name} has too many initial values: {len(node.elements)} for {most}", node.at
        )
    for element in node.elements:
        yield from _elements(program, symbol, element, extents[1:])


def _value(program: Program, node: tree.Operand, kind: str) -> bytes:
    size = type_size(kind)
    if kind in _FLOATS:
        number = _number(program, node)
        if number is not None:
            return _pack(program, node, number, kind)
    if kind[0] == "f":
        raise program.error(f"a .{kind} begins with a floating-point number, say 1.0", node.at)
    value = constant_or_none(node)
    if value is None:
        value = _address(program, node, kind)
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _pack(program: Program, node: tree.Operand, number: float, kind: str) -> bytes:
    try:
        return struct.pack(_FLOATS[kind], number)
    except OverflowError:
        raise program.error(f"{number:g} is no .{kind}", node.at) from None


def _number(program: Program, node: tree.Operand) -> float | None:
    """The value of a floating-point expression; None where it has no such number."""
    match node:
        case tree.Float():
            return node.value
        case tree.Parens(elements=(inner,)):
            return _number(program, inner)
        case tree.Unary(operator="-" | "+"):
            value = _number(program, node.operand)
            return -value if value is not None and node.operator == "-" else value
        case tree.Binary(operator="+" | "-" | "*" | "/"):
            left, right = _number(program, node.left), _number(program, node.right)
            if left is None or right is None:
                return None
            return _arithmetic(node.operator, left, right)
        case tree.Conditional():
            condition = constant_or_none(node.condition)
            if condition is None:
                return None
            return _number(program, node.then if condition else node.otherwise)
        case _:
            return None


def _arithmetic(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _ if right:
            return left / right
        case _:
            return math.nan if not left else math.copysign(math.inf, left) * math.copysign(1, right)


def _address(program: Program, node: tree.Operand, kind: str, generic: bool = False) -> int:
    """The address of a variable, with an offset, as a generic one, or some bytes of it."""
    match node:
        case tree.Parens(elements=(inner,)):
            return _address(program, inner, kind, generic)
        case tree.Binary(operator="+" | "-"):
            offset = program.constant(node.right)
            base = _address(program, node.left, kind, generic)
            return base + (offset if node.operator == "+" else -offset)
        case tree.Apply(function=tree.Integer(value=mask)) if mask:
            shift = (mask & -mask).bit_length() - 1
            return (_address(program, node.argument, kind, generic) & mask) >> shift
        case tree.Apply(function=tree.Name(text="generic")):
            return _address(program, node.argument, kind, True)
        case tree.Name():
            return _place(program, node, generic)
        case tree.Float():
            raise program.error(f"a .{kind} begins with an integer", node.at)
        case _:
            raise program.error("an initial value is a constant or an address", node.at)


def _place(program: Program, node: tree.Name, generic: bool) -> int:
    found = program.find(program.root, node.text)
    if found is None:
        raise program.error(f"{node.text} is not declared", node.at)
    is_entry = node.text in program.module.entries
    if is_entry or not isinstance(found, Symbol) or found.space not in _ADDRESSED:
        raise program.error(f"the address of {node.text} is no initial value", node.at)
    base = GLOBAL_BASE if generic and found.space == "const" else _ADDRESSED[found.space]
    return found.offset + base
