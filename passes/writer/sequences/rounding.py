"""What moves no bits of the fraction or rounds to whole numbers, on f32 and f64; rsqrt of f64."""

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
