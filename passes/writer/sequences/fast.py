"""What `fastmath` allows: approximate instructions that flush subnormal numbers to zero.

afn: functions by their `.approx.ftz` forms, which ptxas emits as one instruction where the exact
ones scale small numbers before and after; division by `div.full`. arcp: division as a product with
`rcp.approx.ftz`. PTX ISA 9.2, sections 9.7.3.8 (div), 13 (rcp), 15 (sqrt), 16 (rsqrt), 18 to 21.
"""

from __future__ import annotations

from fragir.passes.writer.sequences.sequence import Sequence

_AFN = {
    "math.exp2": "ex2.approx.ftz.f32 d, x",
    "math.exp": "mul.rn.f32 t, x, 1.4426950408889634; ex2.approx.ftz.f32 d, t",
    "math.log2": "lg2.approx.ftz.f32 d, x",
    "math.log": "lg2.approx.ftz.f32 t, x; mul.rn.f32 d, t, 0.6931471805599453",
    "math.log10": "lg2.approx.ftz.f32 t, x; mul.rn.f32 d, t, 0.3010299956639812",
    "math.rsqrt": "rsqrt.approx.ftz.f32 d, x",
    "math.sqrt": "sqrt.approx.ftz.f32 d, x",
    "math.sin": "sin.approx.ftz.f32 d, x",
    "math.cos": "cos.approx.ftz.f32 d, x",
}
_AFN_SEQUENCES = {name: Sequence("x", text) for name, text in _AFN.items()}
_RECIPROCAL = Sequence("x y", "rcp.approx.ftz.f32 t, y; mul.rn.f32 d, x, t")
_FULL = Sequence("x y", "div.full.f32 d, x, y")


def fast(name: str, flags: frozenset[str]) -> Sequence | None:
    """The faster text of an operation on f32, where its flags allow one."""
    if name == "arith.divf":
        return _RECIPROCAL if "arcp" in flags else _FULL if "afn" in flags else None
    return _AFN_SEQUENCES.get(name) if "afn" in flags else None
