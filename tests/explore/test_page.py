"""The explorer's page in a browser: what it shows is what Python says."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from fragir import isa
from fragir.draw.layouts import layout_drawing
from fragir.draw.svg import DARK, LIGHT, Colour, colour
from fragir.explore import page as explorer_page
from fragir.isa.descriptors import KINDS, decode, decode_instruction
from fragir.isa.layout_texts import read_layout
from fragir.isa.provenance import provenance
from fragir.isa.query import View
from fragir.layout import Layout
from fragir.layout.conversion import sources as sources_of
from tests.browser import Pages

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

M16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
M40 = "wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16"
WIDE = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
A_ROWS = "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]"
BY_ROWS = "lane [2:(0,4) 16:(1,0)] element [4:(0,1)]"


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the page."""
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(explorer_page(), "utf-8")
    return path


def cell(page: Page, grid: str, *point: int) -> Locator:
    """The drawn element of a matrix; `grid` is its name."""
    at = ",".join(map(str, point))
    return page.locator(f'[data-grid="{grid}"]:visible td[data-at="{at}"]')


def go(page: Page, fragment: str) -> None:
    """What following a link to a fragment does."""
    page.evaluate("fragment => { location.hash = fragment; }", fragment)


def told(page: Page) -> list[str]:
    """Heading and lines of what is said of an element."""
    return [line for line in page.locator(".told:visible").inner_text().split("\n") if line]


def rgb(shown: Colour) -> str:
    return f"rgb({', '.join(map(str, shown))})"


def names(page: Page) -> list[str]:
    """Mnemonics in the list, as far as it is drawn."""
    found = page.locator("#list li[data-name]")
    return found.evaluate_all("all => all.map((one) => one.dataset.name)")


def count(page: Page) -> int:
    found = re.match(r"\d+", page.locator(".count").inner_text())
    assert found is not None
    return int(found[0])


def test_loads_alone(open_page: Pages, explorer: Path) -> None:
    assert explorer.stat().st_size < 2_000_000
    page = open_page(explorer)
    everything = list(isa.instructions())
    assert count(page) == len(everything)
    assert names(page)[:40] == [i.mnemonic for i in everything[:40]]
    assert page.locator('[data-grid="d"] td[data-at]').count() == 128
    assert page.evaluate("performance.getEntriesByName('drawn').length") == 1
    # no script or style but its own is let in, and nothing from elsewhere
    refused: list[str] = []
    page.on("console", lambda said: refused.append(said.text))
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('img'), {src: 'x.png'}))"
    )
    page.wait_for_timeout(50)
    assert any("Content Security Policy" in text for text in refused)
    open_page.complaints.clear()
    open_page.requests.clear()


def test_search_and_filters(open_page: Pages, explorer: Path) -> None:
    page = open_page(explorer)
    page.keyboard.press("/")
    page.keyboard.type("m16n8k16 bf16")
    fits = [
        i.mnemonic for i in isa.instructions() if {"m16n8k16", "bf16"} <= {*i.mnemonic.split(".")}
    ]
    page.keyboard.press("ArrowDown")  # what is typed counts at once
    assert names(page) == fits
    assert page.locator(".count").inner_text().startswith(f"{len(fits)} of")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("article:visible h2").inner_text() == fits[1]
    assert page.locator('#list [aria-selected="true"]').get_attribute("data-name") == fits[1]
    page.get_by_role("button", name="clear").click()
    page.get_by_label("family", exact=True).select_option("wgmma")
    page.get_by_label("target", exact=True).select_option("sm_90a")
    page.get_by_label("type", exact=True).select_option("e4m3")
    wanted = [
        i for i in isa.instructions(target="sm_90a") if i.family == "wgmma" and "e4m3" in i.types
    ]
    assert count(page) == len(wanted) > 0
    page.get_by_label("family", exact=True).select_option("")
    page.get_by_label("type", exact=True).select_option("")
    page.get_by_label("native on sm_90a").check()
    natives = [i for i in isa.instructions(target="sm_90a") if i.lowering.get("sm_90a") == "native"]
    assert count(page) == len(natives) > 0
    page.locator("#search").fill("no such thing")
    page.get_by_text("No instruction fits").wait_for()


