"""The model of the view against the compiler itself."""

from __future__ import annotations

import json
import re
import runpy
from io import StringIO
from itertools import pairwise

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

import fragir
from fragir import isa
from fragir.compilation.program import emit_with_origins, lower, parse
from fragir.draw.layouts import conversion_drawing, slot_label
from fragir.errors import FragirError
from fragir.explain import explain, explain_ptx
from fragir.explain.programs import lines_of, statements
from fragir.explain.report import picture_of
from fragir.explain.texts import LineChange, apply_changes, bare, counts, differences
from fragir.isa.layout_texts import read_layout
from fragir.layout import Layout
from fragir.passes.writer.text import LineOrigin
from tests.draw.reading import pictures
from tests.explain.examples import PROGRAMS, ROOT, foreign, report_of

EVERY = pytest.mark.parametrize("name", PROGRAMS)


def layout_from(text: str) -> Layout:
    layout = read_layout(text)
    assert isinstance(layout, Layout)
    return layout


def text_of(module: ModuleOp) -> str:
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


@EVERY
def test_stages_are_what_the_passes_leave(name: str) -> None:
    """The IR after every pass, the PTX, and the pipeline's text, as other ways to them give."""
    file, target = PROGRAMS[name]
    report = report_of(name)
    module = parse((ROOT / file).read_text(), file)
    assert report.stages[0].lines == tuple(text_of(module).split("\n"))
    again = parse((ROOT / file).read_text(), file)
    lower(again, "lane", target, passes=report.pipeline)
    assert "\n".join(report.stages[-1].lines) == text_of(again)
    lower(module, "lane", target)
    assert "\n".join(report.stages[-1].lines) == text_of(module)
    assert report.ptx is not None
    assert "\n".join(report.ptx.lines) == fragir.emit(module, target)
    assert report.error is None
    assert all(stage.ms >= 0 for stage in report.stages)


def test_each_stage_is_what_its_pass_alone_leaves() -> None:
    """Pass by pass: nothing that the view does to a program changes what comes after."""
    file, target = PROGRAMS["gemm80"]
    report = report_of("gemm80")
    module = parse((ROOT / file).read_text(), file)
    for stage in report.stages[1:]:
        lower(module, "lane", target, passes=stage.name)
        assert "\n".join(stage.lines) == text_of(module)


@EVERY
def test_differences_lead_from_each_stage_to_the_next(name: str) -> None:
    stages = report_of(name).stages
    for before, after in pairwise(stages):
        assert apply_changes(before.lines, after.differences, after.lines) == list(after.lines)
        total = counts(after.differences)
        grown = total["added"] - total["removed"]
        assert len(after.lines) - len(before.lines) == grown
        for one in after.differences:
            old, new = before.lines[slice(*one.before)], after.lines[slice(*one.after)]
            if one.change == "renamed":
                assert old != new
                assert [*map(bare, old)] == [*map(bare, new)]
            assert (one.change == "added") == (not old)
            assert (one.change == "removed") == (not new)


def test_differences_by_hand() -> None:
    old = ["a {", "  %0 = x.one : i32", "  %1 = x.two %0 : i32", "}"]
    new = ["a {", "  %0 = y.new : i32", "  %1 = x.one : i32", "  %2 = x.two %1 : i64", "}"]
    assert differences(old, new) == (
        LineChange("added", (1, 1), (1, 2)),
        LineChange("renamed", (1, 2), (2, 3)),
        LineChange("changed", (2, 3), (3, 4)),
    )
    assert differences(old, old) == ()
    assert differences(old, old[:1] + old[3:]) == (LineChange("removed", (1, 3), (1, 1)),)


@EVERY
def test_lines_come_from_operations_of_the_same_place(name: str) -> None:
    """Nearly every operation is traced to the stage before, and its place in the source is that of
    the line that it was traced to."""
    stages = report_of(name).stages
    for before, after in pairwise(stages):
        operations = [line for line in after.lines if re.match(r"\s*(%[^=]+= )?\w+\.\w", line)]
        traced = [number for number, came in enumerate(after.came_from) if came]
        assert len(traced) >= 0.6 * len(operations)
        for number in traced:
            came = after.came_from[number]
            assert 1 <= came <= len(before.lines)
            if after.source[number] and before.source[came - 1]:
                assert after.source[number] == before.source[came - 1]


