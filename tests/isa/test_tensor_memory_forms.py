"""tcgen05: words, versions and targets, as every ptxas that is installed has them.

A sample; `fragir sweep tensor-memory-forms` asks about all spellings.
"""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.sweeps import tensor_memory_forms as sweep
from fragir.errors import FragirError
from fragir.isa.targets import BLACKWELL_SERVER, NEWEST_VERSION, TARGETS
from fragir.isa.versions import lowest_version, module_version, requirement
from fragir.ptx.opcodes.versions import ASSEMBLERS

MMA = "tcgen05.mma.cta_group::1"
needs_newest = pytest.mark.skipif(
    NEWEST_VERSION not in map(ASSEMBLERS.get, sweep.assemblers()), reason="needs the newest ptxas"
)


@pytest.mark.parametrize(
    ("assembler", "target"),
    [
        ("12.9.86", "sm_100a"),
        ("12.9.86", "sm_103f"),
        ("13.2.86", "sm_103a"),
        ("13.5.37", "sm_107a"),
    ],
)
def test_ptxas_agrees(assembler: str, target: str) -> None:
    if assembler not in sweep.assemblers():
        pytest.skip(f"there is no ptxas {assembler}")
    asked = Random(target).sample(sweep.statements(), 80)
    assert sweep.disagreements(assembler, target, asked) == []


def test_every_spelling_has_a_row() -> None:
    assert [s for s in sweep.statements() if not sweep.has_row(s)] == []


@needs_newest
def test_words_are_those_of_ptxas() -> None:
    asked = sweep.mutants(Random(5).sample(sweep.statements(), 200), Random(5))
    assert sweep.misjudged(asked) == []
    assert 20 < sum(map(sweep.has_row, asked)) < 180


@needs_newest
def test_a_wrong_claim_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    statement = f"{MMA}.kind::i8 [%r0], %d0, %d1, %r2, %p0;"

    def claimed(*_: str) -> str:
        return "9.4"

    monkeypatch.setattr(sweep, "claimed", claimed)
    (finding,) = sweep.disagreements("13.5.37", "sm_107a", [statement])
    assert "sm_107a, 9.4" in finding


def having(opcode: str) -> set[str]:
    """The targets of an opcode, without sm_."""
    return {target.removeprefix("sm_") for target in requirement(opcode).targets}


#: What the machines differ in (PTX ISA 9.4, section 9.7.18, "Target ISA Notes").
@pytest.mark.parametrize(
    ("opcode", "targets", "version"),
    [
        (f"{MMA}.kind::f16", "100a 100f 103a 103f 107a 107f 110a 110f", "8.6"),
        (f"{MMA}.kind::f16 scale-input-d", "100a 100f 103a 103f 107a 107f", "8.6"),
        (f"{MMA}.kind::i8", "100a 110a", "8.6"),
        ("tcgen05.mma.ws.sp.cta_group::1.kind::i8", "100a 110a", "8.6"),
        (f"{MMA}.kind::mxf4nvf4.block_scale.scale_vec::4X", "100a 103a 107a 110a", "8.7"),
        (f"{MMA}.kind::mxf4.block_scale", "100a 100f 103a 103f 107a 107f 110a 110f", "8.6"),
        (f"{MMA}.kind::mxf4.block_scale.block32.sp", "100a 103a 107a 110a", "8.8"),
        ("tcgen05.shift.cta_group::1.down", "100a 103a 107a 110a", "8.6"),
        (f"{MMA}.kind::ti16", "107a 107f", "9.4"),
        (f"{MMA}.kind::mxf4nvf4.block_scale.block16.sp.collector::b::use", "107a", "9.4"),
        ("tcgen05.ld.spcompress", "107a", "9.4"),
    ],
)
def test_targets_and_versions(opcode: str, targets: str, version: str) -> None:
    assert having(opcode) == set(targets.split())
    assert requirement(opcode).version == version


def test_words_come_in_any_order() -> None:
    assert requirement("tcgen05.mma.kind::mxf4.block_scale.cta_group::2.sp") == requirement(
        "tcgen05.mma.sp.cta_group::2.kind::mxf4.block_scale"
    )


def test_versions_of_a_module() -> None:
    assert module_version([f"{MMA}.kind::f16", "tcgen05.alloc"], "sm_100a") == "8.6"
    assert module_version([f"{MMA}.kind::mxf4.block_scale.block32"], "sm_100a") == "8.8"
    assert module_version(["tcgen05.alloc.exclusive"], "sm_100f") == "9.4"
    assert lowest_version("tcgen05.ld.sync.aligned.32x32b.x1.b32", "sm_110a") == "9.0"
    for target in BLACKWELL_SERVER:
        assert lowest_version("tcgen05.commit", target) == TARGETS[target]
    assert ASSEMBLERS["13.5.37"] == NEWEST_VERSION


def test_what_is_no_opcode_of_tensor_memory() -> None:
    with pytest.raises(FragirError, match="no modifier"):
        requirement("tcgen05.mma.kind::f64")
    with pytest.raises(FragirError, match=r"exclude each other|does not go|ashift"):
        requirement(f"{MMA}.kind::mxf4.block_scale.ashift")
    with pytest.raises(FragirError, match="sm_103a"):
        lowest_version(f"{MMA}.kind::i8", "sm_103a")
