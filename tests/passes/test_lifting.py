"""Foreign PTX through the `ptx` dialect and back: the same instructions, SASS and results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.sweeps import lifting
from fragir import emulator
from fragir.compilation import pipeline, program
from fragir.errors import FragirError
from fragir.ptx import parse, walk
from fragir.ptx.tree import Instruction
from fragir.sweeps import Plan, runner

ROOT = Path(__file__).parents[2]
#: The others are run by the sweep.
FILES = (
    "examples/hand_written.ptx",
    "tests/foreign/triton_ptx/gemm.sm_90.ptx",
    "tests/ptx/data/features_calls.ptx",
)


@pytest.mark.parametrize("name", FILES)
def test_the_same_machine_code(name: str) -> None:
    result = lifting.judge(str(ROOT / name), "")
    assert result["functions"] > 0
    assert result["same"] == result["functions"], result["differs"]


def test_the_same_instructions() -> None:
    """As many of each opcode, guarded or not; branches may be turned round. Twice is as once."""
    text = (ROOT / "tests/foreign/triton_ptx/collatz.sm_80.ptx").read_text()
    back = lifting.there_and_back(text)
    assert opcodes(back) == opcodes(text)
    assert back == lifting.there_and_back(back)


def opcodes(text: str) -> list[str]:
    found = [node for node in walk(parse(text)) if isinstance(node, Instruction)]
    left_out = re.compile("bra|ret|exit")
    return sorted(
        f"{node.guard is not None} {node.mnemonic}"
        for node in found
        if not left_out.match(node.mnemonic)
    )


def test_indirect_branches_are_refused_at_their_place() -> None:
    path = ROOT / "tests/foreign/cuda/control.sm_75.ptx"
    with pytest.raises(FragirError) as error:
        program.lift(path.read_text(), "control.ptx")
    assert error.value.file == "control.ptx"
    assert error.value.line == 729
    assert "indirect branches are not lifted" in error.value.message
    assert error.value.hint


HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
#: Ways on that meet, swap registers, and leave some unwritten; names that are there twice.
PROGRAMS = {
    "a swap in a loop": """
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b32 %r<8>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r1, 1; mov.u32 %r2, 0;
LOOP: add.s32 %r3, %r0, %r1; mov.u32 %r0, %r1; mov.u32 %r1, %r3;
  add.s32 %r2, %r2, 1; setp.lt.s32 %p0, %r2, 9; @%p0 bra LOOP;
  mov.u32 %r4, %tid.x; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r1; ret;
}""",
    "guards that keep": """
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b32 %r<8>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %r0;
  setp.lt.u32 %p0, %r0, 7; @%p0 add.u32 %r1, %r1, %r1; @!%p0 sub.u32 %r1, %r1, 3;
  setp.gt.u32 %p1, %r0, 20; @%p1 mov.u32 %r5, 5; @!%p1 mov.u32 %r5, %r1;
  mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r5;
}""",
    "scopes": """
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .v2 .b32 v;
  ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mov.u32 v.x, 3;
  { .reg .b32 %r<3>; .reg .pred p; mov.u32 %r0, 100; add.u32 v.y, %r0, v.x;
    setp.eq.u32 p, v.x, 3; @p bra DONE; mov.u32 v.y, 0; DONE: add.u32 v.y, v.y, 1; }
  { .shared .b32 s; .reg .b32 %r1; mov.u32 %r1, 4; st.shared.u32 [s], %r1; }
  bar.sync 0; add.u32 %r1, %r0, v.y;
  mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r1; ret;
}""",
    "functions": """
