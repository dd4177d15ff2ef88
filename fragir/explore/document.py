"""The explorer's page as one file: markup, style, tables, modules, and nothing from elsewhere."""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from string import Template

from fragir.draw.palette import COUNT, colour, hexadecimal
from fragir.explore.bundle import bundle, digest
from fragir.explore.tables import tables

_FOLDER = Path(__file__).parent
_FIRST = "app.js"
_STYLES = ("page.css", "list.css", "matrices.css", "views.css", "phone.css")


def page() -> str:
    """The page as HTML, with every instruction that `fragir.isa` has at this moment.

    It works from a file, asks no network for anything, and says so in its content security
    policy.
    """
    script, style = bundle(_FOLDER, _FIRST), _style()
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    data = json.dumps(tables(), separators=(",", ":"), ensure_ascii=False)
    return Template(_source("page.html")).substitute(
        policy=policy,
        version=_version(),
        style=style,
        data=data.replace("<", "\\u003c"),
        script=script,
    )


def _source(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


def _version() -> str:
    try:
        return version("fragir")
    except PackageNotFoundError:  # a tree that is not installed
        return "of a tree"


# Style -------------------------------------------------------------------------------------------


def _style() -> str:
    """The page's style, with the colours of `fragir.draw.palette`, light and dark."""
    light = "".join(f"--c{i}:{hexadecimal(colour(i))};" for i in range(COUNT))
    dark = "".join(f"--c{i}:{hexadecimal(colour(i, dark=True))};" for i in range(COUNT))
    shades = "".join(f".s{i}{{--shade:var(--c{i});background:var(--c{i})}}" for i in range(COUNT))
    text = "".join(map(_source, _STYLES))
    night = re.search(r"/\* dark \*/\n:root \{\n(.*?)\}\n", text, re.DOTALL)
    assert night is not None
    rules = f"{night[1]}{dark}"
    text = text.replace(night[0], "")
    return (
        f":root{{{light}}}\n{text}"
        f':root[data-theme="dark"]{{{rules}}}\n'
        f'@media(prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{rules}}}}}\n'
        f"{shades}"
    )
