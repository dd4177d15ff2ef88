"""The page in a browser: what it shows is what the report says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fragir.draw.layouts import slot_label
from fragir.explain import ProgramReport, explain
from fragir.explain.report import Mark, ValueShown
from fragir.explain.texts import counts
from fragir.isa.layout_texts import read_layout
from fragir.layout import Layout
from tests.browser import Pages
from tests.explain.examples import foreign, report_of

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

Written = Callable[[str, ProgramReport], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes the page of a report, which is small."""

    def write(name: str, report: ProgramReport) -> Path:
        path = tmp_path / f"{name}.html"
        path.write_text(report.html(), "utf-8")
        assert path.stat().st_size < 2_000_000
        return path

    return write


def opened(open_page: Pages, path: Path, fragment: str = "", **options: Any) -> Page:
    page = open_page(path, fragment, **options)
    page.wait_for_selector("html[data-ready=true]")
    return page


def row(page: Page, text: str, line: int) -> Locator:
    """The row of a line of a text, the last pane that shows it."""
    return page.locator(f'.column[data-text="{text}"] .row[data-line="{line}"]').last


def code(page: Page, text: str, line: int) -> str:
    return row(page, text, line).locator("code").inner_text()


def lit(page: Page, text: str, kind: str) -> list[int]:
    """The lines of a text that are shaded."""
    rows = page.locator(f'.column[data-text="{text}"] .row.{kind}')
    return sorted({int(n) for n in rows.evaluate_all("all => all.map((r) => r.dataset.line)")})


def lit_below(page: Page, text: str, kind: str) -> list[int]:
    """The lines of a text that are shaded, all of them: only rows near those in sight are drawn."""
    body = page.locator(f'.column[data-text="{text}"] .body')
    found: set[int] = set()
    top, height = 0, 1
    while top < height:
        # the page draws when it hears of the scrolling, before the next frame
        body.evaluate(
            """(body, top) => new Promise((done) => {
                body.scrollTop = top;
                requestAnimationFrame(() => requestAnimationFrame(done));
            })""",
            top,
        )
        found |= set(lit(page, text, kind))
        step, height = body.evaluate("body => [body.clientHeight, body.scrollHeight]")
        top += step
    return sorted(found)


def current(page: Page) -> str:
    return page.locator("#passes [aria-current] .pass").inner_text()


def test_passes_and_their_differences(open_page: Pages, written: Written) -> None:
    """The list, the counts, both texts, next pass and next difference by keys, the folds."""
    report = report_of("gemm80")
    page = opened(open_page, written("gemm", report), "frag-tile", height=900)
    names = page.locator("#passes .pass").all_inner_texts()
    assert names == [*(stage.name for stage in report.stages), "PTX"]
    words = ", ".join(f"{n} {kind}" for kind, n in counts(report.stages[1].differences).items())
    assert page.locator("#passes button").nth(1).get_attribute("title") == f"lines: {words}"
    page.keyboard.press("ArrowLeft")
    assert current(page) == "parse"
    for stage in report.stages[1:-1]:
        page.keyboard.press("ArrowRight")
        assert current(page) == stage.name
    number = len(report.stages) - 2
    after, before = report.stages[number], report.stages[number - 1]
    changed = next(one for one in after.differences if one.change == "changed")
    page.keyboard.press("n")
    first = changed.after[0] + 1
    assert code(page, f"s{number}", first) == after.lines[first - 1]
    assert code(page, f"s{number - 1}", changed.before[0] + 1) == before.lines[changed.before[0]]
    assert "changed" in (row(page, f"s{number}", first).get_attribute("class") or "")
    assert lit(page, f"s{number}", "related") == [first]
    assert page.locator(".fold").count() > 0
    page.keyboard.press("a")
    assert page.locator(".fold").count() == 0
    assert code(page, f"s{number}", 2) == after.lines[1]
    page.keyboard.press("c")
    assert current(page) == "PTX"


