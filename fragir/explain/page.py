"""The page: the model packed into one HTML file that needs no network.

Lines are stored once, in a table; what is stored is deflated, which the page's own script undoes.
The script is the modules of this folder, joined.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from fragir.draw.svg import COUNT, colour, hexadecimal
from fragir.explore.document import bundle

Document: TypeAlias = dict[str, Any]
"""A model as JSON, or a part of it (docs/json.md)."""

_FOLDER = Path(__file__).parent
_HOLE = re.compile(r"\{\{(\w+)\}\}")


def page(document: Document) -> str:
    """The HTML of a report's document."""
    packed = json.dumps(packed_model(document), separators=(",", ":"), allow_nan=False)
    parts = {
        "title": escape(f"{document['source']['name']} for {document['target']}"),
        "style": _read("page.css") + _shades(),
        "data": base64.b64encode(zlib.compress(packed.encode(), 9)).decode(),
        "script": bundle(_FOLDER, "app.js"),
    }
    return _HOLE.sub(lambda hole: parts[hole[1]], _read("page.html"))


def frame_page(document: Document, height: int = 720) -> str:
    """The page within another one."""
    style = f"width:100%;height:{height}px;border:1px solid #8888"
    return f'<iframe srcdoc="{escape(page(document))}" style="{style}"></iframe>'


def _read(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


def _shades() -> str:
    """Colours of cells by lane, as the pictures have them."""

    def rules(dark: bool) -> str:
        return "".join(
            f".fr-cell-{shade}{{background:{hexadecimal(colour(shade, dark))}}}"
            for shade in range(COUNT)
        )

    return f"{rules(False)}@media(prefers-color-scheme:dark){{{rules(True)}}}\n"


class _Table:
    """Lines, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, lines: Iterable[str]) -> list[int]:
        return [self.numbers.setdefault(line, len(self.numbers)) for line in lines]


def packed_model(document: Document) -> Document:
    """The document with its lines in a table; `model.js` unpacks it."""
    table, found = _Table(), dict(document)
    ptx, source = document["ptx"], document["source"]
    of_ptx = document["kind"] == "ptx"
    found["source"] = {**source, "lines": table(ptx["lines"] if of_ptx else source["lines"])}
    found["stages"] = [_stage(stage, table) for stage in document["stages"]]
    found["ptx"] = ptx and {
        "lines": [] if of_ptx else table(ptx["lines"]),
        "from": ptx["came_from"],
        "source": ptx["source"],
    }
    found["machine"] = [_machine(one, table) for one in document["machine"]]
    found["table"] = [*table.numbers]
    return found


def _stage(stage: Document, table: _Table) -> Mapping[str, object]:
    changes = [[one["change"], *one["before"], *one["after"]] for one in stage["differences"]]
    kept = {name: stage[name] for name in ("name", "source", "counts", "notes")}
    more = {"ms": round(stage["ms"], 3), "from": stage["came_from"], "changes": changes}
    return {**kept, **more, "lines": table(stage["lines"])}


def _machine(one: Document, table: _Table) -> Document:
    lines = one["lines"]
    return {
        **one,
        "lines": table(line["text"] for line in lines),
        "ptx": [line["ptx"] for line in lines],
        "live": [line["live"] for line in lines],
        "spills": [number for number, line in enumerate(lines) if line["spill"]],
    }
