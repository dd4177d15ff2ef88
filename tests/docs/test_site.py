"""What the site makes of the sources: nothing is left out, pictures show what the table says."""

from __future__ import annotations

import contextlib
import io
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from pygments.token import Error
from xdsl.irdl import IRDLOperation

from docs.hooks import (
    bars,
    command_page,
    instruction_pages,
    operation_pages,
    pass_page,
    python_pages,
    site,
)
from docs.hooks.doctest_fences import fenced_examples
from docs.hooks.formulas import UnknownFormula, formulas, mathml
from docs.hooks.mlir_lexer import MlirLexer
from docs.hooks.operand_pictures import Pictures
from fragir import isa
from fragir.cli.main import COMMANDS, commands, main
from fragir.dialects.frag import Frag
from fragir.dialects.linalg.registration import names
from fragir.dialects.ptx import Ptx
from fragir.emulator.tensor_cores.maps import formula
from fragir.universe import PASSES

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {
    "mma-a.svg": ("layout", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "a"),
    "conversion.svg": (
        *("convert", "--from", "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]"),
        *("--to", "lane [2:(0,4) 16:(1,0)] element [4:(0,1)]", "--type", "f16"),
    ),
}


@cache
def instructions() -> tuple[dict[str, str], Pictures]:
    pictures = Pictures()
    return instruction_pages.pages(pictures), pictures


# Instructions ---------------------------------------------------------------------------------


def test_every_instruction_has_a_row() -> None:
    pages, _ = instructions()
    rows = re.findall(r'<tr id="([^"]+)">', "".join(pages.values()))
    assert sorted(rows) == sorted(i.mnemonic for i in isa.instructions())


def test_every_operand_in_registers_has_a_picture_on_its_page() -> None:
    pages, pictures = instructions()
    for instruction in isa.instructions():
        page = pages[f"{instruction_pages.FOLDER}/{instruction_pages.page_name(instruction)}.md"]
        start = page.index(f'<tr id="{instruction.mnemonic}">')
        shown = set(re.findall(r'href="#p-(\w+)"', page[start : page.index("</tr>", start)]))
        held = {pictures.of(instruction, o) for o in instruction.operands.values()} - {None}
        assert shown == held
        assert held or instruction.family.startswith("tcgen05.mma")  # in tensor memory
        for name in shown:
            assert f'<figure id="p-{name}">' in page
            assert f'src="pictures/{name}.svg"' in page


def test_profiles_say_what_the_table_says() -> None:
    pages, _ = instructions()
    for mnemonic in (
        "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32",
        "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16",
        "ldmatrix.sync.aligned.m8n8.x4.b16",
    ):
        found = isa.lookup(mnemonic)
        page = pages[f"{instruction_pages.FOLDER}/{instruction_pages.page_name(found)}.md"]
        number = re.search(rf'id="{re.escape(mnemonic)}">.*?>T(\d+)<', page)
        assert number is not None
        text = page.partition(f"### T{number[1]}\n\n")[2].partition("\n")[0]
        said: dict[str, tuple[str, str]] = {}
        for part in text.rstrip(".").split("; "):
            kind, _, each = part.partition(": ")
            for target, version in re.findall(r"(sm_\w+) from ([\d.]+)", each):
                said[target] = (version, kind.strip("*"))
        assert said == {t: (v, found.lowering[t]) for t, v in found.targets.items()}


