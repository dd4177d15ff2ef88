"""Floating-point formats: one table (PTX ISA 9.2, section 5.2.3 and its references)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format of `1 + exponent + fraction` bits.

    `infinity`: whether its top exponent holds Inf and NaN, as IEEE 754 has it. `nan`: the bits of
    the NaN that instructions give; None: the format has none. A format with a NaN and no infinity
    has the NaN at S.11..1 and numbers at all other codes.
    """

    name: str
    exponent: int
    fraction: int
    infinity: bool = True
    nan: int | None = None

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def lowest(self) -> int:
        """Exponent of the smallest normal, and of every subnormal."""
        return 1 - self.bias

    @property
    def largest(self) -> float:
        """The largest finite number."""
        unit = 2.0**-self.fraction
        if self.infinity:
            return (2 - unit) * 2.0**self.bias
        return (2 - (unit if self.nan is None else 2 * unit)) * 2.0 ** (self.bias + 1)


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("f64", 11, 52, nan=0x7FF8 << 48),
        Format("f32", 8, 23, nan=0x7FFFFFFF),
        Format("tf32", 8, 10, nan=0x7FFFFFFF),
        Format("bf16", 8, 7, nan=0x7FFF),
        Format("f16", 5, 10, nan=0x7FFF),
        Format("e5m2", 5, 2, nan=0x7F),
        Format("e4m3", 4, 3, infinity=False, nan=0x7F),
        Format("e3m2", 3, 2, infinity=False),
        Format("e2m3", 2, 3, infinity=False),
        Format("e2m1", 2, 1, infinity=False),
    )
}
