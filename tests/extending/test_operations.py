"""Operations of a package of its own go through every interface; each mistake is told in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fragir.layout import Layout, Mode, transposed
from tests.extending.installed import Result, install, run

PACKAGE = Path(__file__).with_name("toys")
RIGHT = ("alone", "reversed", "row_sum", "swapped", "together", "transpose")
ON = ("--on", "emulator")
# mistake: the line it is told at, and what is told
MISTAKES = {
    "small layout": "toy.wrong gives !frag.tile<32x16xf32> the layout #frag.layout<",
    "no layout": 'toy.wrong gives !frag.tile<32x16xf32> the layout "rows", which is none',
    "refusal": "toy.wrong: no layout on sm_80 (none at all)",
    "contradiction": "%t must have two layouts: ",
    "count": "toy.wrong: %d takes 16 elements a lane of !frag.tile<32x16xf32",
    "type": "toy.wrong: %d takes elements of f32, not f64",
    "unsound": "toy.wrong: its lowering makes an unsound ptx.shuffle_xor: ",
    "twice": "toy.wrong: its lowering binds %d twice",
    "mask": "toy.wrong: lanes are exchanged by a mask of 1 to 31, not 32",
    "nothing": "toy.wrong: its lowering binds nothing to %d",
    "late": "toy.wrong: its lowering makes an unsound ptx.shuffle_xor: ",
    "fragments": "toy.wrong: %d takes fragments of vector<16xf32>, not f32",
    "shape": "toy.wrong: its meaning gives values of (16,)",
}
TWICE = """
from fragir.dialects import frag
from fragir.dialects.interfaces import LAYOUTS, LOWERINGS
from toys.others import NegatedOp
import toys.attached

for registry, cls in ((LOWERINGS, NegatedOp), (LAYOUTS, frag.MmaOp)):
    try:
        registry.attach(cls)(lambda lanes, op: None)
    except Exception as error:
        print(type(error).__name__, error)
"""


def program(name: str) -> str:
    return str(PACKAGE / "programs" / f"{name}.mlir")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("toys")
    install(PACKAGE, folder / "site")
    commands: dict[str, tuple[str, ...]] = {
        name: ("fragir", "run", program(name), *ON, "--json") for name in RIGHT
    }
    double = ("fragir", "run", program("double"), *ON, "--json")
    commands["unjudged"] = double
    commands["expected"] = (*double, "--expect", "c=toys.answers:double")
    commands["unjudged in words"] = double[:-1]
    commands["scribble"] = ("fragir", "run", program("scribble"), *ON, "--json")
    commands["alone placed"] = ("fragir", "compile", "--to", "placed", program("alone"))
    commands["double as PTX"] = ("fragir", "compile", program("double"))
    commands["transpose as PTX"] = ("fragir", "compile", program("transpose"))
    commands["placed"] = ("fragir", "compile", "--to", "placed", program("transpose"))
    for how in MISTAKES:
        path = folder / f"{how}.mlir"
        path.write_text(Path(program("wrong")).read_text().replace("HOW", how))
        commands[how] = ("fragir", "run", str(path), *ON)
    commands["twice attached"] = ("python", TWICE)
    found = run(folder / "site", list(commands.values()), folder)
    return dict(zip(commands, found, strict=True))


@pytest.mark.parametrize("name", RIGHT)
def test_right_operations_are_judged_by_their_meaning(
    results: dict[str, Result], name: str
) -> None:
    found = json.loads(results[name].out)
    assert found["result"] == "PASS"
    assert found["judged_by"] == "bound"
    assert found["bound"] >= found["max_error"]


def test_warps_share_what_they_have_through_scratch_memory(results: dict[str, Result]) -> None:
    assert json.loads(results["row_sum"].out)["max_error"] > 0


def test_layouts_follow_in_both_directions(results: dict[str, Result]) -> None:
    placed = results["placed"].out.splitlines()
    load = next(line for line in placed if "frag.load %b" in line)
    # B of m16n8k16 (PTX ISA, 9.7.14.5.8): a lane holds rows 2 (lane % 4) and so on of B, which are
    # columns of what is transposed to it
    assert "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(0,8) 2:(8,0)]" in load
    assert "shared" not in results["transpose as PTX"].out
    lines = results["alone placed"].out.splitlines()
    made = next(line for line in lines if "toy." in line)
    taken, given = (Layout.parse(text) for text in made.split('"') if "element" in text)
    assert transposed(taken).equivalent(given)
    # 16 bytes a lane on one of the two sides: in a row of 64, or in one of 16
    assert any(side.axis("element").modes[0] == Mode(4, (0, 1)) for side in (taken, given))


def test_without_a_meaning_only_an_answer_judges(results: dict[str, Result]) -> None:
    unjudged, expected = (json.loads(results[name].out) for name in ("unjudged", "expected"))
    assert (unjudged["result"], unjudged["unjudged"]) == ("UNJUDGED", 16 * 64)
    assert results["unjudged"].code != 0
    assert (expected["result"], expected["judged_by"]) == ("PASS", "expect")
    note = "double.mlir:5:3: the reference does not know toy.double: only --expect judges"
    assert results["unjudged"].err.count(note) == 1
    assert "1024 of 1024 elements may depend on toy.double; --expect" in (
        results["unjudged in words"].out
    )


def test_unknown_writes_leave_other_memory_judged(results: dict[str, Result]) -> None:
    found = json.loads(results["scribble"].out)
    assert (found["result"], found["unjudged"]) == ("UNJUDGED", 16 * 64)  # %b, not %c


def test_fragmentwise_operations_join_an_epilogue(results: dict[str, Result]) -> None:
    """Each fragment is loaded, doubled and stored before the next: not all at once."""
    text = results["double as PTX"].out
    assert text.index("st.global") < text.rindex("ld.global")


@pytest.mark.parametrize("how", MISTAKES)
def test_mistakes_name_the_operation_and_its_place(results: dict[str, Result], how: str) -> None:
    found = results[how]
    assert found.code == 1
    errors = [line for line in found.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert f"{how}.mlir:4:3: {MISTAKES[how]}" in errors[0]
    assert "toy.wrong" in errors[0]


def test_nothing_is_attached_twice(results: dict[str, Result]) -> None:
    assert results["twice attached"].out.splitlines() == [
        "FragirError toy.negated has a lowering to lanes already",
        "FragirError frag.mma has layouts already",
    ]
