"""`fragir completion`: what a shell reads to complete commands, mnemonics, passes and files."""

from __future__ import annotations

import os
import sys

import click

from fragir.cli.command import command
from fragir.errors import FragirError

SHELLS = ("bash", "zsh", "fish")

EXAMPLES = (
    ("In this bash:", "source <(fragir completion bash)"),
    ("In every bash from now on:", "echo 'source <(fragir completion bash)' >> ~/.bashrc"),
    ("For zsh, in a folder of $fpath:", "fragir completion zsh > _fragir"),
)


@command(examples=EXAMPLES)
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def main(shell: str | None) -> None:
    """Print what a shell reads to complete words: commands, mnemonics, targets, passes, files.

    Without SHELL it is for the shell that $SHELL names.
    """
    from fragir.cli.main import commands
    from fragir.cli.shells import script

    if shell is None:
        shell = os.path.basename(os.environ.get("SHELL", ""))
        if shell not in SHELLS:
            raise FragirError(
                f"$SHELL is {shell or 'not set'}, which has no completion here",
                hint=f"name one: fragir completion {'|'.join(SHELLS)}",
            )
    sys.stdout.write(script(shell, commands))
