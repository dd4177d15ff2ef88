"""Help that ends in examples: what one wants, and the command that does it.

They stand beside the command, as `command(examples=...)`. tests/cli/test_help.py executes them in
their order, in a folder that has what a clone has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import click

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
            for part in folded(line, formatter.width - 8):
                formatter.write(f"{'':{formatter.current_indent + 2}}{part}\n")


def folded(line: str, width: int) -> Iterator[str]:
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
