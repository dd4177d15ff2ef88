"""expm1, sinh, cosh, erf, cbrt, log1p, asinh, acosh and atanh on f32."""

from __future__ import annotations

from fragir.passes.writer.sequences.sequence import Sequence, horner

# (e^f - 1 - f) / f^2 for |f| <= ln(2) / 2: e^f - 1 to 2^-26.1
_EXPM1 = (
    0.4999999701976776,
    0.1666654646396637,
    0.04166744276881218,
    0.008366253226995468,
    0.0013869947288185358,
)
# erf(x) / x - 1 in x^2 for |x| <= 0.9277: erf to 2^-25.8
_ERF = (
    0.12837915122509003,
    -0.37612491846084595,
    0.1128176748752594,
    -0.02676435559988022,
    0.004989431705325842,
    -0.0005970268975943327,
)
# log2(1 - erf(x)) / x for 0.9277 <= x <= 3.93: erf to 2^-28.3
_ERFC = (
    -1.6280986070632935,
    -0.9171593189239502,
    -0.15184545516967773,
    0.033013489097356796,
    -0.004635178484022617,
    0.0003083511837758124,
)

# a = j ln 2 + f, t = e^f - 1; s = 2^(j - 1), or for larger arguments 2^(j - 2)
_REDUCED = f"""
    mul.rn.f32 j, a, 1.4426950408889634
    cvt.rni.f32.f32 j, j
    fma.rn.f32 f, j, -0.693147182464599609375, a
    fma.rn.f32 f, j, 1.904654299957768e-9, f
    {horner("t", "f", _EXPM1)}
    mul.rn.f32 ff, f, f
    fma.rn.f32 t, t, ff, f
    cvt.rni.s32.f32 i, j
    shl.b32 s, i, 23
"""

# e^a - 1 = 2 (t s + s - 1/2); the clamps let NaN through
_EXPM1_TEXT = f"""
    setp.gt.f32 p, x, 89.0
    selp.f32 a, 89.0, x, p
    setp.lt.f32 p, a, -18.0
    selp.f32 a, -18.0, a, p
    {_REDUCED}
    add.s32 s, s, 0x3F000000
    add.rn.f32 h, s, -0.5
    fma.rn.f32 h, t, s, h
    add.rn.f32 h, h, h
    setp.eq.f32 p, j, 0.0
    selp.f32 h, t, h, p
    copysign.f32 d, x, h
"""

# h = (e^|x| - 1) / 4, sinh |x| = 2 (h + h / (4 h + 1))
_SINH = f"""
    abs.f32 a, x
    setp.gt.f32 p, a, 89.5
    selp.f32 a, 89.5, a, p
    {_REDUCED}
    add.s32 s, s, 0x3E800000
    add.rn.f32 h, s, -0.25
    fma.rn.f32 h, t, s, h
    fma.rn.f32 w, h, 4.0, 1.0
    div.full.f32 q, h, w
    setp.gt.f32 p, h, 1000000000.0
    selp.f32 q, 0.5, q, p
    add.rn.f32 h, h, q
    add.rn.f32 h, h, h
    copysign.f32 d, x, h
"""

# h = e^|x| / 4, cosh x = 2 (h + 1 / (16 h))
_COSH = f"""
    abs.f32 a, x
    setp.gt.f32 p, a, 89.5
    selp.f32 a, 89.5, a, p
    {_REDUCED}
    add.s32 s, s, 0x3E800000
    fma.rn.f32 h, t, s, s
    rcp.approx.ftz.f32 q, h
    fma.rn.f32 h, q, 0.0625, h
    add.rn.f32 d, h, h
"""

_ERF_TEXT = f"""
    abs.f32 a, x
    mul.rn.f32 s, x, x
    {horner("r", "s", _ERF)}
    fma.rn.f32 r, r, x, x
    setp.gt.f32 p, a, 4.0
    selp.f32 t, 4.0, a, p
    {horner("u", "t", _ERFC)}
    mul.rn.f32 u, u, t
    ex2.approx.ftz.f32 u, u
    sub.rn.f32 u, 1.0, u
    copysign.f32 u, x, u
    setp.gt.f32 p, a, 0.927734375
    selp.f32 d, u, r, p
"""

# r = 2^(log2(a) / 3), then a step of Newton's; what is small is scaled by 2^72
_CBRT = """
    abs.f32 a, x
    setp.lt.f32 p, a, 8.077935669463161e-28
    mul.rn.f32 b, a, 4722366482869645213696.0
    selp.f32 b, b, a, p
    lg2.approx.f32 r, b
    mul.rn.f32 r, r, 0.3333333432674408
    ex2.approx.f32 r, r
    mul.rn.f32 s, r, r
    neg.f32 n, s
    fma.rn.f32 n, n, r, b
    rcp.approx.ftz.f32 s, s
    mul.rn.f32 s, s, 0.3333333432674408
    fma.rn.f32 r, n, s, r
    mul.rn.f32 n, r, 5.9604644775390625e-8
    selp.f32 r, n, r, p
    copysign.f32 r, x, r
    add.rn.f32 b, x, x
    setp.eq.f32 p, b, x
    selp.f32 d, x, r, p
"""


