"""Addresses within a state space, of 32 and 64 bits, and generic ones (PTX ISA 9.2, 6.4.1.1)."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import EmulationError, run

HEAD = """
.version 8.6
.target sm_90a
.address_size 64
.const .align 4 .u32 c[4] = {5, 6, 7, 8};
.global .align 4 .u32 g[4] = {9, 10, 11, 12};
.visible .entry k(.param .align 64 .b8 p[128], .param .u64 o) {
.shared .align 4 .u32 s[4]; .local .align 4 .u32 l[4];
.reg .b32 %r<5>; .reg .b64 %rd<6>; .reg .pred %q;
mov.u32 %r4, 3; st.shared.u32 [s+4], %r4; mov.u32 %r4, 4; st.local.u32 [l+4], %r4;
"""
TAIL = "ld.param.u64 %rd2, [o]; st.global.u32 [%rd2], %r1; ret; }"
#: What stands at offset 4 of each.
AT = {"c": 6, "p": 0x07060504, "s": 3, "l": 4}
SPACES = {"c": "const", "p": "param", "s": "shared", "l": "local"}


def result(body: str) -> int:
    out = np.zeros(1, np.uint32)
    run(HEAD + body + TAIL, block=(1,), arguments=[bytes(range(128)), out], check=True)
    return int(out[0])


@pytest.mark.parametrize("name", AT)
@pytest.mark.parametrize(
    "body",
    [
        "mov.b32 %r0, N; cvt.u64.u32 %rd0, %r0; cvta.S.u64 %rd1, %rd0; ld.u32 %r1, [%rd1+4];",
        "mov.b32 %r0, N; cvt.u64.u32 %rd0, %r0; ld.S.u32 %r1, [%rd0+4];",
        "mov.b32 %r0, N; ld.S.u32 %r1, [%r0+4];",
        "mov.b32 %r0, N; add.u32 %r0, %r0, 8; ld.S.u32 %r1, [%r0+-4];",
        "mov.b32 %r0, N+4; ld.S.u32 %r1, [%r0];",
        "mov.b64 %rd0, N; ld.S.u32 %r1, [%rd0+4];",
        "cvta.S.u64 %rd1, N; ld.u32 %r1, [%rd1+4];",
        "cvta.S.u64 %rd1, N+4; ld.u32 %r1, [%rd1];",
        "cvta.S.u64 %rd1, N; cvta.to.S.u64 %rd0, %rd1; ld.S.u32 %r1, [%rd0+4];",
        "cvta.S.u64 %rd1, N; cvta.to.S.u64 %rd0, %rd1; cvt.u32.u64 %r0, %rd0;"
        " ld.S.u32 %r1, [%r0+4];",
        "ld.S.u32 %r1, [N+4];",
    ],
)
def test_ways_to_an_element(name: str, body: str) -> None:
    assert result(body.replace("N", name).replace("S", SPACES[name])) == AT[name]


@pytest.mark.parametrize("name", AT)
@pytest.mark.parametrize("space", ["const", "param", "shared", "local", "global"])
def test_isspacep(name: str, space: str) -> None:
    body = (
        f"cvta.{SPACES[name]}.u64 %rd1, {name}; isspacep.{space} %q, %rd1; selp.u32 %r1, 1, 0, %q;"
    )
    assert result(body) == (SPACES[name] == space)


def test_addresses_of_global_variables_have_64_bits() -> None:
    assert result("mov.b64 %rd0, g; ld.u32 %r1, [%rd0+4];") == 10
    with pytest.raises(EmulationError, match="the address of g has 64 bits"):
        result("mov.b32 %r0, g; cvt.u64.u32 %rd0, %r0; ld.u32 %r1, [%rd0+4];")


def test_constants_behind_large_arrays() -> None:
    """Addresses of constants have 32 bits, however much memory there is."""
    ptx = HEAD.replace(".param .u64 o)", ".param .u64 o, .param .u64 large)")
    out, large = np.zeros(1, np.uint32), np.zeros(1 << 20, np.uint8)
    body = "mov.b32 %r0, c; ld.const.u32 %r1, [%r0+8];"
    run(ptx + body + TAIL, block=(1,), arguments=[bytes(128), out, large])
    assert int(out[0]) == 7


@pytest.mark.parametrize(("name", "shown"), [("c", "c"), ("p", "the parameters")])
def test_forgotten_conversion(name: str, shown: str) -> None:
    with pytest.raises(EmulationError, match=f"it is that of {shown} in its own space, cvta"):
        result(f"mov.b64 %rd0, {name}; ld.u32 %r1, [%rd0+4];")
