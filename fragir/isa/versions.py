"""The lowest PTX version and target of the instructions around the tensor cores.

What a compiler for tensor cores emits besides them: copies, barriers, fences, conversions,
arithmetic. A rule is an opcode with some of its qualifiers; it applies to every opcode that has
these parts in this order among its own, and none of those that are written `!part`. All rules
that apply count: the highest version, the intersection of the targets. Asked of ptxas 13.5, and
12.9 for sm_70 and sm_72; within the targets of `fragir.isa.targets`, so what is older than PTX 6.0
counts as 6.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from fragir.errors import FragirError
from fragir.isa import target_rows
from fragir.isa.registry import current, per_table
from fragir.isa.target_rows import NVIDIA, newest
from fragir.ptx.opcodes.versions import BASE, EXACT, lines

_TENSOR = ("mma", "wgmma", "ldmatrix", "stmatrix", "movmatrix")


class Requirement(NamedTuple):
    """What an instruction needs: the lowest PTX version that knows it, and one of `targets`.

    `later` lists targets that got it in a later version than `version`.
    """

    version: str
    targets: tuple[str, ...]
    later: tuple[tuple[str, str], ...] = ()

    @property
    def lowest_target(self) -> str:
        """The oldest machine that has it."""
        return self.targets[0]


class _Rule(NamedTuple):
    parts: tuple[str, ...]
    version: str
    targets: frozenset[str]
    later: tuple[tuple[str, str], ...] = ()


@cache
def _rules() -> dict[str, list[_Rule]]:
    found: dict[str, list[_Rule]] = {}
    for line in lines():
        text, version, lowest, *exceptions = line.split()
        later = [tuple(exception.split("=")) for exception in exceptions]
        on = EXACT.get(lowest) or target_rows.at_least(lowest)
        parts = tuple(text.split("."))
        found.setdefault(parts[0], []).append(
            _Rule(parts, version, frozenset(on), tuple((t, v) for t, v in later))
        )
    return found


def _has(opcode: Sequence[str], parts: tuple[str, ...]) -> bool:
    """Whether `parts` occur in `opcode`, in this order, and those that begin with `!` nowhere."""
    rest = iter(opcode)
    return all(part[1:] not in opcode if part[0] == "!" else part in rest for part in parts)


def _ordered(name: str) -> tuple[str, ...]:
    """The words of an opcode; of tensor memory, whose words come in any order, in its row's.

    Words may be missing. FragirError where tensor memory has no such opcode or no such word.
    """
    words = tuple(name.split("."))
    if words[0] != "tcgen05":
        return words
    from fragir.ptx.opcodes.row import NOT_EMULATED  # a compilation for most targets does without
    from fragir.ptx.opcodes.table import OPCODES

    found = OPCODES.find(words)
    if not found.problem or NOT_EMULATED in found.problem:
        return found.words
    rows = [row for row in OPCODES.rows if row.head == words[: len(row.head)]]
    lines = ((line.known, words[len(row.head) :]) for row in rows for line in row.box)
    if not any(set(known).issuperset(rest) for known, rest in lines):
        raise FragirError(found.problem, hint=found.hint)
    return words


@per_table
def requirement(opcode: str) -> Requirement:
    """What an opcode with its qualifiers needs; instructions of the table included.

    Some needs come from operands. Write them behind the opcode, after a space: `ignore-src`
    (cp.async with a predicate), `sink` (mbarrier.arrive to `_`), `count` (mbarrier.arrive with a
    count), `third` (min and max of three), `scale-input-d` (tcgen05.mma), as in
    "cp.async.ca.shared.global ignore-src". Special registers are opcodes too: "%clusterid.x".

    Errors for an opcode that neither the table nor the rules know.
    """
    name, *features = opcode.split()
    parts = (*_ordered(name), *features)
    rules = _rules().get(parts[0], [])
    applying = [rule for rule in rules if _has(parts, rule.parts)]
    if not applying and parts[0] in _TENSOR:
        instruction = current().lookup(name)
        # ptxas wants 7.8 for the word "::cta", even where nothing else does.
        lowest = "7.8" if "shared::cta" in parts else "6.0"
        return Requirement(lowest, tuple(instruction.targets), tuple(instruction.targets.items()))
    if not applying and parts[0] not in BASE and not parts[0].startswith("%"):
        raise FragirError(f"{opcode!r} is no instruction whose PTX version is known")
    on = [target for target in NVIDIA if all(target in rule.targets for rule in applying)]
    later = [exception for rule in applying for exception in rule.later]
    for heir in current().heirs():
        if heir.inherits in on and heir.has(name):
            on.append(heir.name)
            later += [(heir.name, version) for t, version in later if t == heir.inherits]
    version = newest(("6.0", *(rule.version for rule in applying)))
    return Requirement(version, tuple(on), tuple(later))


CP_ASYNC = "cp.async.cg.shared.global"
"""Copies in the background, of 16 bytes a thread."""


def has(opcode: str, target: str) -> bool:
    """Whether `target` has an opcode, as `requirement` takes it."""
    return target in requirement(opcode).targets


def lowest_version(opcode: str, target: str) -> str:
    """The lowest PTX version in which `target` has this opcode; an error where it never has."""
    needed = requirement(opcode)
    if target not in needed.targets:
        raise FragirError(
            f"{opcode} does not exist on {current().target(target).name}",
            hint=f"it does on {', '.join(needed.targets)}",
        )
    later = (version for machine, version in needed.later if machine == target)
    return newest((needed.version, current().target(target).version, *later))


def module_version(opcodes: Iterable[str], target: str) -> str:
    """The lowest `.version` of a module for `target` that uses these opcodes.

    Where the target lacks some, the error names the one that the fewest targets have, the first
    of those.
    """
    known = current().target(target).version
    used = list(opcodes)
    missing = [opcode for opcode in used if not has(opcode, target)]
    if missing:
        used = [min(missing, key=lambda opcode: len(requirement(opcode).targets))]
    return newest((known, *(lowest_version(opcode, target) for opcode in used)))
