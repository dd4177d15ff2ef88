"""Pipelines: what programs need, what users list, how it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import fragir
from fragir import FragirError
from fragir.cli.opt import main as opt
from fragir.compilation import pipeline
from fragir.compilation.pipeline import Stage, insert_stages
from fragir.passes.stages import STAGES, Contents

EXAMPLES = Path(__file__).parents[2] / "examples"
MADE = ["frag-tile", "frag-pipeline", "frag-raster", "frag-prefetch"]  # of a frag.matmul
PLACED = ["frag-place", "convert-frag-to-ptx"]
TILED = [*MADE, *PLACED]
NEEDED = {
    "linalg_tensors": ["linalg-normalize", "frag-bufferize", "linalg-dispatch", *TILED],
    "linalg_matmul": ["linalg-normalize", "linalg-dispatch", *TILED],
    "gemm": TILED,
    "gemm_placed": PLACED,
}


def passes_run(text: str, to: pipeline.Level = "lane", target: str = "sm_80") -> list[ModulePass]:
    module = fragir.parse(text)
    return pipeline.run(pipeline.needed(module, to, target), module)


@pytest.mark.parametrize("name", NEEDED)
def test_what_a_program_needs(name: str) -> None:
    text = (EXAMPLES / f"{name}.mlir").read_text()
    assert [one.name for one in passes_run(text)] == NEEDED[name]


def test_a_program_of_lanes_needs_nothing() -> None:
    module = fragir.lower(fragir.parse((EXAMPLES / "gemm_placed.mlir").read_text()))
    assert list(pipeline.needed(module, "lane", "sm_80")) == []


def test_placed_is_where_layouts_are() -> None:
    found = passes_run((EXAMPLES / "gemm.mlir").read_text(), "placed")
    assert [one.name for one in found] == [*MADE, PLACED[0]]


@pytest.mark.parametrize(
    ("name", "target"), [("gemm_placed", "sm_80"), ("linalg_tensors", "sm_90a")]
)
def test_the_printed_pipeline_gives_the_same_ptx(
    name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = EXAMPLES / f"{name}.mlir"
    text = pipeline.text_of(passes_run(path.read_text(), target=target))
    wanted = fragir.compile(path.read_text(), target=target).ptx
    assert fragir.compile(path.read_text(), target=target, passes=text).ptx == wanted
    assert opt([str(path), "-p", text, "-t", f"ptx{{arch={target}}}"]) == 0
    assert capsys.readouterr().out == wanted


@dataclass(frozen=True)
class Nothing(ModulePass):
    """Leaves a module as it is, but for an attribute of `target`."""

    name = "nothing"
    target: str = "sm_75"
    other: int = 3

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


def test_what_may_be_listed() -> None:
    found = pipeline.passes_of(["cse,frag-place", Nothing(other=4), Nothing], "sm_90")
    text = 'cse,frag-place{target="sm_90"},nothing{other=4 target="sm_75"},nothing{target="sm_90"}'
    assert pipeline.text_of(found) == text
    own = "frag-tile{target=sm_80}"
    assert pipeline.text_of(pipeline.passes_of(own, "sm_90")) == 'frag-tile{target="sm_80"}'
    assert pipeline.passes_of("", "sm_90") == []


def test_a_kernel_of_the_builder_takes_passes() -> None:
    with fragir.kernel("copy") as k:
        a = k.memory("a", fragir.f32, (16, 8))
        k.store(k.load(a, (0, 0), shape=(16, 8)), a, (0, 0))
    assert k.compile(passes=["frag-place", "convert-frag-to-ptx"]).ptx == k.compile().ptx
    with pytest.raises(FragirError, match="run frag-place first"):
        k.compile(passes=[])


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("frag-tlie", r"there is no pass frag-tlie \(did you mean frag-tile\?\)"),
        ("frag-tile{", r"`frag-tile\{` is no pipeline, at column 11: "),
        ("frag-tile{target=}", r"is no pipeline, at column 18"),
        ("frag-tile{x=3}", r"the pass frag-tile\{x=3.*\(its options: target, allocates\)"),
        ("frag-bufferize{x}", r"\(it has no options\)"),
        ([3], "a pass is a name, its text with options, or a ModulePass, not int"),
        ([ModuleOp], "or a ModulePass, not "),
    ],
)
def test_what_may_not(listed: object, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FragirError, match=words):
        fragir.compile("func.func @f() {\n  func.return\n}", passes=listed)  # type: ignore[arg-type]
    if isinstance(listed, str):
        assert opt(["-p", listed, str(EXAMPLES / "gemm.mlir")]) == 1
        err = capsys.readouterr().err
        assert err.startswith("error: ")
        assert "fault of fragir" not in err


def test_stages_of_packages_stand_ahead_of_those_they_name() -> None:
    def never(contents: Contents) -> bool:
        return False

    others = [
        ("b", Stage("late", never)),
        ("b", Stage("second{x=3},more", never, "first")),
        ("c", Stage("first", never, "frag-place")),
        ("d", Stage("other", never, "frag-place")),
    ]
    names = [stage.name for stage in insert_stages(STAGES, others)]
    assert names[:4] == ["func-inline", "linalg-normalize", "frag-bufferize", "linalg-dispatch"]
    ours = [stage.name for stage in STAGES[2:-2]]
    assert names[2:] == [*ours, "second", "first", "other", *PLACED, "late"]
    with pytest.raises(FragirError) as e:
        insert_stages(STAGES, [*others, ("toys", Stage("toy-fuse", never, "frag-tlie"))])
    assert e.value.sentence.startswith(
        "the package toys puts its stage toy-fuse before 'frag-tlie', which is none (there are "
        "func-inline, linalg-normalize, frag-bufferize, linalg-dispatch, linalg-tile, "
    )


AFFINE = """func.func @f() {
  %0 = "test.op"() : () -> i32
  func.return
}
"""


def test_stages_are_asked_for_where_a_program_has_more_than_ours_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def outside() -> pipeline.Outside:
        asked.append("asked")
        row = Stage("cse", lambda contents: 1 // 0 > 0, "frag-place")
        return pipeline.Outside((("toys", row),), "")

    monkeypatch.setattr(pipeline, "outside", outside)
    fragir.compile((EXAMPLES / "gemm_placed.mlir").read_text())
    assert asked == []
    with pytest.raises(FragirError, match=r"unexpected ZeroDivisionError in the stage cse \(tests"):
        fragir.compile(AFFINE)
    assert asked == ["asked"]


def test_a_row_that_names_no_pass_is_told_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Stage("toy-fuse", lambda contents: True, "frag-place")
    monkeypatch.setattr(pipeline, "outside", lambda: pipeline.Outside((("toys", row),), ""))
    with pytest.raises(FragirError, match=r"^the stage toy-fuse of tests: there is no pass toy-"):
        fragir.compile(AFFINE)


SCRIPT = """
from xdsl.passes import ModulePass

class Fails(ModulePass):
    name = "fails"
    def apply(self, ctx, op):
        raise KeyError("x")
"""


def test_a_fault_in_a_script_is_told_as_the_programs() -> None:
    space = {"__name__": "__main__"}
    exec(SCRIPT, space)
    with pytest.raises(FragirError) as e:
        fragir.compile(AFFINE, passes=[space["Fails"]])  # type: ignore[list-item]
    assert e.value.sentence == (
        "unexpected KeyError in the pass fails (this program, <string>:7): x (this is a fault of "
        "this program's; --debug shows the traceback)"
    )
