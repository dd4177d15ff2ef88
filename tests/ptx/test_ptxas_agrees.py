"""What ptxas refuses for its syntax is refused here; what it takes is in data/features*.ptx."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fragir.ptx import PtxSyntaxError, parse

from .conftest import find_ptxas

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
BODY = (
    HEAD + ".global .b32 x[4];\n.func h() {{ ret; }}\n.visible .entry k()\n{{\n.reg .pred p, q; "
    ".reg .b32 a, b, c; .reg .b64 rd; .reg .f32 f; .shared .b8 sm[64];\n{}\nret;\n}}\n"
)

STATEMENTS = """
add.s32 a,b,c
add.s32 a b,c;
add. s32 a,b,c;
add..s32 a,b,c;
add.s32.;
add.s32 ,a,b;
add.s32 a,b,;
add.s32 a,b,~c;
add.s32 a,b,-(c);
add.s32 a,b,1+c;
add.s32 a,b,c+b;
add.s32 a,b,c*2;
add.s32 a,b,c?2:3;
add.s32 a,b,"x";
mov.u32 a,08;
mov.u32 a,0b2;
mov.u32 a,0x;
mov.u32 a,'a';
mov.f32 f,1.0f;
mov.f32 f,0x1p3;
mov.f32 f,0f3F80000;
mov.f32 f,-0f3F800000;
mov.u64 rd,sm-4;
mov.b64 rd,{a,{b}};
mov.b64 rd,{a+1,b};
mov.b64 rd,{-a,b};
mov.u32 a,%ctaid.x+1;
mov.u32 a,sm[1]+1;
setp.eq.s32 _|_,a,b;
setp.eq.s32 p|q|p,a,b;
setp.eq.s32 (p|q),a,b;
call (a),h,(b+1);
call (a),h,(%tid.x);
call (a),h,((b));
call ((a)),h,(b);
@!!p bra L; L:
@p|q bra L; L:
@1 bra L; L:
@p @q bra L; L:
@p { ret; }
@p L: ret;
;
{ ; }
L: }{
.loc 1 1
.loc 1 1 1;
.loc 1 2 3, function_name x
.loc 1 2 3, inlined_at 1 2 3
.file 1 "x.cu"
.section .debug_x { .b8 1 }
.visible .global .b32 y;
.extern .shared .b8 y[];
.reg .bf16 y;
.reg .b1 y;
.reg .v8 .b32 y;
.sreg .b32 y;
.shared::cta .b32 y;
.reg .b32 2y;
.reg .b32 $;
.reg .b32 _;
.reg .b32 WARP_SZ;
.pragma nounroll;
T: .callprototype (.param .b32 y) y (.param .b32 z);
T: .callprototype _ (.param .b32 _,);
ld.u32 a,[];
ld.u32 a,[rd-4];
ld.u32 a,[rd+a];
ld.u32 a,[rd+sm];
ld.u32 a,[4+rd];
ld.u32 a,[(rd)];
ld.u32 a,[_];
ld.u32 a,[{rd}];
ld.u32 a,[[rd]];
ld.u32 a,[rd,4];
ld.u32 a,[rd.x];
ld.u32 a,[%tid.x];
ld.u32 a,[sm[1]];
ld.u32 a,[rd][4];
ld.u32 a,[generic(sm)];
ld.global.v2.u32 {},[rd];
ld.global.v2.u32 {a,b,},[rd];
""".strip().splitlines()

ITEMS = """
;
# foo
# 1
#pragma once
# 1 "a" // c
@@foo
.global .b32 a;;
.visible .weak .global .b32 a;
.global .visible .b32 a;
.global .b32 a[2*3];
.global .b32 a[3]={1,2,};
.global .b8 s[5]="abcd";
.global .b8 s[]={"abcd"};
.global .b32 a=10u;
.global .b32 a=1L;
.global .f32 a=1.f;
.global .f32 a=1.5e;
.global .f32 a=0f3F8000000;
.global .f32 a=-0f3f800000;
.global .f64 a=0d3ff;
.global .tf32 a;
.global .b32 x[4]; .global .u64 a = generic(x+8);
.global .b32 x[4]; .global .u64 a = foo(x);
.global .b32 x[4]; .global .u64 a = 4+x;
.global .b32 x[4]; .global .u64 a = x-4;
.global .b32 x[4]; .global .u64 a = (x);
.global .b32 x[4]; .global .u64 a = -x;
.global .b32 x[4]; .global .u64 a = x[1];
.global .b32 x[4]; .global .u8 a[4]={0xff(x)+1};
.global .attribute() .b32 a;
.global .attribute(.foo) .b32 a;
.global .attribute(.unified) .b32 a;
.global .attribute(.unified(1)) .b32 a;
.func f(.param .b32 a=1) {ret;}
.func f(.param .b32 a,) {ret;}
.func f(.param .b32 a,b) {ret;}
.func f() .maxnreg 3 {ret;}
.func f() .pragma "a"; {ret;}
.weak .visible .func f() {ret;}
.visible .entry f() {ret;};
.entry f(.param .u64 a<3>) {ret;}
.entry f(.param .b32 a[2][3]) {ret;}
.entry f(.param .u64 .ptr .param a) {ret;}
.entry f(.param .u64 .ptr .align 8 .global a) {ret;}
.entry f() .maxntid {ret;}
.entry f() .maxntid 1,2,3,4 {ret;}
.entry f() .maxntid 2*3 {ret;}
.entry f() .maxntid (1) {ret;}
.entry f() .maxntid 1; {ret;}
.entry f() .minnctapersm 1,2 {ret;}
.entry f() .minnreg 3 {ret;}
.entry f() .noreturn {ret;}
.entry f() .abi_preserve 3 {ret;}
.section foo { .b8 1 }
.file "a.cu"
.file 1 "a.cu";
"str"
/* c
""".strip().splitlines()

CASES = [(x, BODY.format(x)) for x in STATEMENTS] + [
    (x, f"{HEAD}{x}\n.visible .entry k() {{ ret; }}\n") for x in ITEMS
]


@pytest.mark.parametrize("text", [x for _, x in CASES], ids=[x for x, _ in CASES])
def test_refused(text: str) -> None:
    for cache in (True, False):
        with pytest.raises(PtxSyntaxError):
            parse(text, cache=cache)


def test_ptxas_refuses_them_too(tmp_path: Path) -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("no ptxas: pip install nvidia-cuda-nvcc")
    for name, text in CASES:
        (tmp_path / "k.ptx").write_text(text, "utf-8")
        command = [ptxas, "-c", "-arch=sm_90a", "k.ptx", "-o", "k.cubin"]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert found.returncode, name
