"""What ptxas does to a schedule becomes a verdict, by its words: codes differ between versions."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import fragir
from fragir.errors import FragirError
from fragir.toolchain.find import PTXAS, find
from fragir.toolchain.ptxas import assemble
from fragir.toolchain.verdicts import KINDS, verdict_of

_spec = importlib.util.spec_from_file_location("schedules", Path(__file__).parent / "schedules.py")
assert _spec is not None
assert _spec.loader is not None
schedules: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(schedules)


@pytest.mark.parametrize("name", sorted(schedules.SPOILT))
@pytest.mark.parametrize("version", ["12.9", "13.2", "13.5"])
def test_each(name: str, version: str) -> None:
    try:
        find(PTXAS, version)
    except FragirError:
        pytest.skip(f"no ptxas {version} here")
    kind, words, line, ptx = schedules.SPOILT[name]
    assembled = assemble(ptx, "sm_90a", version=version)
    found = assembled.verdicts
    assert all(verdict.kind in KINDS for verdict in found)
    if not kind:
        assert found == []
        return
    assert kind in {verdict.kind for verdict in found}
    (verdict,) = (one for one in found if one.kind == kind and words in one.message)
    assert verdict.function in ("k", "g")
    assert assembled.other_warnings == []
    if line and version != "12.9":
        assert verdict.line is not None
        near = ptx.split("\n")[verdict.line - 2 : verdict.line + 1]
        assert any(line in text for text in near)


def test_one_code_means_two_things() -> None:
    """C7519 is a fence put in, in 12.9 and 13.0, and a serialised product in 13.2."""
    old = "warpgroup.arrive is injected in around line 24 by compiler to allow use of registers"
    new = (
        "Potential Performance Loss: wgmma.mma_async instructions are serialized due to program "
        "dependence on compiler-inserted WG.AR in divergent path in the function 'k' in line 0"
    )
    first, second = verdict_of("C7519", old, ["k"]), verdict_of("C7519", new)
    assert first is not None
    assert second is not None
    assert (first.kind, first.line, first.function) == ("injected-fence", 24, "k")
    assert (second.kind, second.line, second.function) == ("serialized", None, "k")


def test_unknown_words_are_told_as_they_are() -> None:
    words = (
        "Potential Performance Loss: wgmma.mma_async instructions are serialized due to a new "
        "reason in the function 'k' in line 7"
    )
    verdict = verdict_of("C7599", words)
    assert verdict is not None
    assert "due to a new reason" in str(verdict)
    assert (verdict.kind, verdict.line) == ("serialized", 7)
    assert (
        verdict_of("", "For profile sm_80 adjusting per thread register count of 16 to 24") is None
    )


def test_lines_of_ptx_are_lines_of_the_program() -> None:
    """Every statement of the text is told as of the operation that `comments` say made it."""
    from fragir.compilation.notes import origin_of

    program = (Path(__file__).parents[2] / "examples" / "gemm.mlir").read_text()
    module = fragir.lower(fragir.parse(program, "gemm.mlir"), "lane", "sm_90a")
    from fragir.compilation.program import emit_with_origins

    text, origins = emit_with_origins(module, "sm_90a", comments=True)
    said, told = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("    // gemm.mlir:"):
            said = int(line.rpartition(":")[2])
        elif said is not None and line.strip() not in ("}", ""):
            origin = origin_of(number, origins)
            assert origin is not None
            assert (origin.file, origin.line) == ("gemm.mlir", said)
            told += 1
    assert told > 500
    plain, origins = emit_with_origins(module, "sm_90a")
    (product,) = (n for n, line in enumerate(program.splitlines(), 1) if "frag.matmul" in line)
    numbers = [n for n, line in enumerate(plain.splitlines(), 1) if "wgmma.mma_async" in line]
    assert {origin.line for n in numbers if (origin := origin_of(n, origins))} == {product}
