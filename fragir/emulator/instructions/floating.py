"""Floating-point arithmetic (PTX ISA 9.2, sections 9.7.3 to 9.7.5).

add, sub, mul, fma, div, rcp, sqrt with a rounding mode are IEEE 754 to the bit, in every format;
NaN results are canonical. Approximations are in `approximate.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import Function, elementwise, typed
from fragir.emulator.instructions.approximate import approximate, core
from fragir.emulator.instructions.floating_arithmetic import (
    ieee,
    modified,
)
from fragir.emulator.instructions.floating_quick import (
    TYPES,
    arithmetic,
    extremes,
    rounded_once,
)
from fragir.emulator.instructions.signs import (
    PROPERTIES,
    absolute,
    copy_sign,
    extreme,
    has_property,
    negate,
)
from fragir.emulator.machine.lanes import Step
from fragir.emulator.numbers.formats import FORMATS
from fragir.emulator.numbers.rounding import (
    decode,
    encode,
)
from fragir.emulator.program.opcode import Opcode
from fragir.emulator.report import EmulationError

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

Array = Any

#: Type in the opcode -> (format, unsigned type of the register, packed).
KINDS: dict[str, tuple[str, str, bool]] = {
    "f16": ("f16", "u16", False),
    "bf16": ("bf16", "u16", False),
    "f32": ("f32", "u32", False),
    "f64": ("f64", "u64", False),
    "f16x2": ("f16", "u32", True),
    "bf16x2": ("bf16", "u32", True),
    "f32x2": ("f32", "u64", True),
}
MODES = ("rn", "rz", "rm", "rp", "rna")


def _wrapped(ins: Instruction, function: Function, kind: str) -> Function:
    form, _, split = floating_kind(kind)
    words = ins.opcode
    return modified(
        function,
        form,
        ftz="ftz" in words,
        sat="sat" in words,
        relu="relu" in words,
        split=split,
        oob="oob" in words,
    )


def floating_kind(kind: str) -> tuple[str, str, bool]:
    """(format, type of the register, whether packed) of a type. EmulationError for others."""
    found = KINDS.get(kind)
    if found is None:
        raise EmulationError(f".{kind} is no floating-point type of this instruction")
    return found


def _build(
    d: Decoder, ins: Instruction, function: Function, kind: str, quick: Function | None = None
) -> Step:
    """`quick`: a shorter road to the same bits, where the rows let it be taken."""
    form, register, _ = floating_kind(kind)
    sources = [d.source(ins, i, register) for i in range(1, d.count(ins))]
    out = d.target(ins, 0, register)
    if quick is not None:
        step = typed(quick, out, sources, TYPES[form])
        if step is not None:
            return step
    return elementwise(_wrapped(ins, function, kind), out, sources)


def _mode(ins: Instruction) -> str:
    return next((w for w in ins.opcode if w in MODES), "rn")


def _arithmetic(d: Decoder, ins: Instruction) -> Step:
    name, kind = ins.opcode[0], ins.opcode[-1]
    words = ins.opcode
    if kind not in KINDS:
        raise d.error(ins, f"the form {'.'.join(words)} is not supported")
    if words[-2] in KINDS:
        return _mixed(d, ins, words[-2], kind)
    form = floating_kind(kind)[0]
    if name in ("div", "rcp", "sqrt") and ("approx" in words or "full" in words):
        return _approximation(d, ins)
    quick = arithmetic(name, form, _mode(ins), words)
    return _build(d, ins, ieee(name, form, _mode(ins)), kind, quick)


def _mixed(d: Decoder, ins: Instruction, into: str, kind: str) -> Step:
    """add, sub, fma of f32 with 16-bit operands, all but the last (PTX ISA 9.2, section 9.7.5)."""
    name = ins.opcode[0]
    if into != "f32" or kind not in ("f16", "bf16") or name not in ("add", "sub", "fma"):
        raise d.error(ins, f"the form {'.'.join(ins.opcode)} is not supported")
    inner = _wrapped(ins, ieee(name, "f32", _mode(ins)), "f32")
    shape, single = FORMATS[kind], FORMATS["f32"]

    def function(*operands: Array) -> Array:
        wide = [encode(decode(x, shape), single).astype(np.uint32) for x in operands[:-1]]
        return inner(*wide, operands[-1])

    last = d.count(ins) - 1
    sources = [d.source(ins, i, "u16") for i in range(1, last)] + [d.source(ins, last, "u32")]
    return elementwise(function, d.target(ins, 0, "u32"), sources)


def _approximation(d: Decoder, ins: Instruction) -> Step:
    name, words, kind = ins.opcode[0], ins.opcode, ins.opcode[-1]
    form = floating_kind(kind)[0]
    quick = rounded_once(core(name, words), form, words)
    return _build(d, ins, approximate(name, form, words), kind, quick)


def _extreme(d: Decoder, ins: Instruction) -> Step:
    words, kind = ins.opcode, ins.opcode[-1]
    xorsign, form = "xorsign" in words, floating_kind(kind)[0]
    function = extreme(
        form, words[0] == "max", "NaN" in words, xorsign, "abs" in words and not xorsign
    )
    quick = extremes(words[0], form, words, d.count(ins) - 1)
    return _build(d, ins, function, kind, quick)


def _sign(d: Decoder, ins: Instruction) -> Step:
    function = {"neg": negate, "abs": absolute, "copysign": copy_sign}[ins.opcode[0]]
    return _build(d, ins, function, ins.opcode[-1])


def _test(d: Decoder, ins: Instruction) -> Step:
    if len(ins.opcode) != 3 or ins.opcode[1] not in PROPERTIES:
        raise d.error(ins, f"testp needs one of .{', .'.join(PROPERTIES)}, and a type")
    form, register, _ = floating_kind(ins.opcode[-1])
    function = has_property(ins.opcode[1], form)
    return elementwise(function, d.target(ins, 0, "pred"), [d.source(ins, 1, register)])


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
_SUMS: dict[str, dict[str, Any]] = {
    "add": {"address": "sum"},
    "sub": {"address": "difference", "cancels": True},
}

OPCODES: tuple[Opcode, ...] = (
    *(Opcode(name, _SUM, _arithmetic, **more) for name, more in _SUMS.items()),
    Opcode("mul", _PRODUCT, _arithmetic),
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
        _arithmetic,
        address="product",
    ),
    Opcode(
        "mad",
        """
        .RND{.ftz}{.sat}.f32 d, a, b, c
        .RND.f64 d, a, b, c
        """,
        _arithmetic,
        address="product",
    ),
    Opcode("div", ".approx|RND{.ftz}.f32 d, a, b\n.RND.f64 d, a, b", _arithmetic, address="number"),
    Opcode("div.full", "{.ftz}.f32 d, a, b", _arithmetic, address="number"),
    Opcode(
        "rcp",
        """
        .approx|RND{.ftz}.f32 d, a
        .RND.f64 d, a
        .approx|RND.ftz.f64 d, a
        """,
        _arithmetic,
    ),
    Opcode("sqrt", ".approx|RND{.ftz}.f32 d, a\n.RND.f64 d, a", _arithmetic),
    Opcode("rsqrt", ".approx{.ftz}.f32|f64 d, a", _approximation),
    *(Opcode(name, ".approx{.ftz}.f32 d, a", _approximation) for name in ("sin", "cos", "lg2")),
    Opcode(
        "ex2",
        """
        .approx{.ftz}.f32 d, a
        .approx.f16|f16x2 d, a
        .approx.ftz.bf16|bf16x2 d, a
        """,
        _approximation,
    ),
    Opcode("tanh", ".approx.f32|f16|f16x2|bf16|bf16x2 d, a", _approximation),
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
            _extreme,
            address="either",
        )
        for name in ("min", "max")
    ),
    *(
        Opcode(name, "{.ftz}.f32|f16|f16x2 d, a\n.f64|bf16|bf16x2 d, a", _sign)
        for name in ("neg", "abs")
    ),
    Opcode("copysign", ".f32|f64 d, a, b", _sign),
    Opcode(
        "testp",
        """
        .finite|infinite|number|notanumber|normal|subnormal.f32|f64 d:pred, a
        .f32|f64 d:pred, a ! what it tests without a property is not documented
        """,
        _test,
    ),
)
