"""The meaning of roles: they run side by side, and wait for each other in rings.

Each has a thread of Python, of which one runs at a time: until it has to wait (`Run.wait_for`), or
is done. Then the next one in order runs that need not wait any more. So a program takes one course,
always the same, and where none can go on that is known at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Condition, Thread

from xdsl.ir import Block

from fragir.dialects import frag
from fragir.dialects.frag.kernels import role_of
from fragir.dialects.frag.rings import roles_of_turn
from fragir.reference.run import Run


class _StoppedError(BaseException):
    """Ends a role where another one has failed."""


class SideBySide:
    """Some blocks of operations that run side by side, each in a thread of its own."""

    def __init__(self, run: Run, blocks: list[Block]):
        self._run, self._blocks = run, blocks
        self._waits: list[Callable[[], bool] | None] = [None] * len(blocks)
        self._over = [False] * len(blocks)
        self._turn = 0
        self._stuck = False
        self._error: BaseException | None = None
        self._changed = Condition()

    def run(self) -> None:
        """Runs all of them to their ends. What one raises ends the others and is raised here."""
        before = self._run.others
        self._run.others = self._wait
        threads = [
            Thread(target=copy_context().run, args=(self._play, number), daemon=True)
            for number in range(len(self._blocks))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            self._run.others = before
        if self._error is not None:
            raise self._error

    def _play(self, number: int) -> None:
        try:
            self._come(number)
            self._run.run_block(self._blocks[number])
        except _StoppedError:
            return
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()
            return
        self._over[number] = True
        if not all(self._over):
            following = self._following(number)
            if following is None:  # the first that waits in vain says so
                self._stuck = True
                following = self._over.index(False)
            self._give(following)

    def _wait(self, ready: Callable[[], bool]) -> bool:
        """Lets others go on until a condition holds: whether it does then."""
        number = self._turn
        self._waits[number] = ready
        following = self._following(number)
        if following is None:
            return False
        self._give(following)
        self._come(number)
        self._waits[number] = None
        return not self._stuck

    def _following(self, number: int) -> int | None:
        """The next one that can go on."""
        count = len(self._blocks)
        for other in (*range(number + 1, count), *range(number + 1)):
            ready = self._waits[other]
            if not self._over[other] and (ready is None or ready()):
                return other
        return None

    def _give(self, number: int) -> None:
        with self._changed:
            self._turn = number
            self._changed.notify_all()

    def _come(self, number: int) -> None:
        """Waits for the turn."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn == number or self._error is not None)
        if self._error is not None:
            raise _StoppedError


def roles(run: Run, op: frag.RolesOp) -> None:
    SideBySide(run, [role.body.block for role in op.roles()]).run()


def take_turn(run: Run, op: frag.TakeTurnOp) -> None:
    mine, whose = _turns(run, op)
    run.wait_for(
        lambda: whose[0] == mine,
        f"the turn at {op.turn.data!r} never comes: another role takes fewer turns",
    )


def pass_turn(run: Run, op: frag.PassTurnOp) -> None:
    mine, whose = _turns(run, op)
    assert whose[0] == mine
    order = whose[1:]
    whose[0] = order[(order.index(mine) + 1) % len(order)]


def _turns(run: Run, op: frag.TakeTurnOp | frag.PassTurnOp) -> tuple[int, list[int]]:
    """The number of the role, and whose turn it is, before all who take it in order."""
    role = role_of(op)
    assert role is not None
    assert role.parent is not None
    order = roles_of_turn(role, op.turn.data)
    known: list[int] = run.kept.setdefault(
        f"turn {op.turn.data!r} of {run.block_id}", [order[0], *order]
    )
    return role.parent.regions.index(role), known
