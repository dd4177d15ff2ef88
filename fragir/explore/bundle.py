"""Modules of JavaScript as one script, for pages that are one file.

The modules of a folder are joined in the order in which they import each other, and are functions
of their own in the script. They say `import { a, b as c } from "./x.js";` and `export const`,
`export function` (also `async`), `export class` or `export { a, b };`, each a statement on one
line.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from fragir.errors import FragirError

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:const|let|(?:async )?function\*?|class) (\w+)|\{([^}]*)\};$)", re.MULTILINE
)
_UNKNOWN = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


@cache
def bundle(folder: Path, first: str) -> str:
    """One script that does what the module `first` of a folder does."""
    order: dict[str, str] = {}
    _add(folder, first, order, ())
    return '"use strict";\n' + "".join(order.values())


def digest(text: str) -> str:
    """What a content security policy calls an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _add(folder: Path, name: str, order: dict[str, str], above: tuple[str, ...]) -> None:
    if name in order:
        return
    if name in above:
        raise FragirError(f"{name} imports itself by {' and '.join(above)}")
    text = (folder / name).read_text("utf-8")
    for _, imported in _IMPORT.findall(text):
        _add(folder, imported, order, (*above, name))
    order[name] = _as_function(name, text)


def _as_function(name: str, text: str) -> str:
    """A module as `const $name = (() => { ...; return {its names}; })();`."""
    names: list[str] = []

    def exported(found: re.Match[str]) -> str:
        several: str | None = found[2]
        if several is None:
            names.append(found[1])
            return ""
        names.extend(word.strip() for word in several.split(",") if word.strip())
        return "// "

    text = _IMPORT.sub(lambda found: f"const {{{_renamed(found[1])}}} = {_called(found[2])};", text)
    text = _EXPORT.sub(exported, text)
    if left := _UNKNOWN.search(text):
        raise FragirError(f"{name} is not joined: {left[0]}")
    return f"const {_called(name)} = (() => {{\n{text}return {{ {', '.join(names)} }};\n}})();\n"


def _renamed(names: str) -> str:
    return re.sub(r"(\w+) as (\w+)", r"\1: \2", names)


def _called(name: str) -> str:
    return f"${name.removesuffix('.js')}"
