"""Values of constant expressions (PTX ISA 9.2, section 4.5)."""

from __future__ import annotations

from fragir.ptx import tree

WARP_SIZE = 32


def binary(operator: str, left: int, right: int) -> int | None:
    """The value of two integers under an operator; None where they have none."""
    if operator in ("/", "%") and right == 0:
        return None
    quotient = 0
    if operator in ("/", "%"):
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    table = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: quotient,
        "%": lambda: left - quotient * right,
        "<<": lambda: left << (right & 63),
        ">>": lambda: left >> (right & 63),
        "&": lambda: left & right,
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "&&": lambda: int(bool(left and right)),
        "||": lambda: int(bool(left or right)),
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        "<=": lambda: int(left <= right),
        ">": lambda: int(left > right),
        ">=": lambda: int(left >= right),
    }
    return table[operator]()


def constant_or_none(node: tree.Operand) -> int | None:
    """The value of a constant expression; None where it is none (PTX ISA 9.2, section 4.5)."""
    match node:
        case tree.Integer():
            return node.value
        case tree.Name(text="WARP_SZ"):
            return WARP_SIZE
        case tree.Parens(elements=(inner,)):
            return constant_or_none(inner)
        case tree.Cast():
            return constant_or_none(node.operand)
        case tree.Unary():
            inner_value = constant_or_none(node.operand)
            if inner_value is None:
                return None
            return {
                "-": -inner_value,
                "+": inner_value,
                "~": ~inner_value,
                "!": int(not inner_value),
            }[node.operator]
        case tree.Binary():
            left, right = (
                constant_or_none(node.left),
                constant_or_none(node.right),
            )
            if left is None or right is None:
                return None
            return binary(node.operator, left, right)
        case tree.Conditional():
            condition = constant_or_none(node.condition)
            if condition is None:
                return None
            return constant_or_none(node.then if condition else node.otherwise)
        case _:
            return None
