"""How names, literals and operands are spelt in PTX (ISA 9.2, sections 4.4, 4.5 and 6.4).

Plain functions from values to text, used wherever PTX is printed. Nothing is imported.
"""

from __future__ import annotations

# name of a floating-point type -> prefix, bits, exponent bits, fraction bits
_FLOATS = {"f32": ("0f", 32, 8, 23), "f64": ("0d", 64, 11, 52)}
# types whose immediate is a plain bit pattern of so many bits, written as an integer
_FLOAT_PATTERNS = {"f16": (16, 5, 10), "bf16": (16, 8, 7)}

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_FOLLOW = _LETTERS | frozenset("0123456789_$")
# predefined identifiers (section 4.4) that a name must not hide
_RESERVED = frozenset({"WARP_SZ", "_"})


def float_bits(value: float, type: str) -> int:
    """The IEEE pattern of `value` rounded to nearest even in `type`: f16, bf16, f32 or f64.

    Every NaN becomes the positive quiet NaN; what is too large becomes infinity.
    """
    if type in _FLOATS:
        _, bits, exponent_bits, fraction_bits = _FLOATS[type]
    elif type in _FLOAT_PATTERNS:
        bits, exponent_bits, fraction_bits = _FLOAT_PATTERNS[type]
    else:
        raise ValueError(f"no floating-point literal of type {type!r}")
    ones = (1 << exponent_bits) - 1
    bias = ones >> 1
    sign = (1 << (bits - 1)) if float(value).hex().startswith("-") else 0
    if value != value:
        return ones << fraction_bits | 1 << (fraction_bits - 1)
    if value - value != 0:  # infinite
        return sign | ones << fraction_bits
    if value == 0:
        return sign
    numerator, denominator = abs(value).as_integer_ratio()  # denominator is a power of two
    exponent = numerator.bit_length() - denominator.bit_length()
    if numerator << max(0, -exponent) < denominator << max(0, exponent):
        exponent -= 1  # now 2^exponent <= |value| < 2^(exponent + 1)
    exponent = max(exponent, 1 - bias)
    shift = fraction_bits - exponent  # |value| in units of the last place
    numerator <<= max(0, shift)
    denominator <<= max(0, -shift)
    units, rest = divmod(numerator, denominator)
    if 2 * rest > denominator or (2 * rest == denominator and units & 1):
        units += 1
    # a carry out of the fraction moves into the exponent, up to infinity, by itself
    pattern = units + ((exponent + bias - 1) << fraction_bits)
    return sign | min(pattern, ones << fraction_bits)


def float_literal(value: float, type: str) -> str:
    """`0f3F800000` for f32, `0d3FF0000000000000` for f64, `0x3C00` for f16 and bf16."""
    bits = float_bits(value, type)
    if type in _FLOATS:
        prefix, width, _, _ = _FLOATS[type]
        return f"{prefix}{bits:0{width // 4}X}"
    return f"0x{bits:04X}"


def integer_literal(value: int, type: str = "s32") -> str:
    """`value` as an immediate of an integer or bit type: `s8` to `u64`, `b8` to `b64`.

    Negative values stay negative for a signed type and become the bit pattern for u and b types;
    a pattern beyond the signed range is written in hexadecimal. Raises ValueError where the value
    fits neither as signed nor as unsigned number of that width.
    """
    kind, width = type[:1], type[1:]
    if kind not in "sub" or width not in ("8", "16", "32", "64"):
        raise ValueError(f"no integer literal of type {type!r}")
    bits = int(width)
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise ValueError(f"{value} does not fit .{type}")
    if kind == "s":
        # a pattern given as an unsigned number means the negative one
        return str(value - (1 << bits) if value >> (bits - 1) > 0 else value)
    if value < 0:
        value += 1 << bits
    return str(value) if value < 1 << (bits - 1) else f"0x{value:X}"


def is_identifier(text: str) -> bool:
    """Whether `text` is a legal identifier (section 4.4)."""
    if not text or not _FOLLOW.issuperset(text[1:]):
        return False
    return text[0] in _LETTERS or (text[0] in "_$%" and len(text) > 1)


def identifier(text: str) -> str:
    """A legal and readable identifier made of any text; one that is legal is kept.

    >>> identifier("matmul"), identifier("my-kernel.2"), identifier("2d"), identifier("µ")
    ('matmul', 'my_kernel_2', '_2d', '$u00b5')

    Distinct texts can give the same identifier: the caller numbers them where that matters.
    """
    if is_identifier(text) and text not in _RESERVED:
        return text
    words: list[str] = []
    for position, char in enumerate(text):
        if char in _FOLLOW or (char == "%" and position == 0 and len(text) > 1):
            words.append(char)
        elif ord(char) < 128:
            words.append("_")
        else:
            words.append(f"$u{ord(char):04x}")
    made = "".join(words)
    if not is_identifier(made) or made in _RESERVED:
        made = f"_{made}" if made and made not in ("_", "$", "%") else "_anonymous"
    return made if is_identifier(made) else f"_{made.lstrip('%')}"


def vector(elements: list[str] | tuple[str, ...]) -> str:
    """`{%r1, %r2}`."""
    return "{" + ", ".join(elements) + "}"


def address(base: str, offset: int = 0) -> str:
    """`[%rd1]`, `[%rd1+16]`, `[%rd1+-16]`: PTX has no minus in addresses."""
    return f"[{base}+{offset}]" if offset else f"[{base}]"


def tensor_address(base: str, coordinates: list[str] | tuple[str, ...]) -> str:
    """`[%rd1, {%r1, %r2}]`."""
    return f"[{base}, {vector(coordinates)}]"


def negate(predicate: str) -> str:
    """`!%p1`."""
    return f"!{predicate}"


def guard(predicate: str, negate: bool = False) -> str:
    """`@%p1` or `@!%p1`."""
    return f"@!{predicate}" if negate else f"@{predicate}"


def pair(first: str, second: str) -> str:
    """`%r1|%p1`."""
    return f"{first}|{second}"


def opcode(*words: str) -> str:
    """`ld.global.v4.f32` of its words; an empty word is left out."""
    return ".".join(word for word in words if word)
