"""Machine code by lines of PTX, with what is spilled there and how many registers live."""

from __future__ import annotations

import functools

import pytest

import fragir
from fragir.explain.machine import MachineCode, machine_code, pressure_by_line, spills_by_line
from fragir.toolchain.sass_loops import most_spilled
from tests.cli.test_spills import FEW

VALUES = 40


def crowded(limit: int) -> str:
    """PTX whose values are all loaded before any is stored, at the other end of memory, with so
    many registers: the loads of line 9 on, the stores behind them, a line each.
    """
    loads = [f"ld.volatile.global.u32 %r{i}, [%rd0+{4 * i}];" for i in range(VALUES)]
    stores = [f"st.volatile.global.u32 [%rd0+{4 * i}], %r{VALUES - 1 - i};" for i in range(VALUES)]
    head = f"""\
.version 7.0
.target sm_80
.address_size 64
.visible .entry crowded(.param .u64 p) .maxntid 32 .maxnreg {limit} {{
.reg .b64 %rd<1>;
.reg .b32 %r<{VALUES}>;
ld.param.u64 %rd0, [p];
cvta.to.global.u64 %rd0, %rd0;
"""
    return head + "\n".join([*loads, *stores, "ret;", "}", ""])


FIRST = 9


@functools.cache
def code_of(limit: int) -> MachineCode:
    return machine_code(crowded(limit), "sm_80")


def test_every_line_has_its_code() -> None:
    code = code_of(64)
    assert code.reason is None
    assert code.entries["crowded"].spill_stores == 0
    loads = [one for _, one in code if one.opcode == "LDG"]
    stores = [one for name, one in code if one.opcode == "STG" and name == "crowded"]
    assert [one.line for one in loads] == list(range(FIRST, FIRST + VALUES))
    assert [one.line for one in stores] == list(range(FIRST + VALUES, FIRST + 2 * VALUES))
    assert not spills_by_line(code, "crowded")
    assert [one.address for one in loads] == sorted(one.address for one in loads)


def test_registers_that_live() -> None:
    """One more with every load, one less with every store, beside those of the address."""
    code = code_of(64)
    found = pressure_by_line(code, "crowded")
    others = found[FIRST] - 1
    assert 0 < others < 5
    for i in range(VALUES):
        assert found[FIRST + i] == others + 1 + i
        assert found[FIRST + VALUES + i] == others + VALUES - i
    assert max(found.values()) <= code.entries["crowded"].registers
    assert all(one.live is None for _, one in machine_code(crowded(64), "sm_80", live=False))


def test_spills_stand_at_their_lines() -> None:
    code = code_of(24)
    entry = code.entries["crowded"]
    assert entry.registers <= 24
    counts = spills_by_line(code, "crowded")
    assert entry.spill_stores > 0
    assert sum(counts.values()) * 4 == entry.spill_stores + entry.spill_loads
    assert set(counts) <= set(range(FIRST, FIRST + 2 * VALUES))


def test_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = machine_code(crowded(64).replace("ret;", "rot;"), "sm_80")
    assert "refuses" in (refused.reason or "")
    assert (refused.functions, refused.entries) == ({}, {})
    monkeypatch.setenv("FRAGIR_NVDISASM", "/none/nvdisasm")
    code = machine_code(crowded(64), "sm_80")
    assert "FRAGIR_NVDISASM" in (code.reason or "")
    assert code.functions == {}
    assert code.entries["crowded"].registers > VALUES
    assert spills_by_line(code, "crowded") == pressure_by_line(code, "crowded") == {}


def test_kernels_that_spill_have_lines() -> None:
    """nvdisasm counts no registers where there are 255; the machine code is there all the same."""
    kernel = fragir.compile(FEW, target="sm_80")
    code = machine_code(kernel.ptx, "sm_80")
    assert code.entries["f"].registers == 255
    assert code.entries["f"].spill_loads > 0
    spilled = spills_by_line(code, "f")
    assert most_spilled(kernel.ptx, "sm_80", "f") == max(spilled, key=lambda line: spilled[line])
