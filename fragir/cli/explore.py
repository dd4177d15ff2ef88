"""`fragir explore`: the explorer's page, in a browser or as a file."""

from __future__ import annotations

import click

from fragir.cli.command import command

EXAMPLES = (
    ("Write the page, to keep it or to send it to somebody:", "fragir explore -o explorer.html"),
    ("Open it in a browser:", "fragir explore"),
)


@command(examples=EXAMPLES)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the page here; `-` is stdout. Opens nothing."
)
def main(output: str | None) -> None:
    """Explore every instruction and any layout, conversion and descriptor, on one page."""
    from fragir.cli.files import deliver
    from fragir.explore import page

    deliver(page(), output, "explorer")
