"""Elements of 1 and 4 bits that part from those they share a byte with: with a byte for each.

Words are taken apart into words of bytes, those are converted as elements of 8 bits, and words of
elements are made of them again. What that takes beside the conversion is the same for every word.
"""

from __future__ import annotations

from collections import Counter

from fragir.layout.planning.registers import words_of

APART = {4: {"and": 2, "shr": 1, "prmt": 2}, 1: {"shr": 7, "and": 16, "mul": 8}}
"""Instructions that make bytes of one word of elements of so many bits."""
TOGETHER = {4: {"prmt": 2, "shl": 1, "or": 1}, 1: {"mul": 8, "shr": 8, "shl": 7, "or": 7}}
"""Instructions that make one word of elements of words of bytes."""


def beside_bytes(given: int, wanted: int, bits: int) -> Counter[str]:
    """Instructions beside the conversion of bytes, for so many elements of source and target."""
    found: Counter[str] = Counter()
    for elements, each in ((given, APART[bits]), (wanted, TOGETHER[bits])):
        for name, count in each.items():
            found[name] += words_of(elements, bits) * count
    return found
