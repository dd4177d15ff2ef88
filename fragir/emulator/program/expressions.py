"""Operators of constant expressions (PTX ISA 9.2, section 4.5)."""

from __future__ import annotations


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
