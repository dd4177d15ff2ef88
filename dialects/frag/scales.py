"""What products have beside A, B and C: scales of blocks, and the metadata of a sparse A."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import Names
from fragir.errors import FragirError


def of_scales(scales: Sequence[SSAValue]) -> Iterable[tuple[SSAValue, Names]]:
    """Scales of A have its rows, those of B its columns; along K there are fewer."""
    sides: tuple[Names, Names] = (("m", None), (None, "n"))
    return zip(scales, sides, strict=False)


def read_scales(scales: Sequence[SSAValue], m: int, n: int, k: int) -> tuple[str, int]:
    """The type of the scales and how many elements of K each serves; ("", 0) without any.

    FragirError where their shapes or types are not those of an M x N x K product.
    """
    if not scales:
        return "", 0
    if len(scales) != 2:
        raise FragirError(
            f"`scaled` takes two tiles, not {len(scales)}", hint="write `scaled %sfa, %sfb`"
        )
    sfa, sfb = map(tile_of, scales)
    blocks = sfa.cols
    if sfa.element_type != sfb.element_type:
        raise FragirError(f"the scales of A are {sfa.element}, those of B {sfb.element}")
    name = {"ue8m0": "ue8m0", "e4m3": "ue4m3"}.get(sfa.element)
    if name is None:
        raise FragirError(
            f"{sfa.element} are no scales",
            hint="write f8E8M0FNU, or f8E4M3FN, whose sign is dropped",
        )
    if sfa.shape != (m, blocks) or sfb.shape != (blocks, n) or k % blocks:
        raise FragirError(
            f"SFA is {'x'.join(map(str, sfa.shape))} and SFB {'x'.join(map(str, sfb.shape))} in a "
            f"product of {m}x{n}x{k}",
            hint=f"SFA is {m} x blocks, SFB blocks x {n}, and the blocks divide K",
        )
    return name, k // blocks


def check_metadata(
    op: str, instruction: isa.Instruction, metadata: TileType, rows: int, k: int
) -> None:
    """VerifyException unless the metadata have a nibble for every chunk of every row."""
    chunk = instruction.operands["e"].chunk
    wanted = k // chunk
    if metadata.element != "u4" or metadata.shape != (rows, wanted):
        raise VerifyException(
            f"{op}: the metadata are a tile of {rows}x{wanted}xui4, a nibble "
            f"for every {chunk} elements of K, not {metadata}"
        )
