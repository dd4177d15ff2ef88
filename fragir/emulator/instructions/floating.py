"""Floating-point arithmetic (PTX ISA 9.2, sections 9.7.3 to 9.7.5).

add, sub, mul, fma, div, rcp, sqrt with a rounding mode are IEEE 754 to the bit, in every format;
NaN results are canonical. Approximations are in `approximate.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.instructions.alu import Function, elementwise, of1
from fragir.emulator.instructions.approximate import approximate
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
    F16_NAN,
    F32_NAN,
    decode,
    encode,
    exact_f64,
    fma_f64,
    quantize,
    sum_odd,
    to_odd,
)
from fragir.emulator.numbers.types import F64, OOB_NAN, where
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


def canonical_f32(value: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    """The bits, with every NaN replaced by the one that instructions give."""
    bits = value.view(np.uint32)
    nan = np.isnan(value)
    return where(nan, F32_NAN, bits) if nan.any() else bits


def canonical_f16(value: npt.NDArray[np.float16]) -> npt.NDArray[np.uint16]:
    bits = value.view(np.uint16)
    nan = np.isnan(value)
    return where(nan, F16_NAN, bits) if nan.any() else bits


def flush(bits: Array, form: str) -> Array:
    """Subnormals become zeros of the same sign."""
    fraction = FORMATS[form].fraction
    width = bits.dtype.itemsize * 8
    of = bits.dtype.type
    sign = of(1 << (width - 1))
    small = (bits & of(((1 << (width - 1)) - 1) ^ ((1 << fraction) - 1))) == 0
    return where(small, bits & sign, bits) if small.any() else bits


# -- exact cores: f64 in, f64 rounded to odd out -------------------------------------------------


def _add(a: F64, b: F64) -> F64:
    return sum_odd(a, b)


def _subtract(a: F64, b: F64) -> F64:
    return sum_odd(a, -b)


def _multiply(a: F64, b: F64) -> F64:
    return a * b


def _fma(a: F64, b: F64, c: F64) -> F64:
    return sum_odd(a * b, c)


def _divide(a: F64, b: F64) -> F64:
    """f32 quotients: the f64 quotient with the sign of its own remainder made sticky."""
    quotient = a / b
    with_remainder = np.isfinite(quotient) & (quotient != 0)
    # a - q*b in exact arithmetic: q has 53 bits and b 24, so split q in two.
    high = quotient.astype(np.float32).astype(np.float64)
    low = quotient - high
    remainder = (a - high * b) - low * b
    return to_odd(quotient, where(with_remainder, remainder * np.sign(b), 0.0))


def _root(a: F64) -> F64:
    root = np.sqrt(a)
    high = root.astype(np.float32).astype(np.float64)
    low = root - high
    remainder = ((a - high * high) - 2 * high * low) - low * low
    return to_odd(root, where(np.isfinite(root) & (root != 0), remainder, 0.0))


_CORES: dict[str, Function] = {
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "fma": _fma,
    "mad": _fma,
    "div": _divide,
    "rcp": of1(lambda a: _divide(np.ones_like(a), a)),
    "sqrt": _root,
}
_CANCELLING = {"add", "sub", "fma", "mad"}


def ieee(name: str, form: str, mode: str) -> Function:
    """The instruction on raw bits of one format, correctly rounded."""
    if form == "f64":
        return _double(name, mode)
    if mode == "rn" and form == "f32" and name in _NATIVE_F32:
        return _NATIVE_F32[name]
    core = _CORES[name]
    shape = FORMATS[form]
    out = np.uint32 if form == "f32" else np.uint16

    def function(*operands: Array) -> Array:
        values = [decode(x, shape) for x in operands]
        exact = core(*values)
        if mode == "rn" and form == "f32":
            return canonical_f32(exact.astype(np.float32))
        if mode == "rn" and form == "f16":
            return canonical_f16(exact.astype(np.float16))
        if mode == "rm" and name in _CANCELLING:
            exact = where(_cancelled(name, values, exact), -0.0, exact)
        return encode(quantize(exact, shape, mode), shape).astype(out)

    return function


def _cancelled(name: str, values: Sequence[F64], exact: F64) -> Any:
    """Where a sum of unlike signs is exactly zero: -0 when rounding downwards."""
    first = values[0] if name in ("add", "sub") else values[0] * values[1]
    last = -values[-1] if name == "sub" else values[-1]
    return (exact == 0) & (np.signbit(first) != np.signbit(last))


def _native(function: Function) -> Function:
    def wrapped(*operands: Array) -> Array:
        return canonical_f32(function(*[x.view(np.float32) for x in operands]))

    return wrapped


def _fma_f32(a: Array, b: Array, c: Array) -> Array:
    product = np.multiply(a.view(np.float32), b.view(np.float32), dtype=np.float64)
    return canonical_f32(sum_odd(product, c.view(np.float32).astype(np.float64)).astype(np.float32))


_NATIVE_F32: dict[str, Function] = {
    "add": _native(np.add),
    "sub": _native(np.subtract),
    "mul": _native(np.multiply),
    "div": _native(np.divide),
    "sqrt": _native(np.sqrt),
    "rcp": _native(of1(lambda a: np.float32(1) / a)),
    "fma": _fma_f32,
    "mad": _fma_f32,
}


def _double(name: str, mode: str) -> Function:
    nearest: dict[str, Function] = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "sqrt": np.sqrt,
        "rcp": of1(lambda a: 1.0 / a),
        "fma": fma_f64,
        "mad": fma_f64,
    }

    def function(*operands: Array) -> Array:
        values = [x.view(np.float64) for x in operands]
        if mode == "rn":
            return nearest[name](*values).view(np.uint64)
        if name == "sub":
            return exact_f64("add", mode, values[0], -values[1]).view(np.uint64)
        if name == "rcp":
            return exact_f64("div", mode, np.ones_like(values[0]), values[0]).view(np.uint64)
        return exact_f64("fma" if name == "mad" else name, mode, *values).view(np.uint64)

    return function


# -- modifiers and decoding ------------------------------------------------------------------------


def modified(
    function: Function,
    form: str,
    *,
    ftz: bool,
    sat: bool,
    relu: bool,
    split: bool,
    oob: bool = False,
) -> Function:
    """Wrap with flush to zero, clamping to [0, 1] or to positive, and halves of packed types.

    `oob`: zero where one of the first two operands is `OOB_NAN`.
    """
    if form == "f64" or not (ftz or sat or relu or split or oob):
        return function
    shape = FORMATS[form]
    width = 32 if form == "f32" else 16
    part, whole = (np.uint32, np.uint64) if form == "f32" else (np.uint16, np.uint32)
    sign = 1 << (width - 1)
    one = int(encode(np.array([1.0]), shape)[0])

    def wrapped(*operands: Array) -> Array:
        if split:
            operands = tuple(np.ascontiguousarray(x).view(part) for x in operands)
        if ftz:
            operands = tuple(flush(x, form) for x in operands)
        result = function(*operands)
        if ftz:
            result = flush(result, form)
        if sat or relu:
            nan = np.isnan(decode(result, shape))
            zero = result.dtype.type(0)
            result = where((result & sign != 0) & ~nan, zero, result)
            if sat:
                result = where(nan, zero, np.minimum(result, result.dtype.type(one)))
        if oob:
            outside = (operands[0] == OOB_NAN) | (operands[1] == OOB_NAN)
            result = where(outside, result.dtype.type(0), result)
        return np.ascontiguousarray(result).view(whole) if split else result

    return wrapped


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


def _build(d: Decoder, ins: Instruction, function: Function, kind: str) -> Step:
    register = floating_kind(kind)[1]
    sources = [d.source(ins, i, register) for i in range(1, d.count(ins))]
    return elementwise(_wrapped(ins, function, kind), d.target(ins, 0, register), sources)


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
        return _build(d, ins, approximate(name, form, words), kind)
    return _build(d, ins, ieee(name, form, _mode(ins)), kind)


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
    kind = ins.opcode[-1]
    return _build(d, ins, approximate(ins.opcode[0], floating_kind(kind)[0], ins.opcode), kind)


def _extreme(d: Decoder, ins: Instruction) -> Step:
    words, kind = ins.opcode, ins.opcode[-1]
    xorsign, form = "xorsign" in words, floating_kind(kind)[0]
    function = extreme(
        form, words[0] == "max", "NaN" in words, xorsign, "abs" in words and not xorsign
    )
    return _build(d, ins, function, kind)


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
