"""No statement of our PTX combines a value with itself or with what changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fragir import compiler

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_SAME = ("and", "or", "xor", "sub", "min", "max", "setp")
_NOTHING = {"0": ("add", "sub", "shl", "shr", "or", "xor"), "1": ("mul", "div")}


def redundant(line: str) -> bool:
    match = re.fullmatch(r"\s*(?:@!?%\w+ )?(\w+)[\w.:]*\s+([^;]*);.*", line)
    if match is None:
        return False
    name, operands = match[1], [word.strip() for word in match[2].split(",")]
    if name == "mov":
        return len(operands) == 2 and operands[0] == operands[1]
    if len(operands) != 3:
        return False
    _, left, right = operands
    return (name in _SAME and left == right) or name in _NOTHING.get(right, ())


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", ["gemm", "gemm_frag", "elementwise", "linalg_generic"])
def test_examples(name: str, target: str) -> None:
    ptx = compiler.compile((EXAMPLES / f"{name}.mlir").read_text(), target=target).ptx
    assert len(ptx.splitlines()) > 100
    assert [line for line in ptx.splitlines() if redundant(line)] == []


def test_redundant_is_seen() -> None:
    for line in ("and.pred %p1, %p0, %p0;", "@%p0 add.s32 %r1, %r2, 0;", "mov.u32 %r1, %r1;"):
        assert redundant(f"    {line}")
    for line in ("and.pred %p1, %p0, %p2;", "add.s32 %r1, %r2, %r2;", "st.global.u32 [%r1], 0;"):
        assert not redundant(f"    {line}")
