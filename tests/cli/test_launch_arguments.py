"""Structs with pointers, arrays of pointers, variables, on the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir.cli.arguments import ArrayArgument, Behind, Fields, Tensor, parse
from fragir.errors import FragirError

Fragir = Callable[..., Any]

#: out[t] = a[t] * factor + b[t] of struct {a, out, factor, pad, b}
STRUCT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .align 8 .b8 s[32]) {
.reg .b64 %rd<5>; .reg .b32 %r<6>;
ld.param.u64 %rd0, [s]; ld.param.u64 %rd1, [s+8]; ld.param.u32 %r0, [s+16];
ld.param.u64 %rd2, [s+24]; mov.u32 %r1, %tid.x;
mad.wide.u32 %rd0, %r1, 4, %rd0; mad.wide.u32 %rd1, %r1, 4, %rd1;
ld.global.u32 %r2, [%rd0]; mul.lo.u32 %r2, %r2, %r0; setp.ne.u64 %p, %rd2, 0;
mad.wide.u32 %rd2, %r1, 4, %rd2; mov.u32 %r3, 0; @%p ld.global.u32 %r3, [%rd2];
add.u32 %r2, %r2, %r3; st.global.u32 [%rd1], %r2; ret;
}
""".replace(".reg .b32", ".reg .pred %p; .reg .b32")
#: Block i turns the sign of the array behind pointer i.
POINTERS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 table) {
.reg .b64 %rd<5>; .reg .b32 %r<6>;
ld.param.u64 %rd0, [table]; mov.u32 %r0, %ctaid.x; mad.wide.u32 %rd0, %r0, 8, %rd0;
ld.global.u64 %rd1, [%rd0]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd1, %r1, 4, %rd1;
ld.global.u32 %r2, [%rd1]; neg.s32 %r2, %r2; st.global.u32 [%rd1], %r2; ret;
}
"""
VARIABLES = """
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .f32 weights[4];
.global .align 4 .u32 count;
.global .align 4 .u32 seen[8] = {1, 2, 3};
.visible .entry k(.param .u64 out) {
.reg .b64 %rd<5>; .reg .b32 %r<6>; .reg .f32 %f<3>;
ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4;
mov.u64 %rd2, weights; add.u64 %rd2, %rd2, %rd1; ld.const.f32 %f0, [%rd2];
add.u64 %rd0, %rd0, %rd1; st.global.f32 [%rd0], %f0;
atom.global.add.u32 %r1, [count], 2;
mov.u64 %rd3, seen; add.u64 %rd3, %rd3, %rd1; atom.global.add.u32 %r2, [%rd3], 10; ret;
}
"""


@pytest.fixture
def files(in_folder: Path) -> Path:
    (in_folder / "s.ptx").write_text(STRUCT)
    (in_folder / "p.ptx").write_text(POINTERS)
    (in_folder / "v.ptx").write_text(VARIABLES)
    for name, start in (("a", 0), ("b", 100), ("out", 1000)):
        np.save(f"{name}.npy", np.arange(start, start + 4, dtype=np.int32))
    np.save("weights.npy", np.array([0.5, 1.5, 2.5, 3.5], np.float32))
    np.save("count.npy", np.array(40, np.uint32))
    np.save("seen.npy", np.arange(8, dtype=np.uint32))
    np.save("f.npy", np.zeros(4, np.float32))
    return in_folder


def test_struct(fragir: Fragir, files: Path) -> None:
    before = os.stat("a.npy").st_ino
    argument = "struct:0=ptr:a.npy,8=ptr:out.npy,0x10=s32:-3,24=in:b.npy"
    result = fragir("emulate", "s.ptx", "--block", "4", "--arg", argument, "--json")
    assert (result.code, json.loads(result.out)["written"]) == (0, ["out.npy"])
    assert np.load("out.npy").tolist() == [100, 98, 96, 94]
    assert os.stat("a.npy").st_ino == before  # what the kernel has not changed is not replaced


def test_struct_with_null(fragir: Fragir, files: Path) -> None:
    argument = "struct:24=null,0=ptr:a.npy,8=out:out.npy,16=u32:5"
    assert fragir("emulate", "s.ptx", "--block", "4", "--arg", argument).code == 0
    assert np.load("out.npy").tolist() == [0, 5, 10, 15]
    assert fragir("check", "s.ptx", "--block", "4", "--arg", argument).code == 0


@pytest.mark.parametrize("spelling", ["a.npy,b.npy", "in:a.npy,inout:b.npy", "ptr:a.npy,ptr:b.npy"])
def test_pointers(fragir: Fragir, files: Path, spelling: str) -> None:
    launch = ["--grid", "2", "--block", "4", "--arg", f"pointers:{spelling}"]
    assert fragir("check", "p.ptx", *launch).code == 0
    assert np.load("b.npy").tolist() == [100, 101, 102, 103]
    assert fragir("emulate", "p.ptx", *launch).code == 0
    assert np.load("a.npy").tolist() == ([0, 1, 2, 3] if "in:a" in spelling else [0, -1, -2, -3])
    assert np.load("b.npy").tolist() == [-100, -101, -102, -103]


def test_null_among_pointers(fragir: Fragir, files: Path) -> None:
    result = fragir(
        "emulate", "p.ptx", "--grid", "2", "--block", "4", "--arg", "pointers:a.npy,null"
    )
    assert (result.code, "address 0x0" in result.err) == (1, True)
    assert np.load("a.npy").tolist() == [0, 1, 2, 3]


def test_hard_links_are_one_file(fragir: Fragir, files: Path) -> None:
    """Two names of one file are one buffer, and both get the result."""
    os.link("a.npy", "same.npy")
    argument = "struct:0=inout:a.npy,8=inout:same.npy,16=s32:3"
    assert fragir("emulate", "s.ptx", "--block", "4", "--arg", argument).code == 0
    assert np.load("a.npy").tolist() == [0, 3, 6, 9]
    assert np.load("same.npy").tolist() == [0, 3, 6, 9]


def test_variables(fragir: Fragir, files: Path) -> None:
    launch = ["--block", "4", "--arg", "out:f.npy", "--variable", "weights=in:weights.npy"]
    more = ["--variable", "count=inout:count.npy", "--variable", "seen=inout:seen.npy"]
    result = fragir("emulate", "v.ptx", *launch, *more)
    assert (result.code, "note" in result.err) == (0, False)
    assert np.load("f.npy").tolist() == [0.5, 1.5, 2.5, 3.5]
    assert np.load("count.npy").tolist() == 48
    assert np.load("seen.npy").tolist() == [10, 11, 12, 13, 4, 5, 6, 7]
    assert fragir("check", "v.ptx", *launch, *more).code == 0


def test_unset_constant(fragir: Fragir, files: Path) -> None:
    """A constant that nobody sets is named; a global variable may begin with zeros."""
    for command in ("emulate", "check"):
        result = fragir(command, "v.ptx", "--block", "4", "--arg", "out:f.npy")
        assert result.code == 0
        assert "v.ptx:5:22: the constant weights has no initial value" in result.err
        assert "--variable NAME=in:FILE.npy" in result.err
        assert "count" not in result.err


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("nothing=in:a.npy", "there is no variable nothing (it has: weights, count, seen)"),
        ("weights=in:seen.npy", "the variable weights has 16 bytes, its array 32"),
        ("seen=inout:f.npy", "the variable seen and something else write this file"),
        ("count=in:none.npy", "none.npy"),
    ],
)
def test_wrong_variables(fragir: Fragir, files: Path, option: str, words: str) -> None:
    launch = ["--block", "4", "--arg", "out:f.npy", "--variable", option]
    result = fragir("emulate", "v.ptx", *launch)
    assert (result.code, words in result.err) == (1, True), result.err


@pytest.mark.parametrize("option", ["count", "count=count.npy", "count=ptr:x.npy", "=in:x.npy"])
def test_malformed_variables(fragir: Fragir, files: Path, option: str) -> None:
    assert fragir("emulate", "v.ptx", "--variable", option).code == 2


def test_parsed() -> None:
    assert parse("ptr:a.npy") == ArrayArgument("a.npy", written=True, if_changed=True)
    assert parse("struct:0=tma:t.npy,box=8x8,out,128=pointers:a.npy,null,136=bytes:00ff") == Fields(
        (
            (0, Tensor("t.npy", (8, 8), written=True)),
            (128, Behind(Fields(((0, ArrayArgument("a.npy", True, True)), (8, None))))),
            (136, b"\0\xff"),
        )
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("struct:", "is no argument"),
        ("struct:ptr:a.npy", "is no field"),
        ("struct:0=", "is no field"),
        ("struct:0=s32:1,0=s32:2", "has two fields at 0"),
        ("struct:0=struct:0=s32:1", "is a struct in a struct"),
        ("struct:0=s32:x", "is no integer"),
        ("pointers:a.npy,,b.npy", "has an empty name"),
        ("pointers:", "is no argument"),
        ("tma-pointer:a.npy", "has no box"),
    ],
)
def test_malformed(text: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        parse(text)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("struct:0=ptr:a.npy,4=s32:1", "at offset 4: the field at 0 ends at 8"),
        ("struct:0=ptr:a.npy,28=ptr:out.npy", "at offset 28: it ends at 36, the struct has 32"),
        ("pointers:a.npy", "a pointer has 8 bytes, the parameter 32"),
    ],
)
def test_fields_that_do_not_fit(fragir: Fragir, files: Path, argument: str, words: str) -> None:
    result = fragir("emulate", "s.ptx", "--block", "4", "--arg", argument)
    assert (result.code, words in result.err) == (1, True), result.err


TWO = """.version 8.0
.target sm_90
.address_size 64
.entry first(.param .u64 y) {
 .reg .b64 %y; .reg .b32 %t; mov.u32 %t, %tid.x; ld.param.u64 %y, [y]; mad.wide.u32 %y, %t, 4, %y;
 griddepcontrol.launch_dependents; st.global.u32 [%y], %t; ret;
}
.entry second(.param .u64 y, .param .u64 z) {
 .reg .b64 %y, %z; .reg .b32 %t, %v; mov.u32 %t, %tid.x;
 ld.param.u64 %y, [y]; mad.wide.u32 %y, %t, 4, %y; ld.param.u64 %z, [z]; mad.wide.u32 %z, %t, 4, %z;
 griddepcontrol.wait;
 ld.global.u32 %v, [%y]; st.global.u32 [%z], %v; ret;
}
"""


def test_a_dependent_grid(fragir: Fragir, files: Path) -> None:
    Path("two.ptx").write_text(TWO)
    Path("early.ptx").write_text(TWO.replace("griddepcontrol.wait;", ""))
    for name in "yz":
        np.save(f"{name}.npy", np.zeros(4, np.uint32))
    then = "--entry second --block 4 --arg inout:y.npy --arg out:z.npy"
    launch = ["--entry", "first", "--block", "4", "--arg", "inout:y.npy", "--then", then]
    assert fragir("check", "two.ptx", *launch).code == 0
    result = fragir("check", "early.ptx", *launch, "--json")
    (finding,) = json.loads(result.out)["findings"]
    assert (result.code, finding["kind"], finding["line"]) == (1, "race", 12)
    assert "st.global.u32 of line 6 by block (0, 0, 0)" in finding["message"]
    assert fragir("emulate", "two.ptx", *launch).code == 0
    assert np.load("z.npy").tolist() == [0, 1, 2, 3]
    for wrong in ("--grid 0", "second", "--then x", "--arg 'in:y.npy"):
        result = fragir("check", "two.ptx", *launch, "--then", wrong)
        assert (result.code, "--then" in result.err) == (2, True)