def holder_lines(view: View, point: tuple[int, ...]) -> list[str]:
    lines = [
        f"lane {p.lane}, element {p.element}: register {p.register}, bits {p.high}:{p.low}"
        for p in view.holders(point)
    ]
    more = [f"and {len(lines) - 8} more copies"] if len(lines) > 8 else []
    return [*lines[:8], *more] or ["held by no lane under these selectors"]


def samples() -> Iterator[tuple[str, str, dict[str, int]]]:
    """Instructions of every kind, an operand, immediates; tests in node have all of them."""
    rng = random.Random(2)
    for family in ("mma", "wgmma.sp", "stmatrix", "movmatrix", "tcgen05.ld.red"):
        small = [i for i in isa.instructions() if i.family == family and i.shape[1] <= 32]
        found = rng.choice(small)
        layouts = [name for name, operand in found.operands.items() if operand.layout is not None]
        yield found.mnemonic, rng.choice(layouts), {}
    yield "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "d", {}
    yield "ldmatrix.sync.aligned.m8n8.x4.trans.b16", "registers", {}
    sparse = next(i for i in isa.instructions() if i.family == "mma.sp" and len(i.selectors) == 4)
    yield sparse.mnemonic, "e", {"selector": 2}
    scaled = [i for i in isa.instructions() if i.family == "mma" and "sfb" in i.operands]
    yield rng.choice(scaled).mnemonic, "sfb", {"thread": 1}
    yield "tcgen05.ld.sync.aligned.16x32bx2.x4.b32", "registers", {"offset": 6}


def test_elements_are_where_the_table_says(open_page: Pages, explorer: Path) -> None:
    rng = random.Random(8)
    page = open_page(explorer)
    for name, operand, immediates in samples():
        chosen = "".join(f"&{key}={value}" for key, value in immediates.items())
        go(page, f"instructions?name={quote(name)}{chosen}")
        view = View.of(isa.lookup(name), operand, **immediates)  # type: ignore[arg-type]
        grid = operand
        if len(view.shape) == 3:
            grid = f"{operand}, {view.dims[2]} {rng.randrange(view.shape[2])}"
        shown = page.locator(f'[data-grid="{grid}"] td[data-at]').evaluate_all(
            "all => all.map((one) => one.dataset.at)"
        )
        point = tuple(map(int, rng.choice(shown).split(",")))
        element = cell(page, grid, *point)
        holders = view.holders(point)
        if holders:
            label = f"T{holders[0].lane}:{holders[0].element}" + ("+" if len(holders) > 1 else "")
            assert element.inner_text() == label, name
        element.hover()
        heading, *lines = told(page)
        letters = operand.upper() if len(operand) <= 3 else operand
        assert heading == f"{letters}[{','.join(map(str, point))}]"
        wanted = holder_lines(view, point)
        assert lines[: len(wanted)] == wanted, name


def test_what_an_element_is_made_of(open_page: Pages, explorer: Path) -> None:
    page = open_page(explorer)
    for name in (
        M16,
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16",
    ):
        go(page, quote(name))
        check_sources(page, name)