def test_lines_light_up_in_every_text(open_page: Pages, written: Written) -> None:
    """Pointing at a line of PTX shades what it was made of and its machine code; a click keeps
    it, and the bar leads to the other texts."""
    report = report_of("gemm90")
    assert report.ptx is not None
    sass = ["", *(line for one in report.machine for line in one.lines)]
    made: dict[int, list[int]] = defaultdict(list)
    for n, one in enumerate(sass, 1):
        if not isinstance(one, str) and one.ptx:
            made[one.ptx].append(n)
    # ptxas says where the machine code of a line stands: the one that is spread most
    ptx, wanted = max(
        (one for one in made.items() if report.ptx.source[one[0] - 1]),
        key=lambda one: one[1][-1] - one[1][0],
    )
    assert len(wanted) > 2
    page = opened(open_page, written("gemm", report), "code")
    page.evaluate(f"location.hash = 'code/{ptx}'")
    row(page, "ptx", ptx).hover()
    assert lit(page, "ptx", "related") == [ptx]
    assert lit(page, "source", "related") == [report.ptx.source[ptx - 1]]
    assert lit_below(page, "sass", "pinned") == wanted
    assert lit_below(page, "sass", "related") == wanted
    lanes = report.ptx.came_from[ptx - 1]
    status = page.locator("#status")
    assert f"PTX:{ptx}" in status.inner_text()
    status.get_by_role("button", name=f"convert-frag-to-ptx:{lanes}").click()
    assert current(page) == "convert-frag-to-ptx"
    number = len(report.stages) - 1
    assert lit(page, f"s{number}", "pinned") == [lanes]
    assert code(page, f"s{number}", lanes) == report.stages[-1].lines[lanes - 1]
    came = report.stages[-1].came_from[lanes - 1]
    assert lit(page, f"s{number - 1}", "pinned") == [came]
    assert page.evaluate("location.hash") == f"#convert-frag-to-ptx/{lanes}"


def test_a_tile_shows_its_layout_and_who_asked(open_page: Pages, written: Written) -> None:
    report = report_of("gemm90")
    path = written("gemm", report)
    tile = next(tile for tile in report.tiles if tile.name == "%old")
    page = opened(open_page, path, f"frag-place/{tile.line}")
    here = row(page, f"s{tile.stage}", tile.line)
    button = here.locator("button.layout").last
    text = button.inner_text()
    assert tile.layout in text
    button.click()
    detail = page.locator("#detail")
    assert detail.is_visible()
    assert detail.locator(".code").first.inner_text() == text
    assert f"%old, line {tile.line}: {tile.asked_by}" in detail.locator(".asked").inner_text()
    shown = next(one for one in report.types if one.text == text)
    layout = read_layout(shown.resolved)
    assert isinstance(layout, Layout)
    for row_, col in ((0, 0), (9, 3), (15, 6)):
        cell = detail.locator(f'svg g[data-at="{row_},{col}"] > text').text_content()
        assert cell == slot_label(layout, layout.holders[row_, col][0])
    (asked,) = tile.asked_lines
    detail.get_by_role("button", name=f"line {asked}").first.click()
    assert lit(page, f"s{tile.stage - 1}", "pinned") == [asked]
    page.keyboard.press("Escape")
    assert not detail.is_visible()


def test_a_conversion_shows_its_price(open_page: Pages, written: Written) -> None:
    report = report_of("attention")
    page = opened(open_page, written("attention", report), width=1700)
    assert current(page) == "frag-place"
    one = report.conversions[1]
    page.locator("#conversions button").nth(1).click()
    assert lit(page, f"s{one.stage}", "pinned") == [one.line]
    words = page.locator("#detail").inner_text()
    for part in ("150 half cycles", one.steps, one.asked_by, one.source, one.target):
        assert part in words
    assert page.locator("#detail svg [data-grid]").count() == 2
    # the same from its line
    page.keyboard.press("Escape")
    row(page, f"s{one.stage}", one.line).get_by_role("button", name="frag.convert").click()
    assert "Conversion of %out" in page.locator("#detail").inner_text()


def test_an_instruction_shows_its_operands(open_page: Pages, written: Written) -> None:
    report = foreign()
    page = opened(open_page, written("product", report))
    assert current(page) in ("PTX and SASS", "PTX")
    mma = report.instructions[1]
    page.evaluate(f"location.hash = 'code/{mma.lines[0]}'")
    row(page, "ptx", mma.lines[0]).get_by_role("button", name=mma.mnemonic).click()
    detail = page.locator("#detail")
    assert mma.mnemonic in detail.inner_text()
    assert detail.locator('svg g[data-at="9,3"] > text').first.text_content() == "T5:3"
    lifted = [n for n, at in enumerate(report.stages[0].source, 1) if at == mma.lines[0]]
    assert lit(page, "s0", "pinned") == lifted != []


