"""The statements of a PTX text that synchronise, and the text without some of them.

Statements that are left out become blanks, so that lines and columns stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fragir.ptx import parse, tree
from fragir.ptx.visit import walk

#: The first words of a statement that synchronises.
SYNCHRONISING = re.compile(
    r"(bar|barrier|mbarrier|membar|fence|wgmma\.(fence|commit_group|wait_group)"
    r"|cp\.async\.(commit_group|wait_group|wait_all|mbarrier|bulk\.commit_group|bulk\.wait_group)"
    r"|tcgen05\.(commit|wait::(ld|st)|fence::\w+))"
    r"(\.|$)"
)
_LABEL = re.compile(r"\s*([\w$%]+)\s*:")


@dataclass(frozen=True, slots=True)
class SyncStatement:
    """One in a text, from `start` to `end`: an instruction, or a wait with the loop around it.

    `places`: where its instructions stand, as `Instruction.at` has them.
    """

    line: int
    text: str
    start: int
    end: int
    places: tuple[int, ...]


def instructions(text: str) -> list[tree.Instruction]:
    """All instructions of a text, in their order."""
    found = [node for node in walk(parse(text)) if isinstance(node, tree.Instruction)]
    return sorted(found, key=lambda ins: ins.at)


def is_wait(ins: tree.Instruction) -> bool:
    """Whether it looks at a phase of an mbarrier."""
    return ins.opcode[:2] in (("mbarrier", "try_wait"), ("mbarrier", "test_wait"))


def end_of(text: str, ins: tree.Instruction) -> int:
    """Behind the semicolon of an instruction."""
    return text.index(";", ins.at) + 1


def loop_of(text: str, code: Sequence[tree.Instruction], number: int) -> tree.Instruction | None:
    """The last branch by which the wait `code[number]` is repeated; None where it is none.

    `@!p bra WAIT`, or `@p bra DONE; bra WAIT; DONE:`.
    """
    for at in range(number + 1, min(number + 4, len(code))):
        ins = code[at]
        if ins.opcode[0] != "bra" or ins.guard is None:
            continue
        after = code[at + 1] if at + 1 < len(code) else None
        if after is None or after.opcode[0] != "bra" or after.guard is not None:
            return ins
        label = _LABEL.match(text, end_of(text, after))
        (to,) = ins.operands if len(ins.operands) == 1 else (None,)
        leaves = label is not None and isinstance(to, tree.Name) and to.text == label[1]
        return after if leaves else ins
    return None


def synchronising(text: str, kernels: Collection[str] | None = None) -> Iterator[SyncStatement]:
    """Those of a text, in its order; of `kernels` alone and of functions that are none. Looks at an
    mbarrier that nothing repeats are no statements that synchronise."""
    code = instructions(text)
    others = [
        (kernel.body.at, kernel.body.end)
        for name, kernel in parse(text).entries.items()
        if kernels is not None and name not in kernels and kernel.body is not None
    ]
    for number, ins in enumerate(code):
        if not SYNCHRONISING.match(ins.mnemonic):
            continue
        if any(start <= ins.at < end for start, end in others):
            continue
        last = loop_of(text, code, number) if is_wait(ins) else ins
        if last is None:
            continue
        end = end_of(text, last)
        places = tuple(one.at for one in code[number:] if one.at < end)
        line = text.count("\n", 0, ins.at) + 1
        yield SyncStatement(line, " ".join(text[ins.at : end].split()), ins.at, end, places)


def without(text: str, statements: Iterable[SyncStatement]) -> str:
    """The text without some statements."""
    for one in statements:
        gone = text[one.start : one.end]
        text = text[: one.start] + re.sub(r"[^\n]", " ", gone) + text[one.end :]
    return text
