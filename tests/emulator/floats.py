"""IEEE 754 in rationals: an oracle that shares nothing with the emulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

NAN, INF = "nan", "inf"
#: A value: ("nan" | "inf" | "finite", sign bit, magnitude).
Value = tuple[str, int, Fraction]


@dataclass(frozen=True)
class Format:
    exponent: int
    fraction: int
    nan: int
    ieee: bool = True  # has infinities; otherwise the top exponent holds numbers

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def largest(self) -> Fraction:
        if self.ieee:
            return (2 - Fraction(1, 1 << self.fraction)) * Fraction(2) ** self.bias
        return Fraction(448)  # e4m3

    def read(self, bits: int) -> Value:
        sign = bits >> (self.width - 1)
        field = bits >> self.fraction & ((1 << self.exponent) - 1)
        rest = bits & ((1 << self.fraction) - 1)
        if self.ieee and field == (1 << self.exponent) - 1:
            return (NAN if rest else INF, sign, Fraction(0))
        if not self.ieee and bits & ((1 << (self.width - 1)) - 1) == self.nan:
            return (NAN, sign, Fraction(0))
        whole = rest + (1 << self.fraction if field else 0)
        return ("finite", sign, whole * Fraction(2) ** (max(field, 1) - self.bias - self.fraction))

    def write(self, value: Value, mode: str, finite: bool = False) -> int:
        """Round to the format; `finite` clamps to the largest number."""
        kind, sign, magnitude = value
        top = sign << (self.width - 1)
        infinity = ((1 << self.exponent) - 1) << self.fraction
        if kind == NAN:
            return self.nan
        if kind == INF:
            return top | (self._largest_bits() if finite else infinity)
        if magnitude == 0:
            return top
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if Fraction(2) ** exponent > magnitude:
            exponent -= 1
        exponent = max(exponent, 1 - self.bias)
        quantum = Fraction(2) ** (exponent - self.fraction)
        steps = int(magnitude / quantum)
        rest = magnitude / quantum - steps
        up = {
            "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and steps & 1 == 1),
            "rna": rest >= Fraction(1, 2),
            "rz": False,
            "rm": rest > 0 and sign == 1,
            "rp": rest > 0 and sign == 0,
        }[mode]
        steps += up
        if steps * quantum > self.largest:
            keeps = mode == "rz" or (mode == "rm" and not sign) or (mode == "rp" and bool(sign))
            if finite or keeps:
                return top | self._largest_bits()
            return top | infinity
        if steps == 2 << self.fraction:
            steps, exponent = steps >> 1, exponent + 1
        field = exponent + self.bias if steps >> self.fraction else 0
        return top | field << self.fraction | steps & ((1 << self.fraction) - 1)

    def _largest_bits(self) -> int:
        if not self.ieee:
            return 0x7E
        return ((1 << self.exponent) - 1 << self.fraction) - 1


F16 = Format(5, 10, 0x7FFF)
BF16 = Format(8, 7, 0x7FFF)
F32 = Format(8, 23, 0x7FFFFFFF)
F64 = Format(11, 52, 0x7FF8000000000000)
E4M3 = Format(4, 3, 0x7F, ieee=False)
E5M2 = Format(5, 2, 0x7F)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64, "e4m3": E4M3, "e5m2": E5M2}


def signed(value: Value) -> Fraction:
    return -value[2] if value[1] else value[2]


def add(a: Value, b: Value, mode: str) -> Value:
    if NAN in (a[0], b[0]) or (a[0] == b[0] == INF and a[1] != b[1]):
        return (NAN, 0, Fraction(0))
    if INF in (a[0], b[0]):
        return a if a[0] == INF else b
    total = signed(a) + signed(b)
    if total == 0:
        sign = a[1] if a[1] == b[1] else int(mode == "rm")
        return ("finite", sign, Fraction(0))
    return ("finite", int(total < 0), abs(total))


def multiply(a: Value, b: Value) -> Value:
    sign = a[1] ^ b[1]
    if NAN in (a[0], b[0]):
        return (NAN, 0, Fraction(0))
    if INF in (a[0], b[0]):
        other = b if a[0] == INF else a
        if other[0] == "finite" and other[2] == 0:
            return (NAN, 0, Fraction(0))
        return (INF, sign, Fraction(0))
    return ("finite", sign, a[2] * b[2])


def divide(a: Value, b: Value) -> Value:
    sign = a[1] ^ b[1]
    zero_b = b[0] == "finite" and b[2] == 0
    zero_a = a[0] == "finite" and a[2] == 0
    if NAN in (a[0], b[0]) or (a[0] == b[0] == INF) or (zero_a and zero_b):
        return (NAN, 0, Fraction(0))
    if a[0] == INF or zero_b:
        return (INF, sign, Fraction(0))
    if b[0] == INF:
        return ("finite", sign, Fraction(0))
    return ("finite", sign, a[2] / b[2])


def root(a: Value) -> Value:
    """Exact where it is rational, else sticky far below every format's last bit."""
    kind, sign, magnitude = a
    if kind == "finite" and magnitude == 0:
        return a
    if kind == NAN or sign:
        return (NAN, 0, Fraction(0))
    if kind == INF:
        return a
    scale = 1 << 1400
    scaled = magnitude * scale * scale
    whole = isqrt(int(scaled))
    exact = Fraction(whole, scale)
    if exact * exact != magnitude:
        exact += Fraction(1, 2 * scale)
    return ("finite", 0, exact)


def apply(name: str, values: list[Value], mode: str) -> Value:
    operations: dict[str, Callable[[], Value]] = {
        "add": lambda: add(values[0], values[1], mode),
        "sub": lambda: add(values[0], (values[1][0], 1 - values[1][1], values[1][2]), mode),
        "mul": lambda: multiply(values[0], values[1]),
        "fma": lambda: add(multiply(values[0], values[1]), values[2], mode),
        "div": lambda: divide(values[0], values[1]),
        "sqrt": lambda: root(values[0]),
        "rcp": lambda: divide(("finite", 0, Fraction(1)), values[0]),
    }
    return operations[name]()
