"""The canonical shared-memory layouts that an operand may have, and which one a layout is."""

from __future__ import annotations

from dataclasses import dataclass

from fragir.errors import FragirError
from fragir.isa.atoms import repetition
from fragir.isa.canonical import (
    PACKED_PAIR,
    SWIZZLES,
    WIDE_ATOM,
    CanonicalLayout,
    Major,
    canonical,
    element_form,
)
from fragir.isa.model import BITS, FLOAT6_4, Operand
from fragir.layout import Layout, LayoutError, renamed
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
        return str(self.shared.shared(self.mn, self.k))

    @property
    def mode(self) -> str:
        """The swizzle mode in a word, as `MODES` has it."""
        return mode_name(self.shared.swizzle, self.shared.atom)

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


MODES: dict[str, tuple[int, int]] = {
    **{str(swizzle): (swizzle, 16) for swizzle in SWIZZLES},
    f"128/{WIDE_ATOM}": (128, WIDE_ATOM),
}
"""Name of a swizzle mode -> bytes of its width and of its atom; the last one is tcgen05's alone."""


def mode_name(swizzle: int, atom: int = 16) -> str:
    """The name of a swizzle mode: its width, and its atom where that is not 16 bytes."""
    return str(swizzle) if atom == 16 else f"{swizzle}/{atom}"


def majors(element: str, *, tcgen05: bool = False, atom: int = 16) -> tuple[Major, ...]:
    """K always; MN of wgmma for 16-bit types only (PTX ISA 9.2, section 9.7.15.5.1).

    Of tcgen05 for 16-bit and 8-bit types with every mode but that of 32-byte atoms, which is that
    of tf32 (section 9.7.16.10.5); never for elements below a byte.
    """
    bits = 4 if element == PACKED_PAIR else BITS[element]
    if not tcgen05:
        return ("k", "mn") if bits == 16 else ("k",)
    turned = bits == 32 if atom == WIDE_ATOM else bits in (8, 16)
    return ("k", "mn") if turned else ("k",)


def check_major(element: str, major: Major, mode: str, *, tcgen05: bool) -> None:
    """FragirError where an operand of the type cannot have the major-ness with the mode."""
    _, atom = MODES[mode]
    if atom != 16 and not tcgen05:
        raise FragirError(f"wgmma has no swizzle mode {mode}", hint=f"one of {_listed(SWIZZLES)}")
    if major in majors(element, tcgen05=tcgen05, atom=atom):
        return
    if not tcgen05:
        raise FragirError(f"{element} cannot be mn-major", hint="only 16-bit types can")
    hint = f"16-bit and 8-bit types can, with {_listed(SWIZZLES)}; tf32 with 128/{WIDE_ATOM}"
    raise FragirError(f"{element} cannot be mn-major with the swizzle {mode}", hint=hint)


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


