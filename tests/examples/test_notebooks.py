"""The notebooks run as scripts and without a browser, and what they compute is what numpy says.

Widgets have their first values; `app.run(defs=...)` gives a cell's names other values.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("marimo", reason="notebooks need marimo")

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.py"))


def ran(name: str, **defs: Any) -> dict[str, Any]:
    """The names that a notebook defines, run with the given ones in place of its own."""
    spec = importlib.util.spec_from_file_location(f"notebook_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, found = module.app.run(defs=defs or None)
    return dict(found)


def widget(value: object) -> SimpleNamespace:
    return SimpleNamespace(value=value)


def test_there_are_three() -> None:
    assert NOTEBOOKS == ["conversions", "layouts", "matmul_to_ptx"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_marimo_finds_nothing_wrong(name: str) -> None:
    """Names that two cells define, circles: what `marimo edit` would refuse."""
    from marimo._ast.load import load_app

    app: Any = load_app(FOLDER / f"{name}.py")
    assert app is not None
    assert app._cell_manager.valid_cells
    text = (FOLDER / f"{name}.py").read_text()
    assert f"marimo edit examples/notebooks/{name}.py" in text


def test_as_a_script() -> None:
    """`python examples/notebooks/layouts.py`: the other two are run below."""
    done = subprocess.run([sys.executable, FOLDER / "layouts.py"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# layouts -----------------------------------------------------------------------------------------


def test_layouts() -> None:
    found = ran("layouts")
    lanes, elements = np.meshgrid(np.arange(32), np.arange(4), indexing="ij")
    rows = lanes // 4 + 8 * (elements // 2)
    cols = lanes % 4 * 2 + elements % 2
    assert np.array_equal(found["table"], np.stack([rows, cols], axis=-1))
    assert found["found"] == 16 * 8
    assert found["point"] == (13 // 4 + 8, 13 % 4 * 2 + 1)
    assert found["holders"] == [{"lane": 13, "element": 3}]
    assert "Mode 3:(0,8) of axis element is not a power of two" in found["bases"]
    assert found["sums"].shape == (64, 24)
    assert found["tile"].shape == (2 * 16, 2 * 3 * 8)
    assert found["tile"].is_bijection()
    assert found["returned"] == dict.fromkeys(("cute", "f2", "ttg", "formula"), True)
    for row in range(16):
        for col in range(8):
            slot = found["fragment"].inverse(row, col)[0]
            assert found["back"](row=row, col=col) == (slot["lane"], slot["element"])


@pytest.mark.parametrize("width", [0, 32, 64, 128])
def test_swizzles(width: int) -> None:
    """Bits 4 and up of a byte's address are exclusive-ored with bits 7 and up (CUDA's guide)."""
    found = ran("layouts", width=widget(width))
    start = np.arange(8) * (width or 128)
    moved = start ^ (start // 128 % max(width // 16, 1)) * 16
    assert [found["memory"](row=row, col=0)[0] for row in range(8)] == moved.tolist()
    assert 1 + found["extra"] == np.bincount(moved % 128 // 16).max()


def test_a_layout_that_is_none() -> None:
    """A wrong text stops what depends on it, with words."""
    found = ran(
        "layouts", text=widget("lane [4:(0,2"), view=widget("matrix"), colour=widget("lane")
    )
    assert found["fragment"].startswith("refused: ")
    assert "table" not in found


# conversions -------------------------------------------------------------------------------------


def test_conversions() -> None:
    """Sums of fp8 to A: a lane keeps the columns c of 16 with c // 4 = c % 8 // 2."""
    found = ran("conversions")
    columns = np.arange(16)
    stay = int((columns // 4 == columns % 8 // 2).sum())
    assert found["other_lane"] == 64 * 64 * (16 - stay) // 16
    assert found["other_warp"] == 0
    assert found["planned_counts"] == {"selp": 8, "shfl": 8, "prmt": 8}
    assert {name: found["in_ptx"][name] for name in found["planned_counts"]} == {
        **found["planned_counts"]
    }
    assert found["report"].least <= found["report"].cost
    assert found["same"]
    assert found["run"].findings == []
    # 8 shuffles of each of four warps
    assert found["run"].statistics.instructions["shfl"] == 8 * 4
    # word (row, pair) of rows of 128 bytes: eight rows meet in each of four banks
    assert found["taken"] == [8] * 4


def test_a_transposition_differs_by_machine() -> None:
    """`stmatrix` there is from sm_90 on (PTX ISA 9.2, 9.7.14.5.16)."""
    sums = "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 8:(0,8)]"
    turned = "warp [4:(0,16)] lane [4:(2,0) 8:(0,1)] element [2:(1,0) 2:(0,8) 8:(8,0)]"
    found = ran(
        "conversions",
        source_text=widget(sums),
        target_text=widget(turned),
        width=widget(16),
        machine=widget("sm_80"),
    )
    steps = {sm: price["steps"] for sm, price in found["prices"].items()}
    assert ["stmatrix" in steps[sm] for sm in ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a")] == [
        *(False, False, False, True, True)
    ]
    assert found["in_ptx"]["ldmatrix"] == found["planned_counts"]["ldmatrix"]
    assert found["same"]


@pytest.mark.parametrize(("pitch", "swizzle", "passes"), [(144, 0, 1), (128, 128, 1), (160, 0, 2)])
def test_banks(pitch: int, swizzle: int, passes: int) -> None:
    """Rows begin `pitch / 4` banks apart; a load takes four neighbouring words of eight rows."""
    found = ran("conversions", pitch=widget(pitch), swizzle=widget(swizzle))
    assert found["taken"] == [passes] * 4
    if not swizzle:
        banks = [(row * pitch // 4 + word) % 32 for row in range(8) for word in range(4)]
        assert max(np.bincount(banks)) == passes


# matmul_to_ptx -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "target", "sizes", "instruction"),
    [
        ("f16", "sm_80", None, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("bf16", "sm_90a", (64, 32, 32), "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16"),
        ("s8", "sm_75", (24, 16, 40), "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"),
    ],
)
def test_matmul(
    kind: str, target: str, sizes: tuple[int, int, int] | None, instruction: str
) -> None:
    chosen: dict[str, Any] = {"kind": widget(kind), "target": widget(target)}
    if sizes is not None:
        chosen |= dict(zip("mnk", map(widget, sizes), strict=True))
    else:
        chosen |= {"m": widget(72), "n": widget(96), "k": widget(40)}
    found = ran("matmul_to_ptx", **chosen)
    a, b = found["arrays"]
    if kind == "bf16":
        a, b = ((each.astype(np.uint32) << 16).view(np.float32) for each in (a, b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    # each product is exact in f32; sums of K terms round, or are cut, K times at most
    bound = 0 if kind == "s8" else 2.0**-22 * len(b) * (np.abs(a) @ np.abs(b))
    assert (np.abs(found["result"] - a @ b) <= bound).all()
    assert found["verdict"].verdict == "PASS"
    assert found["run"].findings == []
    assert list(found["used"]) == [instruction]
    assert found["kernel"].target == target
    multiplied = prod(found["in_registers"]["d"].shape) * found["instruction"].shape[2]
    assert found["run"].statistics.mma * multiplied >= a.size * b.shape[1]
    assert next(iter(found["levels"])) == "the program"
    assert found["levels"]["PTX"] == found["kernel"].ptx
