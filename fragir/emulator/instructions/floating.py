"""Floating-point arithmetic (PTX ISA 9.2, sections 9.7.3 to 9.7.5).

add, sub, mul, fma, div, rcp, sqrt with a rounding mode are IEEE 754 to the bit, in every format;
NaN results are canonical. How near approximations are is said in `values/reals.py`.
"""

from __future__ import annotations

from fragir.emulator.program.opcode import Opcode

_PRODUCT = """
    {.RND}{.ftz}{.sat}.f32 d, a, b
    {.RND}{.ftz}.f32x2 d, a, b
    {.RND}.f64 d, a, b
    {.rn}{.ftz}{.sat}.f16|f16x2 d, a, b
    {.rn}.bf16|bf16x2 d, a, b
"""
_SUM = f"""{_PRODUCT}
    {{.RND}}{{.sat}}.f32.f16|bf16 d, a:2, b:1
"""
_EXTREME = """
x = {0}(abs(a), abs(b)) if abs and not xorsign else {0}(a, b)
d = x if not given(c) else {0}(x, abs(c) if abs else c)
"""

OPCODES: tuple[Opcode, ...] = (
    Opcode("add", _SUM, "round(a + b)", address="sum"),
    Opcode("sub", _SUM, "round(a - b)", address="difference", cancels=True),
    Opcode("mul", _PRODUCT, "round(a * b)"),
    Opcode(
        "fma",
        """
        .RND{.ftz}{.sat}.f32 d, a, b, c
        .RND{.ftz}.f32x2 d, a, b, c
        .RND.f64 d, a, b, c
        .rn{.ftz}{.sat}.f16|f16x2 d, a, b, c
        .rn{.ftz}.relu.f16|f16x2 d, a, b, c
        .RND{.relu}.bf16|bf16x2 d, a, b, c
        .rn.oob{.sat|relu}.f16|f16x2 d, a, b, c
        .RND.oob{.relu}.bf16|bf16x2 d, a, b, c
        .RND{.sat}.f32.f16|bf16 d, a:2, b:2, c:1
        """,
        "round(a * b + c)",
        address="product",
    ),
    Opcode(
        "mad",
        """
        .RND{.ftz}{.sat}.f32 d, a, b, c
        .RND.f64 d, a, b, c
        """,
        "round(a * b + c)",
        address="product",
    ),
    Opcode(
        "div",
        ".approx|RND{.ftz}.f32 d, a, b\n.RND.f64 d, a, b",
        "approx(divide_approximately(a, b)) if approx else round(a / b)",
        address="number",
    ),
    Opcode("div.full", "{.ftz}.f32 d, a, b", "approx(a / b)", address="number"),
    Opcode(
        "rcp",
        """
        .approx|RND{.ftz}.f32 d, a
        .RND.f64 d, a
        .approx|RND.ftz.f64 d, a
        """,
        "approx(1 / a) if approx else round(1 / a)",
    ),
    Opcode(
        "sqrt",
        ".approx|RND{.ftz}.f32 d, a\n.RND.f64 d, a",
        "approx(sqrt(a)) if approx else round(sqrt(a))",
    ),
    Opcode("rsqrt", ".approx{.ftz}.f32|f64 d, a", "approx(1 / sqrt(a))"),
    Opcode("sin", ".approx{.ftz}.f32 d, a", "approx(sin(a))"),
    Opcode("cos", ".approx{.ftz}.f32 d, a", "approx(cos(a))"),
    Opcode("lg2", ".approx{.ftz}.f32 d, a", "approx(log2(a))"),
    Opcode(
        "ex2",
        """
        .approx{.ftz}.f32 d, a
        .approx.f16|f16x2 d, a
        .approx.ftz.bf16|bf16x2 d, a
        """,
        "approx(exp2(a))",
    ),
    Opcode("tanh", ".approx.f32|f16|f16x2|bf16|bf16x2 d, a", "approx(tanh(a))"),
    *(
        Opcode(
            name,
            """
            .f64 d, a, b
            {.ftz}{.NaN}.f32|f16|f16x2 d, a, b
            {.NaN}.bf16|bf16x2 d, a, b
            {.ftz}{.NaN}.xorsign.abs.f32|f16|f16x2 d, a, b
            {.NaN}.xorsign.abs.bf16|bf16x2 d, a, b
            {.ftz}{.NaN}{.abs}.f32 d, a, b, c
            """,
            _EXTREME.format(name),
            address="either",
        )
        for name in ("min", "max")
    ),
    Opcode("neg", "{.ftz}.f32|f16|f16x2 d, a\n.f64|bf16|bf16x2 d, a", "-a"),
    Opcode("abs", "{.ftz}.f32|f16|f16x2 d, a\n.f64|bf16|bf16x2 d, a", "abs(a)"),
    Opcode("copysign", ".f32|f64 d, a, b", "copysign(a, b)"),
    Opcode(
        "testp",
        """
        .finite|infinite|number|notanumber|normal|subnormal.f32|f64 d:pred, a
        .f32|f64 d:pred, a ! what it tests without a property is not documented
        """,
        "property(a)",
    ),
)
