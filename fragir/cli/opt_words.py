"""The options of `fragir-opt` for shells: xdsl-opt's are argparse's, and importing them takes long.

A test holds this list against xdsl-opt's.
"""

from __future__ import annotations

import click

from fragir.cli.completers import CompletedWord, files, outputs, passes

FLAGS = (
    "--allow-unregistered-dialect",
    "--debug",
    "--disable-verify",
    "--help",
    "--no-implicit-module",
    "--parsing-diagnostics",
    "--print-between-passes",
    "--print-debuginfo",
    "--print-no-properties",
    "--print-op-generic",
    "--shrink",
    "--split-input-file",
    "--syntax-highlight",
    "--time-passes",
    "--verify-diagnostics",
    "--version",
)

opt = click.Command(
    "fragir-opt",
    params=[
        click.Argument(["file"], required=False, type=CompletedWord(files(".mlir"))),
        click.Option(["-p", "--passes"], type=CompletedWord(passes)),
        click.Option(["-t", "--target"], type=CompletedWord(outputs)),
        click.Option(["-o", "--output-file"], type=CompletedWord(files(".mlir", ".ptx"))),
        click.Option(["-f", "--frontend"], type=click.Choice(["mlir"])),
        *(click.Option([flag], is_flag=True) for flag in FLAGS),
    ],
    add_help_option=False,
)
