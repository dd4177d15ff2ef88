"""What all commands share: how they end, what they print, how they read and write files.

A command is a function under `@command(...)` that returns its exit code (None is 0). It raises
FragirError for bad input, prints its result through `print_json`, `print_table` or `write_output`,
and everything else goes to stderr. `guarded` turns whatever escapes into one clear line.

Exit codes: 0 clean or PASS; 1 a finding, FAIL or bad input; 2 wrong usage.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from fragir.cli import signals, streams
from fragir.cli.examples import Examples, TaughtCommand
from fragir.cli.progress import Progress as Progress
from fragir.errors import FragirError, printable

OK, FINDING, USAGE, INTERRUPTED = 0, 1, 2, 130

F = TypeVar("F", bound=Callable[..., Any])

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


def guarded(run: Callable[[Sequence[str]], object], argv: Sequence[str]) -> int:
    """Runs a command line; the exit code. Nothing escapes but by the rules of this module."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    as_json, debug = "--json" in own, "--debug" in own
    streams.stand_in()
    streams.escape_what_cannot_be_encoded()
    try:
        with signals.raised():
            code = run(argv)
            sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except BrokenPipeError:
        _silence_stdout()
        return FINDING
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except signals.Ended as ended:
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
    """Prints an error: one line and its place on stderr, or a JSON document on stdout."""
    if as_json:
        print_json({"error": error_json(error)})
        return
    print(f"error: {error}", file=sys.stderr)


def error_json(error: FragirError) -> dict[str, object]:
    return {
        "message": error.sentence,
        "file": error.file,
        "line": error.line,
        "col": error.col,
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
