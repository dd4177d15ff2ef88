"""Addresses that stay within their variable are silent, however they are computed."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import Finding, run
from fragir.emulator.checks.extents import ANYTHING, NUMBER, Origin, Origins
from fragir.emulator.program.program import Program
from fragir.ptx import tree
from fragir.ptx.opcodes.table import OPCODES
from fragir.ptx.reader import parse

HEAD = """
.version 8.6
.target sm_90a
.address_size 64
.const .align 16 .b8 few[16]; .const .align 16 .b8 many[8192];
.global .align 16 .b8 table[256]; .global .align 16 .b8 other[256];
.extern .shared .align 16 .b8 dynamic[];
.func (.param .b32 out) add_one(.param .b64 at)
{ .reg .b64 %d; .reg .b32 %v; ld.param.b64 %d, [at]; ld.b32 %v, [%d]; add.u32 %v, %v, 1;
  st.param.b32 [out], %v; ret; }
.visible .entry k(.param .u64 data, .param .u32 n)
{
    .shared .align 128 .b8 first[128]; .shared .align 128 .b8 second[128];
    .local .align 16 .b8 stack[16]; .local .align 16 .b8 more[16];
    .reg .b32 %r<20>; .reg .b64 %rd<12>; .reg .pred %p<6>; .reg .b128 %q<2>;
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, first; mov.u32 %r4, second;
    add.u32 %r5, %r3, %r2; add.u32 %r6, %r4, %r2;
    st.shared.u32 [%r5], %r1; st.shared.u32 [%r6], %r1; bar.warp.sync 0xffffffff;
"""


def findings(body: str, shared: int = 0) -> list[Finding]:
    text = HEAD + body + "    ret;\n}\n"
    data = np.arange(64, dtype=np.uint32)
    report = run(text, block=(32,), arguments=[data, 2], shared=shared, check=True)
    return report.findings


SILENT = {
    "two buffers change places": """
    mov.u32 %r7, 4; mov.u32 %r8, %r5; mov.u32 %r9, %r6;
AGAIN: ld.shared.u32 %r10, [%r8]; mov.u32 %r11, %r8; mov.u32 %r8, %r9; mov.u32 %r9, %r11;
    sub.u32 %r7, %r7, 1; setp.ne.u32 %p1, %r7, 0; @%p1 bra AGAIN;""",
    "a buffer is chosen": """
    setp.lt.u32 %p1, %r1, 16; selp.b32 %r8, %r5, %r6, %p1; ld.shared.u32 %r9, [%r8];""",
    "swizzled": """
    shr.u32 %r7, %r5, 3; and.b32 %r8, %r7, 16; xor.b32 %r9, %r5, %r8; ld.shared.u32 %r10, [%r9];""",
    "aligned": "and.b32 %r8, %r5, -16; ld.shared.v4.u32 {%r9, %r10, %r11, %r12}, [%r8];",
    "the distance of two variables": """
    sub.u32 %r7, %r4, %r3; add.u32 %r8, %r5, %r7; ld.shared.u32 %r9, [%r8];""",
    "through memory": """
    st.local.b32 [stack], %r5; st.local.b32 [stack+4], %r6; ld.local.b32 %r7, [stack+4];
    ld.shared.u32 %r8, [%r7];""",
    "through a register that has been loaded": """
    mov.u32 %r8, %r5; setp.lt.u32 %p1, %r1, 16; st.local.b32 [stack], %r6;
    @%p1 ld.local.b32 %r8, [stack]; ld.shared.u32 %r9, [%r8];""",
    "out and back": """
    add.u32 %r7, %r5, 4096; sub.u32 %r8, %r7, 4096; ld.shared.u32 %r9, [%r8];""",
    "generic": """
    cvta.shared.u64 %rd1, 0; cvt.u64.u32 %rd2, %r5; cvta.shared.u64 %rd3, %rd2; ld.u32 %r9, [%rd3];
    cvta.to.shared.u64 %rd4, %rd3; cvt.u32.u64 %r10, %rd4; ld.shared.u32 %r11, [%r10];""",
    "in halves": """
    cvt.u64.u32 %rd2, %r5; mov.b64 {%r7, %r8}, %rd2; mov.b64 %rd3, {%r7, %r8};
    ld.shared.u32 %r9, [%rd3];""",
    "in a function": """
    cvt.u64.u32 %rd2, %r6; cvta.shared.u64 %rd3, %rd2;
    { .param .b64 a; .param .b32 b; st.param.b64 [a], %rd3; call (b), add_one, (a);
      ld.param.b32 %r9, [b]; }""",
    "dynamic": """
    mov.u32 %r7, dynamic; add.u32 %r7, %r7, %r2; st.shared.u32 [%r7+896], %r1;
    mov.u32 %r8, dynamic; add.u32 %r8, %r8, %r2; ld.shared.u32 %r9, [%r8+896];""",
    "constants": """
    mov.u64 %rd1, many; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2;
    ld.const.v4.u32 {%r7, %r8, %r9, %r10}, [%rd1]; ld.const.u32 %r11, [few+12];""",
    "parameters": "ld.param.v2.u32 {%r7, %r8}, [data]; ld.param.u32 %r9, [n];",
    "global": """
    mov.u64 %rd1, table; mul.wide.u32 %rd2, %r1, 8; add.u64 %rd3, %rd1, %rd2;
    cvta.global.u64 %rd4, %rd3; ld.u32 %r9, [%rd4]; ld.global.u32 %r10, [%rd3+4];""",
    "an index that is loaded": """
    ld.param.u64 %rd1, [data]; ld.global.u32 %r7, [%rd1+12]; shl.b32 %r7, %r7, 2;
    add.u32 %r8, %r3, %r7; ld.shared.u32 %r9, [%r8];""",
}


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT.keys())
def test_what_stays_inside_is_silent(body: str) -> None:
    assert findings(body, shared=1024) == []


BEYOND = {
    "a constant": """
    mov.u64 %rd1, few; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
    add.u64 %rd1, %rd1, 6144; ld.const.u32 %r9, [%rd1]; ld.const.u32 %r10, [many];""",
    "a constant by its generic address": """
    mov.u64 %rd1, few; cvta.const.u64 %rd1, %rd1; ld.u32 %r9, [%rd1+6144];
    ld.const.u32 %r10, [many];""",
    "a parameter": "ld.param.u32 %r9, [data+8];",
    "an index that is loaded": """
    ld.param.u64 %rd1, [data]; ld.global.u32 %r7, [%rd1+128]; shl.b32 %r7, %r7, 2;
    add.u32 %r8, %r3, %r7; ld.shared.u32 %r9, [%r8];""",
    "a number of the kernel's": """
    ld.param.u32 %r7, [n]; shl.b32 %r7, %r7, 6; add.u32 %r8, %r5, %r7; ld.shared.u32 %r9, [%r8];""",
    "before the first byte": "ld.shared.u32 %r9, [%r6+-128];",
    "swizzled": "xor.b32 %r9, %r5, 256; ld.shared.u32 %r10, [%r9];",
    "an atomic": "atom.shared.add.u32 %r9, [%r5+128], 1;",
    "a matrix": """
    and.b32 %r7, %r1, 7; shl.b32 %r7, %r7, 4; add.u32 %r7, %r7, %r3;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r7+16];""",
    "static memory into dynamic": """
    mov.u32 %r7, dynamic; add.u32 %r7, %r7, %r2; st.shared.u32 [%r7], %r1;
    sub.u32 %r8, %r7, 1024; ld.shared.u32 %r9, [%r8];""",
}


@pytest.mark.parametrize("body", BEYOND.values(), ids=BEYOND.keys())
def test_what_leaves_is_reported(body: str) -> None:
    found = findings(body, shared=1024)
    assert "out-of-bounds" in {f.kind for f in found}, found
    assert all(f.address is not None for f in found if f.kind == "out-of-bounds")


def test_the_message_names_both_variables() -> None:
    (found,) = findings("ld.shared.u32 %r9, [%r6+-4];")
    assert "4 bytes 4 bytes before second, which has 128; first lies there" in found.message
    assert (found.lane, found.address) == (0, 124)


def test_origins() -> None:
    """An address stays what it is under sums of one address; merging with a number forgets it."""
    body = """
    mul.lo.u32 %r7, %r3, 3; sub.u32 %r8, %r1, %r3; add.u32 %r9, %r3, %r4;
    mov.u32 %r10, %r3; @%p1 mov.u32 %r10, %r4; mov.u32 %r11, %r3; @%p1 mov.u32 %r11, 5;
    mad.lo.u32 %r12, %r1, %r2, %r3; and.b32 %r13, %r3, 112;
    and.b32 %r0, %r3, 0; and.b32 %r14, %r3, 0x3ffff; shr.u32 %r15, %r14, 4; add.u32 %r16, %r15, 128;
    shr.u32 %r17, %r3, 3; shl.b32 %r18, %r15, 4; bfe.u32 %r19, %r4, 4, 14;"""
    program = Program(parse(HEAD + body + "ret;\n}\n"), "k", OPCODES)
    for index, symbol in enumerate(program.symbols):
        symbol.offset = index

    def place(name: str) -> tuple[str, int]:
        (found,) = (s for s in program.symbols if s.name == name)
        return found.space, found.offset

    first, second = place("first"), place("second")
    origins = Origins(program)

    placed = next(p for p in program.code if p.ins.opcode[0] == "mad")

    def of(name: str) -> Origin | None:
        return origins.of(placed, tree.Name(name, 0))

    assert of("%r5") == of("%r12") == Origin(frozenset((first,)))
    assert of("%r10") == Origin(frozenset((first, second)))
    assert of("%r7") == of("%r8") == of("%r9") == of("%r11") == ANYTHING
    assert of("%r0") == of("%r1") == of("%r13") == of("%r17") == NUMBER
    assert of("%r14") == Origin(frozenset((first,)))
    assert of("%r15") == of("%r16") == Origin(frozenset((first,)), encoded=True)
    assert of("%r19") == Origin(frozenset((second,)), encoded=True)
    assert of("%r18") == ANYTHING
