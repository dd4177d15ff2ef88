"""Microbenchmarks: kernels are what their rows say, run without a fault and are counted right.

FRAGIR_FULL_SWEEP=1 assembles and runs all of the kernels instead of a sample.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import build, device, microbenchmarks, stand_in
from benchmarks.gpu.kit import TARGET, Kit, Work
from benchmarks.gpu.microbenchmarks import GROUPS, bandwidth, cycles, offsets, row_of
from benchmarks.gpu.timing_cases import HEADER, Case, kernel
from fragir import emulator
from fragir.toolchain import driver, gpu_arguments, ptxas, sass, sass_loops

FULL = bool(os.environ.get("FRAGIR_FULL_SWEEP"))
STEP = 1 if FULL else 29
CASES = {name: list(make()) for name, make in GROUPS.items()}
ALL = [(name, case) for name, cases in CASES.items() for case in cases]
SAMPLE = ALL[::STEP]
"""The step and the forms of a case have no common divisor, so that all forms are in it."""

COUNTS = (
    ("wgmma", "m64n256k16.f32.f16.f16, A in shared memory: rate, 2 warpgroups", "HGMMA", 16),
    ("wgmma", "m64n128k32.f32.e4m3.e4m3, A in registers: rate, 1 warpgroup", "QGMMA", 16),
    ("wgmma", "m64n8k16.f32.f16.f16, A in shared memory: latency", "HGMMA", 4),
    ("mma.sync", "m16n8k16.row.col.f32.f16.f16.f32: latency", "HMMA", 32),
    ("mma.sync", "m16n8k32.row.col.f32.e4m3.e4m3.f32: latency", "HMMA", 2 * 32),
    ("mma.sync", "m16n8k32.row.col.s32.s8.s8.s32: rate, 16 warps of 4", "IMMA", 32),
    ("tma", "TMA box of 64 rows of 128 bytes: rate, 4 stages of 6, one SM, L2", "UTMALDG", 24),
    ("tma", "bulk copy of 8192 bytes: latency, DRAM", "UBLKCP", 1),
    ("matrix copies", "ldmatrix.sync.aligned.m8n8.x4.shared.b16: rate, 16 warps", "LDSM", 32),
    ("shared memory", "ld.shared.v4.b32: latency", "LDS", 32),
    ("shared memory", "st.shared.b32, 32 ways of a bank: rate, 4 warps", "STS", 32),
    ("barriers", "bar.sync of 4 warps: latency", "BAR", 16),
    ("memory", "read, DRAM, all SMs, 16 bytes a lane: rate", "LDG", 8),
    ("arithmetic", "ex2.approx.ftz.f32 x, x: latency", "MUFU", 128),
    ("arithmetic", "fma.rn.f32 x, x, u, v: rate, 16 warps of 4", "FFMA", 128),
    ("arithmetic", "rcp.approx.ftz.f32 x, x; add.rn.f32 x, x, u: latency", "MUFU", 128),
)
"""A unit, how a row's name ends, and what its loop has of an opcode."""


def test_names_tell_rows_apart() -> None:
    assert [
        name for name, count in Counter(case.name for _, case in ALL).items() if count > 1
    ] == []
    assert {case.name.rsplit(": ", 1)[1].split(",")[0] for _, case in ALL} >= {"latency", "rate"}


def assembled(cases: list[Case]) -> ptxas.Assembled:
    kernels = (kernel(f"k{i}", case) for i, case in enumerate(cases))
    return ptxas.assemble(HEADER + "".join(kernels), TARGET)


def test_ptxas_takes_the_kernels_as_they_are() -> None:
    made = assembled([case for _, case in SAMPLE])
    assert made.warnings == []
    assert [name for name, info in made.entries.items() if info.spill_stores] == []


def test_loops_have_what_is_counted() -> None:
    found = [
        next(case for case in CASES[unit] if case.name.endswith(ending))
        for unit, ending, *_ in COUNTS
    ]
    made = assembled(found)
    text = sass.disassemble(made.cubin)
    loops: dict[str, sass_loops.MachineLoop] = {}
    for loop in sass_loops.loops(text):
        held = loops.setdefault(loop.function, loop)
        if len(loop.instructions) > len(held.instructions):
            loops[loop.function] = loop
    for index, (case, (_, _, opcode, count)) in enumerate(zip(found, COUNTS, strict=True)):
        loop = loops[f"k{index}"]
        assert loop.counts[opcode] == count, case.name
        assert count % case.each == 0, case.name
        clocks = [i for i in sass_loops.instructions(text)[f"k{index}"] if "SR_CLOCK" in i.text]
        assert len(clocks) == 2, case.name
        plain = count == case.each and "; " not in case.name  # one instruction, one of SASS
        if plain and opcode in ("HMMA", "MUFU", "LDS", "IMMA", "FFMA"):
            lines = [i.text for i in loop.instructions if i.opcode == opcode]
            assert dependent(lines) == (not case.issuers), case.name


def dependent(lines: list[str]) -> bool:
    """Whether each instruction takes what the one before it gives, or none does."""
    registers = [re.findall(r"\bR(\d+)\b", line) for line in lines]
    found = {result in taken for (result, *_), (_, *taken) in itertools.pairwise(registers)}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("unit", sorted(GROUPS))
