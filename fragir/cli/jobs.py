"""`--jobs N`: how many threads and processes may emulate a kernel."""

from __future__ import annotations

import click

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cores that a large launch may use on the emulator; all of them, or $FRAGIR_JOBS, if "
    "absent.",
)
