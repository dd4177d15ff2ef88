"""Packages that cannot be loaded, or claim what others have, matter to those only who need them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extending.installed import Result, install, run, write

TILEKIT = Path(__file__).with_name("tilekit")
GRAM = str(TILEKIT / "programs" / "gram.mlir")
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "gemm_placed.mlir")
POINTS = {"xdsl.universe": {"it": "{name}.universe:UNIVERSE"}}

UNIVERSE = """
from xdsl.ir import Dialect
from xdsl.universe import Universe
UNIVERSE = Universe(all_dialects={{name: lambda name=name: Dialect(name) for name in {names}}})
"""


COUNTS = """
from dataclasses import dataclass
from xdsl.universe import Universe
from xdsl.utils.target import Target

@dataclass(frozen=True)
class Count(Target):
    name = "count"
    word: str = "operations"
    def emit(self, ctx, module, output):
        output.write(f"{sum(1 for _ in module.walk())} {self.word}\\n")

UNIVERSE = Universe(all_targets={"count": lambda: Count, "uncountable": lambda: int})
"""
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{{
    {word}.b32 0;
    ret;
}}
"""


WINDOW = f"""
import importlib.util
if importlib.util.find_spec("textual"):
    from fragir.cli.gui import build_app
    build_app({GRAM!r}, "kit-to-frag")
"""
CLONE = """
from fragir.compiler import context
print(context().clone().get_optional_attr("kit.columns").name, context().get_dialect("kit").name)
"""


def package(site: Path, name: str, universe: str) -> None:
    files = {f"{name}/__init__.py": "", f"{name}/universe.py": universe}
    write(site, name, files, {"xdsl.universe": {"it": f"{name}.universe:UNIVERSE"}})


