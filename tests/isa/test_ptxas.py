"""ptxas has the last word: it assembles what the table claims, and refuses what it does not.

The whole sweep (some minutes): FRAGIR_FULL_SWEEP=1 pytest tests/isa/test_ptxas.py
"""

from __future__ import annotations

from collections import defaultdict
from typing import Protocol

import pytest

from fragir import isa
from fragir.isa import Instruction
from fragir.isa.emit import emit_module, statement
from fragir.isa.targets import NEWEST_VERSION, TARGETS, version_key

MINORS = {6: 6, 7: 9, 8: 9, 9: 3}
VERSIONS = [f"{major}.{minor}" for major, count in MINORS.items() for minor in range(count)]
SAMPLE = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120f", "sm_121a")
MODULE = 300  # kernels in one module


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


@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_assembles_what_the_table_claims(
    ptxas: Assembler, target: str, full_sweep: bool
) -> None:
    """Every instruction, every variant, with the lowest PTX version the table gives."""
    if target not in SAMPLE and not full_sweep:
        pytest.skip("in the full sweep only: FRAGIR_FULL_SWEEP=1")
    by_version: dict[str, list[tuple[Instruction, str]]] = defaultdict(list)
    for instruction in isa.instructions(target=target):
        if not instruction.refused:
            for a in instruction.variants or ("registers",):
                by_version[instruction.targets[target]].append((instruction, a))
    assert by_version or target == "sm_60"
    for version, claimed in by_version.items():
        chosen = claimed if full_sweep else stratified(claimed)
        for first in range(0, len(chosen), MODULE):
            part = chosen[first : first + MODULE]
            assert ptxas.run(emit_module(part, target, version), target) == ""


def declared(instruction: Instruction, a: str = "registers") -> str:
    """The bare instruction with the registers it uses, for a kernel that has no others."""
    operands = instruction.operands.values()
    words = [
        f".reg .{o.registers.type} %{o.name}<{o.registers.count}>;"
        for o in operands
        if o.registers.cls in ("fragment", "metadata", "scale")
    ]
    words += [".reg .b64 %b, %a_shared;", ".reg .b32 %address;"]
    if any(o.name == "b" and o.registers.cls == "fragment" for o in operands):
        words[-2] = ""
    return " ".join((*words, statement(instruction, a)))


def test_ptxas_refuses_earlier_versions_and_other_targets(
    ptxas: Assembler, full_sweep: bool
) -> None:
    """One version below the lowest, and on every target that the table does not list."""
    everything = [(i, "registers") for i in isa.instructions() if not i.refused]
    chosen = everything if full_sweep else stratified(everything)
    asked: dict[tuple[str, str], list[str]] = defaultdict(list)
    for instruction, a in chosen:
        text = declared(instruction, a)
        for target in TARGETS if full_sweep else ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120f"):
            if target in ("sm_70", "sm_72"):
                continue
            lowest = instruction.targets.get(target)
            if lowest is None:
                asked[target, NEWEST_VERSION].append(text)
            elif version_key(lowest) > version_key(TARGETS[target]):
                asked[target, VERSIONS[VERSIONS.index(lowest) - 1]].append(text)
    wrong: list[str] = []
    for (target, version), statements in asked.items():
        refused = ptxas.refusals(statements, target, version)
        wrong += [
            f"{target} {version} accepts {text}"
            for text, reason in zip(statements, refused, strict=True)
            if reason is None
        ]
    assert not wrong, "\n".join(wrong)
