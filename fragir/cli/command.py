"""What all commands share: how they end, what they print, how they read and write files.

A command is a function under `@command(...)` that returns its exit code (None is 0). It raises
FragirError for bad input, prints its result through `print_json`, `print_table` or `write_output`,
and everything else goes to stderr. `run_guarded` turns whatever escapes into one clear line.

Exit codes: 0 clean or PASS; 1 a finding, FAIL or bad input; 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

import click

from fragir.cli.terminal import Progress as Progress
from fragir.errors import FragirError, printable

if TYPE_CHECKING:
    from fragir.emulator.report import Why

# -- examples --------------------------------------------------------------------------------------
# Help that ends in examples: what one wants, and the command that does it.
#
# They stand beside the command, as `command(examples=...)`. tests/cli/test_help.py executes them in
# their order, in a folder that has what a clone has.

Examples = Sequence[tuple[str, str]]
"""(what one wants, the command line for a POSIX shell); no words where a command goes on."""

_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s'"])+""")


class TaughtCommand(click.Command):
    """A command whose help ends in examples."""

    def __init__(self, *args: Any, examples: Examples = (), **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        write_examples(formatter, self.examples)


def write_examples(formatter: click.HelpFormatter, examples: Examples) -> None:
    """A section of examples, each command ready to be pasted into a shell."""
    if not examples:
        return
    with formatter.section("Examples"):
        for what, line in examples:
            if what:
                formatter.write(f"{'':{formatter.current_indent}}{what}\n")
            for part in folded_lines(line, formatter.width - 8):
                formatter.write(f"{'':{formatter.current_indent + 2}}{part}\n")


def folded_lines(line: str, width: int) -> Iterator[str]:
    """A command line on as many lines as it takes; no word is broken, an option keeps its value."""
    now = ""
    for group in _with_values(_WORD.findall(line)):
        if now and len(now) + len(group) + 3 > width >= len(group):
            yield f"{now} \\"
            now = f"    {group}"
        else:
            now = f"{now} {group}" if now else group
    yield now


def _with_values(words: Sequence[str]) -> Iterator[str]:
    """Words, an option and the word behind it as one."""
    option = ""
    for word in words:
        if option and not word.startswith("-"):
            yield f"{option} {word}"
            option = ""
            continue
        if option:
            yield option
        option = word if word.startswith("-") else ""
        if not option:
            yield word
    if option:
        yield option


# -- signals ---------------------------------------------------------------------------------------
# Signals that end the process, as exceptions: children are ended, temporary files deleted.

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Ended(BaseException):
    """A signal asked the process to end. Derives from BaseException as KeyboardInterrupt does."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def code(self) -> int:
        """The exit code that shells give to a process that a signal has ended."""
        return 128 + self.number


@contextlib.contextmanager
def signals_as_exceptions() -> Generator[None]:
    """SIGTERM and SIGHUP raise Ended in here, once: a second one ends the process at once.

    A signal that is ignored (`nohup`) or that somebody else handles stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [s for s in _ENDING if signal.getsignal(s) is signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)
        raise Ended(number)

    for each in taken:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


# -- streams ---------------------------------------------------------------------------------------
# Standard streams that are closed (`>&-`, `<&-`): Python has None in their place.
#
# What a command wants to print or read then fails as for any file that cannot be used, and nothing
# else notices: `print(..., file=None)` would write the notes of stderr to stdout, and the next file
# opened would get the number of the closed stream.


class _Closed(io.TextIOBase):
    """A text stream of which every use fails, its bytes (`buffer`) too."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @property
    def buffer(self) -> _Closed:
        return self

    def _fail(self) -> OSError:
        return OSError(errno.EBADF, "it is closed", self._name)

    def read(self, size: int | None = -1, /) -> NoReturn:
        raise self._fail()

    def readline(self, size: int = -1, /) -> NoReturn:
        raise self._fail()

    def write(self, text: object, /) -> NoReturn:
        raise self._fail()


def stand_in() -> None:
    """Makes closed standard streams usable: stderr as if nobody read it, the others as closed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        stream = (
            open(os.devnull, "w")  # lives to the end of the process
            if name == "stderr"
            else _Closed(f"<{name}>")
        )
        setattr(sys, name, stream)


def escape_what_cannot_be_encoded() -> None:
    """A result or name that the terminal's encoding lacks is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


OK, FINDING, USAGE, INTERRUPTED = 0, 1, 2, 130

F = TypeVar("F", bound=Callable[..., object])
Document: TypeAlias = dict[str, Any]
"""What `--json` prints, or a part of it (docs/json.md)."""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, also for errors."
)
output_option = click.option(
    "-o", "--output", metavar="FILE", help="Write here instead of to stdout."
)
passes_option = click.option(
    "-p",
    "--passes",
    metavar="PASS,...",
    help="These passes and no others, as 'a-pass,another{option=1}'.",
)
target_option = click.option("--target", metavar="SM", required=True, help="As in sm_90a.")


def command(
    name: str | None = None, *, examples: Examples = ()
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Makes a function a command: its docstring is the help, `--debug` comes by itself.

    `examples` end the help: (what one wants, the command line).
    """

    def decorate(function: Callable[..., int | None]) -> click.Command:
        return click.command(name, cls=TaughtCommand, examples=examples)(_debug_option(function))

    return decorate


_debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
)


