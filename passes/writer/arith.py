"""Which PTX instruction an arith or math operation becomes, as tables.

Floating-point instructions name their rounding: without it ptxas may fuse a multiplication and
an addition (PTX ISA 9.2, sections 9.7.3.3 to 9.7.3.5), and results would depend on its version.
"""

from __future__ import annotations

# Elementwise instructions by the operation's name and the scalar's PTX type. `x2` forms take two
# packed elements. A type that is missing has no such instruction.
FLOAT: dict[str, dict[str, str]] = {
    "arith.addf": {
        "f32": "add.rn.f32",
        "f64": "add.rn.f64",
        "f16": "add.rn.f16",
        "f16x2": "add.rn.f16x2",
        "bf16": "add.rn.bf16",
        "bf16x2": "add.rn.bf16x2",
    },
    "arith.subf": {
        "f32": "sub.rn.f32",
        "f64": "sub.rn.f64",
        "f16": "sub.rn.f16",
        "f16x2": "sub.rn.f16x2",
        "bf16": "sub.rn.bf16",
        "bf16x2": "sub.rn.bf16x2",
    },
    "arith.mulf": {
        "f32": "mul.rn.f32",
        "f64": "mul.rn.f64",
        "f16": "mul.rn.f16",
        "f16x2": "mul.rn.f16x2",
        "bf16": "mul.rn.bf16",
        "bf16x2": "mul.rn.bf16x2",
    },
    "math.fma": {
        "f32": "fma.rn.f32",
        "f64": "fma.rn.f64",
        "f16": "fma.rn.f16",
        "f16x2": "fma.rn.f16x2",
        "bf16": "fma.rn.bf16",
        "bf16x2": "fma.rn.bf16x2",
    },
    "arith.divf": {"f32": "div.rn.f32", "f64": "div.rn.f64"},
    "arith.maximumf": {"f32": "max.NaN.f32", "f16": "max.NaN.f16", "f16x2": "max.NaN.f16x2"},
    "arith.minimumf": {"f32": "min.NaN.f32", "f16": "min.NaN.f16", "f16x2": "min.NaN.f16x2"},
    "arith.maxnumf": {
        "f32": "max.f32",
        "f64": "max.f64",
        "f16": "max.f16",
        "f16x2": "max.f16x2",
        "bf16": "max.bf16",
        "bf16x2": "max.bf16x2",
    },
    "arith.minnumf": {
        "f32": "min.f32",
        "f64": "min.f64",
        "f16": "min.f16",
        "f16x2": "min.f16x2",
        "bf16": "min.bf16",
        "bf16x2": "min.bf16x2",
    },
    "arith.negf": {"f32": "neg.f32", "f64": "neg.f64", "f16": "neg.f16", "f16x2": "neg.f16x2"},
    "math.absf": {"f32": "abs.f32", "f64": "abs.f64", "f16": "abs.f16", "f16x2": "abs.f16x2"},
    "math.sqrt": {"f32": "sqrt.rn.f32", "f64": "sqrt.rn.f64"},
    "math.rsqrt": {"f32": "rsqrt.approx.f32"},
    "math.exp2": {"f32": "ex2.approx.f32"},
    "math.log2": {"f32": "lg2.approx.f32"},
    "math.tanh": {"f32": "tanh.approx.f32"},
    "math.sin": {"f32": "sin.approx.f32"},
    "math.cos": {"f32": "cos.approx.f32"},
    "math.floor": {"f32": "cvt.rmi.f32.f32", "f64": "cvt.rmi.f64.f64"},
    "math.ceil": {"f32": "cvt.rpi.f32.f32", "f64": "cvt.rpi.f64.f64"},
    "math.roundeven": {"f32": "cvt.rni.f32.f32", "f64": "cvt.rni.f64.f64"},
    "math.trunc": {"f32": "cvt.rzi.f32.f32", "f64": "cvt.rzi.f64.f64"},
}

# math.exp(x) = exp2(x * log2 e), math.log(x) = log2(x) * ln 2, log10(x) = log2(x) * log10 2
SCALED: dict[str, tuple[str, str, float]] = {
    "math.exp": ("before", "ex2.approx.f32", 1.4426950408889634),
    "math.log": ("after", "lg2.approx.f32", 0.6931471805599453),
    "math.log10": ("after", "lg2.approx.f32", 0.3010299956639812),
}

# {bits} is 32 or 64; the operands of a shift and of logic have no sign
INTEGER: dict[str, str] = {
    "arith.addi": "add.s{bits}",
    "arith.subi": "sub.s{bits}",
    "arith.muli": "mul.lo.s{bits}",
    "arith.divui": "div.u{bits}",
    "arith.divsi": "div.s{bits}",
    "arith.remui": "rem.u{bits}",
    "arith.remsi": "rem.s{bits}",
    "arith.minsi": "min.s{bits}",
    "arith.maxsi": "max.s{bits}",
    "arith.minui": "min.u{bits}",
    "arith.maxui": "max.u{bits}",
    "arith.andi": "and.b{bits}",
    "arith.ori": "or.b{bits}",
    "arith.xori": "xor.b{bits}",
    "arith.shli": "shl.b{bits}",
    "arith.shrui": "shr.u{bits}",
    "arith.shrsi": "shr.s{bits}",
    "math.absi": "abs.s{bits}",
}

# arith.cmpi's predicate number -> comparison and signedness
COMPARE_INTEGER = (
    ("eq", "s"),
    ("ne", "s"),
    ("lt", "s"),
    ("le", "s"),
    ("gt", "s"),
    ("ge", "s"),
    ("lt", "u"),
    ("le", "u"),
    ("gt", "u"),
    ("ge", "u"),
)
# arith.cmpf's predicate number -> comparison; 0 and 15 are constants
COMPARE_FLOAT = (
    None,
    "eq",
    "gt",
    "ge",
    "lt",
    "le",
    "ne",
    "num",
    "equ",
    "gtu",
    "geu",
    "ltu",
    "leu",
    "neu",
    "nan",
    None,
)

CASTS = {
    "arith.extf": "float",
    "arith.truncf": "float",
    "arith.sitofp": "from_signed",
    "arith.uitofp": "from_unsigned",
    "arith.fptosi": "to_signed",
    "arith.fptoui": "to_unsigned",
    "arith.extsi": "signed",
    "arith.extui": "unsigned",
    "arith.trunci": "unsigned",
    "arith.index_cast": "signed",
}
