"""A drawing as one HTML page that needs nothing else, or as a part of a notebook."""

from __future__ import annotations

from html import escape

from fragir.draw.grid import Drawing, drawing
from fragir.draw.svg import svg
from fragir.isa.query import View

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font-family:system-ui,sans-serif;margin:2em;max-width:100%}"
    "th{text-align:left;vertical-align:top;padding-right:1em;font-weight:600}"
    "pre{margin:0;white-space:pre-wrap}.fr-scroll{overflow-x:auto}"
)


def view_html(view: View, colour: str = "lane", full: bool = False) -> str:
    """A page with the picture, the registers and the layout in words."""
    return html(drawing(view, colour), full)


def html(drawn: Drawing, full: bool = False) -> str:
    """A page with the picture and what is known in words."""
    title = escape(drawn.title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{fragment(drawn, full)}</body>\n</html>\n"
    )


def fragment(drawn: Drawing, full: bool = False) -> str:
    """What stands in the page: facts and the picture."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td><pre>{escape(text)}</pre></td></tr>\n"
        for name, text in drawn.facts
    )
    return f'<table>\n{rows}</table>\n<div class="fr-scroll">\n{svg(drawn, full)}</div>\n'
