"""Which canonical layout a matrix in shared memory has: a quotient by the atoms of the ISA.

Every canonical layout of wgmma and tcgen05 (`fragir.isa.canonical`) repeats an atom of 8 rows of
W bytes, swizzled by W, or of 16 bytes without a swizzle (PTX ISA 9.2, sections 9.7.15.5.1 and
9.7.16.5); one mode of tcgen05, for tf32, moves 32 bytes as a whole. K-major, the rows of the atom
are M or N and K runs along them; MN-major the other way round. So a layout is canonical where it is
an atom, repeated: its quotient by the atom says how far the next one stands, which is what a
descriptor's offsets are.

>>> from fragir.layout import Layout
>>> tile = Layout.parse("row [8:^72 8:512] col [64:1]")
>>> found = repetition(tile, 16, "k")
>>> found.swizzle, found.mn, found.k
(128, (Mode(size=8, stride=(1024,)),), ())
>>> repetition(Layout.parse("row [64:72] col [64:1]"), 16, "k") is None
True
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from fragir.errors import FragirError
from fragir.isa.canonical import SWIZZLES, WIDE_ATOM, CanonicalLayout, Major
from fragir.layout import Axis, Layout, LayoutError, Mode, Swizzle, quotient
from fragir.layout.shared import CHUNK, swizzled_elements

ATOM_ROWS = 8


class Repetition(NamedTuple):
    """A layout of elements, axes row and col, as an atom that is repeated.

    `atom` is the number of elements along MN and K that one atom covers; `mn` and `k` say at which
    bytes the next ones stand. `moved`: the bytes that the swizzle moves as a whole.
    """

    major: Major
    swizzle: int
    element_bytes: int
    atom: tuple[int, int]
    mn: tuple[Mode, ...]
    k: tuple[Mode, ...]
    moved: int = CHUNK

    def canonical(self, mn: int, k: int) -> CanonicalLayout:
        """The canonical layout of every part of `mn` x `k` elements, which begins with an atom.

        FragirError where the atoms of a part do not stand equally far from each other.
        """
        along_mn = self._step("M or N", self.mn, -(-mn // self.atom[0]))
        along_k = self._step("K", self.k, -(-k // self.atom[1]))
        turned = self.major == "mn" and self.swizzle != 0
        leading, stride = (along_mn, along_k) if turned else (along_k, along_mn)
        offsets = leading or CHUNK, stride or CHUNK
        return CanonicalLayout(
            self.major, self.swizzle, self.element_bytes, *offsets, atom=self.moved
        )

    def _step(self, what: str, modes: tuple[Mode, ...], count: int) -> int:
        """Bytes from an atom to the next of `count` along a dimension; 0 where there is but one."""
        if count == 1:
            return 0
        if not modes or modes[0].size % count:
            raise FragirError(
                f"{count} atoms of {self.atom[0]}x{self.atom[1]} elements along {what} do not "
                "stand equally far from each other"
            )
        return modes[0].stride[0]


@lru_cache(maxsize=1024)
def repetition(layout: Layout, bits: int, major: Major, *, wide: bool = False) -> Repetition | None:
    """How a layout of elements of so many bits repeats an atom; None where it is none's.

    Its axes are row and col; K runs along the columns of what is K-major, else along the rows.
    `wide`: an atom of the mode that moves 32 bytes as a whole, else of the others.
    """
    if bits % 8 or layout.where:
        return None
    if len(layout.axes) != 2 or layout.rank != 1:
        return None
    rows, cols = layout.axes
    axes = Axis("row", rows.modes), Axis("col", cols.modes)
    layout = Layout(axes, layout.dims, layout.offset).simplified()
    size = bits // 8
    moved = WIDE_ATOM if wide else CHUNK
    height = ATOM_ROWS * CHUNK // moved if major == "mn" else ATOM_ROWS
    for swizzle in (128,) if wide else sorted(SWIZZLES, reverse=True):
        width = max(swizzle, CHUNK) // size
        shape = min(height, layout.size("row")), min(width, layout.size("col"))
        atom = _wide_atom(shape, size) if wide else swizzled_elements(shape, bits, swizzle)
        try:
            rest = quotient(layout, replace(atom.simplified(), dims=layout.dims))
        except LayoutError:
            continue
        steps = [mode for axis in rest.axes for mode in axis.modes]
        whole = height * width if swizzle else width
        if any(mode.xor or mode.stride[0] % whole for mode in steps) or rest.origin[0] % whole:
            continue
        rows, cols = (rest.axis(name).scaled(size).modes for name in ("row", "col"))
        if major == "k":
            return Repetition(major, swizzle, size, (height, width), rows, cols, moved)
        return Repetition(major, swizzle, size, (width, height), cols, rows, moved)
    return None


def _wide_atom(shape: tuple[int, int], size: int) -> Layout:
    """Rows of 128 bytes, of elements of `size` bytes, whose chunks of 32 bytes are turned."""
    rows, cols = shape
    plain = Layout.parse(f"row [{rows}:{128 // size}] col [{cols}:1]")
    return Swizzle(2, (WIDE_ATOM // size).bit_length() - 1, 2) * plain
