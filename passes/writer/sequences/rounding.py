"""Rounding: to whole numbers, to odd, to powers of two; copysign and rsqrt of f64."""

from __future__ import annotations

from fragir.passes.writer.sequences.sequence import Sequence

# ties away from zero: the rest x - trunc(x) is exact
_ROUND = """
    cvt.rzi.{f}.{f} t, x
    sub.rn.{f} r, x, t
    abs.{f} r, r
    setp.ge.{f} p, r, 0.5
    copysign.{f} s, x, 1.0
    add.rn.{f} s, t, s
    selp.{f} d, s, t, p
"""

SEQUENCES = {
    **{("math.round", f): Sequence("x", _ROUND.format(f=f)) for f in ("f32", "f64")},
    **{("math.copysign", f): Sequence("x y", f"copysign.{f} d, y, x") for f in ("f32", "f64")},
    ("math.rsqrt", "f64"): Sequence("x", "sqrt.rn.f64 r, x; rcp.rn.f64 d, r"),
}

# f32 towards zero, its last bit set where that lost anything: one more rounding, to 22 bits or
# fewer, is the only one (Boldo and Melquiond, "When double rounding is odd", IMACS 2005)
_ODD = """
    cvt.rz.f32.{kind} r, x
    {back}
    or.b32 o, r, 1
    selp.b32 d, o, r, p
"""
_FLOAT_BACK = "cvt.f64.f32 b, r; setp.neu.f64 p, b, x"
_INTEGER_BACK = "cvt.rzi.{kind}.f32 b, r; setp.ne.{kind} p, b, x"


def to_odd(kind: str) -> Sequence:
    """f64, or integers of 32 and 64 bits, as f32 rounded to odd."""
    back = _FLOAT_BACK if kind == "f64" else _INTEGER_BACK.format(kind=kind)
    return Sequence("x", _ODD.format(kind=kind, back=back))


# the exponent of the nearest power of two, the larger one of two as near: 2^-127 (a subnormal
# number of f32) for all that is less, 2^127 for all that is more, 255 for NaN
UE8M0 = Sequence(
    "x",
    """
    max.s32 m, x, 0
    min.s32 m, m, 0x7F000000
    setp.lt.s32 q, m, 0x00800000
    selp.b32 h, 0x00200000, 0x00400000, q
    add.s32 m, m, h
    shr.u32 m, m, 23
    setp.num.f32 p, x, x
    selp.b32 d, m, 255, p
""",
)
