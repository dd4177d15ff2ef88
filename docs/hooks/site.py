"""What mkdocs calls: made pages come in, links out of docs/ are turned towards them."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from docs.hooks import mlir_lexer, sources
from docs.hooks.pages import ROOT

mlir_lexer.register()


def made() -> dict[str, str]:
    """Every page and picture that is made from the sources, by its path in the site's source."""
    docs = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for path in sorted((ROOT / "docs").rglob("*.md"))
    }
    return sources.linked(docs)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what is made."""
    for path, text in made().items():
        level = (
            InclusionLevel.NOT_IN_NAV
            if path.startswith("repository/")
            else InclusionLevel.UNDEFINED
        )
        files.append(File.generated(config, path, content=text, inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links out of docs/ towards the site's copies."""
    if page.file.generated_by is not None or page.file.abs_src_path is None:
        return markdown
    path = Path(page.file.abs_src_path).relative_to(ROOT).as_posix()
    return sources.on_site(markdown, path)
