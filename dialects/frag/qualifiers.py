"""What an operation says besides shapes and types: rounding, saturation, kinds, block scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fragir.errors import FragirError
from fragir.isa.elements import FLOAT8_6_4
from fragir.isa.products import PACKED, blocks


class How(NamedTuple):
    """What says which instruction it is besides shape and element types: an operation's words."""

    satfinite: bool = False
    rounding: str = ""
    bitop: str = ""
    kind: str = ""
    scale: str = ""
    """The type of the scales, ue8m0 or ue4m3; empty without scales."""
    block: int = 0
    """How many elements along K have one scale."""
    sparse: str = ""
    """The family of a sparse product, `mma.sp` or `mma.sp::ordered_metadata`."""


PLAIN = How()
ROUNDINGS = ("rn", "rz", "rm", "rp")
BITOPS = ("and", "xor")
KINDS = ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")
_FP8_FP6_FP4 = frozenset(FLOAT8_6_4)


def check_how(a: str, b: str, d: str, how: How) -> None:
    """FragirError where a word does not go with the element types, or says nothing."""
    if how.satfinite and (d != "s32" or a == "b1"):
        raise FragirError(
            f"`satfinite` clamps sums of 8- and 4-bit integers, not of {a}", hint="leave it out"
        )
    if how.rounding and how.rounding not in ROUNDINGS:
        raise FragirError(f'there is no rounding "{how.rounding}"', hint=_one_of(ROUNDINGS))
    if how.rounding and a != "f64":
        raise FragirError(f"only products of f64 have a choice of rounding, not those of {a}")
    if how.bitop and how.bitop not in BITOPS:
        raise FragirError(f'there is no bitop "{how.bitop}"', hint=_one_of(BITOPS))
    if how.bitop and a != "b1":
        raise FragirError(f"`bitop` combines single bits (ui1), not {a}")
    if how.kind and how.kind not in KINDS:
        raise FragirError(f'there is no kind "{how.kind}"', hint=_one_of(KINDS))
    if how.kind == "f8f6f4" and not {a, b} <= _FP8_FP6_FP4:
        raise FragirError(
            f'kind "f8f6f4" multiplies {", ".join(sorted(_FP8_FP6_FP4))}, not {a} by {b}'
        )
    if how.kind == "f8f6f4" and how.scale:
        raise FragirError(
            'kind "f8f6f4" has no scales', hint='leave the kind out, or write kind "mxf8f6f4"'
        )
    if how.kind.startswith("mx") and not how.scale:
        raise FragirError(
            f'kind "{how.kind}" scales its blocks', hint="write `scaled %sfa, %sfb` after C"
        )
    if PACKED in (a, b) and not how.scale:
        raise FragirError(
            "packed f4E2M1FN are multiplied with scales only",
            hint="write `scaled %sfa, %sfb` after C, or keep each in a byte of its own (f4E2M1FN)",
        )


def _one_of(words: Sequence[str]) -> str:
    return "write " + " or ".join(f'"{word}"' for word in words)


def check_scales(a: str, b: str, d: str, how: How) -> None:
    """FragirError where no instruction scales products of these types by such blocks."""
    if not {a, b} <= _FP8_FP6_FP4 and not a == b == PACKED:
        raise FragirError(
            f"no instruction scales products of {a} by {b}",
            hint="A and B are 8-, 6- and 4-bit floats in bytes, or both !frag.packed<f4E2M1FN>",
        )
    if d != "f32":
        raise FragirError(f"scaled products are summed in f32, not in {d}")
    served = blocks(a, how.scale)
    twice = 2 if how.sparse else 1
    if not served:
        raise FragirError(
            f"scales of {a} are not {how.scale}",
            hint="write f8E8M0FNU" + (", or f8E4M3FN of blocks of 16" if a == PACKED else ""),
        )
    if how.kind and (how.kind == "mxf8f6f4") != (a != PACKED):
        raise FragirError(f'kind "{how.kind}" does not multiply {a}', hint="leave the kind out")
    if how.kind == "mxf4":
        served = (32,)
        if how.scale != "ue8m0":
            raise FragirError(f'kind "mxf4" has scales of ue8m0 (f8E8M0FNU), not {how.scale}')
    known = [twice * block for block in served]
    if how.block not in known:
        raise FragirError(
            f"a scale of {how.scale} serves {' or '.join(map(str, known))} elements of K here, "
            f"not {how.block}",
            hint=f"give SFA and SFB K / {known[0]} scales along K",
        )