.func (.reg .b32 r) twice(.reg .b32 %a) {
  .reg .pred p; setp.lt.u32 p, %a, 5; @p bra SMALL; add.u32 r, %a, %a; ret; SMALL: mov.u32 r, 9;
}
.func (.param .b32 r) thrice(.param .b32 a) {
  .reg .b32 %r<3>; ld.param.b32 %r0, [a]; mul.lo.u32 %r1, %r0, 3; st.param.b32 [r], %r1; ret;
}
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<8>;
  ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; call (%r1), twice, (%r0);
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), thrice, (a);
    ld.param.b32 %r2, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; mov.u64 %rd3, thrice;
    how: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (b), %rd3, (a), how; ld.param.b32 %r2, [b]; }
  mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2; ret;
}""",
}


@pytest.mark.parametrize("passes", ["", "canonicalize,cse", "lift-structure", "lift-structure,cse"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_results(name: str, passes: str) -> None:
    text = HEAD + PROGRAMS[name]
    found: list[list[int]] = []
    for ptx in (text, lifting.there_and_back(text, passes)):
        out = np.zeros(32, np.uint32)
        emulator.run(ptx, arguments=[out], check=not passes)
        found.append(out.tolist())
    assert found[0] == found[1]
    assert len(set(found[0])) > 1


def test_random_programs() -> None:
    for found in runner.results("lifting-programs", Plan(seed=7, count=3)):
        assert (found["failed"], found["result"] and found["result"]["findings"]) == (None, [])


def test_structure() -> None:
    """A branch of two ways, and a loop within one of them."""
    text = (ROOT / "tests/foreign/triton_ptx/collatz.sm_80.ptx").read_text()
    module = program.lift(text)
    pipeline.run(pipeline.parse("lift-structure"), module)
    names = [op.name for op in module.walk()]
    assert (names.count("scf.if"), names.count("scf.while")) == (1, 1)
    assert not any(name.startswith("cf.") for name in names)
    x, steps = np.array([6, 1, 7], np.int32), np.zeros(3, np.int32)
    written = program.emit(program.parse(str(module)))
    emulator.run(written, grid=(3,), arguments=[x, steps, None, None], check=True)
    assert steps.tolist() == [8, 0, 16]


def test_dropping_what_nobody_reads() -> None:
    """Passes know from the table what may go."""
    text = (
        HEAD
        + """
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b32 %r<8>;
  ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; add.u32 %r1, %r0, 1; add.u32 %r2, %r0, 1;
  mul.lo.u32 %r3, %r0, 3; atom.global.add.u32 %r4, [%rd1], %r1; activemask.b32 %r5;
  st.global.u32 [%rd1+4], %r2; ret;
}"""
    )
    module = program.lift(text)
    pipeline.run(pipeline.parse("cse,dce"), module)
    left = program.emit(module)
    assert left.count("add.u32") == 2  # one of them is the atomic
    assert "mul.lo" not in left
    assert "activemask" in left
    assert "atom.global" in left


def test_debugging_is_left_out() -> None:
    text = HEAD.replace("sm_80", "sm_80, debug") + ".visible .entry k() {\n.loc 1 2 3\nret;\n}\n"
    text += '.file 1 "k.cu"\n.section .debug_str { .b8 0 }\n'
    back = lifting.there_and_back(text)
    assert ".target sm_80\n" in back
    assert "debug" not in back
    assert ".loc" not in back


def test_loads_see_what_was_stored() -> None:
    """The second of two loads goes, but for one behind a store or a barrier."""
    text = (
        HEAD
        + """
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b32 %r<8>;
  ld.param.u64 %rd1, [out]; ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], 5;
  ld.global.u32 %r2, [%rd1]; bar.sync 0; ld.global.u32 %r3, [%rd1];
  st.global.v2.u32 [%rd1+8], {%r2, %r3}; st.global.u32 [%rd1+4], %r1; ret;
}"""
    )
    assert lifting.there_and_back(text, "cse,dce").count("ld.global") == 3


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("add.u32 %r1, %r2, 1;", "%r1 is not declared"),
        (".reg .b32 %r<3>; bra NOWHERE;", "the label NOWHERE is not declared"),
        (".reg .b32 %r<3>; bra %r1, %r2;", "bra takes one label"),
        (".reg .b32 %r<3>; @%r4 add.u32 %r1, %r2, 1;", "the register %r4 is not declared"),
        (".reg .b32 %r<3>; add.u32 %r1, %r2;", "add.u32 takes 3 operands, not 2"),
        (".reg .pred %p<3>; add.u32 %p1, %p2, 1;", "a .pred register cannot"),
        (".reg .b32 %r<3>; brx.idx %r1, ways;", "indirect branches are not lifted"),
        ("T: bar.sync 0; T: ret;", "T is declared twice"),
        (".reg .b32 a; .shared .b32 a;", "a is declared twice"),
        (".reg .b32 %r<3>; @%r1 exit;", "%r1 is no predicate"),
        (".reg .b32 %r<3>; @!%r1 bra L; bar.sync 0; L: ret;", "%r1 is no predicate"),
    ],
)
def test_what_is_refused(body: str, words: str) -> None:
    with pytest.raises(FragirError, match=re.escape(words)):
        program.lift(f"{HEAD}.visible .entry k() {{\n{body}\n}}")


BODY = """.version 8.0
.target sm_80
.address_size 64
OUTSIDE
.visible .entry k() {
INSIDE
ret;
}
"""


@pytest.mark.parametrize("name", ["$str", "$str$1", "s$0", "%s$2", "$1a", "_$1", "$1$2", "$L__1"])
def test_names_with_dollars_are_no_places(name: str) -> None:
    inside = (
        f".reg .b64 %a; .reg .b32 %b; .shared .u32 {name}[4]; mov.u64 %a, {name};\n"
        f"st.shared.u32 [{name}+4], %b; ld.shared.u32 %b, [{name}]; st.shared.u32 [%a], %b;"
    )
    text = BODY.replace("OUTSIDE", "").replace("INSIDE", inside)
    lifted = lifting.there_and_back(text)
    for statement in (f", {name};", f"[{name}+4], ", f", [{name}];"):
        assert statement in lifted


def test_a_variable_called_like_a_place_is_refused() -> None:
    text = BODY.replace("OUTSIDE", ".global .u32 $1;").replace("INSIDE", "")
    with pytest.raises(FragirError, match=r"\$1 stands for a value in lane code"):
        program.lift(text)


def test_a_register_and_a_range_may_share_a_name() -> None:
    inside = (
        ".reg .b32 a; .reg .b16 a<2>; mov.u32 a, 5; mov.b32 {a0, a1}, a; st.shared.u16 [s], a1;"
    )
    text = BODY.replace("OUTSIDE", ".shared .u16 s;")
    assert "mov.b32 {%h0, %h1}, %r0;" in lifting.there_and_back(text.replace("INSIDE", inside))
    for twice in (".reg .b32 a; .reg .b16 a;", ".reg .b32 a<2>; .reg .b16 a<3>;"):
        with pytest.raises(FragirError, match="declared twice"):
            program.lift(text.replace("INSIDE", twice))
