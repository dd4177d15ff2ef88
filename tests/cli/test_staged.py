"""The hook for pre-commit: `.pre-commit-hooks.yaml`, and what its entry does with files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fragir.cli import staged

yaml: Any = pytest.importorskip("yaml", reason="PyYAML is not installed")
ROOT = Path(__file__).resolve().parents[2]
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
KERNEL = """\
// {line}
.version 7.0
.target sm_80
.address_size 64
.visible .entry k()
{{
    .shared .align 4 .b32 buffer[64];
    .reg .b32 %r<4>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, buffer;
    mad.lo.u32 %r2, %r1, 4, %r2;
    st.shared.u32 [%r2], %r1;
    {wait}
    xor.b32 %r1, %r1, 32;
    mov.u32 %r2, buffer;
    mad.lo.u32 %r2, %r1, 4, %r2;
    ld.shared.u32 %r3, [%r2];
    ret;
}}
"""
CHECKED = "    fragir check k.ptx --block 64"


def write(name: str, line: str = "no words", wait: str = "bar.sync 0;") -> str:
    Path(name).write_text(KERNEL.format(line=line, wait=wait))
    return name


def test_the_entry_is_a_module_of_the_package() -> None:
    assert HOOK["entry"] == "python -P -m fragir.cli.staged"
    assert HOOK["language"] == "python"
    for name, is_ours in (("a/k.ptx", True), ("k.mlir", True), ("k.py", False), ("ptx", False)):
        assert bool(re.search(HOOK["files"], name)) == is_ours


def test_a_file_asks_for_its_own_checks(in_folder: Path) -> None:
    assert staged.main([write("k.ptx", CHECKED)]) == 0
    found = staged.problems(write("k.ptx", CHECKED, wait=""))
    assert found[0] == "$ fragir check k.ptx --block 64"
    assert any("race" in line for line in found)
    assert staged.problems(write("k.ptx", wait="")) == []  # it can be read, and asks for nothing


@pytest.mark.parametrize(
    ("line", "is_asked"),
    [
        (CHECKED, True),
        ("$ fragir check ./k.ptx --block 64", True),
        ("fragir check other.ptx --block 64", False),
        ("fragir check k.ptx --block 64 > out", False),
        ("fragir compile k.ptx -o out.mlir", False),
        ("fragir sweep k.ptx", False),
        ("fragir check isn't it k.ptx", False),
        ("what fragir check k.ptx does", False),
    ],
)
def test_which_lines_are_commands(in_folder: Path, line: str, is_asked: bool) -> None:
    text = Path(write("k.ptx", line)).read_text()
    assert bool(list(staged.own_checks("k.ptx", text))) == is_asked


def test_files_that_cannot_be_read(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.ptx").write_text(KERNEL.format(line="", wait="bar.sinc 0;"))
    Path("b.ptx").write_bytes(b"\xff\xfe")
    Path("c.mlir").write_text("func.func @f() { func.retrun }")
    Path("d.mlir").write_text("func.func @f() { func.return }")
    assert staged.main(["a.ptx", "b.ptx", "c.mlir", "none.ptx"]) == 1
    said = capsys.readouterr().out
    for name in ("a.ptx:13", "b.ptx", "c.mlir", "none.ptx"):
        assert name in said
    assert "Traceback" not in said
    assert staged.main(["d.mlir"]) == 0
    assert capsys.readouterr().out == ""


def git(*words: str) -> None:
    author = ["-c", "user.name=n", "-c", "user.email=n@example.com"]
    subprocess.run(["git", *author, *words], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_pre_commit_runs_it_on_staged_files(in_folder: Path) -> None:
    """As written, in this environment in place of one that pre-commit would install."""
    pytest.importorskip("pre_commit")
    git("init", "-q")
    hook: dict[str, Any] = {**HOOK, "language": "system"}
    Path(".pre-commit-config.yaml").write_text(
        yaml.safe_dump({"repos": [{"repo": "local", "hooks": [hook]}]})
    )
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PRE_COMMIT_HOME": str(in_folder / ".pre-commit"),
    }

    def run() -> Any:
        git("add", "-A", "k.ptx", ".pre-commit-config.yaml")
        command = [sys.executable, "-m", "pre_commit", "run"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    write("k.ptx", CHECKED)
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fragir check" in done.stdout
    assert "Passed" in done.stdout
    write("k.ptx", CHECKED, wait="")
    done = run()
    assert done.returncode == 1
    assert "race" in done.stdout
