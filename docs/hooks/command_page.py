"""Every command with its arguments, options and examples, as `--help` has them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from docs.hooks.pages import code, fenced, table
from fragir.cli.command import Examples, TaughtCommand
from fragir.cli.main import EXAMPLES, GROUPS, commands

PATH = "reference/commands.md"
_COMMON = ("help", "debug")


def files() -> dict[str, str]:
    """The page by its path on the site."""
    return {PATH: page()}


def page() -> str:
    """All commands, by what one wants."""
    context = click.Context(commands, info_name="fragir")
    parts = [
        "# Commands\n",
        "What `--help` says, in one place. [Command line](../command-line.md) tells what the "
        "commands are for, their inputs and exit codes. Every command has `-h`, `--help` and "
        "`--debug`, which shows the traceback of an error.\n",
        fenced("\n".join(_examples(EXAMPLES)), "sh"),
    ]
    for title, group in GROUPS.items():
        rows = [(f"[`{name}`](#fragir-{name})", about) for name, about in group.items()]
        parts += [f"**{title}**\n", table(("command", ""), rows)]
    for group in GROUPS.values():
        for name in group:
            found = commands.get_command(context, name)
            assert found is not None
            parts.append(_command(found, click.Context(found, context, name)))
    return "\n".join(parts)


def _command(found: click.Command, context: click.Context) -> str:
    usage = " ".join(found.collect_usage_pieces(context))
    parts = [f"## `fragir {context.info_name}`\n", fenced(f"{context.command_path} {usage}")]
    if found.help:
        parts.append(f"{_paragraphs(found.help)}\n")
    rows = [row for each in found.params if (row := _row(each, context)) is not None]
    if rows:
        parts.append(table(("option", "what it does"), rows))
    if isinstance(found, TaughtCommand) and found.examples:
        parts.append(fenced("\n".join(_examples(found.examples)), "sh"))
    return "\n".join(parts)


def _paragraphs(text: str) -> str:
    r"""Help as Markdown: click keeps the lines of a paragraph that begins with \b."""
    shown: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        shown.append(fenced(rest) if head.strip() == "\b" else paragraph)
    return "\n\n".join(shown)


def _row(parameter: click.Parameter, context: click.Context) -> tuple[str, str] | None:
    record = parameter.get_help_record(context)
    if record is None or isinstance(parameter, click.Argument) or parameter.name in _COMMON:
        return None
    names, text = record
    return code(names), re.sub(r"([<>*_|])", r"\\\1", text)


def _examples(examples: Examples) -> Iterator[str]:
    for what, line in examples:
        if what:
            yield f"# {what.rstrip(':')}"
        yield line
