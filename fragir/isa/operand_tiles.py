"""The canonical shared-memory layouts that an operand may have, and which one a layout is."""

from __future__ import annotations

from dataclasses import dataclass

from fragir.errors import FragirError
from fragir.isa.atoms import repetition
from fragir.isa.canonical import SWIZZLES, CanonicalLayout, Major, canonical
from fragir.isa.model import BITS, Operand
from fragir.layout import Layout, LayoutError, renamed, swizzle_of
from fragir.layout import SharedLayout as Swizzled


@dataclass(frozen=True, slots=True)
class CanonicalTile:
    """A canonical layout of a tile of `mn` x `k` units of `unit_bits` bits."""

    shared: CanonicalLayout
    mn: int
    k: int
    unit_bits: int

    @property
    def text(self) -> str:
        """Axes mn and k to bytes, and the swizzle, as `fragir.layout.SharedLayout` reads it."""
        layout = self.shared.layout(self.mn, self.k)
        return str(Swizzled(layout, swizzle_of(self.shared.swizzle)))

    def document(self) -> dict[str, object]:
        """As JSON: the tile, LBO and SBO in bytes, the step of one instruction along K."""
        return {
            "tile": [self.mn, self.k],
            "unit_bits": self.unit_bits,
            "leading": self.shared.leading,
            "stride": self.shared.stride,
            "advance": self.shared.advance(),
            "layout": self.text,
        }


def majors(element: str) -> tuple[Major, ...]:
    """K always; MN for 16-bit types only (PTX ISA 9.2, section 9.7.15.5.1)."""
    return ("k", "mn") if BITS[element] == 16 else ("k",)


def operand_tiles(operand: Operand) -> dict[str, dict[int, CanonicalTile]]:
    """Major -> swizzle -> the packed canonical layout of the smallest tile that holds `operand`.

    Along K and, where it is MN-major, along MN the tile is a whole swizzle width; types below a
    byte count in bytes.
    """
    rows, cols = operand.shape
    mn, k = (cols, rows) if operand.name == "b" else (rows, cols)
    bits = BITS[operand.element]
    element = operand.element if bits >= 8 else "b8"
    unit = max(bits, 8)
    k = k * bits // unit
    found: dict[str, dict[int, CanonicalTile]] = {}
    for major in majors(operand.element):
        per_major = found.setdefault(major, {})
        for swizzle in SWIZZLES:
            width = max(swizzle, 16) * 8 // unit
            tile_mn = -(-mn // width) * width if major == "mn" else mn
            tile_k = width if major == "k" and swizzle else k
            shared = canonical(element, major, swizzle, tile_mn, tile_k)
            per_major[swizzle] = CanonicalTile(shared, tile_mn, tile_k, unit)
    return found


def parse_tile(text: str) -> CanonicalTile:
    """`bf16:k:128:64x64`: element, major, swizzle in bytes, MN x K, packed without holes."""
    parts = text.split(":")
    sizes = parts[3].split("x") if len(parts) == 4 else []
    if len(sizes) != 2 or not all(p.isdigit() for p in (parts[2], *sizes)):
        raise FragirError(
            f"'{text}' names no tile", hint="write TYPE:MAJOR:SWIZZLE:MNxK, as in bf16:k:128:64x64"
        )
    element, major = parts[0], parts[1]
    if element not in BITS or BITS[element] < 8:
        raise FragirError(f"'{element}' is no type of whole bytes", hint="for smaller ones take b8")
    if major not in ("k", "mn"):
        raise FragirError(f"'{major}' is no major-ness", hint="k or mn")
    if major not in majors(element):
        raise FragirError(f"{element} cannot be mn-major", hint="only 16-bit types can")
    mn, k = map(int, sizes)
    if not mn or not k:
        raise FragirError(f"'{text}' is a tile of no elements")
    if k * BITS[element] % 128 or mn % 8:
        raise FragirError(
            f"{mn}x{k} of {element} are no whole core matrices", hint="8 rows of 16 bytes each"
        )
    form = CanonicalTile(canonical(element, major, int(parts[2]), mn, k), mn, k, BITS[element])
    _ = form.text  # refuses what is no whole number of core matrices
    return form


def recognise(text: str, element: str) -> CanonicalTile:
    """The canonical layout that a shared-memory layout is: axes mn and k (or row and col).

    `element` is the type, which says what a byte offset counts. FragirError, with the reason,
    where no descriptor can say it.
    """
    swizzled = Swizzled.parse(text)
    try:
        layout = swizzled.swizzle * swizzled.layout
    except LayoutError as error:
        raise FragirError(f"no descriptor says this layout: {error.message}") from error
    if set(layout.names) == {"row", "col"}:
        layout = renamed(layout, row="mn", col="k")
    if set(layout.names) != {"mn", "k"} or layout.rank != 1:
        raise FragirError(
            "a matrix in shared memory maps mn and k to bytes",
            hint="as in 'mn [8:128] k [64:2] dims (byte) swizzle (3,4,3)'",
        )
    bits = BITS[element]
    mn, k = layout.size("mn"), layout.size("k")
    for major in majors(element):
        found = _canonical(layout, bits, major, mn, k)
        if found is not None:
            return CanonicalTile(found, mn, k, bits)
    raise FragirError(
        f"no descriptor says this layout of {element}",
        hint="`fragir layout MNEMONIC b` shows the canonical ones",
    )


def _canonical(layout: Layout, bits: int, major: Major, mn: int, k: int) -> CanonicalLayout | None:
    """The canonical layout that a whole layout of bytes is; None where it is none."""
    outer, inner = ("mn", "k") if major == "k" else ("k", "mn")
    try:
        size = bits // 8
        axes = (layout.axis(name).scaled(1, size) for name in (outer, inner))
        repeated = repetition(Layout(tuple(axes), ("index",)), bits, major)
        found = None if repeated is None else repeated.canonical(mn, k)
        return found if found and found.layout(mn, k) else None
    except FragirError:
        return None
