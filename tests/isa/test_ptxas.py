"""ptxas has the last word: it assembles what the table claims, and refuses what it does not.

A sample; `fragir sweep isa-ptxas` asks about all of the table.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Protocol

import pytest

from benchmarks.sweeps.isa_ptxas import claimed, denied, every_form
from fragir.isa import Instruction
from fragir.isa.emit import emit_module

SAMPLE = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120f", "sm_121a")


class Assembler(Protocol):
    def run(self, ptx: str, target: str) -> str: ...
    def refusals(self, statements: list[str], target: str, version: str) -> list[str | None]: ...


def stratified(found: list[tuple[Instruction, str]]) -> list[tuple[Instruction, str]]:
    """At most two of every family, types, flags (but .xN) and variant: the first and the last."""
    groups: dict[tuple[object, ...], list[tuple[Instruction, str]]] = defaultdict(list)
    for instruction, a in found:
        flags = frozenset(f for f in instruction.form.flags if f[0] != "x")
        groups[instruction.family, instruction.types, flags, a].append((instruction, a))
    return [item for group in groups.values() for item in {group[0], group[-1]}]


@pytest.mark.parametrize("target", SAMPLE)
def test_ptxas_assembles_what_the_table_claims(ptxas: Assembler, target: str) -> None:
    """Every instruction, every variant, with the lowest PTX version the table gives."""
    assert claimed(target)
    for version, forms in claimed(target).items():
        assert ptxas.run(emit_module(stratified(forms), target, version), target) == ""


def test_ptxas_refuses_earlier_versions_and_other_targets(ptxas: Assembler) -> None:
    """One version below the lowest, and on every target that the table does not list."""
    targets = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120f")
    wrong: list[str] = []
    for (target, version), statements in denied(stratified(every_form()), targets).items():
        refused = ptxas.refusals(statements, target, version)
        wrong += [
            f"{target} {version} accepts {text}"
            for text, reason in zip(statements, refused, strict=True)
            if reason is None
        ]
    assert not wrong, "\n".join(wrong)