def check_sources(page: Page, name: str) -> None:
    """An element of D lists and marks all that it is made of, one of A what it goes into."""
    found = isa.lookup(name)
    m, n, _ = found.shape
    rng = random.Random(len(name))
    point = (rng.randrange(m), rng.randrange(n))
    cell(page, "d", *point).click()
    by_operand: dict[str, dict[tuple[int, ...], Any]] = {}
    for source in provenance(found, point).sources:
        by_operand.setdefault(source.operand, {})[source.point] = source.places
    for operand, sources in by_operand.items():
        rows = page.locator(f'.source[data-source="{operand}"] tbody tr').all_inner_texts()
        assert len(rows) == len(sources)
        for row, (at, places) in zip(rows, sources.items(), strict=True):
            shown, *told_of = row.split("\t")
            assert shown == f"{operand.upper()}[{','.join(map(str, at))}]"
            if places:
                lanes = " ".join(str(place.lane) for place in places)
                first = places[0]
                assert told_of == [lanes, str(first.register), f"{first.high}:{first.low}"]
            else:
                assert told_of[0].startswith("byte ")
        marked = page.locator(f'[data-grid="{operand}"] td.from')
        points = marked.evaluate_all("all => all.map((one) => one.dataset.at)")
        assert points == [",".join(map(str, at)) for at in sources]
    assert cell(page, "d", *point).get_attribute("class").endswith("own")  # type: ignore[union-attr]
    # and what goes the other way: an element of A goes into its row of D
    page.keyboard.press("Escape")
    cell(page, "a", point[0], 1).hover()
    into = page.locator('[data-grid="d"] td.into').evaluate_all(
        "all => all.map((e) => e.dataset.at)"
    )
    assert into == [f"{point[0]},{col}" for col in range(n)]


def test_permalinks(open_page: Pages, explorer: Path) -> None:
    page = open_page(explorer, quote(M16))
    page.get_by_label("colour", exact=True).select_option("register")
    cell(page, "d", 3, 4).click()
    shown, address = page.locator(".dock:visible").inner_text(), page.url
    page.get_by_role("link", name="Layouts").click()
    page.get_by_role("button", name="CuTe").click()
    assert page.locator(".layout td[data-at]").count() == 128
    page.go_back()
    page.go_back()
    assert page.url == address
    assert page.locator(".dock:visible").inner_text() == shown
    page.go_forward()
    page.go_forward()
    assert page.locator('.layout input[name="tile"]').input_value() == "16x8"
    again = open_page(explorer, address.partition("#")[2])
    assert again.locator(".dock:visible").inner_text() == shown
    assert again.get_by_label("colour", exact=True).input_value() == "register"
    held = cell(again, "d", 3, 4).bounding_box()  # it is brought into view, above what is said
    dock = again.locator(".dock:visible").bounding_box()
    assert held is not None
    assert dock is not None
    assert 0 < held["y"] < dock["y"] - held["height"]
    again.reload()
    assert again.locator(".dock:visible").inner_text() == shown
    go(again, "instructions?name=mma.sync.nothing")
    assert "There is no instruction" in again.locator("[role=alert]:visible").inner_text()


def test_descriptors(open_page: Pages, explorer: Path) -> None:
    rng = random.Random(6)
    page = open_page(explorer, "descriptor")
    word = page.get_by_label("Descriptor, in hexadecimal")
    kind = page.get_by_label("kind", exact=True)
    for name, target in (("wgmma", "sm_90a"), ("tcgen05", "sm_100a")):
        kind.select_option(name)
        number = rng.getrandbits(64)
        word.fill(f"{number:#x}")
        found = decode(number, target)
        for field in found.fields:
            value = getattr(found, field.name)
            unit = " bytes" if field.name in ("start", "leading", "stride") else ""
            page.locator(
                f'tr[data-field="{field.name}"] .value', has_text=f"{value}{unit}"
            ).wait_for()
        assert page.locator("tr.bad").count() == bool(found.reserved)
    for name in KINDS:
        kind.select_option(f"i:{name}")
        number = rng.getrandbits(32)
        word.fill(f"{number:#010x}")
        page.wait_for_function("text => location.hash.includes(text)", arg=f"word={number:#010x}")
        rows = page.locator("tr[data-field]").evaluate_all(
            "all => all.map((row) => [row.dataset.field, row.querySelector('.value').textContent])"
        )
        assert dict(rows) == {k: str(v) for k, v in decode_instruction(number, name).items()}
    word.fill("0x4000004000010000")
    kind.select_option("wgmma")
    from fragir.layout import swizzled

    layout = swizzled((8, 128), 8, 128)
    for row in range(8):
        for chunk in range(8):
            place = layout(row=row, col=16 * chunk)
            assert place is not None
            shown = cell(page, "swizzle", row, chunk).inner_text()
            assert int(shown) == (place[0] - 128 * row) // 16
    word.fill("65552")
    page.get_by_text("read as a decimal number, 0x0000000000010010").wait_for()
    word.fill("0x12zz")
    page.locator("[role=alert]:visible", has_text="'0x12zz' is no number").wait_for()


