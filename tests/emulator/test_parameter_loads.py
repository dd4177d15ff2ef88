"""Loads of a kernel's parameters: known when the program is decoded, unless it may write there."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from fragir.emulator import EmulationError, run
from fragir.emulator.instructions import access

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def kernel(body: str, parameters: str = ".param .align 16 .b8 s[32]") -> str:
    return (
        f"{HEAD}.visible .entry k(.param .u64 out, {parameters}) {{\n"
        ".reg .b16 %h<5>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p;\n"
        "mov.u32 %r8, %tid.x; mul.wide.u32 %rd8, %r8, 8;\n"
        f"{body}ld.param.u64 %rd1, [out]; add.s64 %rd1, %rd1, %rd8; st.global.u64 [%rd1], %rd2;\n"
        "ret;\n}\n"
    )


def launch(text: str, argument: Any, threads: int = 64) -> tuple[list[int], int]:
    """What the threads have stored, and the bytes that they have loaded."""
    out = np.zeros(threads, np.uint64)
    found = run(text, block=(threads, 1, 1), arguments=[out, argument])
    return [int(x) for x in out], found.statistics.loaded["global"]


DATA = bytes(range(0x70, 0x90))


def part(form: str, at: int) -> int:
    """One element of the parameter, as 64 bits of two's complement."""
    return struct.unpack_from(form, DATA, at)[0] % 2**64


@pytest.mark.parametrize(
    ("body", "value", "size"),
    [
        ("ld.param.u64 %rd2, [s+8];", part("<Q", 8), 8),
        ("ld.param.u8 %rd2, [s+17];", DATA[17], 1),
        ("ld.param.s8 %rd2, [s+17];", part("<b", 17), 1),
        ("ld.param.s16 %r1, [s+18]; cvt.u64.u32 %rd2, %r1;", part("<h", 18) % 2**32, 2),
        ("ld.param.v2.u32 {%r1, %r2}, [s+16]; mov.b64 %rd2, {%r1, %r2};", part("<Q", 16), 8),
        ("ld.param.v4.u8 {%h1, %h2, %h3, %h4}, [s+20]; cvt.u64.u16 %rd2, %h3;", DATA[22], 4),
        ("ld.param.v2.u64 {_, %rd2}, [s+16];", part("<Q", 24), 16),
    ],
)
def test_values(body: str, value: int, size: int) -> None:
    found, loaded = launch(kernel(body), DATA)
    assert found == [value] * 64
    assert loaded == 64 * (size + 8)


def test_some_lanes() -> None:
    """A guard: the other lanes keep what they had, and load nothing."""
    body = "mov.u64 %rd2, 9; setp.lt.u32 %p, %r8, 5; @%p ld.param.u64 %rd2, [s];"
    found, loaded = launch(kernel(body), DATA)
    (value,) = struct.unpack_from("<Q", DATA, 0)
    assert found == [value] * 5 + [9] * 59
    assert loaded == 5 * 8 + 64 * 8


def test_a_launch_has_its_own() -> None:
    text = kernel("ld.param.u64 %rd2, [s];", ".param .u64 s")
    for value in (1, 2**63, 77):
        assert launch(text, value)[0] == [value] * 64


@pytest.mark.parametrize("address", ["mov.u64 %rd3, s; cvta.param.u64 %rd3, %rd3;"])
def test_one_that_is_written(address: str) -> None:
    """Its address is taken, so it is read where it is."""
    body = f"{address} mov.u64 %rd4, 5; st.u64 [%rd3], %rd4; ld.param.u64 %rd2, [s];"
    assert launch(kernel(body), DATA, 32)[0] == [5] * 32


@pytest.mark.parametrize("place", ["s+28", "s+32", "s+4"])
def test_places_that_are_refused(place: str) -> None:
    """Behind the end, and not at a multiple of the size: as other accesses."""
    with pytest.raises(EmulationError, match=r"of the parameters|needs an address"):
        launch(kernel(f"ld.param.u64 %rd2, [{place}];"), DATA, 32)


def test_which_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The short road is taken where it may be, and there alone."""
    seen: list[bool] = []
    parameter = access.parameter

    def watched(*arguments: Any) -> Any:
        found = parameter(*arguments)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(access, "parameter", watched)
    launch(kernel("ld.param.u64 %rd2, [s];"), DATA)
    assert seen == [True, True]
    seen.clear()
    launch(kernel("mov.u64 %rd3, s; ld.param.u64 %rd2, [s];"), DATA)
    assert seen == [False, False]
