"""powf and fpowi on f32, ipowi on integers."""

from __future__ import annotations

from fragir.passes.writer.sequences.sequence import Sequence, horner

# (log(m) - q) / q^3 in q^2, q = 2 (m - 1) / (m + 1), |q| <= 0.3432: log to 2^-35.2
_LOG = (0.0833333283662796, 0.01250030379742384, 0.0022264686413109303, 0.0004741951124742627)
# 2^f for |f| <= 1/2, to 2^-28.3
_EXP2 = (
    1.0,
    0.6931471824645996,
    0.24022647738456726,
    0.05550359562039375,
    0.00961849931627512,
    0.0013390969252213836,
    0.0001532926398795098,
)

# d = |x|^y. log2 |x| = h + l to some 2^-34, T = y h and its rest, then 2^T. Where |x| is 0,
# infinite or NaN, or y infinite, the approximations have what C's pow says.
_ABSOLUTE = f"""
    abs.f32 a, x
    setp.lt.f32 p, a, 1.1754943508222875e-38
    mul.rn.f32 b, a, 16777216.0
    selp.f32 b, b, a, p
    selp.f32 g, -24.0, 0.0, p
    add.s32 e, b, -1060439283
    and.b32 e, e, 0xFF800000
    sub.s32 m, b, e
    cvt.rn.f32.s32 k, e
    fma.rn.f32 g, k, 1.1920928955078125e-7, g
    add.rn.f32 f, m, -1.0
    add.rn.f32 k, f, 2.0
    rcp.approx.ftz.f32 k, k
    add.rn.f32 u, f, f
    mul.rn.f32 q, u, k
    sub.rn.f32 u, f, q
    add.rn.f32 u, u, u
    neg.f32 v, q
    fma.rn.f32 u, v, f, u
    mul.rn.f32 u, u, k
    mul.rn.f32 s, q, q
    {horner("w", "s", _LOG)}
    mul.rn.f32 s, s, q
    fma.rn.f32 w, w, s, u
    add.rn.f32 h, q, w
    sub.rn.f32 l, h, q
    sub.rn.f32 l, w, l
    mul.rn.f32 u, h, 1.44269502162933349609375
    neg.f32 v, u
    fma.rn.f32 v, h, 1.44269502162933349609375, v
    fma.rn.f32 v, h, 1.925963033500011e-8, v
    fma.rn.f32 v, l, 1.44269502162933349609375, v
    add.rn.f32 h, g, u
    sub.rn.f32 l, h, g
    sub.rn.f32 l, u, l
    add.rn.f32 l, l, v
    mul.rn.f32 t, y, h
    neg.f32 u, t
    fma.rn.f32 u, y, h, u
    fma.rn.f32 u, y, l, u
    abs.f32 v, t
    setp.gt.f32 p, v, 200.0
    copysign.f32 v, t, 200.0
    selp.f32 t, v, t, p
    selp.f32 u, 0.0, u, p
    cvt.rni.f32.f32 j, t
    sub.rn.f32 f, t, j
    add.rn.f32 f, f, u
    {horner("r", "f", _EXP2)}
    cvt.rni.s32.f32 i, j
    shr.s32 k, i, 1
    sub.s32 i, i, k
    shl.b32 k, k, 23
    add.s32 k, k, 0x3F800000
    shl.b32 i, i, 23
    add.s32 i, i, 0x3F800000
    mul.rn.f32 r, r, k
    mul.rn.f32 r, r, i
    lg2.approx.f32 u, a
    mul.rn.f32 u, u, y
    ex2.approx.f32 u, u
    abs.f32 v, y
    setp.eq.f32 p, a, 0.0
    setp.geu.or.f32 p, a, inf, p
    setp.eq.or.f32 p, v, inf, p
    selp.f32 r, u, r, p
"""

# of a negative x the sign is that of an odd y; where y is no whole number there is none
_POWF = f"""
    {_ABSOLUTE}
    neg.f32 w, r
    cvt.rzi.f32.f32 t, y
    setp.neu.f32 n, t, y
    mul.rn.f32 u, y, 0.5
    cvt.rzi.f32.f32 s, u
    setp.ne.f32 o, s, u
    setp.eq.and.f32 o, t, y, o
    setp.lt.and.s32 o, x, 0, o
    selp.f32 r, w, r, o
    setp.lt.and.f32 n, x, 0.0, n
    setp.lt.and.f32 n, a, inf, n
    selp.f32 r, nan, r, n
    setp.eq.f32 o, v, inf
    setp.eq.and.f32 o, a, 1.0, o
    setp.eq.or.f32 o, x, 1.0, o
    setp.eq.or.f32 o, y, 0.0, o
    selp.f32 d, 1.0, r, o
"""

# the exponent, rounded to f32, keeps its own lowest bit
_FPOWI = f"""
    cvt.rn.f32.s32 y, n
    {_ABSOLUTE}
    neg.f32 w, r
    and.b32 i, n, 1
    setp.ne.s32 o, i, 0
    setp.lt.and.s32 o, x, 0, o
    selp.f32 r, w, r, o
    setp.eq.s32 o, n, 0
    setp.eq.or.f32 o, x, 1.0, o
    selp.f32 d, 1.0, r, o
"""

# squares and products; a negative power of x is 0 but for 1 and -1
_IPOWI = """
    mov.b{w} r, 1
    mov.b{w} b, x
    shr.s{w} s, n, {last}
    xor.b{w} k, n, s
    sub.s{w} k, k, s
power:
    and.b{w} o, k, 1
    setp.ne.s{w} p, o, 0
    @p mul.lo.s{w} r, r, b
    mul.lo.s{w} b, b, b
    shr.u{w} k, k, 1
    setp.ne.s{w} p, k, 0
    @p bra power
    add.s{w} o, x, 1
    setp.gt.u{w} p, o, 2
    setp.lt.and.s{w} p, n, 0, p
    selp.b{w} d, 0, r, p
"""

SEQUENCES = {
    ("math.powf", "f32"): Sequence("x y", _POWF),
    ("math.fpowi", "f32"): Sequence("x n", _FPOWI),
    ("math.ipowi", "b32"): Sequence("x n", _IPOWI.format(w=32, last=31)),
    ("math.ipowi", "b64"): Sequence("x n", _IPOWI.format(w=64, last=63)),
}
