"""Machine instructions of conversions: ptxas makes of a plan what the plan says.

Pairs of layouts as in `conversions`, those that move data, on sm_90a. SHFL, MOVM, BAR, LDSM and
STSM are as many as planned, LDS and STS move the planned bytes in no more instructions, SEL and
PRMT together are those planned. ptxas joins some of them: of two words that are made for nothing
but a select between them the second is made in the first one's register, under the select's
predicate. So a SEL, PRMT or MOV under a predicate is a select of the plan too. What is beyond all
these computes the numbers of lanes: at most 24 instructions, 40 where three digits or more change
places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.bare import bare_kernel
from benchmarks.sweeps.conversions import Case, cases
from fragir.dialects.elements import element_type
from fragir.layout.planning.costs import Features
from fragir.layout.planning.planner import ConversionPlan, plan_conversion
from fragir.sweeps import Plan as Wanted
from fragir.sweeps import Result, Sweep, Task
from fragir.sweeps.definition import sample
from fragir.toolchain.ptxas import assemble
from fragir.toolchain.sass import disassemble, opcodes

MACHINE = "sm_90a"
ELEMENTS = {8: "s8", 16: "f16", 32: "f32", 64: "f64"}
FORMULAS, LONG_FORMULAS = 24, 40
SIZES = {"64": 8, "128": 16, "U8": 1, "S8": 1, "U16": 2, "S16": 2}
# of memory and of threads, and what conversions do with data
NO_FORMULAS = (
    *("SHFL", "MOVM", "BAR", "LDSM", "STSM", "LDS", "STS", "SEL", "PRMT", "WARPSYNC"),
    *("LDG", "STG", "NOP"),
)


def planned(case: Case) -> ConversionPlan:
    return plan_conversion(case.source, case.target, case.bits, Features(stmatrix=True))


class MachineCode(NamedTuple):
    """What ptxas makes of a pair's bare kernel.

    Instructions by full name, selects that are predicates of others, the words that the kernel is
    given, and whether they are more than a thread has registers for.
    """

    opcodes: Counter[str]
    joined: int
    words: int
    spills: bool


def machine_code(case: Case, *, converts: bool) -> MachineCode:
    """Of the pair's bare kernel, with its conversion or without."""
    element = element_type(ELEMENTS[case.bits])
    text = bare_kernel(
        case.source, case.target, case.shape, element, case.warps, MACHINE, converts=converts
    )
    words = text.count("ld.global")
    assembled = assemble(text, MACHINE)
    spills = any(entry.spill_stores for entry in assembled.entries.values())
    sass = disassemble(assembled.cubin)
    guarded = opcodes(sass, predicated=True)
    joined = sum(guarded[name] for name in ("SEL", "PRMT", "MOV"))
    return MachineCode(opcodes(sass, full=True), joined, words, spills)


def short(full: Mapping[str, int]) -> Counter[str]:
    """Instructions by the first part of their names."""
    found: Counter[str] = Counter()
    for name, count in full.items():
        found[name.split(".")[0]] += count
    return found


def moved(full: Mapping[str, int], name: str) -> tuple[int, int]:
    """(instructions, bytes of a thread) of LDS or STS."""
    parts = [(n.split("."), count) for n, count in full.items() if n.split(".")[0] == name]
    size = sum(SIZES.get(words[-1], 4) * count for words, count in parts)
    return sum(count for _, count in parts), size


def differences(plan: ConversionPlan, code: MachineCode) -> list[str]:
    """What the machine code has other than the plan."""
    counts, full = plan.counts, code.opcodes
    found = short(full)
    matrices = {
        name: sum(n for k, n in counts.items() if k.startswith(kind))
        for name, kind in (("LDSM", "ldmatrix"), ("STSM", "stmatrix"))
    }
    wanted = {
        "SHFL": counts.get("shfl", 0) + code.words,  # each word given is shuffled once
        "MOVM": counts.get("movmatrix", 0),
        "BAR": counts.get("bar.sync", 0),
        **matrices,
    }
    told = [f"{k}: {found[k]}, planned {n}" for k, n in wanted.items() if found[k] != n]
    moves = counts.get("selp", 0) + counts.get("prmt", 0)
    if found["SEL"] + found["PRMT"] + code.joined != moves:
        told.append(
            f"SEL {found['SEL']}, PRMT {found['PRMT']}, {code.joined} joined, planned {moves}"
        )
    for name, kind in (("LDS", "ld."), ("STS", "st.")):
        accesses = {k: n for k, n in counts.items() if k.startswith(kind)}
        size = sum(int(k.split(".")[1]) // 8 * n for k, n in accesses.items())
        issued, transferred = moved(full, name)
        if transferred != size or issued > sum(accesses.values()):
            told.append(f"{name}: {issued} of {transferred} bytes, planned {accesses}")
    return told


def formulas(case: Case, full: Mapping[str, int]) -> int:
    """Instructions that are neither data's nor the kernel's own."""
    found, own = short(full), short(machine_code(case, converts=False).opcodes)
    return sum(n - own[k] for k, n in found.items() if k not in NO_FORMULAS)


def tasks(wanted: Wanted) -> Sequence[Any]:
    """The numbers of all pairs of whole bytes, or of `count` drawn ones."""
    every = [number for number, case in enumerate(cases()) if case.bits in ELEMENTS]
    return sample(every, wanted)


def run(task: Task) -> Result:
    """One pair."""
    case: Case = cases()[int(task.what)]
    plan = planned(case)
    if plan.way not in ("bytes", "shuffles", "shared"):
        return {"way": plan.way, "formulas": 0, "findings": []}
    code = machine_code(case, converts=True)
    told = differences(plan, code)
    beyond = 0 if code.spills else formulas(case, code.opcodes)
    digits = 0 if plan.moves is None else plan.moves.mixed
    limit = LONG_FORMULAS if digits >= 3 else FORMULAS
    if beyond > limit:
        told.append(f"{beyond} instructions for numbers of lanes, the limit is {limit}")
    return {
        "way": plan.way,
        "formulas": beyond,
        "findings": [f"{case.name}: {finding}" for finding in told],
    }


SWEEP = Sweep(tasks, run, {}, seconds=120.0)
