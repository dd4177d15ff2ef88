"""Files of the repository that pages link to, as pages of the site.

A link from a page to `../examples/gemm.mlir` works where the repository is browsed. The site has
that file too, below `repository/`, with its code in colours; the link is turned towards it while
the site is built, and the page itself stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.hooks.links import is_outside, links, relative, resolved, rewritten
from docs.hooks.pages import ROOT, fenced, hidden_from_search

DOCS = "docs/"
_HOME = "repository"
_LANGUAGES = {".py": "python", ".mlir": "mlir", ".ptx": "ptx", ".toml": "toml", ".cu": "cuda"}
_SHOWN = {*_LANGUAGES, ".md", ".txt", ".in", ".json", ""}


def site_path(path: str) -> str:
    """Where the site has a file or folder of the repository."""
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    if path == "docs":
        return "index.md"
    if (ROOT / path).is_dir():
        return f"{_HOME}/{path}/index.md"
    return f"{_HOME}/{path}" if path.endswith(".md") else f"{_HOME}/{path}.md"


def on_site(text: str, path: str) -> str:
    """The Markdown of a file of the repository, its links as the site has them."""
    here = site_path(path)

    def change(target: str) -> str:
        if is_outside(target) or target.startswith(("#", "/")):
            return target
        to, anchor = resolved(path, target)
        if to.startswith("../") or not (ROOT / to).exists():
            return target  # mkdocs says that it is broken
        return relative(here, site_path(to), anchor)

    return rewritten(text, change)


def linked(pages: Mapping[str, str]) -> dict[str, str]:
    """Path on the site -> text of everything outside of docs/ that the pages lead to.

    `pages` are the texts of docs/ by their paths from the repository's root. What such a file or
    folder leads to is there as well.
    """
    found: dict[str, str] = {}
    open_ = [to for path, text in pages.items() for to in _targets(path, text)]
    while open_:
        path = open_.pop()
        where = site_path(path)
        if where in found or path.startswith(DOCS) or path == "docs":
            continue
        file = ROOT / path
        if file.is_dir():
            inside = sorted(_contents(file))
            found[where] = hidden_from_search(_folder(path, inside))
            open_ += [f"{path}/{name}" for name in inside]
        elif path.endswith(".md"):
            text = file.read_text("utf-8")
            found[where] = on_site(text, path)
            open_ += _targets(path, text)
        else:
            found[where] = hidden_from_search(_file(path, file.read_text("utf-8")))
    return dict(sorted(found.items()))


def _targets(path: str, text: str) -> Iterator[str]:
    """Files and folders of the repository, outside of docs/, that a page links to."""
    for _, target in links(text):
        if not is_outside(target):
            to, _ = resolved(path, target)
            if not to.startswith(("../", "/")) and (ROOT / to).exists():
                yield to


def _contents(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        if not re.match(r"[._]", path.name) and (path.is_dir() or path.suffix in _SHOWN):
            yield path.name


def _folder(path: str, inside: list[str]) -> str:
    here = site_path(path)
    lines = [f"# `{path}/`\n"]
    lines += [f"- [`{n}`]({relative(here, site_path(f'{path}/{n}'))})" for n in inside]
    return "\n".join(lines) + "\n"


def _file(path: str, text: str) -> str:
    return f"# `{path}`\n\n{fenced(text, _LANGUAGES.get(Path(path).suffix, 'text'))}"
