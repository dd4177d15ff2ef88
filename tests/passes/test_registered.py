"""Rows that a user registers count at once, whatever was compiled before."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from fragir import compile as compile_program
from fragir import isa
from fragir.draw.text import view_text
from fragir.errors import FragirError
from fragir.isa import Instruction, dense
from fragir.isa.dense import DenseRule
from fragir.isa.emit import emit_ptx
from fragir.isa.fragments import dense_a, dense_b
from fragir.isa.products import DENSE, shapes
from fragir.isa.query import View
from fragir.isa.selection import selected_layout
from fragir.isa.target_rows import at_least
from fragir.isa.versions import requirement
from fragir.layout import Layout
from fragir.validation.questions import instructions

K16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
K32 = K16.replace("k16", "k32")

PROGRAM = """
func.func @one(%a: memref<16x{k}xf16>, %b: memref<{k}x8xf16>, %c: memref<16x8xf32>)
    attributes {{frag.warps = array<i64: 1, 1>}} {{
  %0 = arith.constant 0 : index
  %x = frag.load %a[%0, %0] : memref<16x{k}xf16> -> !frag.tile<16x{k}xf16>
  %y = frag.load %b[%0, %0] : memref<{k}x8xf16> -> !frag.tile<{k}x8xf16>
  %z = frag.load %c[%0, %0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %d = frag.mma %x, %y, %z : !frag.tile<16x{k}xf16>, !frag.tile<{k}x8xf16>, !frag.tile<16x8xf32>
       -> !frag.tile<16x8xf32>
  frag.store %d, %c[%0, %0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}}
"""


@contextmanager
def registered(instruction: Instruction) -> Generator[None]:
    isa.register(instruction)
    try:
        yield
    finally:
        isa.unregister(instruction.mnemonic)


def statements(ptx: str, word: str) -> list[str]:
    return [line.strip() for line in ptx.splitlines() if word in line]


def ptx(k: int = 16, target: str = "sm_80") -> str:
    return compile_program(PROGRAM.format(k=k), target=target).ptx


def products(ptx: str) -> list[str]:
    """The shapes of its products, in order."""
    return [line.split(".")[3] for line in statements(ptx, "mma.sync")]


def test_a_shape_removed_and_added_again_from_outside() -> None:
    """The compiler takes the next smaller shape; what is added from outside is drawn, emitted and
    chosen as the table's own was."""
    before = ptx()
    assert products(before) == ["m16n8k16"]
    rule = DenseRule(("m16n8k16",), (("f32", "f16", "f16", "f32"),), "7.0", at_least("sm_80"))
    (own,) = dense.instructions(rule)
    drawn, emitted = view_text(View.of(isa.lookup(K16), "a")), emit_ptx(isa.lookup(K16), "sm_80")
    with isa.using(isa.current().without(K16)):
        assert products(ptx()) == ["m16n8k8", "m16n8k8"]
        with pytest.raises(isa.UnknownInstruction, match="m16n8k16") as refused:
            isa.lookup(K16)
        assert refused.value.nearest[0] != K16
        assert K16 not in {each.mnemonic for each in isa.instructions(target="sm_80")}
        isa.register(own)
        assert ptx() == before
        assert view_text(View.of(isa.lookup(K16), "a")) == drawn
        assert emit_ptx(isa.lookup(K16), "sm_80") == emitted
        isa.remove(K16)
        assert products(ptx()) == ["m16n8k8", "m16n8k8"]
        isa.unregister(K16)
        assert ptx() == before
    assert ptx() == before


def test_a_table_of_before_has_its_answers_still() -> None:
    """A table is a value: what it answered counts again where it is in force again."""
    before = isa.current()
    first = shapes(DENSE, "f16", False)
    smaller = before.without(K16).without(K16.replace("f32", "f16"))
    with isa.using(smaller):
        assert shapes(DENSE, "f16", False) == ("m16n8k8",)
    assert isa.current() is before
    assert shapes(DENSE, "f16", False) is first == ("m16n8k16", "m16n8k8")
    assert smaller.resolve(isa.lookup(K16).form) is None
    with pytest.raises(FragirError, match="a table is a Table"), isa.using(cast(isa.Table, {})):
        pass


def test_an_overridden_layout_counts_after_a_compile_and_goes_again() -> None:
    """A in registers 1 and 2 exchanged: rows g + 8 and columns 8 on change places."""
    row = isa.lookup(K16)
    a = row.operand("a")
    swapped = str(a.layout).replace("2:(8,0) 2:(0,8)", "2:(0,8) 2:(8,0)")
    before = ptx()
    # of a row-major 16 x 16 of f16: 8 rows are 256 bytes, 8 columns 16
    offsets = ["[%rd1];", "[%rd1+256];", "[%rd1+16];", "[%rd1+272];"]
    assert [line.split()[-1] for line in statements(before, "ld.global.b32")[:4]] == offsets
    with registered(row.with_operands(replace(a, layout=Layout.parse(swapped)))):
        found = [line.split()[-1] for line in statements(ptx(), "ld.global.b32")[:4]]
        assert found == [offsets[i] for i in (0, 2, 1, 3)]
    assert ptx() == before


def test_an_added_instruction_is_chosen() -> None:
    """The larger K is preferred; without it the same program takes two of half the size."""
    assert len(statements(ptx(32), K16)) == 2
    row = isa.lookup(K16)
    a = replace(row.operand("a"), layout=dense_a(16, 32, 2), shape=(16, 32))
    b = replace(row.operand("b"), layout=dense_b(32, 2), shape=(32, 8))
    held = [
        replace(each, registers=replace(each.registers, count=2 * each.registers.count))
        for each in (a, b)
    ]
    new = replace(
        row,
        mnemonic=K32,
        shape=(16, 8, 32),
        form=row.form._replace(shape="m16n8k32"),
        targets={"sm_90": "8.0"},
    ).with_operands(*held)
    with registered(new):
        assert len(statements(ptx(32, "sm_90"), K32)) == 1
        assert len(statements(ptx(32), K16)) == 2  # sm_80 does not have it
        assert len(statements(ptx(16, "sm_90"), K16)) == 1
    assert len(statements(ptx(32, "sm_90"), K16)) == 2


def test_an_added_target_counts() -> None:
    """sm_75 has m16n8k8 only; on it the two products of half the size are what is chosen."""
    row = isa.lookup(K16)
    assert not statements(ptx(16, "sm_75"), K16)
    assert requirement(K16).lowest_target == "sm_80"
    with registered(replace(row, targets={"sm_75": "6.5", **row.targets})):
        assert len(statements(ptx(16, "sm_75"), K16)) == 1
        assert requirement(K16).lowest_target == "sm_75"
    assert not statements(ptx(16, "sm_75"), K16)
    assert requirement(K16).lowest_target == "sm_80"


def test_any_spelling_is_the_same_row() -> None:
    """ptxas takes the qualifiers in nearly any order."""
    row = isa.lookup(K16)
    other = "mma.sync.aligned.row.col.m16n8k16.f32.f16.f16.f32"
    with registered(replace(row, mnemonic=other, note="mine")):
        assert isa.lookup(K16).note == isa.lookup(other).note == "mine"
        assert isa.find("mma", shape="m16n8k16", a="f16", d="f32").note == "mine"
    assert not isa.lookup(other).note


def test_selected_layouts_are_those_of_the_row() -> None:
    """Selectors choose lanes in the registered row's layout, in a row of one's own too."""
    name = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    row = isa.lookup(name)
    usual = selected_layout(row, "e", selector=3)
    e = row.operand("e")
    assert e.layout is not None
    lane, element = e.layout.axes
    swapped = replace(e.layout, axes=(lane, replace(element, modes=element.modes[::-1])))
    with registered(row.with_operands(replace(e, layout=swapped))):
        found = selected_layout(isa.lookup(name), "e", selector=3)
        assert found.axes == swapped.axes
        assert found.where == usual.where
    added = replace(row, mnemonic=name.replace("m16n8k16", "m16n8k48"))
    added = replace(added, form=row.form._replace(shape="m16n8k48"))
    assert selected_layout(added, "e", selector=3) == usual


def test_validation_asks_the_table_of_the_day() -> None:
    assert K32 not in instructions("sm_80")
    with registered(replace(isa.lookup(K16), mnemonic=K32)):
        assert K32 in instructions("sm_80")


#: What answers from the table.
ASKING = {
    *("find", "lookup", "resolve", "instructions", "mma", "wgmma", "fragment_instruction"),
    *("requirement", "lowest_version", "known_instruction", "choose", "current", "shapes"),
    *("multiplied", "accumulators", "multiplies", "blocks", "wgmma_k", "has_wgmma", "has", "known"),
}


def cached_for_ever(source: str) -> Iterator[tuple[str, set[str]]]:
    """Functions with a cache that nothing drops, and the names that they call."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef):
            continue
        words = {
            part.id if isinstance(part, ast.Name) else part.attr
            for decorator in node.decorator_list
            for part in ast.walk(decorator)
            if isinstance(part, ast.Name | ast.Attribute)
        }
        if words & {"cache", "lru_cache"}:
            calls = (c.func for c in ast.walk(node) if isinstance(c, ast.Call))
            names = {
                f.id if isinstance(f, ast.Name) else f.attr
                for f in calls
                if isinstance(f, ast.Name | ast.Attribute)
            }
            yield node.name, names


def test_no_other_cache_asks_the_table() -> None:
    """What follows from the table is kept by the table (`per_table`), and goes with it."""
    root = Path(isa.__file__).parents[1]
    files = [f for folder in ("isa", "dialects", "passes") for f in root.glob(f"{folder}/**/*.py")]
    assert len(files) > 60
    found = {
        (file.relative_to(root).as_posix(), name): names & ASKING
        for file in files
        for name, names in cached_for_ever(file.read_text())
    }
    assert len(found) > 20
    assert not {place: names for place, names in found.items() if names}


#: Marks what runs within a cache of functools, and a table that says who asks it meanwhile.
WATCHED = """
import functools, sys, traceback

within, asked, kept = 0, [], functools.lru_cache

def lru_cache(maxsize=128, typed=False):
    if callable(maxsize):
        return lru_cache(128)(maxsize)
    def decorate(function):
        if not function.__module__.startswith(("fragir", "__main__")):
            return kept(maxsize, typed)(function)
        @functools.wraps(function)
        def marked(*arguments, **options):
            global within
            within += 1
            try:
                return function(*arguments, **options)
            finally:
                within -= 1
        return kept(maxsize, typed)(marked)
    return decorate

functools.lru_cache, functools.cache = lru_cache, lambda function: lru_cache(None)(function)

import fragir
from fragir import isa
from fragir.draw.text import view_text
from fragir.isa import registry
from fragir.isa.emit import emit_ptx
from fragir.isa.query import View

class Watched(isa.Table):
    __slots__ = ()
    def __getattribute__(self, name):
        if within:
            asked.append([each.name for each in traceback.extract_stack()])
        return super().__getattribute__(name)

registry.use(Watched())
folder, *programs, name = sys.argv[1:]
for program in programs:
    file, entry, target = program.split()
    text = open(f"{folder}/{file}.mlir").read()
    fragir.compile(text, target=target, entry=None if entry == "-" else entry)
mma = isa.lookup(name)
view_text(View.of(mma, "a"))
emit_ptx(mma, "sm_80")
assert not asked, asked[0]

@functools.cache
def planted():
    return isa.lookup(name)

planted()
assert asked and "planted" in asked[0]
"""


def test_no_lasting_cache_asks_the_table() -> None:
    """Whatever it is called: nothing under functools' caches asks the table in force."""
    examples = Path(isa.__file__).parents[2] / "examples"
    programs = (
        *("gemm - sm_75", "gemm - sm_80", "gemm - sm_90a", "linalg_tensors - sm_80"),
        *(
            "mma_sparse f16 sm_80",
            "mma_block_scaled nvf4 sm_120a",
            "wgmma_sparse - sm_90a",
            "stmatrix - sm_90",
        ),
    )
    command = [sys.executable, "-c", WATCHED, str(examples), *programs, K16]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