def test_kernels_run_without_a_finding(unit: str) -> None:
    for case in [case for name, case in SAMPLE if name == unit]:
        blocks = 1 if case.blocks == "one" else 2
        out = np.zeros(blocks * (case.threads // 32 * 2 + case.threads // 2), np.uint64)
        memory = np.zeros(1 << 20, np.uint8)
        other = np.zeros(1 << 20, np.uint8)
        given: list[Any] = [out, memory, other, 3]
        if case.chain:
            continue  # the next test has these
        if case.box:
            rows = len(memory) // 128, 64
            box = emulator.TensorMap(
                memory, (case.box, 64), 128, strides=(128, 2), shape=rows, kind="f16"
            )
            given.append(box)
        report = emulator.run(
            HEADER + kernel("k", case),
            grid=(blocks,),
            block=(case.threads,),
            cluster=(2 if case.blocks.startswith("pair") else 1,),
            arguments=given,
            shared=case.shared,
            check=True,
        )
        assert report.findings == [], case.name
        told = out[: blocks * case.threads // 32 * 2].reshape(-1, 2)
        assert (told[:, 0] < told[:, 1]).all(), case.name


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """A kit of a few cases, with the emulator in the driver's place."""
    few = [
        CASES["memory"][0],
        next(case for case in CASES["memory"] if case.blocks == "all"),
        next(case for case in CASES["tma"] if case.blocks == "pairs"),
        next(case for case in CASES["shared memory"] if case.blocks == "pair"),
    ]
    spread = [few[0]] * 1
    for case in few[1:]:
        spread += [case] * 11  # a rehearsal has every eleventh
    monkeypatch.setattr(microbenchmarks, "GROUPS", {"memory": lambda: iter(spread)})
    for owner, name in ((driver, "_bindings"), (gpu_arguments, "_in_place")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # given back afterwards
    monkeypatch.setattr(driver, "_modules", type(driver._modules)())  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(device, "_FLUSH", 1 << 10)
    builder = build.Builder(tmp_path, small=True)
    microbenchmarks.prepare(builder)
    monkeypatch.setenv("FRAGIR_CUBINS", str(builder.cubins))
    stand_in.replace(driver, {"ptx": [str(tmp_path / "data" / "ptx")]})
    return Kit(tmp_path, small=True)


def test_a_unit_is_run(kit: Kit) -> None:
    begun: list[str] = []
    found = microbenchmarks.run(Work(kit, "memory", {}, begun.append))
    assert found["absent"] == {}
    assert [row["name"] for row in found["rows"]] == begun[:-1]
    assert len(found["rows"]) == 4
    assert [("gb_per_s" in row) for row in found["rows"]] == [False, True, True, False]
    name = found["rows"][1]["name"]
    found = microbenchmarks.run(Work(kit, "memory", {name: "ended by SIGSEGV"}))
    assert found["absent"] == {name: "ended by SIGSEGV"}
    assert name not in [row["name"] for row in found["rows"]]


def test_launches_are_timed(kit: Kit) -> None:
    rows = microbenchmarks.run(Work(kit, "launch"))["rows"]
    assert len(rows) == 5
    assert all(row["us"][1] <= row["us"][0] <= row["us"][2] for row in rows)


def test_cycles_are_those_of_the_whole_block() -> None:
    told = np.array([[[100, 180], [110, 200]], [[5, 95], [7, 65]]], np.uint64)
    assert cycles(told) == (100 + 90) / 2
    assert cycles(told, (1, 2)) == (90 + 58) / 2
    assert cycles(told[:1] + np.uint64(2**63)) == 100  # no precision is lost far from 0


def test_rows_are_differences() -> None:
    """10 cycles an instruction of one warp, 40 in a round, 32 and 160 rounds; 700 around them."""
    case = Case("x: latency", "", 40)
    readings = [(700 + 32 * 400, 700 + 160 * 400 + extra) for extra in (0, 5120, -5120, 0, 512)]
    row = row_of(case, readings, (32, 160))
    assert row == {"name": "x: latency", "cycles": [10.0, 9.0, 11.0], "unit": "cycles/instruction"}
    row = row_of(case._replace(issuers=4, work={"bytes": 512}), readings, (32, 160))
    assert row["cycles"] == [2.5, 2.25, 2.75]
    assert row["per_clk"] == {"instructions": 0.4, "bytes": 204.8}
    assert "per_clk" not in row_of(case._replace(issuers=4), [(5, 5)], (32, 160))


def test_bandwidth_is_a_difference_too() -> None:
    times = {"5": [0.3, 0.2, 9.0], "25": [1.3, 1.3, 0.1]}
    assert bandwidth(times, 1e6) == pytest.approx(20 * 1e6 / 1e-3 / 1e9)
    assert bandwidth({"5": [1.0], "25": [1.0]}, 1e6) is None


def test_pointers_lead_through_all_lines() -> None:
    found = offsets(1 << 14)
    at, seen = 0, set[int]()
    while at not in seen:
        seen.add(at)
        at = int(found[at // 8])
    assert at == 0
    assert seen == set(range(0, 1 << 14, 128))
