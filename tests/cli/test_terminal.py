"""Bars and colours: on terminals, not elsewhere, and as the environment asks."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from fragir.cli import terminal
from fragir.cli.terminal import Progress, can_rewrite_lines, is_coloured

pty = pytest.importorskip("pty", reason="pseudo terminals are of POSIX")

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "TTY_COMPATIBLE")
# a bar comes at once; `drawn` waits for it, and until it has been drawn anew
DRAWN = """
import sys, time
from fragir.cli import terminal
terminal.DELAY = 0
def drawn():
    end = time.monotonic() + 20
    while (now := terminal.Progress._open) and now._bar is None and time.monotonic() < end:
        time.sleep(0.01)
    if now:
        now._bar.refresh()
"""
COMMAND = """
from fragir.cli import {module}
slow = {module}.{function}
def slowly(*arguments, **options):
    drawn()
    return slow(*arguments, **options)
{module}.{function} = slowly
from fragir.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
COLOUR = re.compile(r"\x1b\[[\d;]*m")


class Terminal:
    """A stream that says of itself whether it is a terminal."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def on_terminal(
    code: str, *words: str, folder: Path, both: bool = True, **environment: str
) -> tuple[str, str, int]:
    """What a Python process writes to a terminal, what to stdout where that is none, its code."""
    controller, terminal = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    env |= {"TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT), **environment}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=terminal if both else subprocess.PIPE,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
        env=env,
        cwd=folder,
    )
    os.close(terminal)
    seen = bytearray()
    while True:
        try:
            part = os.read(controller, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    out = process.stdout.read().decode() if process.stdout else ""
    os.close(controller)
    code_ = process.wait(60)
    if process.stdout:
        process.stdout.close()
    return seen.decode(errors="replace"), out, code_


@pytest.mark.parametrize(
    ("module", "function", "words", "label"),
    [
        ("emulate", "emulate", ["emulate", "store.ptx", "--arg", "out:x.npy", "--arg", "u32:7"],
         "emulating"),
        ("compile", "_note_instructions", ["compile", "p.mlir"], "compiling"),
    ],
)  # fmt: skip
def test_a_bar_on_a_terminal(
    store: Path, module: str, function: str, words: list[str], label: str
) -> None:
    """It is drawn, taken away, and is not in what stdout gets."""
    np.save("x.npy", np.zeros(32, np.uint32))
    Path("p.mlir").write_text("func.func @f() {\n  func.return\n}\n")
    code = DRAWN + COMMAND.format(module=module, function=function)
    seen, out, exit_code = on_terminal(code, *words, folder=store.parent, both=False)
    assert exit_code == 0, seen
    assert label in seen
    assert "━" in seen
    assert "\x1b[2K" in seen  # the line of the bar is deleted
    assert ("warp instructions" if module == "emulate" else ".entry f") in out
    assert "\x1b" not in out
    if module == "emulate":
        dumb, _, _ = on_terminal(code, *words, folder=store.parent, both=False, TERM="dumb")
        assert label not in dumb
        assert "\x1b" not in dumb


def test_no_bar_elsewhere(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no thread: stderr is a file here. Colours that are asked for are no terminal."""
    monkeypatch.setattr(terminal, "DELAY", 0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    threads = threading.active_count()
    with Progress("label") as bar:
        bar(0.5)
        bar.say("other")
        time.sleep(0.05)
        assert threading.active_count() == threads
    assert capfd.readouterr() == ("", "")


def test_a_bar_swings_until_it_is_called(tmp_path: Path) -> None:
    code = DRAWN + (
        "with terminal.Progress('the label') as bar:\n"
        "    drawn()\n    bar(0.25)\n    bar.say('another')\n    drawn()\n"
        "    print('a line of a result')\n    print('kept', file=terminal.STDERR)\n"
    )
    seen, _, exit_code = on_terminal(code, folder=tmp_path)
    assert exit_code == 0
    before, _, after = seen.partition("another")
    assert "the label" in before
    assert "%" not in before.replace("0%", "")
    assert "25%" in after
    # what is printed meanwhile stands on lines of its own
    plain = [COLOUR.sub("", line).strip() for line in re.split(r"\r|\n|\x1b\[2K", seen)]
    assert "a line of a result" in plain
    assert "kept" in plain


def test_a_bar_inside_of_another(tmp_path: Path) -> None:
    """One bar, with the inner label for a while; a fraction of the part is none of the whole."""
    code = DRAWN + (
        "with terminal.Progress('outside'):\n    drawn()\n"
        "    with terminal.Progress('inside') as bar:\n        bar(0.75)\n        drawn()\n"
        "    drawn()\n"
        "with terminal.Progress('afterwards'):\n    drawn()\n"
    )
    seen, _, exit_code = on_terminal(code, folder=tmp_path)
    assert exit_code == 0, seen
    labels = re.findall("outside|inside|afterwards", seen)
    changes = [labels[0]] + [b for a, b in itertools.pairwise(labels) if a != b]
    assert changes == ["outside", "inside", "outside", "afterwards"]
    assert "75%" not in seen


def test_what_is_over_soon_has_no_bar(tmp_path: Path) -> None:
    code = "from fragir.cli.terminal import Progress\nwith Progress('label'):\n    pass\n"
    code += "import sys; assert 'rich' not in sys.modules"
    assert on_terminal(code, folder=tmp_path) == ("", "", 0)


# Colours -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terminal", "environment", "colours"),
    [
        (True, {"TERM": "xterm"}, True),
        (False, {"TERM": "xterm"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),  # empty is not set (no-color.org)
        (True, {"TERM": "xterm", "CLICOLOR": "0"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"CLICOLOR_FORCE": "1"}, True),
        (False, {"CLICOLOR_FORCE": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_when_there_are_colours(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], colours: bool
) -> None:
    for name in (*VARIABLES, "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream: object = Terminal(terminal)
    assert is_coloured(stream) is colours  # type: ignore[arg-type]
    if not terminal:
        assert not can_rewrite_lines(stream)  # type: ignore[arg-type]


LAYOUT = ("layout", "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
TABLE = ("doctor",)
RUN = "import sys; from fragir.cli.main import main; sys.exit(main(sys.argv[1:]))"


def test_colours_of_a_picture(tmp_path: Path) -> None:
    """On a terminal and where they are forced, and never what a file would hold."""
    shown, _, _ = on_terminal(RUN, *LAYOUT, folder=tmp_path)
    assert COLOUR.search(shown)
    plain, _, _ = on_terminal(RUN, *LAYOUT, folder=tmp_path, NO_COLOR="1")
    assert "\x1b" not in plain
    dumb, _, _ = on_terminal(RUN, *LAYOUT, folder=tmp_path, TERM="dumb")
    assert dumb == plain
    assert dumb.replace("\r", "").rstrip() == COLOUR.sub("", shown).replace("\r", "").rstrip()


def test_colours_of_a_table(tmp_path: Path) -> None:
    """The head is bold where there are colours; what is piped is the same without."""
    _, piped, _ = on_terminal(RUN, *TABLE, folder=tmp_path, both=False)
    assert "\x1b" not in piped
    _, forced, _ = on_terminal(RUN, *TABLE, folder=tmp_path, both=False, FORCE_COLOR="1")
    assert COLOUR.search(forced)
    lines = [line.rstrip() for line in COLOUR.sub("", forced).rstrip().splitlines()]
    assert lines == [line.rstrip() for line in piped.rstrip().splitlines()]
