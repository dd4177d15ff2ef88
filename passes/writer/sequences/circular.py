"""tan, atan, atan2, asin and acos on f32."""

from __future__ import annotations

from fragir.passes.writer.sequences.sequence import Sequence, horner

# (tan(r) - r) / r^3 in r^2 for |r| <= pi/4: tan to 2^-25.7
_TAN = (
    0.33333155512809753,
    0.1333884447813034,
    0.053407035768032074,
    0.02444656938314438,
    0.0030919783748686314,
    0.009402706287801266,
)
# (atan(r) - r) / r^3 in r^2 for |r| <= 1: atan to 2^-28.5
_ATAN = (
    -0.33333298563957214,
    0.1999853104352951,
    -0.14264051616191864,
    0.10951174795627594,
    -0.08400475233793259,
    0.05790654569864273,
    -0.031127002090215683,
    0.010887361131608486,
    -0.0017875476041808724,
)
# (asin(r) - r) / r^3 in s = r^2 for |r| <= 1/2: asin to 2^-27.5
_ASIN = (
    0.16666758060455322,
    0.07495053857564926,
    0.04550310969352722,
    0.024007845669984818,
    0.04247419163584709,
)
# pi / 2 in f32, and what is left
_HALF_PI, _REST = "1.57079637050628662109375", "-4.37113900018624283e-8"

# x = j pi/2 + f, by Cody and Waite's method with 72 bits of pi/2; of an odd j it is -1 / tan f
_TAN_TEXT = f"""
    mul.rn.f32 j, x, 0.6366197723675814
    cvt.rni.f32.f32 j, j
    fma.rn.f32 f, j, -1.57079637050628662109375, x
    fma.rn.f32 f, j, 4.37113900018624283e-8, f
    fma.rn.f32 f, j, 1.71512449e-15, f
    setp.eq.f32 p, j, 0.0
    selp.f32 f, x, f, p
    mul.rn.f32 s, f, f
    {horner("r", "s", _TAN)}
    mul.rn.f32 s, s, f
    fma.rn.f32 r, r, s, f
    cvt.rni.s32.f32 i, j
    and.b32 i, i, 1
    setp.ne.s32 p, i, 0
    rcp.approx.ftz.f32 q, r
    neg.f32 q, q
    selp.f32 d, q, r, p
"""

# t = atan(z) for 0 <= z <= 1
_POLYNOMIAL = f"""
    mul.rn.f32 s, z, z
    {horner("t", "s", _ATAN)}
    mul.rn.f32 s, s, z
    fma.rn.f32 t, t, s, z
"""

# beyond 1: pi/2 - atan(1 / a)
_ATAN_TEXT = f"""
    abs.f32 a, x
    setp.gt.f32 p, a, 1.0
    rcp.approx.ftz.f32 z, a
    selp.f32 z, z, a, p
    {_POLYNOMIAL}
    sub.rn.f32 w, {_HALF_PI}, t
    selp.f32 t, w, t, p
    copysign.f32 d, x, t
"""

# the smaller one through the larger one, then the octant
_ATAN2 = f"""
    abs.f32 a, x
    abs.f32 b, y
    max.f32 m, a, b
    min.f32 n, a, b
    div.rn.f32 z, n, m
    setp.eq.f32 p, n, m
    selp.f32 z, 1.0, z, p
    setp.eq.f32 p, m, 0.0
    selp.f32 z, 0.0, z, p
    {_POLYNOMIAL}
    sub.rn.f32 w, {_HALF_PI}, t
    setp.gt.f32 p, b, a
    selp.f32 t, w, t, p
    sub.rn.f32 w, 3.1415927410125732421875, t
    setp.lt.s32 p, x, 0
    selp.f32 t, w, t, p
    copysign.f32 t, y, t
    setp.nan.f32 p, x, y
    selp.f32 d, nan, t, p
"""

# t = asin(z), z = |x| or, beyond 1/2, sqrt((1 - |x|) / 2): asin |x| = pi/2 - 2 t
_ASIN_PART = f"""
    abs.f32 a, x
    fma.rn.f32 u, a, -0.5, 0.5
    sqrt.approx.ftz.f32 z, u
    mul.rn.f32 s, a, a
    setp.gt.f32 p, a, 0.5
    selp.f32 s, u, s, p
    selp.f32 z, z, a, p
    {horner("t", "s", _ASIN)}
    mul.rn.f32 s, s, z
    fma.rn.f32 t, t, s, z
"""

_ASIN_TEXT = f"""
    {_ASIN_PART}
    fma.rn.f32 w, t, -2.0, {_HALF_PI}
    add.rn.f32 w, w, {_REST}
    selp.f32 t, w, t, p
    copysign.f32 d, x, t
"""

_ACOS = f"""
    {_ASIN_PART}
    copysign.f32 w, x, t
    sub.rn.f32 w, w, {_REST}
    sub.rn.f32 w, {_HALF_PI}, w
    add.rn.f32 t, t, t
    sub.rn.f32 v, 3.1415927410125732421875, t
    setp.lt.f32 q, x, 0.0
    selp.f32 t, v, t, q
    selp.f32 d, t, w, p
"""

SEQUENCES = {
    ("math.tan", "f32"): Sequence("x", _TAN_TEXT),
    ("math.atan", "f32"): Sequence("x", _ATAN_TEXT),
    ("math.atan2", "f32"): Sequence("y x", _ATAN2),
    ("math.asin", "f32"): Sequence("x", _ASIN_TEXT),
    ("math.acos", "f32"): Sequence("x", _ACOS),
}
