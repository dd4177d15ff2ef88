"""The public names of docs/api.md, a page a package; mkdocstrings fills in their docstrings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from docs.hooks.links import slug
from docs.hooks.pages import ROOT, table

FOLDER = "reference/python"
_SECTION = re.compile(r"^## `([\w.]+)`\n\n(.*)\n\n((?:(?!## ).*\n?)*)", re.MULTILINE)


def files() -> dict[str, str]:
    """Every page by its path on the site."""
    pages = {name: _page(name, found) for name, found in packages().items()}
    return {
        f"{FOLDER}/index.md": _index(),
        **{f"{FOLDER}/{name}.md": text for name, text in pages.items()},
    }


def titles() -> dict[str, str]:
    """Path on the site -> title, the index first."""
    pages = {f"{FOLDER}/{name}.md": name for name in packages()}
    return {f"{FOLDER}/index.md": "Python", **pages}


def packages() -> dict[str, dict[str, list[str]]]:
    """Page -> module -> its public names."""
    found: dict[str, dict[str, list[str]]] = {}
    for module, names in listed().items():
        found.setdefault(_package(module), {})[module] = names
    return found


def listed() -> dict[str, list[str]]:
    """Module -> its public names, as docs/api.md lists them."""
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    return {module: re.findall(r"`(\w+)`", names) for module, _, names in _SECTION.findall(text)}


def _package(module: str) -> str:
    """Two words: `fragir.isa` of `fragir.isa.query`; three of the dialects."""
    words = module.split(".")
    return ".".join(words[: 3 if words[1:2] == ["dialects"] else 2])


def _index() -> str:
    rows = [
        (f"[`{name}`]({name}.md)", str(sum(map(len, modules.values()))))
        for name, modules in packages().items()
    ]
    return f"""\
# Python reference

The public names, with what their documentation strings say. [Public names](../../api.md) says what
can be relied on; [Python](../../python.md) teaches how kernels are written.

{table(("package", "names"), rows)}"""


def _page(name: str, modules: Mapping[str, list[str]]) -> str:
    parts = [f"# `{name}`\n"]
    for module, names in modules.items():
        if module != name:
            parts.append(f"## `{module}`\n")
        level = 2 if module == name else 3
        parts += [_name(f"{module}.{each}", level) for each in names]
    return "\n".join(parts)


def _name(name: str, level: int) -> str:
    """What mkdocstrings fills in; a module that has names of its own is a link to these."""
    if name in listed():
        anchor = "" if _package(name) == name else f"#{slug(name)}"
        return f"The module [`{name}`]({_package(name)}.md{anchor}).\n"
    return f"::: {name}\n    options:\n      heading_level: {level}\n"