PASTED = [
    ("warp [2:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]", ""),
    ("((4,8),(2,2)):((32,1),(16,8))", "16x8"),
    (
        "row = %laneid >> 2 for a0, a1\n (%laneid >> 2) + 8 for a2 and a3\n"
        "col = %laneid % 4 * 2 + i % 2",
        "",
    ),
    (
        "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [1, 2], "
        "order = [0, 1]}>",
        "8x32",
    ),
    ('f2:{"lane": [[1, 1], [2, 2], [4, 4], [8, 0], [0, 0]], "register": [[0, 1], [0, 2]]}', ""),
    ("row [8:^72 8:512] col [16:1]", ""),
    (f"{M16}:b", ""),
]


def test_pasted_layouts(open_page: Pages, explorer: Path) -> None:
    page = open_page(explorer, "layout")
    field = page.locator('.layout textarea[name="text"]')
    for text, tile in PASTED:
        page.locator('.layout input[name="tile"]').fill(tile)
        field.fill(text)
        page.wait_for_function(
            "text => new URLSearchParams(location.hash.split('?')[1]).get('text') === text",
            arg=text,
        )
        shape = tuple(map(int, tile.split("x"))) if tile else None
        (grid,) = layout_drawing(read_layout(text, shape)).grids
        labels = page.locator(".layout td[data-at]").evaluate_all(
            "all => all.map((one) => [one.dataset.at, one.textContent])"
        )
        assert labels == [[f"{c.row},{c.col}", c.label] for row in grid.rows for c in row], text
    for bad, words in [
        ("lane [4:(0,2", "is no part of a layout"),
        ("((4,8),(2,2)):((32,1)", "a comma or ) is missing"),
        ("#ttg.nothing<{}>", "nothing"),
        ("mma.sync.aligned.m1n1k1.row:a", "there is no instruction"),
    ]:
        page.locator('.layout input[name="tile"]').fill("")
        field.fill(bad)
        page.locator(".layout [role=alert]:visible", has_text=words).wait_for()
        assert page.get_by_text("Nothing is drawn until").is_visible()
    # the banks of a fragment's access, from an example
    page.get_by_role("button", name="bank conflicts").click()
    assert "32; 4 without conflicts" in page.locator(".layout .facts").inner_text()
    assert page.locator(".layout td.framed").count() == 64
    cell(page, "memory", 3, 2).hover()
    assert told(page)[1:] == ["row 3, col 2", "read by lane 13: shares its bank with another word"]


def test_conversions(open_page: Pages, explorer: Path) -> None:
    page = open_page(explorer, f"convert?from={quote(A_ROWS)}&to={quote(BY_ROWS)}")
    source, target = read_layout(A_ROWS), read_layout(BY_ROWS)
    assert isinstance(source, Layout)
    assert isinstance(target, Layout)
    moved = sources_of(source, target)
    assert page.locator(".kind").get_attribute("data-kind") == moved.kind
    for slot, point in list(target.slots())[::17]:
        assert point is not None
        lane, element = slot
        read = moved.source(lane=lane, element=element)
        assert read is not None
        cell(page, "after", *point).click()
        line = (
            f"lane {lane}, element {element} reads it from lane {read.lane}, element {read.element}"
        )
        assert line in told(page)
        assert "own" in (cell(page, "before", *point).get_attribute("class") or "")
        page.keyboard.press("Escape")
        # the colour is the lane's that held it before
        shade = f"s{read.lane % 32}"
        assert shade in (cell(page, "after", *point).get_attribute("class") or "").split()
    page.locator('.convert textarea[name="to"]').fill("lane [32:(1,0)] element [8:(0,1)]")
    page.locator(".convert > [role=alert]:visible", has_text="both hold one matrix").wait_for()


