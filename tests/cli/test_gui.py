"""The terminal interface starts with our dialects and passes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fragir.cli.gui import build_app, main
from fragir.errors import FragirError

pytest.importorskip("textual", reason="the extra `gui` is not installed")

PROGRAM = """func.func @k(%a: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  frag.store %0, %a[0, 0] : !frag.tile<16x16xf16>, memref<16x16xf16>
  func.return
}
"""


def test_runs_our_passes(tmp_path: Path) -> None:
    file = tmp_path / "k.mlir"
    file.write_text(PROGRAM)
    app = build_app(str(file), "frag-place")

    async def look() -> str:
        async with app.run_test() as pilot:
            await pilot.pause()
            return str(app.output_text_area.text)

    assert "#frag.layout" in asyncio.run(look())


def test_unknown_pass() -> None:
    with pytest.raises(FragirError, match="no-such-pass"):
        build_app(None, "no-such-pass")


def test_absent_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/nowhere/x.mlir"]) == 1
    assert "/nowhere/x.mlir" in capsys.readouterr().err