def operand_tiles(
    operand: Operand, *, tcgen05: bool = False
) -> dict[str, dict[int, CanonicalTile]]:
    """Major -> swizzle -> the packed canonical layout of the smallest tile that holds `operand`.

    Along K and, where it is MN-major, along MN the tile is a whole swizzle width; types below a
    byte count in bytes. With `tcgen05` an operand of its products, with the modes that wgmma has.
    """
    rows, cols = operand.shape
    mn, k = (cols, rows) if operand.name == "b" else (rows, cols)
    bits = BITS[operand.element]
    element = operand.element if bits >= 8 else "b8"
    unit = max(bits, 8)
    k = k * bits // unit
    found: dict[str, dict[int, CanonicalTile]] = {}
    for major in majors(operand.element, tcgen05=tcgen05):
        per_major = found.setdefault(major, {})
        for swizzle in SWIZZLES:
            width = max(swizzle, 16) * 8 // unit
            tile_mn = -(-mn // width) * width if major == "mn" else mn
            tile_k = width if major == "k" and swizzle else k
            shared = canonical(element, major, swizzle, tile_mn, tile_k)
            per_major[swizzle] = CanonicalTile(shared, tile_mn, tile_k, unit)
    return found


def tensor_tiles(element: str, mn: int, k: int, *, padded: bool = False) -> list[CanonicalTile]:
    """The packed canonical layouts that tcgen05 may read an operand of `mn` x `k` elements from.

    As `operand_tiles`, of every major-ness and mode; `e2m1x2` and `padded` elements as
    `fragir.isa.canonical.element_form` has them.
    """
    found: list[CanonicalTile] = []
    size, bits, per_chunk = element_form(element, padded=padded)
    per = per_chunk or 16 // size
    for swizzle, atom in MODES.values():
        for major in majors(element, tcgen05=True, atom=atom):
            width = max(swizzle, 16) // 16 * per
            tile_mn = -(-mn // width) * width if major == "mn" else mn
            tile_k = width if major == "k" and swizzle else k
            shared = canonical(element, major, swizzle, tile_mn, tile_k, atom=atom, padded=padded)
            found.append(CanonicalTile(shared, tile_mn, tile_k, bits or 8 * size))
    return found


def parse_tile(text: str, *, tcgen05: bool = False) -> CanonicalTile:
    """`bf16:k:128:64x64`: element, major, swizzle in bytes, MN x K, packed without holes.

    With `tcgen05` also what only it reads: the mode 128/32, 8-bit types and tf32 MN-major, and
    elements below a byte: `e2m1x2` two to a byte, e2m1, e2m3 and e3m2 padded.
    """
    parts = text.split(":")
    sizes = parts[3].split("x") if len(parts) == 4 else []
    if len(sizes) != 2 or not all(p.isdigit() for p in sizes) or parts[2] not in MODES:
        if len(parts) == 4 and parts[2].isdigit():
            canonical("b8", "k", int(parts[2]), 8, 16)  # refuses what is no swizzle
        raise FragirError(
            f"'{text}' names no tile", hint="write TYPE:MAJOR:SWIZZLE:MNxK, as in bf16:k:128:64x64"
        )
    element, major, mode, _ = parts
    padded = tcgen05 and element in FLOAT6_4
    known = padded or BITS.get(element, 0) >= 8 or (tcgen05 and element == PACKED_PAIR)
    if not known:
        raise FragirError(f"'{element}' is no type of whole bytes", hint="for smaller ones take b8")
    if major not in ("k", "mn"):
        raise FragirError(f"'{major}' is no major-ness", hint="k or mn")
    check_major(element, major, mode, tcgen05=tcgen05)
    mn, k = map(int, sizes)
    if not mn or not k:
        raise FragirError(f"'{text}' is a tile of no elements")
    size, bits, per_chunk = element_form(element, padded=padded)
    if k % (per_chunk or 16 // size) or mn % 8:
        raise FragirError(
            f"{mn}x{k} of {element} are no whole core matrices", hint="8 rows of 16 bytes each"
        )
    swizzle, atom = MODES[mode]
    shared = canonical(element, major, swizzle, mn, k, atom=atom, padded=padded)
    form = CanonicalTile(shared, mn, k, bits or 8 * size)
    _ = form.text  # refuses what is no whole number of core matrices
    return form


def recognise(text: str, element: str, *, tcgen05: bool = False) -> CanonicalTile:
    """The canonical layout that a shared-memory layout is: axes mn and k (or row and col).

    `element` is the type, which says what a byte offset counts; `tcgen05`: whose descriptor it
    shall be. FragirError, with the reason, where no descriptor can say it.
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
    for wide in (False, True) if tcgen05 else (False,):
        for major in majors(element, tcgen05=tcgen05, atom=WIDE_ATOM if wide else 16):
            found = _canonical(layout, bits, major, mn, k, wide)
            if found is not None:
                return CanonicalTile(found, mn, k, bits)
    raise FragirError(
        f"no descriptor says this layout of {element}",
        hint="`fragir layout MNEMONIC b` shows the canonical ones",
    )


def _canonical(
    layout: Layout, bits: int, major: Major, mn: int, k: int, wide: bool
) -> CanonicalLayout | None:
    """The canonical layout that a whole layout of bytes is; None where it is none."""
    outer, inner = ("mn", "k") if major == "k" else ("k", "mn")
    try:
        size = bits // 8
        axes = (layout.axis(name).scaled(1, size) for name in (outer, inner))
        repeated = repetition(Layout(tuple(axes), ("index",)), bits, major, wide=wide)
        found = None if repeated is None else repeated.canonical(mn, k)
        return found if found and found.layout(mn, k) else None
    except FragirError:
        return None
