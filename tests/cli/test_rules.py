"""The rules of every command: exit codes, one line on failure, JSON, files all or nothing."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from fragir.cli.command import FINDING, INTERRUPTED, OK, USAGE, Progress, print_table, run_guarded
from fragir.cli.files import read_text, write_files, write_output
from fragir.cli.main import COMMANDS
from fragir.errors import FragirError

Fragir = Callable[..., Any]


def raising(error: BaseException) -> Callable[[Sequence[str]], object]:
    def run(argv: Sequence[str]) -> object:
        raise error

    return run


# How a command ends ------------------------------------------------------------------------------


def test_help_lists_every_command(fragir: Fragir) -> None:
    result = fragir("--help")
    assert (result.code, result.err) == (OK, "")
    for name, text in COMMANDS.items():
        assert f"{name}  " in result.out
        assert " ".join(text.split()[:4]) in " ".join(result.out.split())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(fragir: Fragir, name: str) -> None:
    result = fragir(name, "--help")
    assert (result.code, result.err) == (OK, "")
    assert "--debug" in result.out
    assert COMMANDS[name].split(";")[0].split(":")[0].rstrip(".") in " ".join(result.out.split())


def test_version(fragir: Fragir) -> None:
    result = fragir("--version")
    assert result.code == OK
    assert result.out.startswith("fragir 0.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["asemble"], "Did you mean `assemble`?"),
        (["--nonsense"], "--nonsense"),
        (["doctor", "--nonsense"], "--nonsense"),
        (["assemble"], "Missing argument"),
        (["emulate", "k.ptx", "--grid", "1,0"], "has a 0"),
        (["emulate", "k.ptx", "--grid", "1,2,3,4"], "X[,Y[,Z]]"),
        (["emulate", "k.ptx", "--block", "-1"], "X[,Y[,Z]]"),
        (["emulate", "k.ptx", "--block", "9" * 5000], "X[,Y[,Z]]"),
        (["layout", "mma", "a", "--at", "1," + "9" * 5000], "ROW,COL"),
        (["run", "k.mlir", "--size", "m=" + "9" * 5000], "NAME=NUMBER"),
        (["validate", "--seed", "-1"], "--seed"),
        (["validate", "--cases", "99999999999"], "--cases"),
        (["emulate", "k.ptx", "--shared", "-1"], "--shared"),
        (["emulate", "k.ptx", "--async", "never"], "never"),
        (["emulate", "k.ptx", "--schedule", "x"], "--schedule"),
    ],
)
def test_wrong_usage(fragir: Fragir, arguments: list[str], words: str) -> None:
    result = fragir(*arguments)
    assert (result.code, result.out) == (USAGE, "")
    assert words in result.err
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    result = fragir(*arguments, "--json")
    assert (result.code, result.err) == (USAGE, "")
    assert words in json.loads(result.out)["error"]["message"]


def test_no_command(fragir: Fragir) -> None:
    result = fragir()
    assert (result.code, result.out) == (USAGE, "")
    assert result.err == "error: a command is missing (`fragir --help` lists them)\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (FragirError("it is wrong"), "error: it is wrong\n"),
        (
            FragirError("it is wrong", "a.ptx", 3, 5, "\tab(c", "write it right"),
            "error: a.ptx:3:5: it is wrong (write it right)\n  \tab(c\n  \t   ^\n",
        ),
        (FragirError("two\n  lines"), "error: two lines\n"),
        (ValueError("bad\nvalue"), "error: unexpected ValueError: bad value (this is a fault"),
        (AssertionError(), "error: unexpected AssertionError (this is a fault"),
        (ValueError("x" * 9999), "error: unexpected ValueError: xxx"),
        (RecursionError("too deep"), "error: unexpected RecursionError: too deep"),
        (MemoryError(), "error: not enough memory\n"),
        (FileNotFoundError(2, "No such file", "a"), "error: a: cannot use this file: No such"),
        (click.ClickException("no"), "error: no\n"),
    ],
)
def test_errors(capfd: pytest.CaptureFixture[str], error: Exception, line: str) -> None:
    assert run_guarded(raising(error), []) == FINDING
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(line)
    assert "Traceback" not in err
    assert len(err) < 1000
    assert run_guarded(raising(error), ["--json"]) == FINDING
    out, err = capfd.readouterr()
    assert err == ""
    message = json.loads(out)["error"]
    assert list(message) == ["message", "file", "line", "col"]
    assert "\n" not in message["message"]


def test_debug_shows_the_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(raising(ValueError("bad")), ["--debug", "--json"]) == FINDING
    out, err = capfd.readouterr()
    assert "Traceback" in err
    assert "raising" in err or "run" in err
    assert "bad" in json.loads(out)["error"]["message"]


def test_arguments_behind_two_dashes_are_no_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(raising(ValueError("bad")), ["--", "--json", "--debug"]) == FINDING
    assert capfd.readouterr().err.startswith("error: unexpected ValueError")


def test_interrupted(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(raising(KeyboardInterrupt()), []) == INTERRUPTED
    assert capfd.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(("value", "code"), [(None, 0), (0, 0), (1, 1), ("text", 0)])
def test_exit_codes(value: object, code: int) -> None:
    def run(argv: Sequence[str]) -> object:
        return value

    assert run_guarded(run, []) == code


def test_reader_that_goes_away() -> None:
    """`fragir doctor | true` says nothing on stderr."""
    code = "import sys; from fragir.cli.main import main; sys.exit(main(['doctor', '--json']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (FINDING, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_output_that_is_full(option: list[str]) -> None:
    code = f"import sys; from fragir.cli.main import main; sys.exit(main(['doctor', *{option}]))"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == FINDING
    assert done.stderr.startswith("error: cannot use a file: No space left")
    assert done.stderr.count("\n") == 1


# What is printed ---------------------------------------------------------------------------------


def test_source_line_is_printable_and_short() -> None:
    error = FragirError("bad", "k.ptx", 1, 901, "\x1b[31m" + "a" * 895 + "b" + "c" * 900)
    head, source, caret = str(error).splitlines()
    assert head == "k.ptx:1:901: bad"
    assert len(source) <= 170
    assert source[caret.index("^")] == "b"
    assert "\x1b" not in str(FragirError("bad", "k.ptx", 1, 1, "\x1b[31m"))


def test_table_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    wide = "w" * 500
    print_table(["name", "count"], [[wide, 1], ["[red]markup[/red]", 22]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "count"]
    assert lines[2].split() == [wide, "1"]
    assert lines[3].split() == ["[red]markup[/red]", "22"]
    assert not any(line.endswith(" ") for line in lines)


def test_progress_is_silent_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with Progress("working") as progress:
        progress(0.5)
    assert capfd.readouterr() == ("", "")


# Files -------------------------------------------------------------------------------------------


def test_output_to_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_output(None, "text\n")
    write_output("-", b"\0bytes")
    assert capfdbinary.readouterr().out == b"text\n\0bytes"


def test_output_keeps_the_mode_and_follows_links(in_folder: Path) -> None:
    target, link = in_folder / "target", in_folder / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_output("link", "new")
    assert target.read_text() == "new"
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    write_output("fresh", "new")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((in_folder / "fresh").stat().st_mode) == 0o666 & ~mask
    assert sorted(os.listdir(in_folder)) == ["fresh", "link", "target"]


def test_several_files_all_or_nothing(in_folder: Path) -> None:
    (in_folder / "a").write_text("old")
    (in_folder / "b").mkdir()
    with pytest.raises(FragirError, match="b: cannot write this file: it is a directory"):
        write_files({"a": "new", "b": "new"})
    with pytest.raises(FragirError, match="cannot write this file: No such file"):
        write_files({"a": "new", "none/c": "new"})
    assert (in_folder / "a").read_text() == "old"
    assert sorted(os.listdir(in_folder)) == ["a", "b"]


def test_what_is_no_file_is_written_to(in_folder: Path) -> None:
    write_files({os.devnull: "text"})
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"abc\0def", "k.ptx: this is a binary file, not PTX: byte 3 is 0"),
        (b"ab\nc\xff", "k.ptx:2:2: this is not PTX: no UTF-8 here"),
    ],
)
def test_text_that_is_none(in_folder: Path, content: bytes, line: str) -> None:
    (in_folder / "k.ptx").write_bytes(content)
    with pytest.raises(FragirError) as caught:
        read_text("k.ptx", "PTX")
    assert str(caught.value) == line


@pytest.mark.parametrize(("name", "words"), [("none", "No such file"), (".", "directory")])
def test_file_that_cannot_be_read(name: str, words: str) -> None:
    with pytest.raises(FragirError, match=f"{name}: cannot read this file: .*{words}") as caught:
        read_text(name)
    assert caught.value.file == name


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_devices() -> None:
    with pytest.raises(FragirError, match="/dev/zero: this device has no end"):
        read_text("/dev/zero")
    assert read_text(os.devnull) == ""


def test_name_with_a_zero_byte() -> None:
    with pytest.raises(FragirError, match="cannot read this file"):
        read_text("a\0b")
