"""Closed streams, signals, and text that a terminal would act on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fragir.cli.command import note, print_table, run_guarded, signals_as_exceptions
from fragir.errors import FragirError, printable

Fragir = Callable[..., Any]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="streams are closed by a POSIX shell")
PROGRAM = "func.func @f() {\n  func.return\n}\n"


def shell(module: str, words: str) -> subprocess.CompletedProcess[str]:
    """A command line in a shell, which can close streams."""
    code = f"import sys; from fragir.cli.{module} import main; sys.exit(main(sys.argv[1:]))"
    command = f'exec "$0" -c "$1" {words}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, code], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("module", "words", "code", "says"),
    [
        ("main", "instructions --only 'mma*m8n8k4*f64*' >&-", 1, "<stdout>: cannot use this file"),
        ("main", "--help >&-", 1, "<stdout>: cannot use this file"),
        ("main", "compile - <&-", 1, "<stdin>: cannot read this file: it is closed"),
        ("main", "compile p.mlir --to lane -o q.mlir >&- <&-", 0, ""),
        ("main", "compile none.mlir 2>&-", 1, ""),
        ("opt", "<&-", 1, "<stdin>: cannot read this file: it is closed"),
        ("opt", "p.mlir -o q.mlir >&- <&- 2>&-", 0, ""),
    ],
)
def test_closed(in_folder: Path, module: str, words: str, code: int, says: str) -> None:
    (in_folder / "p.mlir").write_text(PROGRAM)
    done = shell(module, words)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == bool(says)
    if code == 0:
        assert "func.func @f" in (in_folder / "q.mlir").read_text()


def test_notes_do_not_go_to_stdout_in_place_of_stderr(store: Path) -> None:
    done = shell("main", "instructions --only 'mma*m8n8k4*f64*' 2>&-")
    assert done.returncode == 0
    assert "m8n8k4" in done.stdout
    assert "instructions\n" not in done.stdout.splitlines()[-1] + "\n"


# Signals -----------------------------------------------------------------------------------------


def raising_itself(number: int) -> Callable[[Sequence[str]], object]:
    def run(argv: Sequence[str]) -> object:
        os.kill(os.getpid(), number)
        time.sleep(60)  # the handler runs before this is over
        return 0

    return run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_command_in_order(capfd: pytest.CaptureFixture[str], number: int) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # under nohup it is ignored
    try:
        assert run_guarded(raising_itself(number), []) == 128 + number
        assert capfd.readouterr().err == "terminated\n"
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_as_exceptions():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


SLOW = """\
#!/bin/sh
case "$1" in
--version) echo "Cuda compilation tools, release 13.2, V13.2.86" ;;
--help) echo "--gpu-name 'sm_80'"; echo ;;
*) sleep 600 & echo $$ $! > "$STARTED.new"; mv "$STARTED.new" "$STARTED"; wait ;;
esac
"""


def is_gone(process: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has, too."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{process}/stat")  # PID (NAME) STATE ...
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] in "ZX"


@pytest.mark.parametrize("ending", ["signal", "limit"])
def test_nothing_stays_of_ptxas(
    in_folder: Path, store: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Neither the process, nor what it has started, nor its folder."""
    tool, started, temporary = in_folder / "ptxas", in_folder / "started", in_folder / "tmp"
    tool.write_text(SLOW)
    tool.chmod(0o755)
    temporary.mkdir()
    monkeypatch.setenv("FRAGIR_PTXAS", str(tool))
    monkeypatch.setenv("STARTED", str(started))
    monkeypatch.setenv("TMPDIR", str(temporary))
    if ending == "limit":
        monkeypatch.setenv("FRAGIR_TOOL_SECONDS", "1")
    code = "import sys; from fragir.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "assemble", "store.ptx", "--target", "sm_80"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not started.exists():
        time.sleep(0.02)
    if ending == "signal":
        assert len(list(temporary.iterdir())) == 1
        process.terminate()
    _, err = process.communicate(timeout=60)
    if ending == "signal":
        assert (process.returncode, err) == (128 + signal.SIGTERM, "terminated\n")
    else:
        assert process.returncode == 1
        assert err.startswith("error: ptxas was ended after 1 seconds (FRAGIR_TOOL")
    assert list(temporary.iterdir()) == []
    processes = [int(word) for word in started.read_text().split()]
    assert len(processes) == 2
    for _ in range(200):  # the kernel takes a moment
        if all(map(is_gone, processes)):
            break
        time.sleep(0.02)
    assert all(map(is_gone, processes))


# Text that a terminal would act on ---------------------------------------------------------------

RED = "\x1b[31m"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (RED, r"\x1b[31m"),
        ("a\x9b2J", r"a\x9b2J"),
        ("a\u202eb\u2066", r"a\u202eb\u2066"),
        ("\udcff", r"\udcff"),
        ("a\rb", r"a\rb"),
        ("é漢\tx\ny", "é漢\tx\ny"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_errors_and_notes_are_printable(capfd: pytest.CaptureFixture[str]) -> None:
    error = FragirError(f"no {RED}", f"{RED}\n.ptx", 1, 2, f"x{RED}", f"try\x07 {RED}")
    assert not set("\x1b\x07") & set(str(error) + error.sentence)
    assert str(error).count("\n") == 2
    note(f"wrote {RED}.npy")
    print_table(["name"], [[RED]])
    out, err = capfd.readouterr()
    assert "\x1b" not in out + err


@pytest.mark.parametrize(
    "arguments",
    [
        ["compile", "{}.mlir"],
        ["compile", "bad.mlir"],
        ["run", "bad.mlir", "--size", "{}=3"],
        ["run", "good.mlir", "--arg", "{}=1"],
        ["assemble", "bad.ptx", "--target", "sm_80"],
        ["assemble", "store.ptx", "--target", "{}"],
        ["emulate", "bad.ptx"],
        ["emulate", "store.ptx", "--arg", "{}"],
        ["emulate", "store.ptx", "--entry", "{}"],
        ["check", "store.ptx", "--arg", "in:{}.npy", "--arg", "u32:1"],
        ["layout", "{}", "a"],
        ["emit", "mma.{}"],
        ["descriptor", "{}", "--target", "sm_90a"],
        ["validate", "--only", "{}"],
        ["{}"],
        ["compile", "--{}"],
    ],
)
def test_no_escape_reaches_the_terminal(
    fragir: Fragir, store: Path, in_folder: Path, arguments: list[str]
) -> None:
    (in_folder / "good.mlir").write_text(PROGRAM)
    (in_folder / "bad.mlir").write_text(f'func.func @f() {{\n  "{RED}"() : () -> ()\n}}\n')
    (in_folder / "bad.ptx").write_text(f".version 8.0\n.target sm_80\n{RED}\n")
    words = [word.replace("{}", RED) for word in arguments]
    result = fragir(*words)
    assert result.code in (1, 2)
    assert "\x1b" not in result.out + result.err
    assert "error" in result.err
    if words[0] in ("compile", "emit", RED):
        return
    document = json.loads(fragir(*words, "--json").out)
    assert "\x1b" not in document["error"]["message"]
