"""Every example in the documentation is executed.

A page's ```python and ```pycon blocks with `>>>` are one doctest; those without are run as they
stand, with the names and files that their page takes for granted (`GIVEN`). In a ```console block
every line `$ fragir ...` is a command, and what follows is its output: `...` stands for anything
within a line, and on a line of its own for any lines. A ```mlir block is compiled. The pages in
`ELSEWHERE` have their doctests run by the tests of their rooms.
"""

from __future__ import annotations

import doctest
import re
import shlex
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import fragir
from fragir.cli.main import main
from tests.docs.sessions import FOLDERS, commands, pattern

ROOT = Path(__file__).resolve().parents[2]
# examples for which a package is installed: tests/extending
INSTALLED = {"extending.md"}
PAGES = sorted(
    path
    for path in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md")
    if path.name not in INSTALLED and path.parent.name not in FOLDERS  # test_sessions.py's
)
ELSEWHERE = {"instructions.md", "layouts.md", "python.md"}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

KERNEL = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry {name}(.param .u64 a, .param .u64 out, .param .u32 n)
{{
    .reg .b64 %p<4>;
    .reg .b32 %i<5>;
    .reg .f32 %f;
    ld.param.u64 %p1, [a];
    ld.param.u64 %p2, [out];
    mov.u32 %i1, %tid.x;
    mov.u32 %i2, %ctaid.x;
    mad.lo.u32 %i3, %i2, 32, %i1;
    mad.wide.u32 %p1, %i3, 4, %p1;
    mad.wide.u32 %p2, %i3, 4, %p2;
    ld.global.f32 %f, [%p1];
    fma.rn.f32 %f, %f, %f, %f;
    st.global.f32 [%p2], %f;
    ret;
}}
"""

GEMM = """
import numpy as np
from fragir import compiler

memory = "memref<16x16xf16>, memref<16x16xf16> into memref<16x16xf32>"
text = "func.func @f(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf32>) {"
text += f"frag.matmul %a, %b into %c : {memory} func.return }}"
function = next(iter(compiler.parse(text, "gemm").ops))
a, b = np.eye(16, dtype=np.float16), np.ones((16, 16), np.float16)
c = np.zeros((16, 16), np.float32)
c_after = c + 1
"""

# What the examples of a page take for granted: files in the current folder, and `setup`, which is
# run ahead of them.
GIVEN: dict[str, dict[str, str]] = {
    "accuracy.md": {"setup": GEMM},
    "emulator.md": {"setup": f"ptx = {KERNEL.format(name='kernel')!r}"},
    "ptx-reader.md": {"kernel.ptx": KERNEL.format(name="gemm")},
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page and the line it begins at."""

    page: Path
    line: int
    language: str
    text: str


def blocks(page: Path, *languages: str) -> list[Block]:
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, match.start()) + 2, match[1], match[2])
        for match in _FENCE.finditer(text)
        if match[1] in languages
    ]


def names(found: list[Any]) -> list[str]:
    return [f"{block.page.stem}:{block.line}" for block in found]


MLIR = [block for page in PAGES if page.exists() for block in blocks(page, "mlir")]
CONSOLE = [block for page in PAGES if page.exists() for block in blocks(page, "console")]
PYTHON = [page for page in PAGES if page.exists() and blocks(page, "python", "pycon")]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the examples of the repository, as the pages name them."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("FRAGIR_CACHE", str(tmp_path / ".cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("block", CONSOLE, ids=names(CONSOLE))
def test_commands(block: Block, capfd: pytest.CaptureFixture[str]) -> None:
    """stdout as it is written; of a command that fails and prints nothing there, stderr."""
    for line, expected in commands(block.text, f"{block.page.name}:{block.line}"):
        program, *arguments = shlex.split(line)
        assert program == "fragir", f"{block.page.name}:{block.line}: only fragir is run"
        code = main(arguments)
        captured = capfd.readouterr()
        printed = captured.err if code and not captured.out else captured.out
        assert re.fullmatch(pattern(expected), printed), f"$ {line}\n{printed}"


@pytest.mark.parametrize("block", MLIR, ids=names(MLIR))
def test_programs(block: Block) -> None:
    """For sm_80, or for what the first line says: it stores something."""
    said = re.search(r"\bfor (sm_\w+)", block.text.partition("\n")[0])
    kernel = fragir.compile(block.text, target=said[1] if said else "sm_80")
    assert re.search(r"st\.global|bulk\.tensor\.2d\.global", kernel.ptx)
    assert kernel.assembled.warnings == []


@pytest.mark.parametrize("page", PYTHON, ids=[page.stem for page in PYTHON])
def test_python(page: Path) -> None:
    given = GIVEN.get(page.name, {})
    for name, content in given.items():
        if "." in name:
            Path(name).write_text(content)
    found = blocks(page, "python", "pycon")
    sessions = [block for block in found if ">>>" in block.text]
    for block in found:
        if block not in sessions:
            space: dict[str, object] = {}
            exec(given.get("setup", ""), space)
            with warnings.catch_warnings():  # an example may leave a file to the collector
                warnings.simplefilter("ignore", ResourceWarning)
                exec(compile(block.text, f"{page.name}:{block.line}", "exec"), space)
    if not sessions or page.name in ELSEWHERE:
        return
    text = "\n".join(block.text for block in sessions)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    results = doctest.DocTestRunner().run(test)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_examples_are_found() -> None:
    assert len(CONSOLE) >= 5
    assert {page.name for page in PYTHON} >= ELSEWHERE


def test_a_wrong_output_is_seen() -> None:
    assert re.fullmatch(pattern("a ... c\n...\nz\n"), "a b c\nx\ny\nz\n")
    assert not re.fullmatch(pattern("a ... c\n"), "a b d\n")
    assert not re.fullmatch(pattern("one\n"), "one\ntwo\n")
