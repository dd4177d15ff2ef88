"""Initial values of variables: bytes as ptxas lays them out, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import EmulationError, run
from fragir.errors import FragirError
from fragir.toolchain.ptxas import assemble

PTX = """
.version 8.6
.target sm_90a
.address_size 64
.global .b32 other[8];
DECLARATION
.visible .entry k(.param .u64 out) {
.reg .b64 %rd<4>; .reg .b32 %r<3>;
ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; cvt.u64.u32 %rd1, %r0; add.u64 %rd0, %rd0, %rd1;
mov.u64 %rd2, v; add.u64 %rd2, %rd2, %rd1; ld.SPACE.u8 %r1, [%rd2]; st.global.u8 [%rd0], %r1; ret;
}
"""


def text(declaration: str) -> str:
    space = "const" if ".const" in declaration else "global"
    return PTX.replace("DECLARATION", declaration).replace("SPACE", space)


#: Declaration -> what stands in .nv.global.init or .nv.constant3 of ptxas 13.2's cubin.
VALUES = {
    ".global .b32 v = 1.5;": "0000c03f",
    ".global .b64 v = 1.5;": "000000000000f83f",
    ".global .b32 v = 0f3f800000;": "0000803f",
    ".global .f32 v = 0d3ff0000000000000;": "0000803f",
    ".global .f32 v = 1.5 + 1.5;": "00004040",
    ".global .f32 v = -1.5;": "0000c0bf",
    ".global .f32 v = (1.5);": "0000c03f",
    ".global .f32 v[3] = {1.5, 0f3f800000};": "0000c03f0000803f00000000",
    ".global .u8 v = 300;": "2c",
    ".global .s8 v = -129;": "7f",
    ".global .s32 v[2][2] = {{1},{2}};": "01000000020000000000000000000000",
    ".global .u16 v[][2] = {{1,2},{3,4},{5,6}};": "010002000300040005000600",
    ".global .v2 .f32 v = {1.0, 2.0};": "0000803f00000040",
    ".global .v4 .u8 v[2] = {{1,2,3,4},{5,6,7,8}};": "0102030405060708",
    ".global .u32 v = 1 ? 2 : 3;": "02000000",
    ".global .u32 v = WARP_SZ;": "20000000",
    ".const .s32 v[2] = {7,8};": "0700000008000000",
}


@pytest.mark.parametrize("declaration", VALUES)
def test_values(declaration: str) -> None:
    wanted = bytes.fromhex(VALUES[declaration])
    out = np.zeros(len(wanted), np.uint8)
    run(text(declaration), block=(len(wanted),), arguments=[out])
    assert out.tobytes().hex() == wanted.hex()


REFUSED = {
    ".global .u8 v[2] = {1.5, 1e400};": "a .u8 begins with an integer",
    ".global .u32 v = 1.5;": "a .u32 begins with an integer",
    ".global .u32 v = 1.5 + 1;": "a .u32 begins with an integer",
    ".global .f32 v = 1;": "a .f32 begins with a floating-point number",
    ".global .f64 v = other;": "a .f64 begins with a floating-point number",
    ".global .f16 v = 1.5;": "v is a .f16, which has no initial value",
    ".global .pred v = 1;": "a .pred is a register",
    ".global .s32 v[2] = 5;": "v is an array: its values stand in braces",
    ".global .s32 v[2][2] = {1,{2}};": "v is an array: its values stand in braces",
    ".global .s32 v = {5};": "an element of v is one value, not a list",
    ".global .s32 v[2][2] = {{{1}}};": "an element of v is one value, not a list",
    ".global .s32 v[2] = {1,2,3};": "v has too many initial values: 3 for 2",
    ".global .s32 v[2][2] = {{1,2,3}};": "v has too many initial values: 3 for 2",
    ".global .u64 v = nosuch;": "nosuch is not declared",
    ".global .u64 v = k;": "the address of k is no initial value",
    ".global .u32 v = 1/0;": "an initial value is a constant or an address",
}


@pytest.mark.parametrize("declaration", REFUSED)
def test_refused(declaration: str) -> None:
    with pytest.raises(EmulationError) as caught:
        run(text(declaration), arguments=[np.zeros(64, np.uint8)])
    assert REFUSED[declaration] in caught.value.message
    assert caught.value.line == 6
    with pytest.raises(FragirError, match="ptxas refuses"):
        assemble(text(declaration), "sm_90a")


def test_addresses() -> None:
    """Addresses as such, as generic ones, and their bytes (0xFF00(x) is the second)."""
    ptx = """
.version 8.6
.target sm_90a
.address_size 64
.const .b32 c[4] = {1, 2, 3, 4};
.global .b32 g[4] = {5, 6, 7, 8};
.global .u64 v[4] = {g + 4, generic(g) + 8, c + 12, generic(c) + 4};
.global .u8 part[4] = {0xff(g), 0xff00(g), 0xff0000(g), 0xff000000(g)};
.visible .entry k(.param .u64 out) {
.reg .b64 %rd<6>; .reg .b32 %r<8>;
ld.param.u64 %rd0, [out];
ld.global.u64 %rd1, [v]; ld.global.u32 %r0, [%rd1];
ld.global.u64 %rd1, [v+8]; ld.u32 %r1, [%rd1];
ld.global.u64 %rd1, [v+16]; ld.const.u32 %r2, [%rd1];
ld.global.u64 %rd1, [v+24]; ld.u32 %r3, [%rd1];
mov.u64 %rd2, g; cvt.u32.u64 %r4, %rd2; ld.global.u32 %r5, [part]; sub.u32 %r4, %r4, %r5;
st.global.v4.u32 [%rd0], {%r0, %r1, %r2, %r3}; st.global.u32 [%rd0+16], %r4; ret;
}
"""
    out = np.full(5, 99, np.uint32)
    run(ptx, block=(1,), arguments=[out])
    assert out.tolist() == [6, 7, 4, 2, 0]


def test_too_large() -> None:
    declaration = ".global .u32 v[65536][65536][65536][65536];"
    with pytest.raises(EmulationError, match="v has 73786976294838206464 bytes") as caught:
        run(text(declaration), arguments=[np.zeros(1, np.uint8)])
    assert caught.value.line == 6
