"""Declarations that there cannot be are errors at their place, of ptxas too."""

from __future__ import annotations

import pytest

from fragir.emulator import EmulationError, run
from fragir.emulator.machine.memory import DeviceMemory
from fragir.errors import FragirError
from fragir.toolchain.ptxas import assemble

PTX = """
.version 8.6
.target sm_90a
.address_size 64
MODULE
.visible .entry k() {
.reg .b32 %r<4>;
BODY
ret; }
"""


@pytest.mark.parametrize(
    ("module", "body", "words"),
    [
        (".global .u32 x; .global .u32 x;", "", "x is declared twice"),
        (".global .u32 x; .shared .f32 x;", "", "x is declared twice"),
        (".func f () { ret; } .func f () { ret; }", "", "f is defined twice"),
        (".global .align 3 .b8 x[4];", "", "an alignment is a power of two, not 3"),
        (".global .align 0 .b8 x[4];", "", "an alignment is a power of two, not 0"),
        (".global .align 1099511627776 .b8 x[4];", "", "an alignment is a power of two"),
        (".global .v4 .u64 x[2];", "", ".v4 .u64 has more than 128 bits"),
        (".global .pred x;", "", "a .pred is a register"),
        (".param .u32 x;", "", "no variables in .param outside"),
        (".reg .u32 x;", "", "no variables in .reg outside"),
        (".local .u32 x;", "", "no variables in .local outside"),
        (".shared .u32 x = 5;", "", "x has an initial value"),
        (".shared .u32 x[];", "", "x has no size"),
        (".global .u32 x[0];", "", "x has no size"),
        ("", ".reg .b32 q, q;", "q is declared twice"),
        ("", ".reg .b32 %r<4>;", "%r is declared twice"),
        ("", ".local .b8 l[4]; .local .b8 l[4];", "l is declared twice"),
        ("", "L: L: ret;", "the label L stands here twice"),
        ("", "L: ret; L: .branchtargets L;", "the label L stands here twice"),
    ],
)
def test_refused(module: str, body: str, words: str) -> None:
    ptx = PTX.replace("MODULE", module).replace("BODY", body)
    with pytest.raises(EmulationError) as caught:
        run(ptx, "k")
    assert words in caught.value.message
    assert caught.value.line == (5 if module else 8)
    with pytest.raises(FragirError, match="ptxas refuses"):
        assemble(ptx, "sm_90a")


@pytest.mark.parametrize(
    ("module", "body"),
    [
        (".extern .global .u32 x; .visible .global .u32 x;", ""),
        (".extern .shared .align 16 .b8 x[];", "mov.u32 %r1, x;"),
        (".global .u32 x[] = {1, 2};", "ld.global.u32 %r1, [x];"),
        (".func f (); .func f () { ret; }", "call f;"),
        ("", "{ .reg .b32 q; } { .reg .b32 q; }"),
        ("", ".reg .b32 r; .reg .v4 .b32 v; .reg .b128 w;"),
    ],
)
def test_taken(module: str, body: str) -> None:
    ptx = PTX.replace("MODULE", module).replace("BODY", body)
    run(ptx, "k")
    assemble(ptx, "sm_90a")


def test_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that a machine may have, but not this one."""

    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(DeviceMemory, "commit", refuse)
    ptx = PTX.replace("MODULE", ".global .u8 x[1099511627776];").replace("BODY", "")
    with pytest.raises(EmulationError, match=r"no memory for this launch: 10995116277.. bytes"):
        run(ptx, "k")


def test_parts_of_vectors_have_two_names() -> None:
    """x, y, z, w or r, g, b, a, as destination and as source (PTX ISA 9.2, section 5.4.2)."""
    body = """.reg .v4 .b32 v; .reg .b64 a;
        mov.b32 v.r, 1; mov.b32 v.g, 2; mov.b32 v.z, 3; mov.b32 v.a, 4;
        mov.u64 a, x; st.global.v4.b32 [a], {v.x, v.y, v.b, v.w};
        ld.global.u32 %r1, [a+12]; setp.ne.u32 p, %r1, 4; @p trap;"""
    ptx = PTX.replace("MODULE", ".global .align 16 .u32 x[4];").replace(
        "BODY", ".reg .pred p;" + body
    )
    run(ptx, "k")
    assemble(ptx, "sm_90a")
