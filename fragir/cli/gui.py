"""`fragir-gui`: xdsl-gui with our dialects and passes, which the stock command does not load.

Needs the extra `gui` (`pip install fragir[gui]`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from fragir.errors import FragirError


def build_app(path: str | None, passes: str) -> Any:
    """The application on a file's text with a pipeline; FragirError for bad input."""
    try:
        from xdsl.interactive.app import InputApp
    except ImportError:
        raise FragirError(
            "the terminal interface is not installed", hint="pip install 'fragir[gui]'"
        ) from None
    from xdsl.dialects import get_all_dialects
    from xdsl.passes import PassPipeline
    from xdsl.transforms import get_all_passes

    from fragir.cli.files import read_text
    from fragir.universe import FRAGIR_UNIVERSE

    text = None if path is None else read_text(path)
    dialects = {**get_all_dialects(), **FRAGIR_UNIVERSE.all_dialects}
    known = {**get_all_passes(), **FRAGIR_UNIVERSE.all_passes}
    try:
        pipeline = PassPipeline.parse_spec(known, passes).passes if passes else ()
    except (Exception, SystemExit) as error:
        raise FragirError(f"bad pipeline: {' '.join(str(error).split())}") from error
    return InputApp(
        tuple(dialects.items()),
        tuple((name, get()) for name, get in sorted(known.items())),
        path,
        text,
        tuple(pipeline),
    )


@click.command("fragir-gui")
@click.argument("file", required=False)
@click.option("-p", "--passes", default="", help="A pipeline to begin with, as of fragir-opt.")
def command(file: str | None, passes: str) -> None:
    """Try passes on a program and see what each does, in the terminal."""
    build_app(file, passes).run()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 1 and one clear line for bad input."""
    from fragir.cli.common import guarded

    def run(argv: Sequence[str]) -> object:
        return command.main(list(argv), prog_name="fragir-gui", standalone_mode=False)

    return guarded(run, sys.argv[1:] if arguments is None else arguments)
