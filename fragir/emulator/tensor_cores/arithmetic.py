"""What the tensor cores of each architecture do, as parameters of one primitive.

One step adds up to `step` products and one addend c, exactly as docs/arithmetic.md describes:
terms are cut (towards zero, each by itself) at 2^(E - fraction), where E is the largest exponent
among them and at least `floor`; the cut terms are added exactly; the sum is rounded once. A longer
K is a chain of steps in ascending k.

Sources: MMA-Sim (arXiv 2511.10909), Khattak and Mikaitis (arXiv 2512.07004), Fasi, Higham, Mikaitis
and Pranesh (PeerJ CS 330, 2021); the lowering of what is not native: read off ptxas SASS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from fragir.errors import FragirError
from fragir.ptx.targets import MACHINES


class Architecture(Enum):
    """The generations whose tensor cores differ; `fragir.ptx.targets` says who has which."""

    VOLTA = "Volta"
    TURING = "Turing"
    AMPERE = "Ampere"
    ADA = "Ada"
    HOPPER = "Hopper"
    BLACKWELL = "Blackwell"
    RTX_BLACKWELL = "RTX Blackwell"


_ARCHITECTURES: Mapping[Architecture, tuple[int, ...]] = {
    each: tuple(machine.number for machine in MACHINES if machine.cores == each.value)
    for each in Architecture
}


@dataclass(frozen=True, slots=True)
class TargetName:
    """`sm_90a` taken apart: number 90, suffix "a"."""

    name: str
    number: int
    suffix: str
    architecture: Architecture


@cache
def target(name: str) -> TargetName:
    """Raises FragirError for a name that is no target with tensor cores."""
    found = re.fullmatch(r"sm_(\d+)([af]?)", name)
    for architecture, numbers in _ARCHITECTURES.items():
        if found and int(found[1]) in numbers:
            return TargetName(name, int(found[1]), found[2], architecture)
    raise FragirError(
        f"the emulator knows no tensor cores of target `{name}`",
        hint=f"it has sm_{MACHINES[0].number} to sm_{MACHINES[-1].number}",
    )


@cache
def abilities(target: TargetName) -> frozenset[str]:
    """What a target is at least: `sm_80`, and of its family, `sm_120f`, and machine, `sm_120a`."""
    numbers = _ARCHITECTURES[target.architecture]
    found = {f"sm_{n}" for each in _ARCHITECTURES.values() for n in each if n <= target.number}
    found |= {f"sm_{numbers[0]}{suffix}" for suffix in "fa" if target.suffix in (suffix, "a")}
    return frozenset(found)


class Rounding(Enum):
    """How the sum becomes the result."""

    RZ_F32 = "towards zero to f32"
    RZ_E8M13 = "towards zero to 13 fraction bits, in an f32"
    RNE_F16 = "to nearest even f16"

    @property
    def accumulator(self) -> str:
        return "f16" if self is Rounding.RNE_F16 else "f32"


@dataclass(frozen=True, slots=True)
class Fused:
    """Parameters of the primitive: F, e_floor, products a step, ROUND."""

    fraction: int
    floor: int
    step: int
    rounding: Rounding


def _fused_parameters(fraction: int, step: int, accumulator: str, narrow: bool = False) -> Fused:
    # The least exponent is one below the accumulator's least subnormal's place, less the guard
    # bits: f32 -133 for F = 25, -132 for 24, -131 for 23; f16 112 more.
    floor = -133 + (25 - fraction if fraction > 13 else 0)
    if accumulator == "f16":
        return Fused(fraction, floor + 112, step, Rounding.RNE_F16)
    return Fused(fraction, floor, step, Rounding.RZ_E8M13 if narrow else Rounding.RZ_F32)


_FP8 = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")


@cache
def fused_parameters(
    architecture: Architecture, element: str, accumulator: str, *, volta: bool = False
) -> Fused:
    """Parameters for products of `element` (f16, bf16, tf32, or an 8-bit or smaller format).

    `volta`: the m8n8k4 instruction, which Turing executes as Volta does. Raises FragirError where
    the architecture has no tensor core for the element.
    """
    match architecture:
        case Architecture.VOLTA | Architecture.TURING if element == "f16":
            if volta or architecture is Architecture.VOLTA:
                return _fused_parameters(23, 4, accumulator)
            return _fused_parameters(24, 8, accumulator)
        case Architecture.AMPERE | Architecture.ADA if element in ("f16", "bf16", "tf32"):
            return _fused_parameters(24, 4 if element == "tf32" else 8, accumulator)
        case Architecture.ADA if element in ("e4m3", "e5m2"):
            least = -20 if accumulator == "f16" else -132
            rounding = Rounding.RNE_F16 if accumulator == "f16" else Rounding.RZ_E8M13
            return Fused(13, least, 16, rounding)
        case Architecture.HOPPER | Architecture.BLACKWELL | Architecture.RTX_BLACKWELL if (
            element in ("f16", "bf16", "tf32")
        ):
            return _fused_parameters(25, 8 if element == "tf32" else 16, accumulator)
        case Architecture.HOPPER if element in ("e4m3", "e5m2"):  # wgmma
            return _fused_parameters(13, 32, accumulator, narrow=True)
        case Architecture.BLACKWELL | Architecture.RTX_BLACKWELL if element in _FP8:
            return _fused_parameters(25, 32, accumulator)
        case _:
            raise FragirError(
                f"the tensor cores of {architecture.value} do not multiply `{element}`"
            )