# -- logarithmic -----------------------------------------------------------------------------------

# (log(1 + m) - m) / m^2 for -1/4 <= m <= 1/2: log(1 + m) to 2^-27.6
_LOG1P = (
    -0.5,
    0.3333345055580139,
    -0.25000104308128357,
    0.19990819692611694,
    -0.1664699912071228,
    0.14478321373462677,
    -0.13163873553276062,
    0.10468878597021103,
    -0.04511205479502678,
)
# 1 + t = 2^E (1 + m), r = log(1 + t); e is E where the exponent stands, k + 1 = 2^-E
_REDUCED_LOG = f"""
    add.rz.f32 u, t, 1.0
    add.s32 e, u, -1061158912
    and.b32 e, e, 0xFF800000
    sub.s32 m, t, e
    sub.s32 k, 0x40800000, e
    fma.rn.f32 k, k, 0.25, -1.0
    add.rn.f32 m, m, k
    {horner("r", "m", _LOG1P)}
    mul.rn.f32 mm, m, m
    fma.rn.f32 r, r, mm, m
    cvt.rn.f32.s32 g, e
    fma.rn.f32 r, g, 8.262958405176314e-8, r
"""

# lg2.approx has the infinities and NaN outside of (-1, inf)
_LOG1P_TEXT = f"""
    mov.b32 t, x
    {_REDUCED_LOG}
    lg2.approx.f32 u, u
    setp.gt.f32 p, x, -1.0
    setp.lt.and.f32 p, x, inf, p
    selp.f32 r, r, u, p
    copysign.f32 d, x, r
"""

# log1p(a + a^2 / (1 + sqrt(a^2 + 1))); beyond 2^14 log(2 a)
_ASINH = f"""
    abs.f32 a, x
    fma.rn.f32 w, a, a, 1.0
    sqrt.approx.ftz.f32 w, w
    add.rn.f32 w, w, 1.0
    mul.rn.f32 b, a, a
    div.full.f32 b, b, w
    add.rn.f32 b, a, b
    add.rn.f32 w, a, -1.0
    setp.gt.f32 p, a, 16384.0
    selp.f32 t, w, b, p
    {_REDUCED_LOG}
    add.rn.f32 w, r, 0.6931471805599453
    selp.f32 r, w, r, p
    copysign.f32 r, x, r
    setp.lt.f32 p, a, inf
    selp.f32 d, r, x, p
"""

# t = x - 1: log1p(t + sqrt(t^2 + 2 t)); beyond 2^14 log(2 x)
_ACOSH = f"""
    add.rn.f32 b, x, -1.0
    add.rn.f32 w, b, b
    fma.rn.f32 w, b, b, w
    sqrt.approx.ftz.f32 w, w
    add.rn.f32 w, w, b
    setp.gt.f32 p, x, 16384.0
    selp.f32 t, b, w, p
    {_REDUCED_LOG}
    add.rn.f32 w, r, 0.6931471805599453
    selp.f32 r, w, r, p
    setp.lt.f32 p, x, inf
    selp.f32 r, r, x, p
    setp.ge.f32 p, x, 1.0
    selp.f32 d, r, nan, p
"""

# log1p(2 a / (1 - a)) / 2
_ATANH = f"""
    abs.f32 a, x
    add.rn.f32 b, a, a
    sub.rn.f32 c, 1.0, a
    div.full.f32 t, b, c
    {_REDUCED_LOG}
    mul.rn.f32 r, r, 0.5
    lg2.approx.f32 u, t
    setp.lt.f32 p, a, 1.0
    selp.f32 r, r, u, p
    copysign.f32 d, x, r
"""

SEQUENCES = {
    ("math.expm1", "f32"): Sequence("x", _EXPM1_TEXT),
    ("math.sinh", "f32"): Sequence("x", _SINH),
    ("math.cosh", "f32"): Sequence("x", _COSH),
    ("math.erf", "f32"): Sequence("x", _ERF_TEXT),
    ("math.cbrt", "f32"): Sequence("x", _CBRT),
    ("math.log1p", "f32"): Sequence("x", _LOG1P_TEXT),
    ("math.asinh", "f32"): Sequence("x", _ASINH),
    ("math.acosh", "f32"): Sequence("x", _ACOSH),
    ("math.atanh", "f32"): Sequence("x", _ATANH),
}
