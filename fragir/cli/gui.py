"""`fragir-gui`: xdsl-gui with our dialects and passes, which the stock command does not load.

Needs the extra `gui` (`pip install fragir[gui]`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from fragir.errors import FragirError

if TYPE_CHECKING:
    from xdsl.interactive.app import InputApp
    from xdsl.ir import Dialect


def build_app(path: str | None, passes: str) -> InputApp:
    """The application on a file's text with a pipeline; FragirError for bad input."""
    try:
        from xdsl.interactive.app import InputApp
    except ImportError:
        raise FragirError(
            "the terminal interface is not installed", hint="pip install 'fragir[gui]'"
        ) from None
    from fragir import plugins
    from fragir.cli.files import read_text
    from fragir.compilation import pipeline

    text = None if path is None else read_text(path)
    chosen = tuple(pipeline.parse(passes))
    others = plugins.plugins()  # the window lists what there is
    dialects = dict(plugins.own_dialects())
    for name in others.names("dialect"):
        dialects.setdefault(name, partial(_dialect, name))
    known = {name: get() for name, get in plugins.own_passes().items()}
    for name in others.names("pass"):
        with suppress(FragirError):  # told where it is asked for
            known.setdefault(name, pipeline.pass_class(name))
    return InputApp(tuple(dialects.items()), tuple(sorted(known.items())), path, text, chosen)


def _dialect(name: str) -> Dialect:
    from fragir.plugins import FragirContext

    return FragirContext().get_dialect(name)


@click.command("fragir-gui")
@click.argument("file", required=False)
@click.option("-p", "--passes", default="", help="A pipeline to begin with, as of fragir-opt.")
def command(file: str | None, passes: str) -> None:
    """Try passes on a program and see what each does, in the terminal."""
    build_app(file, passes).run()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 1 and one clear line for bad input."""
    from fragir.cli.command import run_guarded

    def run(argv: Sequence[str]) -> object:
        return command.main(list(argv), prog_name="fragir-gui", standalone_mode=False)

    return run_guarded(run, sys.argv[1:] if arguments is None else arguments)