# How a command ends ------------------------------------------------------------------------------


def run_guarded(run: Callable[[Sequence[str]], object], argv: Sequence[str]) -> int:
    """Runs a command line; the exit code. Nothing escapes but by the rules of this module."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    as_json, debug = "--json" in own, "--debug" in own
    stand_in()
    escape_what_cannot_be_encoded()
    try:
        with signals_as_exceptions():
            code = run(argv)
            sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except BrokenPipeError:
        _silence_stdout()
        return FINDING
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Ended as ended:
        print("terminated", file=sys.stderr)
        return ended.code
    except Exception as error:
        if debug:
            import traceback  # imports much

            note(traceback.format_exc().rstrip())
        code = USAGE if isinstance(error, click.UsageError) else FINDING
        known = as_fragir_error(error)
        try:
            report(known, as_json=as_json)
            sys.stdout.flush()
        except OSError as again:  # stdout itself is what fails: gone, or full
            _silence_stdout()
            if not isinstance(again, BrokenPipeError) and as_json:
                report(known, as_json=False)
        return code


def as_fragir_error(error: BaseException) -> FragirError:
    """Any exception as an error for users; what nobody foresaw is named as such."""
    match error:
        case FragirError():
            return error
        case click.exceptions.NoArgsIsHelpError():
            return FragirError("a command is missing", hint="`fragir --help` lists them")
        case click.UsageError():
            context = error.ctx
            hint = f"`{context.command_path} --help` says more" if context else None
            return FragirError(error.format_message(), hint=hint)
        case click.ClickException():
            return FragirError(error.format_message())
        case OSError():
            return os_error(error)
        case MemoryError():
            return FragirError("not enough memory")
        case _:
            words = " ".join(str(error).split())
            if len(words) > 300:
                words = words[:300] + " ..."
            what = f"{type(error).__name__}: {words}" if words else type(error).__name__
            hint = "this is a fault of fragir's; --debug shows the traceback"
            return FragirError(f"unexpected {what}", hint=hint)


def os_error(error: OSError, verb: str = "use") -> FragirError:
    """`x.ptx: cannot read this file: No such file or directory`."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    reason = error.strerror or str(error) or type(error).__name__
    return FragirError(f"cannot {verb} {'this' if name else 'a'} file: {reason}", file=name)


def report(error: FragirError, *, as_json: bool) -> None:
    """Prints an error: one line and its place on stderr, or a JSON document on stdout.

    Behind that of a deadlock, who waits for whom.
    """
    if as_json:
        print_json({"error": error_json(error)})
        return
    print(f"error: {error}", file=sys.stderr)
    why: Why | None = getattr(error, "why", None)
    for line in () if why is None else why.lines():
        note(f"    {line}")


def error_json(error: FragirError) -> Document:
    found: Document = {
        "message": error.sentence,
        "file": error.file,
        "line": error.line,
        "col": error.col,
    }
    more = {
        "ptx_line": getattr(error, "ptx_line", None),
        "source": getattr(error, "compiled_from", ""),
    }
    found |= {key: value for key, value in more.items() if value}
    why: Why | None = getattr(error, "why", None)
    return found if why is None else {**found, "why": why_json(why)}


def why_json(why: Why) -> Document:
    """The barriers behind a finding or a deadlock; `text` is all of it in words."""
    return {
        "barriers": [asdict(barrier) for barrier in why.barriers],
        "cycle": [
            {
                "party": asdict(link.party),
                "waits_for": link.barrier.phase_text,
                "lacks": link.barrier.lacks,
                "awaited": asdict(link.awaited),
            }
            for link in why.cycle
        ],
        "notes": list(why.notes),
        "text": why.lines(),
    }


def note(text: str) -> None:
    """A word to the user that is no part of the result."""
    print(printable(text), file=sys.stderr)


def _silence_stdout() -> None:
    """Keeps Python from complaining at exit that the reader of a pipe has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is no file, as under a test
        pass
    finally:
        os.close(nowhere)


# What a command prints ---------------------------------------------------------------------------


def print_json(document: object) -> None:
    """The one document of `--json`. NaN and infinities are no JSON: callers write null."""
    import json

    text = json.dumps(document, indent=2, allow_nan=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout. Columns whose values are all numbers are set to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from fragir.cli.terminal import console

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    # Where nobody looks at a terminal nothing may be cut off or wrapped.
    out = console(sys.stdout, None if sys.stdout.isatty() else 10_000)
    with out.capture() as capture:
        out.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    sys.stdout.write("\n".join(line for line in lines if line) + "\n")
