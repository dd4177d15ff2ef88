"""What mkdocs calls: made pages come in, links out of docs/ are turned towards them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard, cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from docs.hooks import (
    bars,
    command_page,
    formulas,
    instruction_pages,
    mlir_lexer,
    operation_pages,
    pass_page,
    python_pages,
    sources,
)
from docs.hooks.pages import ROOT
from fragir.explain import explain
from fragir.explore import page as explorer

EXPLORER, EXPLAINED = "explore.html", "explained.html"
PROGRAM = "examples/gemm.mlir"

_MARK = "\ue000"  # a character for private use: no page has it, and Markdown leaves it alone
_FORMULAS: dict[str, list[str]] = {}
"""The formulas of the page that is being made, by its path."""

mlir_lexer.register()


def made() -> dict[str, str]:
    """Every page and picture that is made from the sources, by its path in the site's source."""
    docs = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for path in sorted((ROOT / "docs").rglob("*.md"))
    }
    return {**sources.linked(docs), **python_pages.files(), **_of_the_package()}


@cache
def _of_the_package() -> Mapping[str, str]:
    """What cannot change while `mkdocs serve` runs: the package is imported once."""
    return {
        EXPLORER: explorer(),
        EXPLAINED: explained(),
        **command_page.files(),
        **instruction_pages.files(),
        **operation_pages.files(),
        **pass_page.files(),
    }


def explained() -> str:
    """The page that `fragir explain` makes of a product, for Hopper."""
    text = (ROOT / PROGRAM).read_text("utf-8")
    return explain(text, target="sm_90a", filename=PROGRAM).html()


def is_section(entry: object) -> TypeGuard[list[Any]]:
    """Whether an entry of the navigation has others below it."""
    return isinstance(entry, list)


def listed(nav: Sequence[Any], titles: Mapping[str, str]) -> list[Any]:
    """The navigation with `FOLDER/*` as the pages of that folder, its index first."""
    found: list[Any] = []
    for entry in nav:
        match entry:
            case str() if entry.endswith("/*"):
                paths = [path for path in titles if path.startswith(entry[:-1])]
                found += [{titles[path]: path} for path in paths]
            case dict():
                shown = cast("dict[str, Any]", entry)
                found.append(
                    {t: listed(x, titles) if is_section(x) else x for t, x in shown.items()}
                )
            case _:
                found.append(entry)
    return found


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Writes out the entries of the navigation that stand for all pages of a folder."""
    titles = {**instruction_pages.titles(), **python_pages.titles()}
    config["nav"] = listed(cast("list[Any]", config["nav"]), titles)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what is made; of that, only what mkdocs.yml names is in the navigation."""
    for path, text in made().items():
        level = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, path, content=text, inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links out of docs/ towards the site's copies."""
    if page.file.generated_by is not None or page.file.abs_src_path is None:
        return markdown
    path = Path(page.file.abs_src_path).relative_to(ROOT).as_posix()
    shown = bars.plain(sources.on_site(markdown, path))
    found: list[str] = []
    _FORMULAS[page.file.src_uri] = found

    def kept(formula: str) -> str:
        found.append(formula)
        return f"{_MARK}{len(found) - 1}{_MARK}"

    try:
        return formulas.formulas(shown, kept)
    except formulas.UnknownFormula as error:
        raise PluginError(f"{path}: {error}") from error


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Puts the formulas where Markdown has left their marks."""
    found = _FORMULAS.pop(page.file.src_uri, [])
    return re.sub(rf"{_MARK}(\d+){_MARK}", lambda mark: found[int(mark[1])], html)
