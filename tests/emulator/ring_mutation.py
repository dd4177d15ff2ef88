"""Mutants of what a ring hides: phases, numbers of slots, blocks of a cluster, barriers of copies.

For PTX as our writer writes it, a statement a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .mutation import Mutant

_WAIT = re.compile(r"mbarrier\.(?:try|test)_wait\.parity\S* %\w+, \[(%\w+)(?:\+\d+)?\], (%\w+);")
_MULTICAST = re.compile(r"cp\.async\.bulk\..*\.multicast::cluster.*, (\d+|%\w+);")
_COPY = re.compile(r"cp\.async\.bulk\..*complete_tx::bytes.*(\[%\w+)(?:\+(\d+))?\](?:, [%\w]+)?;")
_RANK = re.compile(r"mapa\.shared::cluster\.u32 %\w+, %\w+, (%\w+|0);")
_COMMIT = re.compile(r"tcgen05\.commit\..*\.multicast::cluster\.b64 .*, (%\w+);")
_GROUP = re.compile(r"complete_tx::bytes(\.cta_group::2)")
_ADDRESS = r"^\s*mad\.lo\.s32 {address}, (%\w+), 8, (%\w+);"


def ring_mutants(text: str) -> list[Mutant]:
    """Every such mutant, in the order of the text."""
    lines = text.split("\n")
    found: dict[tuple[int, str], Mutant] = {}
    for number, how, new in _changes(lines):
        changed = "\n".join([*lines[:number], new, *lines[number + 1 :]])
        what = " ".join(lines[number].split())
        found.setdefault((number, how), Mutant(number + 1, what, how, changed))
    return [found[key] for key in sorted(found)]


def _changes(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """(number of a line, how it is changed, the new line)."""
    for number, line in enumerate(lines):
        wait = _WAIT.search(line)
        if wait is not None:
            yield number, "always parity 0", line.replace(f"], {wait[2]};", "], 0;")
            yield number, "always parity 1", line.replace(f"], {wait[2]};", "], 1;")
            yield from _phase(lines, wait[2])
            yield from _slot(lines, number, wait[1])
        mask = _MULTICAST.search(line)
        if mask is not None:
            for blocks in (1, 2):
                yield number, f"to blocks {blocks:#x}", line[: mask.start(1)] + f"{blocks};"
        copy = _COPY.search(line)
        if copy is not None:
            next_ = f"{copy[1]}+{int(copy[2] or 0) + 8}]"
            new = line[: copy.start(1)] + next_ + line[line.index("]", copy.start(1)) + 1 :]
            yield number, "at the next barrier", new
        rank = _RANK.search(line)
        if rank is not None and rank[1] == "0":
            yield number, "of the second block", line[: rank.start(1)] + "1;"
        elif rank is not None:
            yield number, "of the first block", line[: rank.start(1)] + "0;"
        commit = _COMMIT.search(line)
        if commit is not None:
            for blocks in (1, 2):
                told = f"    mov.b16 {commit[1]}, {blocks};\n{line}"
                yield number, f"to blocks {blocks:#x}", told
            alone = line.replace(".multicast::cluster", "").replace(f", {commit[1]}", "")
            yield number, "to one block", alone
        if (group := _GROUP.search(line)) is not None:
            yield number, "of one block", line.replace(group[1], "", 1)


def _phase(lines: list[str], register: str) -> Iterator[tuple[int, str, str]]:
    """Where a phase begins, and where it is turned."""
    for number, line in enumerate(lines):
        begun = re.match(rf"^(\s*mov\.b32 {register}, )([01]);$", line)
        if begun is not None:
            yield number, "other phase at first", f"{begun[1]}{1 - int(begun[2])};"
        if re.match(rf"^\s*(selp|xor)\.b32 {register}, ", line):
            yield number, "phase not turned", ""


def _slot(lines: list[str], wait: int, address: str) -> Iterator[tuple[int, str, str]]:
    """How the barrier is found, and where the number of the slot moves on."""
    for number in range(wait, -1, -1):
        made = re.match(_ADDRESS.format(address=address), lines[number])
        if made is None:
            continue
        yield number, "always the first barrier", f"    mov.b32 {address}, {made[2]};"
        for other, line in enumerate(lines):
            if re.match(rf"^\s*mov\.b32 {made[1]}, %\w+;$", line):
                yield other, "slot not moved on", ""
        return
