"""`--variable NAME=in|out|inout:FILE.npy`: what global and constant variables hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from fragir.cli.argument_kinds import MODES
from fragir.cli.arguments import ArrayArgument

F = TypeVar("F", bound=Callable[..., Any])
_VARIABLE = re.compile(r"([a-zA-Z_$%][\w$]*)=([a-z]+):(.+)", re.ASCII | re.DOTALL)


def read_variables(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, ArrayArgument]:
    """A callback for `--variable`."""
    found: dict[str, ArrayArgument] = {}
    for value in values:
        match = _VARIABLE.fullmatch(value)
        if match is None or match[2] not in MODES:
            raise click.BadParameter(f"`{value}` is not of the form NAME=in|out|inout:FILE.npy")
        if match[1] in found:
            raise click.BadParameter(f"{match[1]} is given twice")
        found[match[1]] = ArrayArgument(match[3], written=match[2] != "in")
    return found


def variable_option(function: F) -> F:
    """Adds `--variable`."""
    return click.option(
        "--variable",
        "variables",
        multiple=True,
        callback=read_variables,
        metavar="NAME=MODE:FILE.npy",
        help="What a .global or .const variable holds, by its name in the PTX: in:, out:, inout:.",
    )(function)
