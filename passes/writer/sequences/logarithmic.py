"""log1p, asinh, acosh and atanh on f32."""

from __future__ import annotations

from fragir.passes.writer.sequences.sequence import Sequence, horner

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
_REDUCED = f"""
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
    {_REDUCED}
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
    {_REDUCED}
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
    {_REDUCED}
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
    {_REDUCED}
    mul.rn.f32 r, r, 0.5
    lg2.approx.f32 u, t
    setp.lt.f32 p, a, 1.0
    selp.f32 r, r, u, p
    copysign.f32 d, x, r
"""

SEQUENCES = {
    ("math.log1p", "f32"): Sequence("x", _LOG1P_TEXT),
    ("math.asinh", "f32"): Sequence("x", _ASINH),
    ("math.acosh", "f32"): Sequence("x", _ACOSH),
    ("math.atanh", "f32"): Sequence("x", _ATANH),
}
