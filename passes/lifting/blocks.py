"""Straight pieces of a function, and where each goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from fragir.passes.lifting.scopes import Flat, refusal
from fragir.ptx import tree

#: Opcodes that end a piece where they have no guard.
ENDS = frozenset(("ret", "exit", "trap"))


@dataclass
class Piece:
    """Instructions without a label among them.

    `guard`: of the branch at its end, whose way is `taken`; `after`: where it goes on otherwise.
    Without both it ends with `end`, the opcode of its last instruction.
    """

    steps: list[tree.Instruction | tree.Pragma] = field(
        default_factory=list[tree.Instruction | tree.Pragma]
    )
    branch: tree.Instruction | None = None
    taken: int | None = None
    after: int | None = None
    end: tree.Instruction | None = None

    @property
    def guard(self) -> tree.Guard | None:
        return None if self.branch is None else self.branch.guard

    @property
    def successors(self) -> list[int]:
        return [s for s in (self.taken, self.after) if s is not None]


def pieces(flat: Flat, module: tree.Module) -> list[Piece]:
    """The pieces that can be reached, in the order of the text; the first is the entry."""
    found = [Piece()]
    labels: dict[str, int] = {}
    targets: list[tuple[Piece, str, int]] = []
    closed = False  # whether the last piece has ended
    for step in flat.steps:
        if isinstance(step, tree.Label):
            if closed or found[-1].steps or len(found) == 1:
                _open(found, closed)
                closed = False
            labels[step.name.text] = len(found) - 1
            continue
        if closed:  # nothing leads here but a label
            _open(found, closed)
            closed = False
        piece = found[-1]
        if isinstance(step, tree.Pragma):
            piece.steps.append(step)
            continue
        name = step.opcode[0]
        if name == "brx":
            raise refusal(
                module, step.at, "indirect branches are not lifted", "write a chain of branches"
            )
        if name == "bra":
            (label,) = step.operands if len(step.operands) == 1 else (None,)
            if not isinstance(label, tree.Name):
                raise refusal(module, step.at, f"{step.mnemonic} takes one label")
            targets.append((piece, label.text, step.at))
            piece.branch = step
            if step.guard is None:
                closed = True
            else:
                _open(found, False)
        elif name in ENDS and step.guard is None:
            piece.end = step
            closed = True
        else:
            piece.steps.append(step)
    if not closed:  # the end of the body returns
        found[-1].end = tree.Instruction(None, ("ret",), ())
    for piece, label, at in targets:
        if label not in labels:
            raise refusal(module, at, f"the label {label} is not declared")
        piece.taken = labels[label]
    return _reachable(found)


def _open(found: list[Piece], closed: bool) -> None:
    if not closed:
        found[-1].after = len(found)
    found.append(Piece())


def _reachable(found: list[Piece]) -> list[Piece]:
    reached, work = {0}, [0]
    while work:
        for to in found[work.pop()].successors:
            if to not in reached:
                reached.add(to)
                work.append(to)
    kept = sorted(reached)
    numbers = {old: new for new, old in enumerate(kept)}
    for old in kept:
        piece = found[old]
        piece.taken = None if piece.taken is None else numbers[piece.taken]
        piece.after = None if piece.after is None else numbers[piece.after]
    return [found[old] for old in kept]


def predecessors(found: list[Piece]) -> list[list[int]]:
    """Where each piece is come to from."""
    before: list[list[int]] = [[] for _ in found]
    for at, piece in enumerate(found):
        for to in dict.fromkeys(piece.successors):
            before[to].append(at)
    return before
