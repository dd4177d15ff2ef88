"""Mistakes and faults of packages: one clear error that names the package and what it got wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.extending.installed import Result, run, write

TILEKIT = Path(__file__).with_name("tilekit")
GRAM = str(TILEKIT / "programs" / "gram.mlir")

OPS = """
from dataclasses import dataclass
import fragir.dialects.interfaces as interfaces
from fragir.dialects import frag
from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Dialect, ParametrizedAttribute
from xdsl.irdl import *
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

class Unary(IRDLOperation):
    source = operand_def(frag.TileType)
    result = result_def(frag.TileType)
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

class Lowered(Unary, interfaces.LayoutInterface, interfaces.LaneInterface):
    def same_layout(self):
        yield self.source, self.result
    def lower_to_lanes(self, lanes):
        pass

@irdl_op_definition
class NoLowering(Unary):
    name = "odd.no_lowering"

@irdl_op_definition
class NoMeaning(Lowered):
    name = "odd.no_meaning"
    def lower_to_lanes(self, lanes):
        lanes.bind(self.result, lanes.elements(self.source))

@irdl_op_definition
class Raises(Lowered):
    name = "odd.raises"
    def lower_to_lanes(self, lanes):
        return {}["a register"]

@irdl_op_definition
class BindsNothing(Lowered):
    name = "odd.binds_nothing"

@irdl_op_definition
class WrongLayout(Lowered):
    name = "odd.wrong_layout"
    def same_layout(self):
        return 1 // 0

@irdl_op_definition
class WrongMeaning(Lowered, interfaces.ReferenceInterface):
    name = "odd.wrong_meaning"
    def lower_to_lanes(self, lanes):
        lanes.bind(self.result, lanes.elements(self.source))
    def evaluate(self, run):
        raise LookupError("no such value")

@irdl_op_definition
class WrongVerifier(Unary):
    name = "odd.wrong_verifier"
    def verify_(self):
        self.source.type.nothing

@irdl_attr_definition
class WrongAttr(ParametrizedAttribute, frag.LayoutAttr):
    name = "odd.layout"
    @property
    def chunk(self):
        return 1
    def layout(self, rows, cols, products=1):
        raise RuntimeError("no layout today")

ODD = Dialect("odd", [NoLowering, NoMeaning, Raises, BindsNothing, WrongLayout, WrongMeaning,
                      WrongVerifier], [WrongAttr])

@dataclass(frozen=True)
class Fails(ModulePass):
    name = "odd-fails"
    def apply(self, ctx, op):
        raise KeyError("tile")

@dataclass(frozen=True)
class Refuses(ModulePass):
    name = "odd-refuses"
    def apply(self, ctx, op):
        raise PassFailedException("this program is too odd")

@dataclass(frozen=True)
class Breaks(ModulePass):
    name = "odd-breaks"
    def apply(self, ctx, op):
        for load in [each for each in op.walk() if isinstance(each, frag.LoadOp)]:
            load.result_types
            load.properties.pop("static_indices")
            load.results[0]._type = i32

def get(name):
    def found():
        raise OSError("disk on fire")
    return found