@pytest.mark.parametrize(
    ("mnemonic", "operand", "key"),
    [
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "a",
            ("DENSE", "m16n8k16", "f16", "a"),
        ),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "b", ("DENSE", "m16n8k32", "s8", "b")),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "c", ("DENSE", "m8n8k4", "f64", "c")),
        (
            "wgmma.mma_async.sync.aligned.m64n24k16.f32.bf16.bf16",
            "d",
            ("WGMMA", "m64nN", "bf16", "d"),
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n256k32.s32.u8.u8",
            "c",
            ("WGMMA", "m64nN", "u8", "d"),
        ),
    ],
)
def test_a_picture_shows_the_formulas_of_the_isa(
    mnemonic: str, operand: str, key: tuple[str, str, str, str]
) -> None:
    """Cells against the emulator's lane maps, which know nothing of the table."""
    instruction = isa.lookup(mnemonic)
    _, pictures = instructions()
    name = pictures.of(instruction, instruction.operand(operand))
    assert name is not None
    cells = cells_of(pictures.found[name].draw())
    rule = formula(*key)
    rows, cols = (rule.evaluate(each, instruction.lanes) for each in ("row", "col"))
    assert len({row for row, _ in cells}) > 7
    for at, label in cells.items():
        lane, element = map(int, label.removeprefix("T").rstrip("+").split(":"))
        assert (rows[element, lane], cols[element, lane]) == at


def cells_of(svg: str) -> dict[tuple[int, int], str]:
    """(row, col) -> label."""
    found: dict[tuple[int, int], str] = {}
    for group in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        at = group.get("data-at")
        text = group.find("{http://www.w3.org/2000/svg}text")
        if at is not None and text is not None:
            row, col = map(int, at.split(","))
            found[row, col] = text.text or ""
    return found


# Languages, passes, commands, Python ----------------------------------------------------------


def test_every_operation_is_there() -> None:
    pages = operation_pages.files()
    for dialect, path in ((Frag, "frag"), (Ptx, "ptx")):
        page = pages[f"{operation_pages.FOLDER}/{path}.md"]
        for cls in (*dialect.operations, *dialect.attributes):
            assert page.count(f"### `{cls.name}`\n") >= 1, cls.name
    for cls in Ptx.operations:
        part = pages[f"{operation_pages.FOLDER}/ptx.md"].partition(f"### `{cls.name}`\n")[2]
        part = part.partition("\n### ")[0]
        assert re.search(rf"```mlir\n(.*\n)*?.*{re.escape(cls.name)}\b", part), cls.name
        assert issubclass(cls, IRDLOperation)
        definition = cls.get_irdl_definition()
        for name, _ in (*definition.operands, *definition.results):
            assert f"| `{name}` | " in part
    others = pages[f"{operation_pages.FOLDER}/others.md"]
    for name in (*names(), "memref.copy", "tensor.pack"):
        assert f"| `{name}` | " in others


def test_a_definition_says_what_the_operation_takes() -> None:
    page = operation_pages.files()[f"{operation_pages.FOLDER}/ptx.md"]
    part = page.partition("### `ptx.ldmatrix`\n")[2].partition("\n### ")[0]
    assert "| `pointer` | operand | `!ptx.ptr<shared>` |  |" in part
    assert "| `transposed` | property | `unit` | optional |" in part
    assert "| `value` | result | `vector` |  |" in part
    assert "ptx.ldmatrix $pointer `[` $offset `]` (`transposed` $transposed^)?" in part
    assert "Traits: `MemoryReadEffect`." in part


def test_every_pass_is_there() -> None:
    page = pass_page.page()
    for name in PASSES:
        assert page.count(f"## `{name}`\n") == 1
    road = re.findall(r"^\| \d+ \| \[`([\w-]+)`\]", page, re.MULTILINE)
    assert road.index("frag-tile") < road.index("frag-place") < road.index("convert-frag-to-ptx")
    part = page.partition("## `frag-raster`\n")[2].partition("\n## ")[0]
    assert "| `order` | `str` | `'rows'` |" in part
    assert "| `persistent` | `bool` | `False` |" in part


