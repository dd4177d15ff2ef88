"""Every spelling of tcgen05, by every ptxas that is installed.

A task of "versions" asks one ptxas about some hundred spellings on one target: each is taken in the
lowest PTX version that the table says, and refused in the version below; what the table does not
give the target, or only a newer assembler, is refused in the newest version that this one knows.
A task of "words" has spellings with words dropped, doubled, exchanged and foreign ones: the table
has a row for those that the newest ptxas takes on some target, and for no others.

Spellings are those of `tests/isa/version_forms.txt`. `OLDER` says where an older ptxas differs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

from fragir.isa.target_rows import BLACKWELL_SERVER, NEWEST_VERSION, NVIDIA, newest, version_key
from fragir.isa.versions import lowest_version, requirement
from fragir.ptx.opcodes.row import NOT_EMULATED
from fragir.ptx.opcodes.table import OPCODES
from fragir.ptx.opcodes.versions import ASSEMBLERS
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from fragir.toolchain.find import PTXAS, every
from tests.isa.assembler import Ptxas
from tests.isa.version_forms import head, opcode_of, tensor_memory_statements

#: Targets that together have all of it.
TOGETHER = ("sm_107a", "sm_100a")
MANY = 300
_WITHOUT_SIZE = r"^(?!.*(scale_vec|block\d\d)).*block_scale"
#: Where an older ptxas wants a later version than the newest one: a pattern, and the version.
OLDER = {"12.9.86": (_WITHOUT_SIZE, "8.8"), "13.0.88": (_WITHOUT_SIZE, "8.8")}
#: Words of no opcode of tcgen05, or of others of its own.
FOREIGN = (
    "bogus row satfinite cta_group::3 kind::f64 collector::c::fill x3 warpx3 up block64".split()
)

#: Words that say how many operands there are, and of what kind.
DECIDING = frozenset(
    "cta_group::1 cta_group::2 sp ws ashift decompress::lut::b red spcompress "
    "multicast::cluster multicast::cluster::16b "
    "multicast::cluster::32b 16x32bx2".split()
)


@cache
def assemblers() -> dict[str, Ptxas]:
    """Version -> ptxas, of those whose newest PTX version is known."""
    found = {tool.version: Ptxas(tool.path, None) for tool in every(PTXAS)}
    return {version: found[version] for version in ASSEMBLERS if version in found}


def _known(assembler: str) -> tuple[int, int]:
    return version_key(ASSEMBLERS[assembler])


@cache
def statements() -> list[str]:
    return tensor_memory_statements()


def claimed(statement: str, target: str, assembler: str) -> str | None:
    """The lowest version in which a ptxas takes a statement for a target; None: in none."""
    opcode = opcode_of(statement)
    if target not in requirement(opcode).targets:
        return None
    lowest = lowest_version(opcode, target)
    pattern, later = OLDER.get(assembler, ("", ""))
    if pattern and re.search(pattern, opcode):
        lowest = newest((lowest, later))
    return lowest if version_key(lowest) <= version_key(ASSEMBLERS[assembler]) else None


def disagreements(assembler: str, target: str, asked: Sequence[str]) -> list[str]:
    """Where the table and a ptxas differ about statements on a target."""
    last = ASSEMBLERS[assembler]
    first = version_key(NVIDIA[target].version)
    known = [v for v in _versions() if first <= version_key(v) <= version_key(last)]
    questions: dict[str, list[tuple[str, bool]]] = {}
    for statement in asked:
        lowest = claimed(statement, target, assembler)
        if lowest is None:
            questions.setdefault(last, []).append((statement, False))
            continue
        questions.setdefault(lowest, []).append((statement, True))
        if lowest != known[0]:
            below = known[known.index(lowest) - 1]
            questions.setdefault(below, []).append((statement, False))
    findings: list[str] = []
    for version, each in questions.items():
        told = assemblers()[assembler].refusals([s for s, _ in each], target, version, head)
        findings += [
            f"ptxas {assembler}, {target}, {version}: {statement}: {reason or 'taken'}"
            for (statement, legal), reason in zip(each, told, strict=True)
            if legal != (reason is None)
        ]
    return findings


def _versions() -> list[str]:
    return [
        f"{m}.{n}"
        for m, count in ((8, 9), (9, 1 + version_key(NEWEST_VERSION)[1]))
        for n in range(count)
    ]


def mutants(asked: Sequence[str], random: Random) -> list[str]:
    """Statements with a word of their opcode dropped, doubled, moved, exchanged or added.

    Not those words that operands depend on: a row counts operands, and does not look at them.
    """
    found: dict[str, None] = {}
    for statement in asked:
        opcode, _, rest = statement.rstrip(";").partition(" ")
        other = random.choice(statements()).rstrip(";").partition(" ")[0]
        name, words, others = opcode.split(".")[:2], opcode.split(".")[2:], other.split(".")[2:]
        places = [at for at, word in enumerate(words) if word not in DECIDING]
        at = random.choice(places) if places else len(words)
        new = random.choice([*FOREIGN, *(word for word in others if word not in DECIDING)])
        changed = random.choice(
            (
                [*words[:at], *words[at + 1 :]],
                [*words[:at], *words[at : at + 1], *words[at:]],
                random.sample(words, len(words)),
                [*words[:at], new, *words[at + 1 :]],
                [*words[:at], new, *words[at:]],
            )
        )
        found[f"{'.'.join([*name, *changed])} {rest}".strip() + ";"] = None
    return list(found)


def has_row(statement: str) -> bool:
    """Whether the table of opcodes has a statement's opcode with so many operands."""
    opcode, _, rest = statement.rstrip(";").partition(" ")
    operands = re.sub(r"[\[{][^\]}]*[\]}]", "x", rest).split(",") if rest else []
    found = OPCODES.find(tuple(opcode.split(".")), len(operands))
    return found.opcode is not None or NOT_EMULATED in found.problem


def misjudged(asked: Sequence[str]) -> list[str]:
    """Where rows and the newest ptxas differ about what there is at all."""
    ptxas = assemblers()[max(assemblers(), key=_known)]
    left = list(asked)
    for target in TOGETHER:
        told = ptxas.refusals(left, target, NEWEST_VERSION, head)
        left = [statement for statement, reason in zip(left, told, strict=True) if reason]
    nowhere = set(left)
    return [
        f"{statement}: {'ptxas refuses it' if statement in nowhere else 'it has no row'}"
        for statement in asked
        if has_row(statement) == (statement in nowhere)
    ]


def tasks(plan: Plan) -> Sequence[Any]:
    """["versions", ptxas, target, number of the first] or ["words", number of the first]."""
    starts = range(0, len(statements()), MANY)
    asked: list[Any] = [
        ["versions", assembler, target, first]
        for assembler, last in ASSEMBLERS.items()
        for target in BLACKWELL_SERVER
        if version_key(NVIDIA[target].version) <= version_key(last)
        for first in starts
    ]
    return sample([*asked, *(["words", first] for first in starts)], plan)


def run(task: Task) -> Result:
    if task.what[0] == "words":
        first = task.what[1]
        asked = mutants(statements()[first : first + MANY], Random(first))
        if not assemblers():
            return {"asked": 0, "skipped": "there is no ptxas", "findings": []}
        return {"asked": len(asked), "findings": misjudged(asked)}
    _, assembler, target, first = task.what
    if assembler not in assemblers():
        return {"asked": 0, "skipped": f"there is no ptxas {assembler}", "findings": []}
    asked = statements()[first : first + MANY]
    return {"asked": len(asked), "findings": disagreements(assembler, target, asked)}


SWEEP = Sweep(tasks, run, seconds=300.0)
