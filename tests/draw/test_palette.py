"""Colours that everybody tells apart, on light and on dark pages."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fragir.draw.svg import CHALK, COUNT, INK, Colour, colour

# Machado, Oliveira, Fernandes: "A physiologically-based model for simulation of color vision
# deficiency", IEEE TVCG 2009, table 1, severity 1.0; they multiply linear red, green and blue.
SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def linear(channel: float) -> float:
    x = channel / 255
    return x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4


def luminance(rgb: Colour) -> float:
    red, green, blue = map(linear, rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lab(rgb: Colour, eyes: str) -> tuple[float, float, float]:
    """CIE L*a*b* of what these eyes see."""
    given = [linear(c) for c in rgb]
    r, g, b = (
        min(1, max(0, sum(m * x for m, x in zip(row, given, strict=True)))) for row in SEEN[eyes]
    )
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one: Colour, other: Colour, eyes: str) -> float:
    """The difference CIE76."""
    a, b = lab(one, eyes), lab(other, eyes)
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_legible(dark: bool) -> None:
    ink = luminance(CHALK if dark else INK)
    for shade in range(COUNT):
        ground = luminance(colour(shade, dark))
        high, low = max(ink, ground), min(ink, ground)
        assert (high + 0.05) / (low + 0.05) >= 4.5, shade


@pytest.mark.parametrize("eyes", SEEN)
@pytest.mark.parametrize("dark", [False, True])
def test_neighbours_differ(eyes: str, dark: bool) -> None:
    """Lanes beside each other (T0, T1) and below each other (T0, T4), as fragments have them.

    A difference of 2.3 is just noticed.
    """
    for shade in range(COUNT):
        below = apart(colour(shade, dark), colour(shade + 4, dark), eyes)
        assert below >= 8, (shade, below)
        if shade % 4 < 3:
            beside = apart(colour(shade, dark), colour(shade + 1, dark), eyes)
            assert beside >= 3.5, (shade, beside)


def test_strengths_are_in_order() -> None:
    for hue in range(8):
        light = [luminance(colour(4 * hue + i)) for i in range(4)]
        assert all(a > b for a, b in pairwise(light))


def test_there_are_32() -> None:
    assert len({colour(i) for i in range(COUNT)}) == COUNT == 32
    assert colour(35) == colour(3)
