"""Kernels that compute something else: numerical faults, one in each.

They are those that slip into kernels: an operation left out, a constant that is a little off, a
bound that is one too far, a shuffle that goes elsewhere, a register in the place of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

_ARITHMETIC = re.compile(
    r"(\s*)(add|sub|mul|div|max)\S*\.f(?:32|16x2)\s+(%\w+), (%\w+), [^;]+;(.*)"
)
_FMA = re.compile(r"(\s*)fma\S*\.f32\s+(%\w+), (%\w+), ([^,]+), (%\w+);(.*)")
_CONSTANT = re.compile(r"0f([0-9A-F]{8})")
_COMPARED = re.compile(r"setp\.(lt|gt|le|ge)\.([su]32)")
_SHUFFLE = re.compile(r"(shfl\.sync\.bfly\.b32\s+[^,]+, [^,]+, )(\d+)")
_MMA = re.compile(r"(\s*mma\.sync\S+\s+\{[^}]*\}, )\{([^}]*)\}, \{([^}]*)\}(, .*;)")
_ROOT = re.compile(r"(r?sqrt)\S*\.f32\s+(%\w+), (%\w+);")
_OTHER = {"lt": "le", "gt": "ge", "le": "lt", "ge": "gt"}


@dataclass(frozen=True)
class NumericalMutant:
    """A changed text; `what` was done to `line` (from 1 on)."""

    what: str
    line: int
    text: str


def _of_line(line: str) -> Iterator[tuple[str, str]]:
    """What can be done to a line, and the line then."""
    if m := _ARITHMETIC.match(line):
        yield f"{m[2]} left out", f"{m[1]}mov.b32 {m[3]}, {m[4]};"
    if m := _FMA.match(line):
        yield "fma left out", f"{m[1]}mov.b32 {m[2]}, {m[5]};"
    if m := _CONSTANT.search(line):
        value = np.array([int(m[1], 16)], np.uint32).view(np.float32)[0]
        if np.isfinite(value) and value:
            bits = np.array([value * np.float32(1.001)], np.float32).view(np.uint32)[0]
            yield "a constant 0.1 % off", line.replace(m[0], f"0f{int(bits):08X}")
    if m := _COMPARED.search(line):
        yield "a bound off by one", line.replace(m[0], f"setp.{_OTHER[m[1]]}.{m[2]}")
    if m := _SHUFFLE.search(line):
        yield "half the distance", line.replace(m[0], m[1] + str(int(m[2]) // 2))
    if m := _MMA.match(line):
        first = m[2].split(",")[0]
        rest = m[3].partition(",")
        yield "a register of A in B", f"{m[1]}{{{m[2]}}}, {{{first}{rest[1]}{rest[2]}}}{m[4]}"
    if m := _ROOT.search(line):
        yield f"{m[1]} left out", line.replace(m[0], f"mov.b32 {m[2]}, {m[3]};")


def numerical_mutants(text: str) -> list[NumericalMutant]:
    """All of a kernel, in the order of its lines."""
    lines = text.split("\n")
    found: list[NumericalMutant] = []
    for at, line in enumerate(lines):
        for what, changed in _of_line(line):
            if changed != line:
                whole = "\n".join([*lines[:at], changed, *lines[at + 1 :]])
                found.append(NumericalMutant(what, at + 1, whole))
    return found
