"""Finds in PTX what forms a distance in memory in 32 bits, though nothing says that it fits.

A number of 32 bits is *large* where it is a product of a kernel's size or stride (a parameter
`NAME_d0` or `NAME_s1`) and of anything but a quotient: x / n * n is as small as x. Large numbers
may be compared, divided, counted up to and by; none may become one of 64 bits, as addresses are.
What is made of large numbers and others by sums and choices is large, unless it is the next turn
of a loop, i + 32 n. Immediates that the operand of an instruction has no bits for are found, too.

It reads what fragir writes, an instruction a line.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from xdsl.dialects.builtin import ModuleOp

from fragir.dialects.ptx.tensor_maps import COUNTS
from fragir.passes.writer import module

_LINE = re.compile(r"\s*(?:@!?(%\w+) )?([a-z][\w.:]*) ?(.*);$")
_PARAMETER = re.compile(r"\[\w+_[ds]\d+\]$")
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)$")
_OFFSET = re.compile(r"\[%?\w+\+(-?\d+)\]$")
QUOTIENT, SIZE, SCALED, LARGE = -1, 1, 2, 3  # scaled: a size times a number


class _Instruction(NamedTuple):
    line: str
    opcode: str
    result: str
    operands: tuple[str, ...]


def _instructions(text: str) -> Iterator[_Instruction]:
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is not None and not line.lstrip().startswith("."):
            operands = tuple(re.split(r", (?![^{]*})", found[3]))
            yield _Instruction(line.strip(), found[2], operands[0], operands[1:])


def _kind(one: _Instruction, kinds: dict[str, int]) -> int:
    """What an instruction makes of sizes and large numbers."""
    name, *words = one.opcode.split(".")
    of = [kinds.get(operand, 0) for operand in one.operands]
    if one.opcode.startswith("ld.param"):
        return SIZE if _PARAMETER.match(one.operands[0]) else 0
    if not words or words[-1] not in ("s32", "u32", "b32"):
        return 0
    if (name == "mul" and "lo" in words) or name == "shl":
        return _product(of, one.operands)
    if name == "mad" and "lo" in words:
        return max(_product(of[:2], one.operands[:2]), of[2])
    if name == "div":
        return QUOTIENT
    if name == "add" and one.result in one.operands:  # a counter, which ends at its bound
        return kinds.get(one.result, 0)
    if name in ("add", "sub") and not any(map(_NUMBER.match, one.operands)):
        return LARGE if LARGE in of else min(SIZE, max(0, *of))
    if name in ("add", "sub", "mov", "min", "max", "neg"):
        return max(0, *of)
    return max(0, *of[:2]) if name == "selp" else 0


def _product(kinds: Sequence[int], operands: Sequence[str]) -> int:
    if max(kinds) <= 0 or QUOTIENT in kinds or "1" in operands:
        return max(0, *kinds) if "1" in operands else 0
    return max(SCALED, *kinds) if any(map(_NUMBER.match, operands)) else LARGE


def narrow_distances(text: str) -> list[str]:
    """The instructions that take a large number, or an immediate, for what it may not be."""
    found: list[str] = []
    for function in re.split(r"^\.visible", text, flags=re.MULTILINE):
        every = list(_instructions(function))
        kinds: dict[str, int] = {}
        changed = True
        while changed:  # until loops give nothing new: a kind only grows
            changed = False
            for one in every:
                kind, known = _kind(one, kinds), kinds.get(one.result)
                if known is not None:
                    kind = max(kind, known)
                if kind != known:
                    kinds[one.result], changed = kind, True
        found += [one.line for one in every if _is_wrong(one, kinds)]
    return found


def _is_wrong(one: _Instruction, kinds: dict[str, int]) -> bool:
    words = one.opcode.split(".")
    for operand in (one.result, *one.operands):
        offset = _OFFSET.match(operand)
        if offset is not None and not -(1 << 31) <= int(offset[1]) < 1 << 31:
            return True
    widens = "wide" in words or (
        words[0] == "cvt" and words[-2:] in (["s64", "s32"], ["u64", "u32"])
    )
    if not widens:
        return False
    factors = one.operands[:2] if "wide" in words else one.operands
    if any(_NUMBER.match(x) and not -(1 << 31) <= int(x, 0) < 1 << 31 for x in factors):
        return True
    return any(kinds.get(x, 0) >= SCALED for x in factors)


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Fails at the end where PTX that was written meanwhile has such an instruction."""
    found: list[str] = []
    write = module.write_with_origins

    def written(program: ModuleOp, *arguments: Any, **options: Any) -> tuple[str, Any]:
        text, origins = write(program, *arguments, **options)
        # what a launch is held to is small
        if not any(COUNTS in op.attributes for op in program.ops):
            found.extend(narrow_distances(text))
        return text, origins

    monkeypatch.setattr(module, "write_with_origins", written)
    yield
    assert found == []