"""

UNIVERSE = """
from xdsl.universe import Universe
from .ops import *
UNIVERSE = Universe(
    all_dialects={"odd": lambda: ODD, "burning": get("burning"), "number": lambda: 3},
    all_passes={"odd-fails": lambda: Fails, "odd-refuses": lambda: Refuses,
                "odd-breaks": lambda: Breaks, "odd-burning": get("x"), "odd-number": lambda: 3},
)
"""

UNARY = """func.func @f(%a: memref<16x8xf32>, %c: memref<16x8xf32>) {{
  %x = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %y = {name} %x : !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %y, %c[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}}
"""
LAYOUT = "func.func @f(%x: !frag.tile<16x8xf32, #odd.layout>) {\n  func.return\n}\n"
PLAIN = UNARY.format(name="frag.cast")

THEIRS = "(this is a fault of oddkit's; --debug shows the traceback)"
# program (an operation, or all of it) and options -> what the error says; `*` is some number
MISTAKES: dict[tuple[str, ...], str] = {
    ("odd.no_lowering",): (
        "x.mlir:3:3: odd.no_lowering: odd.no_lowering has no lowering to lanes (the package oddkit "
        "must give it a LaneInterface, or a pass for it)"
    ),
    (
        "odd.raises",
    ): f"x.mlir:3:3: unexpected KeyError in odd.raises (oddkit, ops.py:*): a register {THEIRS}",
    ("odd.binds_nothing",): (
        "x.mlir:3:3: odd.binds_nothing: its lowering binds nothing to %y (a lowering ends in "
        "lanes.bind(self.result, elements))"
    ),
    ("odd.wrong_layout",): (
        "x.mlir:3:3: unexpected ZeroDivisionError in odd.wrong_layout (oddkit, ops.py:*): integer "
        f"division or modulo by zero {THEIRS}"
    ),
    ("odd.wrong_verifier",): (
        "x.mlir:3:3: unexpected AttributeError in odd.wrong_verifier (oddkit, ops.py:*): "
        f"'TileType' object has no attribute 'nothing' {THEIRS}"
    ),
    (LAYOUT,): (
        "x.mlir:1:1: unexpected RuntimeError in func.func (oddkit, ops.py:*): no layout today "
        + THEIRS
    ),
    ("frag.cast", "-p", "odd-fails"): (
        f"x.mlir: unexpected KeyError in the pass odd-fails (oddkit, ops.py:*): tile {THEIRS}"
    ),
    ("frag.cast", "-p", "odd-refuses"): "x.mlir: this program is too odd",
    ("frag.cast", "-p", "odd-breaks"): (
        "x.mlir:2:3: the pass odd-breaks of oddkit leaves a wrong program: result 'tile' at "
        "position 0 does not verify: i32 should be of base attribute frag.tile"
    ),
    ("frag.cast", "-p", "odd-burning"): (
        f"the package oddkit fails to give its pass odd-burning: OSError: disk on fire {THEIRS}"
    ),
    ("frag.cast", "-p", "odd-number"): (
        "the package oddkit gives 3 for its pass odd-number (its universe must give a subclass of "
        "ModulePass of that name)"
    ),
    ("burning.x",): (
        "x.mlir:3:3: the package oddkit fails to give its dialect burning: OSError: disk on fire "
        + THEIRS
    ),
    ("number.x",): (
        "x.mlir:3:3: the package oddkit gives 3 for its dialect number (its universe must give an "
        "xdsl.ir.Dialect of that name)"
    ),
}
RUN = {
    ("odd.wrong_meaning", "--on", "emulator"): (
        "x.mlir:3:3: unexpected LookupError in the meaning of odd.wrong_meaning (oddkit, "
        f"ops.py:*): no such value {THEIRS}"
    ),
}
OPT = {
    ("frag.cast", "-p", "odd-fails"): (
        f"x.mlir: unexpected KeyError in the pass odd-fails (oddkit, ops.py:*): tile {THEIRS}"
    ),
    ("frag.cast", "-p", "odd-breaks"): MISTAKES["frag.cast", "-p", "odd-breaks"],
    ("odd.raises", "-p", "frag-place,convert-frag-to-ptx"): MISTAKES["odd.raises",],
}
COMMANDS = [
    *((("fragir", "compile"), given, text) for given, text in MISTAKES.items()),
    *((("fragir", "run"), given, text) for given, text in RUN.items()),
    *((("fragir-opt",), given, text) for given, text in OPT.items()),
]


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    folder = tmp_path_factory.mktemp("mistakes")
    files = {"oddkit/__init__.py": "", "oddkit/ops.py": OPS, "oddkit/universe.py": UNIVERSE}
    points = {"xdsl.universe": {"oddkit": "oddkit.universe:UNIVERSE"}}
    write(folder / "site", "oddkit", files, points)
    commands: list[list[str]] = []
    for i, (command, (program, *options), _) in enumerate(COMMANDS):
        (folder / str(i)).mkdir()
        text = program if "func" in program else UNARY.format(name=program)
        (folder / str(i) / "x.mlir").write_text(text)
        commands.append(["python", f"import os; os.chdir({str(folder / str(i))!r})"])
        commands.append([*command, "x.mlir", *options])
    return run(folder / "site", commands, folder)[1::2]


@pytest.mark.parametrize(
    "index", range(len(COMMANDS)), ids=[" ".join((*c, *g))[:50] for c, g, _ in COMMANDS]
)
def test_one_line_names_package_and_place(mistakes: list[Result], index: int) -> None:
    found, text = mistakes[index], COMMANDS[index][2]
    first, *rest = found.err.splitlines()
    assert re.fullmatch(re.escape(f"error: {text}").replace(r"\*", r"\d+"), first)
    assert found.code == 1
    assert not found.out
    assert [line for line in rest if not line.startswith("  ")] == []