def test_keys(open_page: Pages, explorer: Path) -> None:
    page = open_page(explorer, quote(M16))
    cell(page, "d", 0, 0).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    assert told(page)[0] == "D[2,1]"
    page.keyboard.press("Enter")
    assert page.url.endswith("&at=d%3A2%2C1")
    cell(page, "d", 9, 7).hover()
    assert told(page)[0] == "D[2,1]"  # held on to
    page.keyboard.press("Escape")
    assert "at=" not in page.url
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    assert keys.is_visible()
    page.keyboard.press("Escape")
    assert not keys.is_visible()
    for number, view in (
        ("2", "layout"),
        ("3", "convert"),
        ("4", "descriptor"),
        ("1", "instructions"),
    ):
        page.keyboard.press(number)
        assert f"#{view}" in page.url
    assert page.locator("article:visible h2").inner_text() == M16
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"


def test_a_phone(open_page: Pages, explorer: Path) -> None:
    page = open_page(explorer, width=360, height=740, touch=True)
    fits = "document.documentElement.scrollWidth <= 360 && document.body.scrollWidth <= 360"
    assert page.evaluate(fits)
    assert not page.locator("article.instruction").is_visible()
    page.locator("#search").fill("m16n8k8 tf32")
    page.locator(".count", has_text=" of ").wait_for()
    page.locator("#list li").first.tap()
    assert page.evaluate(fits)
    element = cell(page, "d", 1, 1)
    element.tap()
    name = page.locator("article:visible h2").inner_text()
    assert told(page)[:2] == ["D[1,1]", *holder_lines(View.of(isa.lookup(name), "d"), (1, 1))]
    page.get_by_role("button", name="all instructions").tap()
    assert page.locator("#search").is_visible()
    for fragment in (
        quote(WIDE),
        f"layout?text={quote('row [8:^144 8:1024] col [64:2] dims (byte)')}&show=memory",
        f"convert?from={quote(A_ROWS)}&to={quote(BY_ROWS)}",
        "descriptor?word=0x4000004000010000",
    ):
        go(page, fragment)
        assert page.evaluate(fits), fragment
        inside = page.locator("article:visible").evaluate(
            "one => one.scrollWidth <= one.clientWidth"
        )
        assert inside, fragment


def test_light_and_dark(open_page: Pages, explorer: Path) -> None:
    """The colours are those of `fragir.draw.svg`."""
    ground = "getComputedStyle(document.body).backgroundColor"
    shade = "getComputedStyle(document.querySelector('.s13')).backgroundColor"
    page = open_page(explorer, quote(M16), dark=True)
    assert (page.evaluate(ground), page.evaluate(shade)) == (rgb(DARK), rgb(colour(13, dark=True)))
    page.get_by_role("button", name="Light colours").click()
    assert (page.evaluate(ground), page.evaluate(shade)) == (rgb(LIGHT), rgb(colour(13)))
    page.reload()  # it is remembered
    assert page.evaluate(ground) == rgb(LIGHT)
    page.keyboard.press("t")
    assert page.evaluate(ground) == rgb(DARK)


def test_repeats_of_a_large_tile(open_page: Pages, explorer: Path) -> None:
    page = open_page(explorer, quote(M40))
    drawn = page.locator('[data-grid="d"] td[data-at]')
    assert drawn.count() == 32 * 40
    words = page.locator('[data-grid="d"] .folds').inner_text()
    assert words == "rows 16 to 47 repeat the first 16: lane + 32 each time"
    page.get_by_role("button", name="show all").click()
    assert drawn.count() == 64 * 40
    view = View.of(isa.lookup(M40), "d")
    labels = drawn.evaluate_all("all => all.map((one) => one.textContent)")
    for number in random.Random(1).sample(range(64 * 40), 200):
        (holder,) = view.holders(divmod(number, 40))
        assert labels[number] == f"T{holder.lane}:{holder.element}"
