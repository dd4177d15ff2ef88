"""Versions and targets of the instructions around the tensor cores, against ptxas."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Protocol

import pytest

from fragir.errors import FragirError
from fragir.isa.targets import NEWEST_VERSION, TARGETS, version_key
from fragir.isa.versions import lowest_version, module_version, requirement

from .version_forms import head, opcode_of, statements

# "opcode and features | a statement that uses it"
_FILE = Path(__file__).parent / "statements.txt"
STATEMENTS = [line.split(" | ") for line in _FILE.read_text().splitlines()]


# Every version there is.
VERSIONS = [
    f"{major}.{minor}"
    for major, minors in ((6, 6), (7, 9), (8, 9), (9, 6))
    for minor in range(minors)
]


class Assembler(Protocol):
    def refusals(
        self,
        statements: list[str],
        target: str,
        version: str,
        heading: Callable[[str, str], str] = ...,
    ) -> list[str | None]: ...


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


def somewhere(ptxas: Assembler, every: list[str]) -> list[str]:
    """Those that ptxas takes on some target: templates also spell what no target has."""
    left = every
    for target in ("sm_90a", "sm_100a", "sm_107a", "sm_120a", "sm_75"):
        refused = ptxas.refusals(left, target, NEWEST_VERSION, head)
        left = [s for s, reason in zip(left, refused, strict=True) if reason is not None]
    nowhere = set(left)
    return [s for s in every if s not in nowhere]


# ptxas 12.9 takes these on sm_70 and sm_72; the ISA and ptxas 13.5 have them from sm_90 on.
EARLY = re.compile(r"fence\.(acquire|release)\.(cta|gpu|sys)")


@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_agrees_on_every_form(ptxas: Assembler, target: str, full_sweep: bool) -> None:
    """Of thousands of spellings: taken in the lowest version claimed, refused in the one below.

    What a target is claimed not to have is refused in the newest version.
    """
    if target not in ("sm_80", "sm_90a", "sm_100a") and not full_sweep:
        pytest.skip("in the full sweep only: FRAGIR_FULL_SWEEP=1")
    every = statements()
    if not full_sweep:
        every = Random(target).sample(every, 300)
    every = somewhere(ptxas, every)
    assert len(every) > 200
    volta = target in ("sm_70", "sm_72")
    if volta:
        every = [s for s in every if not EARLY.match(s)]
    newest = "8.8" if volta else NEWEST_VERSION
    known = [
        v for v in VERSIONS if version_key(TARGETS[target]) <= version_key(v) <= version_key(newest)
    ]
    asked: dict[str, list[tuple[str, bool]]] = {v: [] for v in known}
    for statement in every:
        need = claimed(opcode_of(statement), target)
        if need is None or need not in known:
            asked[newest].append((statement, False))
            continue
        asked[need].append((statement, True))
        if need != known[0]:
            asked[known[known.index(need) - 1]].append((statement, False))
    wrong: list[str] = []
    for version, each in asked.items():
        refused = ptxas.refusals([s for s, _ in each], target, version, head) if each else []
        for (statement, legal), reason in zip(each, refused, strict=True):
            if legal != (reason is None):
                need = claimed(opcode_of(statement), target)
                wrong.append(f"{target} {version}: {statement} needs {need}, ptxas: {reason}")
    assert not wrong, "\n".join(wrong)


def test_wide_atomics_need_hopper() -> None:
    """atom.cas and atom.exch of .b128 (PTX ISA 9.2, section 9.7.13.15): PTX 8.3, sm_90."""
    for opcode in ("atom.cas.b128", "atom.global.exch.b128", "atom.acq_rel.gpu.shared.cas.b128"):
        assert lowest_version(opcode, "sm_90") == lowest_version(opcode, "sm_90a") == "8.3"
        assert requirement(opcode).lowest_target == "sm_90"


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
