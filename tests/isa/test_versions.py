"""Versions and targets of the instructions around the tensor cores, against ptxas."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from fragir.errors import FragirError
from fragir.isa.targets import NEWEST_VERSION, TARGETS, version_key
from fragir.isa.versions import lowest_version, module_version, requirement

# "opcode and features | a statement that uses it"
_FILE = Path(__file__).parent / "statements.txt"
STATEMENTS = [line.split(" | ") for line in _FILE.read_text().splitlines()]


class Assembler(Protocol):
    def refusals(self, statements: list[str], target: str, version: str) -> list[str | None]: ...


def claimed(opcode: str, target: str) -> str | None:
    """The table's lowest version on a target; None where it says there is none."""
    return lowest_version(opcode, target) if target in requirement(opcode).targets else None


SAMPLE = ("sm_75", "sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120a")


@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_agrees_on_every_statement(ptxas: Assembler, target: str, full_sweep: bool) -> None:
    """Accepted from the version the table says on, refused below it and on other targets."""
    if target not in SAMPLE and not full_sweep:
        pytest.skip("in the full sweep only: FRAGIR_FULL_SWEEP=1")
    needs = {opcode: claimed(opcode, target) for opcode, _ in STATEMENTS}
    newest = "8.8" if target in ("sm_70", "sm_72") else NEWEST_VERSION
    versions = {v for v in needs.values() if v is not None} | {TARGETS[target], newest}
    wrong: list[str] = []
    for version in sorted(versions, key=version_key):
        refused = ptxas.refusals([statement for _, statement in STATEMENTS], target, version)
        for (opcode, statement), reason in zip(STATEMENTS, refused, strict=True):
            need = needs[opcode]
            legal = need is not None and version_key(need) <= version_key(version)
            if legal != (reason is None):
                wrong.append(f"{target} {version}: {statement} needs {need}, ptxas: {reason}")
    assert not wrong, "\n".join(wrong)


def test_module_takes_the_highest_version() -> None:
    opcodes = ["ld.global.v4.b32", "cp.async.cg.shared.global", "st.shared::cta.b32"]
    assert module_version(opcodes[:2], "sm_80") == "7.0"
    assert module_version(opcodes, "sm_80") == "7.8"
    assert module_version(opcodes, "sm_120a") == "8.7"
    mma = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    assert module_version([*opcodes, mma], "sm_89") == "8.4"


def test_operand_dependent_needs() -> None:
    assert lowest_version("cp.async.ca.shared.global", "sm_80") == "7.0"
    assert lowest_version("cp.async.ca.shared.global ignore-src", "sm_80") == "7.5"


def test_unknown_opcodes_and_missing_targets_are_errors() -> None:
    with pytest.raises(FragirError, match="no instruction whose PTX version is known"):
        requirement("frobnicate.b32")
    with pytest.raises(FragirError, match=r"does not exist on sm_80.*sm_90"):
        lowest_version("cp.async.bulk.commit_group", "sm_80")
    with pytest.raises(FragirError, match="no target"):
        module_version(["ld.global.b32"], "sm_99")