def test_marks_values_and_errors(open_page: Pages, written: Written) -> None:
    """Findings and values stand at their lines and open; an error is shown with its line."""
    report = report_of("softmax")
    assert report.ptx is not None
    line = next(n for n, at in enumerate(report.ptx.source, 1) if at)
    source = report.ptx.source[line - 1]
    mark = Mark("check", "race", "error", "two threads at once", line, source)
    held = ValueShown(
        "%x", "%x: 1 x 2 of f32", "time 1", line, (("1.5", "-2"),), (("W0 T0:0", "W0 T7:1"),)
    )
    page = opened(open_page, written("marks", replace(report, marks=(mark,), values=(held,))))
    page.get_by_role("button", name="✖ race").click()
    assert "two threads at once" in page.locator("#detail").inner_text()
    assert row(page, "ptx", line).locator(".icon.error").inner_text() == "✖"
    assert row(page, "source", source).locator(".icon.error").inner_text() == "✖"
    page.get_by_role("button", name="▦ %x").click()
    cells = page.locator("#detail .matrix td")
    assert [re.sub(r"\s+", " ", text) for text in cells.all_inner_texts()] == [
        "1.5 W0 T0:0",
        "-2 W0 T7:1",
    ]
    text = """func.func @wrong(%a: memref<16x16xf16>) {
  %0 = arith.constant 0 : index
  %x = frag.load %a[%0, %0] : memref<16x16xf16> -> !frag.tile<16x16xf16, LAYOUT>
  frag.store %x, %a[%0, %0] : !frag.tile<16x16xf16, LAYOUT>, memref<16x16xf16>
  func.return
}
""".replace("LAYOUT", "#frag.mma<m16n8k16.f16, a, warps = [1, 2]>")
    failed = explain(text, filename="wrong.mlir")
    assert failed.error is not None
    page = opened(open_page, written("wrong", failed))
    assert failed.error.message in page.locator("#error").inner_text()
    page.locator("#error").click()
    assert "✖" in page.locator(".row.pinned .icon").first.inner_text()


def test_search_and_keys(open_page: Pages, written: Written) -> None:
    report = report_of("softmax")
    page = opened(open_page, written("softmax", report), "frag-place")
    number = len(report.stages) - 2
    hits = [n for n, line in enumerate(report.stages[number].lines, 1) if "frag.reduce" in line]
    page.keyboard.press("/")
    page.keyboard.type("frag.reduce")
    assert lit(page, f"s{number}", "pinned") == [hits[0]]
    page.keyboard.press("Enter")
    assert lit(page, f"s{number}", "pinned") == [hits[1]]
    assert page.locator("#hits").inner_text() == f"2 of {2 * len(hits)}"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert lit(page, f"s{number}", "pinned") == [hits[1] + 1]
    page.keyboard.press("k")
    assert lit(page, f"s{number}", "pinned") == [hits[1]]
    page.keyboard.press("Enter")
    assert "Tile" in page.locator("#detail h2").inner_text()
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()


def test_on_a_phone(open_page: Pages, written: Written) -> None:
    """One text at a time; nothing is wider than the screen."""
    report = report_of("attention")
    one = report.conversions[0]
    path = written("attention", report)
    page = opened(open_page, path, f"frag-place/{one.line}", width=390, height=800, touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert row(page, "s1", one.line).is_visible()
    page.get_by_role("tab").first.tap()
    assert not row(page, "s1", one.line).is_visible()
    assert row(page, "s0", report.stages[1].came_from[one.line - 1]).is_visible()
    page.get_by_role("tab").last.tap()
    row(page, "s1", one.line).get_by_role("button", name="frag.convert").tap()
    box = page.locator("#detail").bounding_box()
    assert box is not None
    assert box["width"] == 390
    assert box["y"] + box["height"] <= 801


def test_large_pages_are_there_at_once(open_page: Pages, written: Written) -> None:
    """What is in the document stays small, whatever the program."""
    report = report_of("gemm90")
    page = opened(open_page, written("gemm", report), "code/900")
    assert page.evaluate("document.querySelectorAll('*').length") < 6000
    assert page.evaluate("performance.now()") < 5000  # a tenth of that on an idle machine


def test_in_a_frame(open_page: Pages, tmp_path: Path) -> None:
    """As notebooks show it."""
    path = tmp_path / "notebook.html"
    frame = getattr(report_of("softmax"), "_repr_html_")()
    path.write_text(f"<!DOCTYPE html><title>notebook</title>{frame}", "utf-8")
    page = open_page(path)
    inner = page.frame_locator("iframe")
    inner.locator("html[data-ready=true]").wait_for()
    inner.locator("#passes button").first.click()
    assert inner.locator("#passes [aria-current] .pass").inner_text() == "parse"