def test_a_line_is_traced_to_the_line_it_was_made_of() -> None:
    """What can be told from the text alone: unchanged lines, stores, products."""
    report = report_of("gemm80")
    place = next(stage for stage in report.stages if stage.name == "frag-place")
    before = report.stages[report.stages.index(place) - 1]
    for number, line in enumerate(place.lines):
        if line == before.lines[number] and place.came_from[number]:
            assert place.came_from[number] == number + 1
    lanes = report.stages[-1]
    (product,) = (n for n, line in enumerate(place.lines, 1) if "frag.mma " in line)
    made = [n for n, came in enumerate(lanes.came_from) if came == product]
    assert sum("ptx.mma" in lanes.lines[n] for n in made) == 64
    assert all("ptx.mma" not in line for n, line in enumerate(lanes.lines) if n not in made)


@EVERY
def test_ptx_comes_from_lanes_and_source(name: str) -> None:
    """Lines of PTX lead by way of the stages to the places that the compiler itself notes."""
    file, target = PROGRAMS[name]
    report = report_of(name)
    assert report.ptx is not None
    module = parse((ROOT / file).read_text(), file)
    lower(module, "lane", target)
    _, origins = emit_with_origins(module, target)
    places = [*lines_of(report.ptx.lines, origins)]
    compared = 0
    for ours, theirs in zip(report.ptx.source, places, strict=True):
        if ours and theirs:
            compared += 1
            assert ours == theirs
    assert compared > len(places) // 3
    lanes = report.stages[-1]
    for number, came in enumerate(report.ptx.came_from):
        words = report.ptx.lines[number].split()
        mnemonic = next((word for word in words if word.startswith(("mma.", "wgmma.mma"))), None)
        if mnemonic is not None:
            assert mnemonic in lanes.lines[came - 1]


def test_heads_of_kernels_come_from_nothing() -> None:
    lines = [".version 8.0", ".visible .entry a(", "{", "add;", "}", "", ".visible .entry b(", "x;"]
    origins = [LineOrigin(4, "f", 9, 1), LineOrigin(8, "f", 2, 1)]
    assert [*lines_of(lines, origins)] == [0, 0, 0, 9, 9, 0, 0, 2]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "kernels"])
def test_who_asked_is_what_explain_layouts_says(name: str) -> None:
    """The same tiles, layouts and reasons; the lines are those of the stages."""
    file, target = PROGRAMS[name]
    report = report_of(name)
    entry = "softmax" if name == "softmax" else None
    text = (ROOT / file).read_text()
    told = fragir.explain_layouts(text, target=target, filename=file, entry=entry)
    plain = re.compile(r" \(\d+:\d+\)")
    end = len(told.tiles)  # those of the first function
    ours = sorted((tile.name, tile.layout, tile.asked_by) for tile in report.tiles[:end])
    theirs = sorted((t.name, t.layout, plain.sub("", t.asked_by)) for t in told.tiles)
    assert ours == theirs
    for tile in report.tiles:
        assert tile.layout in report.stages[tile.stage].lines[tile.line - 1]
        for line in tile.asked_lines:
            asked = tile.asked_by.rpartition(" of ")[2].rpartition(" by ")[2]
            assert asked in report.stages[tile.stage - 1].lines[line - 1]
    costs = sorted((c.cost, c.steps, c.total_without or 0) for c in told.conversions)
    assert costs == sorted((c.cost, c.steps, c.without or 0) for c in report.conversions)


def test_conversions_stand_at_their_lines() -> None:
    report = report_of("attention")
    assert [one.steps for one in report.conversions] == [
        "nothing",
        "8 st.128 + 8 ldmatrix.x4 + 1 bar.warp.sync",
    ]
    for one in report.conversions:
        line = report.stages[one.stage].lines[one.line - 1]
        assert f"frag.convert {one.name} " in line
        assert line.index(one.source) < line.index(one.target)
        assert one.picture is not None
        assert len([*pictures(report.pictures[one.picture].svg)]) == 2


@EVERY
def test_types_are_those_of_the_text_and_drawn_as_their_layouts(name: str) -> None:
    report = report_of(name)
    texts = "\n".join(line for stage in report.stages for line in stage.lines)
    placed = set(re.findall(r"!frag\.tile<[\dx]*[a-z]\w*, #frag\.mma<[^>]*>>", texts))
    known = {one.text: one for one in report.types}
    assert placed <= known.keys()
    for one in report.types:
        assert one.text in texts
        if one.picture is None:
            assert one.why_not
            continue
        if one.kind == "memory":
            continue
        layout = layout_from(one.resolved)
        assert layout.shape == one.shape
        (grid,) = pictures(report.pictures[one.picture].svg)
        assert grid.cells
        for at, cell in grid.cells.items():
            point = at if len(one.shape) > 1 else at[1:]
            slot = layout.holders[point][0]
            assert cell[0].rstrip("+") == slot_label(layout, slot)


