"""Every colour of text can be read on every ground of the page, light and dark."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

import fragir.explain

STYLE = (Path(fragir.explain.__file__).parent / "page.css").read_text()
PALETTES = [
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]+);", block))
    for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
]
GROUNDS = ("ground", "panel", "added", "removed", "changed", "related", "pinned")
INKS = ("ink", "quiet", "value", "type", "opcode", "number", "string", "comment")
PAIRS = [
    *product(GROUNDS, INKS),
    *((kind, f"{kind}-ink") for kind in ("added", "removed", "changed")),
    *product(("ground", "panel"), ("error", "link")),
]


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
def test_text_can_be_read(palette: dict[str, str]) -> None:
    """A contrast of 4.5 at least (WCAG 2.2, 1.4.3)."""
    for ground, ink in PAIRS:
        dark, light = sorted((luminance(palette[ground]), luminance(palette[ink])))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ground, ink)


def test_there_are_two() -> None:
    assert len(PALETTES) == 2
    assert PALETTES[0].keys() == PALETTES[1].keys()
