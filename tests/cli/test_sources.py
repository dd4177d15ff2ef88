"""What a command reads is never replaced by what it writes, and a failure leaves files alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir.cli.files import check_replaces_none_of, check_writable
from fragir.cli.opt import main as opt
from fragir.errors import FragirError

Fragir = Callable[..., Any]

PROGRAM = """\
func.func @f(%a: memref<16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf32>) {
  frag.matmul %a, %b into %c : memref<16x16xf16>, memref<16x16xf16> into memref<16x16xf32>
  func.return
}
"""
BROKEN = "func.func @f(%a: memref<16x16xf16>) {\n  %x = arith.addf %a, %b : f32\n}\n"


def run_opt(*arguments: str) -> int:
    """Exit code of `fragir-opt`, usage errors of argparse too."""
    try:
        return opt(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1


def run_fragir(*arguments: str) -> int:
    from fragir.cli.main import main

    return main(arguments)


WRITERS: dict[str, Callable[[str, str], int]] = {
    "fragir-opt": lambda source, output: run_opt(source, "-p", "frag-tile", "-o", output),
    "compile": lambda source, output: run_fragir("compile", source, "-o", output),
    "compile --to ptx": lambda source, output: run_fragir(
        "compile", source, "--to", "ptx", "-o", output
    ),
    "assemble": lambda source, output: run_fragir(
        "assemble", source, "--target", "sm_80", "-o", output
    ),
}


def names(folder: Path) -> dict[str, str]:
    """A source and its other names: itself, spelt otherwise, by both kinds of links."""
    (folder / "sub").mkdir()
    (folder / "soft.mlir").symlink_to("source.mlir")
    os.link(folder / "source.mlir", folder / "hard.mlir")
    spelt = os.path.join("sub", "..", "source.mlir")
    return {"same": "source.mlir", "spelt": spelt, "soft": "soft.mlir", "hard": "hard.mlir"}


@pytest.mark.parametrize("writer", list(WRITERS))
def test_source_is_not_replaced(
    in_folder: Path, capfd: pytest.CaptureFixture[str], writer: str
) -> None:
    source = in_folder / "source.mlir"
    source.write_text(PROGRAM)
    for name in names(in_folder).values():
        assert WRITERS[writer]("source.mlir", name) == 1
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert f"{name}: the result would replace" in err
        assert source.read_text() == PROGRAM
        assert source.stat().st_nlink == 2
    assert (in_folder / "soft.mlir").is_symlink()


@pytest.mark.parametrize("command", [["cli.main", "compile", "-"], ["cli.opt"]])
def test_source_on_stdin_is_not_replaced(in_folder: Path, command: list[str]) -> None:
    (in_folder / "source.mlir").write_text(PROGRAM)
    module, *arguments = command
    code = f"import sys; from fragir.{module} import main; sys.exit(main(sys.argv[1:]))"
    with open("source.mlir") as source:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments, "-o", "source.mlir"],
            stdin=source,
            capture_output=True,
            text=True,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert "would replace <stdin>" in done.stderr
    assert (in_folder / "source.mlir").read_text() == PROGRAM


@pytest.mark.parametrize("writer", list(WRITERS))
def test_failure_leaves_the_output_alone(in_folder: Path, writer: str) -> None:
    (in_folder / "source.mlir").write_text(BROKEN)
    (in_folder / "old.mlir").write_text("kept")
    assert WRITERS[writer]("source.mlir", "old.mlir") == 1
    assert (in_folder / "old.mlir").read_text() == "kept"
    assert sorted(os.listdir(in_folder)) == ["old.mlir", "source.mlir"]


def test_pass_that_fails_leaves_the_output_alone(in_folder: Path) -> None:
    """Tiles without a placement cannot become lane code."""
    (in_folder / "source.mlir").write_text(PROGRAM)
    (in_folder / "old.mlir").write_text("kept")
    assert run_opt("source.mlir", "-p", "convert-frag-to-ptx", "-o", "old.mlir") == 1
    assert run_opt("source.mlir", "-p", "no-such-pass", "-o", "old.mlir") != 0
    assert run_opt("source.mlir", "-t", "nonsense", "-o", "old.mlir") != 0
    assert (in_folder / "old.mlir").read_text() == "kept"


def test_opt_reads_mlir_of_any_name(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (in_folder / "program.txt").write_text("module {}", "utf-8")
    assert run_opt("program.txt") == 0
    (in_folder / "program.txt").write_text("modle {}", "utf-8")
    assert run_opt("program.txt") == 1
    assert "program.txt:1:1: there is no operation modle" in capsys.readouterr().err


def test_opt_writes_files_and_stdout(in_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (in_folder / "source.mlir").write_text(PROGRAM)
    (in_folder / "old.mlir").write_text("old")
    assert run_opt("source.mlir", "-p", "frag-tile", "-o", "old.mlir") == 0
    assert run_opt("source.mlir", "-p", "frag-tile") == 0
    assert run_opt("source.mlir", "-p", "frag-tile", "-o", "-") == 0
    printed = capfd.readouterr().out
    written = (in_folder / "old.mlir").read_text()
    assert "frag.mma" in written
    assert printed == 2 * written
    assert sorted(os.listdir(in_folder)) == ["old.mlir", "source.mlir"]


def test_opt_writes_all_chunks_or_none(in_folder: Path) -> None:
    (in_folder / "source.mlir").write_text(f"{PROGRAM}// -----\n{BROKEN}")
    (in_folder / "old.mlir").write_text("kept")
    assert run_opt("source.mlir", "--split-input-file", "-o", "old.mlir") == 1
    assert (in_folder / "old.mlir").read_text() == "kept"


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"a\0b", None], ids=["no UTF-8", "binary", "a folder"]
)
def test_opt_reads_what_is_no_text(
    in_folder: Path, capfd: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    if content is None:
        (in_folder / "source.mlir").mkdir()
    else:
        (in_folder / "source.mlir").write_bytes(content)
    assert run_opt("source.mlir") == 1
    err = capfd.readouterr().err
    assert err.startswith("error: source.mlir:")
    assert err.count("\n") == 1


def test_kernel_is_not_replaced_by_its_results(fragir: Fragir, store: Path) -> None:
    text = store.read_text()
    np.save("x.npy", np.zeros(32, np.uint32))
    for argument in ("out:store.ptx", "inout:store.ptx", "tma:store.ptx,box=8x8,out"):
        result = fragir("emulate", "store.ptx", "--arg", argument, "--arg", "u32:1")
        assert result.code == 1
        assert "store.ptx: the result would replace this file" in result.err
    assert store.read_text() == text


def test_what_is_no_file_may_be_read_and_written() -> None:
    check_replaces_none_of(os.devnull, os.devnull)
    check_replaces_none_of("-", "-")
    check_replaces_none_of(None, "-")
    check_replaces_none_of("new", "none")


@pytest.mark.parametrize(
    ("name", "words"), [(".", "it is a directory"), ("none/x", "its folder does not exist")]
)
def test_unwritable_is_said_at_once(fragir: Fragir, name: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        check_writable(name)
    result = fragir("validate", "--only", "mma*m8n8k4*f64*", "--report", name)
    assert (result.code, result.out) == (1, "")
    assert words in result.err


def test_interrupted_at_once_keeps_the_report(
    fragir: Fragir, in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fragir.cli import validate

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (in_folder / "r.json").write_text("results of hours")
    monkeypatch.setattr(validate, "_run", interrupted)
    assert fragir("validate", "--only", "mma*m8n8k4*f64*", "--report", "r.json").code == 130
    assert (in_folder / "r.json").read_text() == "results of hours"