def test_every_command_and_option_is_there() -> None:
    page = command_page.page()
    for name in COMMANDS:
        part = page.partition(f"## `fragir {name}`\n")[2].partition("\n## ")[0]
        command = commands.get_command(click.Context(commands), name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.name not in ("debug", "help"):
                assert any(f"`{o}" in part or f", {o}" in part for o in parameter.opts)


def test_every_public_name_is_there() -> None:
    pages = python_pages.files()
    asked = re.findall(r"^::: ([\w.]+)$", "\n".join(pages.values()), re.MULTILINE)
    listed = python_pages.listed()
    named = [f"{module}.{name}" for module, found in listed.items() for name in found]
    assert sorted(asked) == sorted(name for name in named if name not in listed)
    for name in set(named) & set(listed):
        assert f"The module [`{name}`]({name}.md" in pages[f"{python_pages.FOLDER}/fragir.md"]
    assert {"fragir.compile", "fragir.layout.Layout", "fragir.isa.query.View"} <= set(asked)
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    assert len(listed) == len(re.findall("^## ", text, re.MULTILINE))


def test_the_menu_is_written_out() -> None:
    titles = {"a/index.md": "All", "a/x.md": "X", "b/y.md": "Y"}
    assert site.listed(["i.md", {"A": [{"T": "t.md"}, "a/*"]}], titles) == [
        "i.md",
        {"A": [{"T": "t.md"}, {"All": "a/index.md"}, {"X": "a/x.md"}]},
    ]


# How pages are read ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PICTURES)
def test_committed_pictures_are_what_the_commands_draw(name: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main([*PICTURES[name], "--format", "svg"]) == 0
    kept = (ROOT / "docs" / "pictures" / name).read_text("utf-8")
    assert printed.getvalue() == kept, f"draw docs/pictures/{name} anew"


def test_formulas_become_mathml() -> None:
    assert mathml("2^{-23}") == (
        '<math display="inline"><msup><mn>2</mn><mrow><mo>−</mo><mn>23</mn></mrow></msup></math>'
    )
    assert mathml(r"\hat a_k \le \tfrac12", block=True) == (
        '<math display="block"><msub><mover accent="true"><mi>a</mi><mo>^</mo></mover><mi>k</mi>'
        "</msub><mo>≤</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></math>"
    )
    assert "<munder><mo>∑</mo><mrow><mi>k</mi></mrow></munder>" in mathml(r"\sum_{k} x", block=True)
    found: list[str] = []
    text = "costs `$x$` or $x$; \\$3 and $4 are prices\n\n$$y_1$$\n"
    assert formulas(text, lambda one: found.append(one) or "!") == (
        "costs `$x$` or !; \\$3 and $4 are prices\n\n!\n"
    )
    assert [one.count("<mi>") for one in found] == [1, 1]


@pytest.mark.parametrize("source", [r"\unheard", "{x", "x^", r"\tfrac1"])
def test_a_formula_that_is_not_known(source: str) -> None:
    with pytest.raises(UnknownFormula):
        mathml(source)


def test_every_formula_of_the_pages_is_known() -> None:
    found: list[str] = []
    for path in (ROOT / "docs").rglob("*.md"):
        formulas(path.read_text("utf-8"), lambda one: found.append(one) or "")
    assert len(found) > 50
    for one in found:
        ElementTree.fromstring(one)


def test_examples_of_docstrings_are_fenced() -> None:
    text = "Says.\n\n    >>> a = 1\n    >>> a\n    1\n\nMore:\n>>> b\n2\n\nEnd."
    first, second = "```pycon\n>>> a = 1\n>>> a\n1\n```", "```pycon\n>>> b\n2\n```"
    assert fenced_examples(text) == f"Says.\n\n\n{first}\n\n\nMore:\n\n{second}\n\n\nEnd."


def test_bars_in_code_of_tables() -> None:
    assert bars.plain("| `a\\|b` | c \\| d |\n`e\\|f`") == "| `a|b` | c \\| d |\n`e\\|f`"


def test_mlir_is_read_to_its_end() -> None:
    lexer = MlirLexer()
    for path in sorted((ROOT / "examples").rglob("*.mlir")):
        tokens = list(lexer.get_tokens(path.read_text("utf-8")))
        assert "".join(text for _, text in tokens).strip() == path.read_text("utf-8").strip()
        assert all(kind is not Error for kind, _ in tokens)
    found = {
        text: str(kind) for kind, text in lexer.get_tokens('%a = frag.x "s" : memref<?x8xf16>')
    }
    assert found["%a"] == "Token.Name.Variable"
    assert found["frag.x"] == "Token.Name.Builtin"
    assert found["f16"] == found["memref"] == "Token.Keyword.Type"
