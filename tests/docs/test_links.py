"""Every relative link of every page resolves, file and anchor; the site's menu has all pages.

`make docs` asks mkdocs the same of the built site, generated pages included.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from docs.hooks.links import anchors, is_outside, links, resolved, rewritten, slug
from docs.hooks.sources import linked, on_site, site_path

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in (
        *sorted((ROOT / "docs").rglob("*.md")),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    )
}
_MADE = re.compile(r"repository/|reference/|(explore|explained)\.html$")
_ENTRY = re.compile(r"^ +- (?:[^:\n]+: )?([\w./-]+\.(?:md|html)|[\w./-]+/\*)$", re.MULTILINE)


def broken(page: str, text: str, pages: dict[str, str]) -> list[str]:
    """What is wrong with the links of a page, a line each."""
    found: list[str] = []
    for line, target in links(text):
        if is_outside(target):
            continue
        path, anchor = resolved(page, target)
        if path not in pages and (path.startswith("../") or not (ROOT / path).exists()):
            found.append(f"{page}:{line}: there is no {target}")
        elif anchor and path in pages and anchor not in anchors(pages[path]):
            found.append(f"{page}:{line}: {path} has no heading #{anchor}")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_resolve(page: str) -> None:
    assert broken(page, PAGES[page], PAGES) == []


def test_a_broken_link_is_seen() -> None:
    text = "# A b\n\n[no](no.md) [a](#a-b) [c](#c)\n`[x](y.md)`\n\n```\n[x](y.md)\n```\n"
    text += '\n[far](https://example.org/no) <img src="no.svg">\n\n    [x](y.md)\n\n    [x](y.md)\n'
    text += "\n- a list\n\n    [no](no.md)\n"
    assert broken("docs/a.md", text, {"docs/a.md": text}) == [
        "docs/a.md:3: there is no no.md",
        "docs/a.md:3: docs/a.md has no heading #c",
        "docs/a.md:10: there is no no.svg",
        "docs/a.md:18: there is no no.md",
    ]


def test_anchors_are_those_of_a_code_host() -> None:
    """As GitHub documents: lower case, no punctuation, a hyphen for each space."""
    assert slug("Scales of `frag.matmul`".replace("`", "")) == "scales-of-fragmatmul"
    assert slug("C / C++") == "c--c"
    assert slug("gemm_frag, tiles") == "gemm_frag-tiles"
    assert anchors("## A [link](b.md) *and* `x.y`\n\n```\n# no\n```\n<a id='c'>") == {
        "a-link-and-xy"
    }


def test_the_menu_has_every_page_once() -> None:
    """Of made pages those that it names; `FOLDER/*` stands for all of a folder."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    entries = Counter(_ENTRY.findall(text))
    assert [entry for entry, times in entries.items() if times > 1] == []
    pages = {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}
    assert {entry for entry in entries if not _MADE.match(entry)} == pages
    assert {"reference/instructions/*", "reference/python/*", "reference/passes.md"} <= set(entries)


def test_links_out_of_docs_lead_to_copies() -> None:
    made = linked({page: text for page, text in PAGES.items() if page.startswith("docs/")})
    assert "repository/examples/gemm.mlir.md" in made
    assert made["repository/CHANGELOG.md"].startswith("# Changelog")
    program = (ROOT / "examples" / "gemm.mlir").read_text("utf-8").strip()
    assert program in made["repository/examples/gemm.mlir.md"]
    known = {*made, *(page.removeprefix("docs/") for page in PAGES if page.startswith("docs/"))}
    sites = {page: on_site(text, page) for page, text in PAGES.items()}
    assert len(sites) > 40
    for page, text in sites.items():
        if page.startswith("docs/") or site_path(page) in made:
            found = () if broken(page, PAGES[page], PAGES) else links(text)
            for _, target in found:
                path, _ = resolved(site_path(page), target)
                assert is_outside(target) or path in known or (ROOT / "docs" / path).is_file(), (
                    f"{page}: {target}"
                )


def test_a_link_is_turned_towards_the_copy() -> None:
    text = (
        "See [it](../../examples/gemm.mlir), [data](../../examples/data) and [frag](../frag.md#a)."
    )
    assert on_site(text, "docs/kernels/rows.md") == (
        "See [it](../repository/examples/gemm.mlir.md), "
        "[data](../repository/examples/data/index.md) and [frag](../frag.md#a)."
    )
    assert on_site("[design](docs/design.md#rooms)", "CONTRIBUTING.md") == (
        "[design](../design.md#rooms)"
    )
    assert rewritten("`[a](b)` [a](b)", str.upper) == "`[a](b)` [a](B)"