def test_a_part_of_a_picture_says_how_the_rest_goes_on() -> None:
    """The rule in words gives the holders of every element from those of the part."""
    report = report_of("gemm80")
    one = next(t for t in report.types if t.kind == "tile" and t.shape == (128, 128))
    assert one.picture is not None
    shown = report.pictures[one.picture]
    assert shown.words[0] == "the first 32 x 32 of 128 x 128"
    rules = dict[tuple[str, int], dict[str, int]]()
    for words in shown.words[1:]:
        for rule in words.split("; "):
            match = re.fullmatch(r"(\d+) (rows|columns) on: (.*)", rule)
            assert match is not None
            steps = re.findall(r"(\w+) \+ (\d+)", match[3])
            rules[match[2], int(match[1])] = {n: int(x) for n, x in steps}
    layout = layout_from(one.resolved)
    for row in range(0, 128, 5):
        for col in range(0, 128, 3):
            (first,) = layout.holders[row % 32, col % 32]
            wanted = dict(zip(layout.names, first, strict=True))
            for bit in (32, 64):
                for what, at in (("rows", row), ("columns", col)):
                    for axis, step in rules[what, bit].items() if at & bit else ():
                        wanted[axis] += step
            (slot,) = layout.holders[row, col]
            assert dict(zip(layout.names, slot, strict=True)) == wanted


def test_compared_pictures_show_the_same_part() -> None:
    a = isa.lookup("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16").operands["d"].layout
    b = layout_from("lane [2:(0,32) 64:(1,0)] element [32:(0,1)]")
    assert a is not None
    shown = picture_of(conversion_drawing(a, b), 256)
    before, after = pictures(shown.svg)
    assert before.cells.keys() == after.cells.keys()
    assert shown.words == ("the first 16 x 16 of 64 x 64",)


