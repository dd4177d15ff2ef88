"""`fragir check --fragments`: what arrives in the operands of mma, and what should not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from .conftest import Fragir

ROOT = Path(__file__).resolve().parents[2]
FAULT = ROOT / "tests" / "emulator" / "faults" / "fragments" / "one-lane.ptx"


@pytest.fixture
def launch(in_folder: Path) -> list[str]:
    """The kernel with its fault, and the one without it."""
    text = FAULT.read_text()
    Path("faulty.ptx").write_text(text)
    mended = [line for line in text.splitlines() if "// fault" not in line or line[0] == "/"]
    Path("mended.ptx").write_text("\n".join(mended))
    np.save("data.npy", np.arange(4096, dtype=np.uint32))
    return ["--arg", "inout:data.npy", "--fragments"]


def checked(text: str) -> Any:
    """A document that fits the schema in docs/json.md."""
    document = json.loads(text)
    blocks = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "json.md").read_text(), re.DOTALL)
    (schema,) = (s for s in map(json.loads, blocks) if s["$id"] == "check")
    jsonschema.validate(document, schema)
    return document


def test_a_wrong_lane(fragir: Fragir, launch: list[str]) -> None:
    result = fragir("check", "faulty.ptx", *launch, "--json")
    assert result.code == 1
    document = checked(result.out)
    (finding,) = document["findings"]
    assert (finding["kind"], finding["warp"], finding["lane"]) == ("fragment", 0, 5)
    assert "should hold A[1,10..11], holds A[1,8..9]" in finding["message"]
    assert {(f["operand"], f["consistent"]) for f in document["fragments"]} == {
        ("A", False),
        ("B", True),
        ("C", True),
    }


def test_a_right_kernel(fragir: Fragir, launch: list[str]) -> None:
    result = fragir("check", "mended.ptx", *launch, "--json")
    assert result.code == 0
    a, b, c = checked(result.out)["fragments"]
    assert (a["shape"], a["first"], a["row_stride"], a["column_stride"]) == ([16, 16], 0, 256, 16)
    assert (b["shape"], b["first"], b["row_stride"], b["column_stride"]) == ([16, 8], 2048, 16, 256)
    assert (c["shape"], c["bits"], c["first"], c["count"]) == ([16, 8], 32, 4096, 1)


def test_as_text(fragir: Fragir, launch: list[str]) -> None:
    result = fragir("check", "faulty.ptx", *launch)
    assert result.code == 1
    assert "no matrix" in result.out
    assert "16x16" in result.out
    result = fragir("check", "mended.ptx", *launch)
    assert result.code == 0
    assert "no matrix" not in result.out
    assert "argument 0 (data)" in result.out


def test_not_without_the_option(fragir: Fragir, launch: list[str]) -> None:
    result = fragir("check", "faulty.ptx", *launch[:-1], "--json")
    assert result.code == 0
    assert "fragments" not in checked(result.out)


def test_rows_that_overlap(fragir: Fragir, launch: list[str]) -> None:
    """Rows of A have 32 bytes: one begins 32 bytes behind the other, or by mistake 16."""
    text = Path("mended.ptx").read_text()
    narrow = text.replace("mul.lo.u32 %r5, %r2, 32;", "mul.lo.u32 %r5, %r2, 16;")
    narrow = narrow.replace("[%rd2+256]", "[%rd2+128]").replace("[%rd2+272]", "[%rd2+144]")
    Path("narrow.ptx").write_text(narrow)
    result = fragir("check", "narrow.ptx", *launch, "--json")
    assert result.code == 0
    (finding,) = checked(result.out)["findings"]
    assert (finding["kind"], finding["severity"]) == ("fragment", "remark")
    assert "the rows of A overlap in memory: each has 32 bytes" in finding["message"]
    assert "the next begins 16 bytes behind its start" in finding["message"]
    result = fragir("check", "narrow.ptx", *launch)
    assert (result.code, "overlap in memory" in result.out) == (0, True)
    assert "--strict" not in result.err
    same = narrow.replace("mul.lo.u32 %r5, %r2, 16;", "mul.lo.u32 %r5, %r2, 0;")
    Path("same.ptx").write_text(same.replace("+128]", "]").replace("+144]", "+16]"))
    result = fragir("check", "same.ptx", *launch, "--json")  # one row for all: a broadcast
    assert checked(result.out)["findings"] == []