def program(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(f"func.func @f() {{\n  {text}\n  func.return\n}}\n")
    return name


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("loading")
    site = folder / "site"
    install(TILEKIT, site)
    package(site, "brokenkit", "import nothing_of_this_name")
    package(site, "textkit", "UNIVERSE = 'all'")
    package(site, "greedykit", UNIVERSE.format(names=("greedy", "linalg")))
    package(site, "firstkit", UNIVERSE.format(names=("twin",)))
    package(site, "secondkit", UNIVERSE.format(names=("twin", "own")))
    package(site, "countkit", COUNTS)
    points = {
        "fragir.opcodes": {"burn": "hotkit:nothing", "freeze": "hotkit:FREEZE"},
        "fragir.stages": {"burn": "hotkit:nothing", "freeze": "hotkit:FREEZE"},
    }
    write(site, "hotkit", {"hotkit/__init__.py": "FREEZE = 0"}, points)
    for word in ("burn", "freeze", "melt"):
        (folder / f"{word}.ptx").write_text(PTX.format(word=word))
    names = {
        "missing": program(folder, "missing.mlir", "missing.op"),
        "attribute": program(folder, "attribute.mlir", "frag.barrier {x = #missing.x}"),
        "greedy": program(folder, "greedy.mlir", "greedy.op"),
        "twin": program(folder, "twin.mlir", "twin.op"),
        "own": program(folder, "own.mlir", "own.op"),
        "known": program(folder, "known.mlir", "frag.nothing"),
        "left": program(folder, "left.mlir", "affine.for %i = 0 to 4 {\n  }"),
    }
    loaded = (
        "import sys; print('tilekit.universe' in sys.modules, 'importlib.metadata' in sys.modules)"
    )
    commands = {
        "plain": ("fragir", "compile", EXAMPLE),
        "plain opt": ("fragir-opt", EXAMPLE, "-p", "cse"),
        "before": ("python", loaded),
        "known": ("fragir", "compile", names["known"]),
        "known opt": ("fragir-opt", names["known"]),
        "still": ("python", loaded),
        "tilekit": ("fragir", "compile", GRAM),
        "after": ("python", loaded),
        **{name: ("fragir", "compile", file) for name, file in names.items() if name != "known"},
        **{word: ("fragir", "emulate", f"{word}.ptx") for word in ("burn", "freeze", "melt")},
        "count": ("fragir-opt", EXAMPLE, "-t", "count{word=things}"),
        "uncountable": ("fragir-opt", EXAMPLE, "--target=uncountable"),
        "window": ("python", WINDOW),
        "clone": ("python", CLONE),
        "pass": ("fragir-opt", GRAM, "-p", "missing-pass"),
    }
    return dict(zip(commands, run(site, list(commands.values()), folder), strict=True))


def test_packages_are_not_looked_for_in_vain(results: dict[str, Result]) -> None:
    for name in ("plain", "plain opt"):
        assert (results[name].code, results[name].err) == (0, "")
    assert results["before"].out.split()[0] == "False"
    for name in ("known", "known opt"):
        assert results[name].err.splitlines()[0] == (
            "error: known.mlir:2:3: there is no operation frag.nothing here"
        )
    assert results["still"].out == results["before"].out
    assert results["after"].out.split()[0] == "True"


def test_broken_packages_do_not_matter_to_others(results: dict[str, Result]) -> None:
    assert (results["tilekit"].code, results["tilekit"].err) == (0, "")


@pytest.mark.parametrize("name", ["missing", "attribute", "pass"])
def test_broken_packages_are_named_where_something_is_missing(
    results: dict[str, Result], name: str
) -> None:
    what = {"attribute": "'missing.x' is not registered", "pass": "there is no pass missing-pass"}
    error = results[name].err.splitlines()[0]
    assert what.get(name, "there is no operation missing.op here") in error
    assert (
        "; the package brokenkit, which may have it, cannot be used: ModuleNotFoundError: No "
        "module named 'nothing_of_this_name'; the package textkit, which may have it, cannot be "
        "used: textkit.universe:UNIVERSE is a str, not an xdsl.universe.Universe"
    ) in error


def test_names_that_are_taken(results: dict[str, Result]) -> None:
    assert results["greedy"].err.splitlines()[0] == (
        "error: greedy.mlir:2:3: the package greedykit has a dialect linalg, which is the name of "
        "one of xDSL's (it must give it another name)"
    )
    assert results["twin"].err.splitlines()[0] == (
        "error: twin.mlir:2:3: the packages firstkit and secondkit both have a dialect twin "
        "(uninstall one of them)"
    )
    assert "there is no operation own.op" in results["own"].err


def test_opcodes_that_a_package_does_not_give(results: dict[str, Result]) -> None:
    assert results["burn"].err.splitlines()[0] == (
        "error: the package hotkit cannot give its opcode burn: AttributeError: module 'hotkit' "
        "has no attribute 'nothing' (repair or uninstall hotkit)"
    )
    assert "the package hotkit gives int for its opcode freeze" in results["freeze"].err
    assert "the instruction melt.b32 is not known" in results["melt"].err


def test_targets_for_output(results: dict[str, Result]) -> None:
    number, word = results["count"].out.split()
    assert (int(number) > 5, word) == (True, "things")
    assert "the package countkit gives " in results["uncountable"].err
    assert "its universe must give a subclass of Target of that name" in results["uncountable"].err


def test_contexts_and_the_window(results: dict[str, Result]) -> None:
    assert results["clone"].out == "kit.columns kit\n"
    assert results["window"].code == 0


def test_stages_that_cannot_be_used_are_named_where_an_operation_is_left(
    results: dict[str, Result],
) -> None:
    error = results["left"].err.splitlines()[0]
    assert error.startswith("error: left.mlir:2:3: affine.for: affine.for has no lowering to lanes")
    assert (
        "; the stage burn of the package hotkit cannot be used: AttributeError: module 'hotkit' "
        "has no attribute 'nothing'; the stage freeze of the package hotkit cannot be used: "
        "hotkit:FREEZE is a int, not a fragir.compilation.pipeline.Stage"
    ) in error