def test_instructions_have_their_operands() -> None:
    report = report_of("gemm80")
    assert report.ptx is not None
    found = {one.mnemonic: one for one in report.instructions}
    mma = found["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]
    assert len(mma.lines) == 64
    for one in report.instructions:
        assert all(one.mnemonic in report.ptx.lines[line - 1] for line in one.lines)
    a = next(operand for operand in mma.operands if operand.operand == "a")
    assert a.picture is not None
    (grid,) = pictures(report.pictures[a.picture].svg)
    assert grid.cells[9, 3][0] == "T5:3"


def test_machine_code_comes_from_lines_of_ptx() -> None:
    report = report_of("gemm90")
    (gemm,) = report.machine
    assert report.ptx is not None
    assert gemm.name == "gemm"
    assert gemm.registers > 0
    for line in gemm.lines:
        assert 0 <= line.ptx <= len(report.ptx.lines)
        if line.text.startswith("EXIT"):
            assert report.ptx.lines[line.ptx - 1].strip() in ("ret;", "}", "exit;")
    stores = {line.ptx for line in gemm.lines if "STG" in line.text}
    assert stores
    assert all("st.global" in report.ptx.lines[number - 1] for number in stores)


A = "#frag.mma<m16n8k16.f16, a>"
FAILING = {
    "frag-place": f"""func.func @wrong(%a: memref<16x16xf16>, %c: memref<16x16xf16>) {{
  %0 = arith.constant 0 : index
  %x = frag.load %a[%0, %0] : memref<16x16xf16> -> !frag.tile<16x16xf16, {A}>
  %y = frag.convert %x assert_free : !frag.tile<16x16xf16, {A}>
       -> !frag.tile<16x16xf16, #frag.layout<"lane [16:(1,0) 2:(0,8)] element [8:(0,1)]">>
  frag.store %y, %c[%0, %0] : !frag.tile<16x16xf16,
       #frag.layout<"lane [16:(1,0) 2:(0,8)] element [8:(0,1)]">>, memref<16x16xf16>
  func.return
}}
""",
    "convert-frag-to-ptx": """func.func @wrong(%a: memref<64x64xf16>, %c: memref<64x64xf16>) {
  %0 = arith.constant 0 : index
  %x = frag.load %a[%0, %0] : memref<64x64xf16>
       -> !frag.tile<64x64xf16, #frag.mma<m16n8k16.f16, a, warps = [2, 2]>>
  frag.store %x, %c[%0, %0] :
       !frag.tile<64x64xf16, #frag.mma<m16n8k16.f16, a, warps = [2, 2]>>, memref<64x64xf16>
  func.return
}
""",
}


@pytest.mark.parametrize("doing", FAILING)
def test_a_pass_that_fails_leaves_what_came_before(doing: str) -> None:
    """The report goes as far as the program did, with the error that compiling gives, place and
    all."""
    with pytest.raises(FragirError) as compiling:
        fragir.compile(FAILING[doing], filename="wrong.mlir")
    report = explain(FAILING[doing], filename="wrong.mlir")
    assert str(report.exception) == str(compiling.value)
    assert report.error is not None
    assert report.error.line == compiling.value.line
    assert report.error.doing == doing
    names = [stage.name for stage in report.stages]
    assert names == (["parse"] if doing == "frag-place" else ["parse", "frag-place"])
    assert report.ptx is None
    assert report.html().startswith("<!DOCTYPE html>")


def test_passes_that_end_early() -> None:
    """A pass can be looked at alone: then there is no PTX, and that is no error."""
    file, target = PROGRAMS["gemm80"]
    text = (ROOT / file).read_text()
    report = explain(text, target=target, filename=file, passes="frag-tile")
    assert [stage.name for stage in report.stages] == ["parse", "frag-tile"]
    assert report.stages[1].lines == report_of("gemm80").stages[1].lines
    assert (report.ptx, report.error) == (None, None)
    assert report.no_machine == "the passes end before the lane level"
    assert any("128x128x32" in note for note in report.stages[1].notes)


def test_text_that_cannot_be_read_has_no_report() -> None:
    with pytest.raises(FragirError) as error:
        explain("func.func @f(", filename="f.mlir")
    assert (error.value.file, error.value.line) == ("f.mlir", 1)


def test_ptx_from_elsewhere() -> None:
    """Its lines, its lifted form with the lines that it comes from, its instructions."""
    report = foreign()
    text = (ROOT / "examples/hand_written.ptx").read_text()
    assert report.ptx is not None
    assert "\n".join(report.ptx.lines) == text
    (lifted,) = report.stages
    assert "\n".join(lifted.lines) == text_of(fragir.lift(text))
    for line, source in zip(lifted.lines, lifted.source, strict=True):
        opcode = re.search(r'ptx\.op "(\S+)', line)
        if opcode is not None:
            assert opcode[1] in report.ptx.lines[source - 1]
    assert [one.mnemonic for one in report.instructions] == [
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ]
    assert report.machine[0].name == "product"


def test_statements_of_several_lines() -> None:
    text = [
        ".version 8.0",
        ".visible .entry k(",
        "  .param .u64 p",
        ")",
        "{",
        "  add.u32 %a, %b, 1; // one",
        "  mma.sync",
        "      // what it multiplies",
        "      {%c0, %c1},",
        "      {%a};",
        "loop:",
        "  ret;",
    ]
    assert statements(text)[5:] == [6, 7, 8, 7, 7, 11, 12]
    report = foreign()
    assert report.ptx is not None
    for line in report.machine[0].lines:
        if "HMMA" in line.text:
            assert "mma.sync" in report.ptx.lines[line.ptx - 1]


def test_ptx_that_is_none() -> None:
    with pytest.raises(FragirError) as error:
        explain_ptx("what is this", filename="k.ptx")
    assert error.value.file == "k.ptx"
    assert error.value.line == 1


def test_a_module_without_text() -> None:
    """A program built in Python: the source is the file that its operations name, where it is."""
    file, target = PROGRAMS["softmax"]
    module = parse((ROOT / file).read_text(), file)
    before = text_of(module)
    report = explain(module, target=target, sass=False)
    assert text_of(module) == before
    assert [stage.lines for stage in report.stages] == [
        s.lines for s in report_of("softmax").stages
    ]


def test_a_program_built_in_python() -> None:
    """Its source is the file that builds it."""
    file = ROOT / "examples/gemm_tiles.py"
    kernel = runpy.run_path(str(file))["k"]
    report = explain(kernel.module, sass=False)
    assert "\n".join(report.source.lines) == file.read_text()
    assert report.ptx is not None
    lines = dict(zip(report.ptx.lines, report.ptx.source, strict=True))
    product = next(line for line in lines if "mma.sync" in line)
    assert ".mma(" in report.source.lines[lines[product] - 1]


def test_the_document_is_json() -> None:
    document = report_of("softmax").document()
    assert json.loads(json.dumps(document)) == document
    assert document["stages"][1]["counts"] == counts(report_of("softmax").stages[1].differences)
    assert document["timeline"] is None
