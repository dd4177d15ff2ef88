"""Colours of drawings: 32 of them, for light and for dark pages.

Eight hues of four strengths each. The hues are those of Okabe and Ito ("Color Universal Design",
2008, https://jfly.uni-koeln.de/color/), which people of every colour vision tell apart, in an
order in which neighbours differ in more than hue; the strengths are shares of the hue over the
page's ground, so that neighbouring lanes differ in lightness as well. Black text on the light
ones, white on the dark ones has a contrast of 4.5 at least (WCAG 2.2, success criterion 1.4.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Colour: TypeAlias = tuple[int, int, int]

HUES: tuple[Colour, ...] = (
    (0xE6, 0x9F, 0x00),  # orange
    (0x00, 0x9E, 0x73),  # bluish green
    (0xD5, 0x5E, 0x00),  # vermillion
    (0xCC, 0x79, 0xA7),  # reddish purple
    (0xF0, 0xE4, 0x42),  # yellow
    (0x00, 0x72, 0xB2),  # blue
    (0x88, 0x88, 0x88),  # grey
    (0x56, 0xB4, 0xE9),  # sky blue
)
LIGHT, DARK = (0xFF, 0xFF, 0xFF), (0x16, 0x18, 0x1C)
INK, CHALK = (0x11, 0x11, 0x11), (0xFF, 0xFF, 0xFF)
_LIGHT_SHARES = (0.25, 0.42, 0.59, 0.76)
_DARK_SHARES = (0.18, 0.27, 0.37, 0.47)
_LIGHT_LINES = ("#6b6b6b", "#f0f0f0", "#c00000")
_DARK_LINES = ("#5a5f68", "#23262b", "#ff6b5e")
"""Lines between cells, the ground of empty ones, frames of marked ones."""
COUNT = len(HUES) * len(_LIGHT_SHARES)


def _mixed(hue: Colour, ground: Colour, share: float) -> Colour:
    red, green, blue = (
        round(share * x + (1 - share) * y) for x, y in zip(hue, ground, strict=True)
    )
    return red, green, blue


def colour(shade: int, dark: bool = False) -> Colour:
    """Red, green and blue, 0 to 255, of a shade; there are `COUNT`, then they begin again."""
    hue, strength = divmod(shade % COUNT, len(_LIGHT_SHARES))
    ground, shares = (DARK, _DARK_SHARES) if dark else (LIGHT, _LIGHT_SHARES)
    return _mixed(HUES[hue], ground, shares[strength])


def hexadecimal(rgb: Colour) -> str:
    """`#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def style(shades: Iterable[int]) -> str:
    """CSS of the classes `fr-0` to `fr-31` that are used, for light and dark pages."""
    used = sorted({shade % COUNT for shade in shades})

    def rules(dark: bool) -> str:
        ground, ink = (DARK, CHALK) if dark else (LIGHT, INK)
        line, empty, mark = _DARK_LINES if dark else _LIGHT_LINES
        head = (
            f".fr-ground{{fill:{hexadecimal(ground)}}}"
            f".fr text{{fill:{hexadecimal(ink)}}}"
            f".fr [data-at]>rect{{stroke:{line}}}.fr-none{{fill:{empty}}}"
            f".fr [data-at]>.fr-mark{{stroke:{mark};stroke-width:2;fill:none}}"
        )
        return head + "".join(
            f".fr-{shade}{{fill:{hexadecimal(colour(shade, dark))}}}" for shade in used
        )

    return f"{rules(False)}@media(prefers-color-scheme:dark){{{rules(True)}}}"
