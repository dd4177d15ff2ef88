"""What to write instead of operations that have no instruction: for messages."""

from __future__ import annotations

from fragir.passes.writer import arith as tables

# x and y are the operands
INSTEAD: dict[str, str] = {
    "math.erf": "math.tanh(1.128379 x + 0.100911 x^3), which is within 0.001 of it",
    "math.tan": "math.sin(x) / math.cos(x)",
    "math.sinh": "(math.exp(x) - math.exp(-x)) / 2",
    "math.cosh": "(math.exp(x) + math.exp(-x)) / 2",
    "math.asinh": "math.log(x + math.sqrt(x^2 + 1)) for x >= 0",
    "math.acosh": "math.log(x + math.sqrt(x^2 - 1))",
    "math.atanh": "math.log((1 + x) / (1 - x)) / 2",
    "math.expm1": "math.exp(x) - 1",
    "math.log1p": "math.log(1 + x)",
    "math.log10": "0.3010300 math.log2(x)",
    "math.powf": "math.exp2(y math.log2(x)) for x > 0",
    "math.fpowi": "multiply, or math.exp2(y math.log2(x)) for x > 0",
    "math.ipowi": "multiply",
    "math.cbrt": "math.exp2(math.log2(x) / 3) for x > 0",
    "math.round": "math.floor(x + 0.5) for x >= 0, or math.roundeven",
    "math.copysign": "math.absf(x), negated where y < 0 by arith.select",
    "arith.ceildivui": "arith.divui of x + y - 1 and y",
    "arith.ceildivsi": "arith.divsi of x + y - 1 and y for x >= 0 and y > 0",
    "arith.floordivsi": "arith.divsi for x >= 0 and y > 0",
    "arith.remf": "x - y math.trunc(x / y)",
}


def hint(name: str) -> str:
    """A way out where an operation cannot be written as PTX."""
    dialect = name.partition(".")[0]
    if dialect not in ("math", "arith"):
        return "lower tiles with convert-frag-to-ptx first"
    if name in INSTEAD:
        return f"write {INSTEAD[name]}"
    known = {*tables.FLOAT, *tables.SCALED, *tables.INTEGER}
    names = sorted(each.partition(".")[2] for each in known if each.startswith(dialect + "."))
    return f"{dialect} has {', '.join(names)}"
