"""The table as a whole: uniqueness, speed of asking, registration, what importing costs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fragir import isa
from fragir.errors import FragirError
from fragir.isa.emit import emit_ptx, parameters
from fragir.isa.targets import TARGETS, supports, version_key
from fragir.layout import Layout

EVERYTHING = list(isa.instructions())


def test_counts() -> None:
    """As many as the PTX ISA's tables and ptxas allow."""
    counts = Counter(i.family for i in EVERYTHING)
    assert counts["wgmma"] == 12 * 32 + 9 * 18
    assert counts["wgmma.sp"] == 12 * 32 + 8 * 18
    assert (counts["ldmatrix"], counts["stmatrix"], counts["movmatrix"]) == (18, 9, 1)
    assert sum(1 for i in EVERYTHING if i.refused) == 8
    assert len({i.mnemonic for i in EVERYTHING}) == len(EVERYTHING)


def test_every_mnemonic_and_alias_is_found_again() -> None:
    for instruction in EVERYTHING:
        assert isa.lookup(instruction.mnemonic) == instruction
        for alias in instruction.aliases:
            assert isa.lookup(alias) == instruction


def test_every_instruction_is_consistent() -> None:
    for instruction in EVERYTHING:
        assert instruction.targets
        for target, version in instruction.targets.items():
            assert version_key(version) >= version_key(TARGETS[target])
            assert instruction.refused or instruction.lowering[target]
        for operand in instruction.operands.values():
            if operand.registers.cls == "descriptor":
                assert operand.layout is None
            if operand.layout is not None:
                assert operand.layout.size("lane") == instruction.lanes
                assert operand.registers.type in operand.registers.accepts


def test_refused_instructions_say_why() -> None:
    found = isa.lookup("mma.sync.aligned.m8n8k4.row.col.f32.tf32.tf32.f32")
    assert found.refused is not None
    with pytest.raises(FragirError, match="emits no instruction"):
        emit_ptx(found, "sm_80")


def test_emit_names_targets_and_variants() -> None:
    found = isa.find("wgmma", shape=(64, 8, 16), a="bf16", d="f32")
    assert parameters(found, "descriptor") == ("a-shared", "b", "c", "d")
    assert ".target sm_90a" in emit_ptx(found, "sm_90a", "descriptor")
    with pytest.raises(FragirError, match="does not exist on sm_80"):
        emit_ptx(found, "sm_80")
    mma = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    with pytest.raises(FragirError, match="no form with A as 'descriptor'"):
        emit_ptx(mma, "sm_80", "descriptor")


@pytest.mark.parametrize(
    ("target", "lowest", "expected"),
    [
        ("sm_80", "sm_75", True),
        ("sm_75", "sm_80", False),
        ("sm_90a", "sm_90", True),
        ("sm_90", "sm_90a", False),
        ("sm_100a", "sm_90a", False),
        ("sm_103a", "sm_100f", True),
        ("sm_120f", "sm_100f", False),
        ("sm_121a", "sm_120f", True),
        ("sm_121", "sm_120f", False),
    ],
)
def test_supports(target: str, lowest: str, expected: bool) -> None:
    assert supports(target, lowest) == expected


@pytest.fixture
def own() -> Iterator[isa.Instruction]:
    """An accumulator with a layout of the user's own."""
    found = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    layout = Layout.parse("lane [32:(0,0)] element [4:(0,1)]")
    changed = found.with_operands(replace(found.operands["d"], layout=layout))
    isa.register(changed)
    yield changed
    isa.unregister(changed.mnemonic)


def test_registering_overrides_a_row(own: isa.Instruction) -> None:
    assert isa.lookup(own.mnemonic) == own
    same = isa.find("mma", shape="m16n8k16", a="bf16", d="f32")
    assert same == own
    assert [i for i in isa.instructions() if i.mnemonic == own.mnemonic] == [own]


def test_registering_adds_a_row(own: isa.Instruction) -> None:
    new = replace(own, mnemonic="mma.sync.aligned.m16n8k99.row.col.f32.bf16.bf16.f32")
    isa.register(new)
    try:
        assert isa.lookup(new.mnemonic) == new
        assert new in list(isa.instructions())
    finally:
        isa.unregister(new.mnemonic)
    with pytest.raises(isa.UnknownInstruction):
        isa.lookup(new.mnemonic)
    with pytest.raises(isa.UnknownInstruction, match="was not registered"):
        isa.unregister(new.mnemonic)


def test_asking_is_fast() -> None:
    """Far below the time the whole table takes, which shows that it is not generated."""
    mnemonics = [i.mnemonic for i in EVERYTHING]
    start = time.perf_counter()
    for mnemonic in mnemonics:
        isa.lookup(mnemonic)
    each = (time.perf_counter() - start) / len(mnemonics)
    assert each < 1e-3


def test_importing_takes_neither_numpy_nor_lark() -> None:
    code = (
        "import sys, fragir.isa; fragir.isa.lookup("
        "'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32');"
        "print([m for m in ('numpy', 'lark', 'xdsl', 'difflib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
