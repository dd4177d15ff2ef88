"""The PTX text of every operation of the lane level, and that ptxas takes it.

`ptx_NAME.mlir` says for which target (`// TARGET: sm_80`); `ptx_NAME.ptx` holds the text. It pins
the text and no more: what the statements compute is judged by the emulator and the reference, in
tests/families and tests/properties.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fragir import compile as compile_program
from fragir.compilation import program
from fragir.dialects.frag import Frag
from fragir.dialects.ptx import Ptx
from fragir.toolchain.ptxas import assemble

FOLDER = Path(__file__).parent
PROGRAMS = sorted(p for p in FOLDER.glob("ptx_*.mlir") if not p.stem.endswith("_errors"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_text(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    target = re.search(r"// TARGET: (\w+)", text)
    assert target, f"{path.name} says no target"
    if "ptx.function" in text:
        written = program.emit(program.parse(text))
        warnings = assemble(written, target[1]).warnings
    else:
        kernel = compile_program(text, target=target[1])
        written, warnings = kernel.ptx, kernel.assembled.warnings
    wanted = path.with_suffix(".ptx")
    if request.config.getoption("--update-golden", default=False):
        wanted.write_text(written)
    assert written == wanted.read_text()
    # zero-trip hints such as C7510 would be a lowering's fault
    assert warnings == []


@pytest.mark.parametrize("dialect", [Frag, Ptx], ids=lambda d: d.name)
def test_every_operation_has_goldens(dialect: object) -> None:
    """A file of what works and one of what is refused."""
    assert dialect in (Frag, Ptx)
    names = [op.name for op in (*Frag.operations, *Ptx.operations)]
    stems = {path.stem for path in FOLDER.glob("*.mlir")}
    missing = [
        stem
        for name in names
        for stem in (name.replace(".", "_"), f"{name.replace('.', '_')}_errors")
        if stem not in stems
    ]
    assert missing == []
    written = "\n".join(path.read_text() for path in FOLDER.glob("*.mlir"))
    assert [name for name in names if name not in written] == []
