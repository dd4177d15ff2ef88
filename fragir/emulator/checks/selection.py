"""Which checks a launch has: ours, and those that the user brings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from fragir.deprecation import old_methods
from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.machine.events import Observer
from fragir.emulator.machine.lanes import Mask, Select
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.program.failure import CheckFailure, exception_text
from fragir.emulator.report import EmulationError
from fragir.errors import FragirError, kind_of, pass_on

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.lanes import Step
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction


# -- foreign ---------------------------------------------------------------------------------------
# Checks that a user brings: what they raise is told as their own fault.
#
# A `Guarded` stands before such a check. Exceptions of the machine that only pass through it, from
# the step that the check has wrapped, are left as they are; so are a FragirError that the check
# raises to stop the run, and what it hears when it asks for the places of an access that faults.

#: A class of checks, or a function that makes one.
MakesCheck: TypeAlias = "Callable[[Machine, Program], Hooks]"
T = TypeVar("T")
#: What a check whose launches may be divided has of its own.
_PARTS = ("partial", "merge")
_OLD = {"on_wave": "on_wave_start", "on_finish": "on_wave_end"}
#: What no check is to blame for.
_OTHERS = (FragirError, AccessFault, MemoryError)


def require_checks(checks: object) -> tuple[MakesCheck, ...]:
    """What a user gives as checks; EmulationError where it is no list of them."""
    if callable(checks) or isinstance(checks, str) or not isinstance(checks, Iterable):
        text = f"checks is a list of classes of Hooks, not {_name(checks)}"
        raise EmulationError(text, hint="write checks=[...]")
    return tuple(cast("Iterable[MakesCheck]", checks))


def foreign(makes: MakesCheck, machine: Machine, program: Program) -> Hooks | None:
    """The check that a user asks for, guarded; None where the program does not concern it.

    Raises EmulationError where it makes no check, CheckFailure where it fails.
    """
    name = _name(makes)
    if not callable(makes):
        raise EmulationError(
            f"a check is a class of Hooks, or a function of machine and program that makes one, "
            f"not {kind_of(makes)}"
        )
    try:
        if isinstance(makes, type) and issubclass(makes, Hooks) and not makes.concerns(program):
            return None
        check = makes(machine, program)
    except _OTHERS:
        raise
    except Exception as problem:
        pass_on(problem)
        raise _failure(name, problem) from problem
    if not isinstance(cast("object", check), Hooks):
        raise EmulationError(f"{name} makes no check (a Hooks) but {kind_of(check)}")
    old_methods(check, Hooks, _OLD, gone="0.3")
    return Guarded(check)


def may_merge(makes: MakesCheck) -> bool:
    """Whether the check may be one whose parts can be merged: of a function it is seen later."""
    if not (isinstance(makes, type) and issubclass(makes, Hooks)):
        return True
    return all(getattr(makes, name) is not getattr(Hooks, name) for name in _PARTS)


def merges(hook: Hooks) -> bool:
    """Whether each of several processes can have a check of its own: ours, and a user's that says
    how its parts are merged.
    """
    return not isinstance(hook, Guarded) or all(map(hook.overrides, _PARTS))


def _name(makes: object) -> str:
    return str(getattr(makes, "__qualname__", None) or type(makes).__qualname__)


def _failure(name: str, problem: Exception) -> CheckFailure:
    hint = "this is a fault of that check, not of the kernel; --debug shows the traceback"
    return CheckFailure(f"the check {name} failed: {exception_text(problem)}", hint=hint)


class Guarded(Hooks):
    """A check, and between it and the machine somebody who looks at what it raises and returns."""

    def __init__(self, check: Hooks) -> None:
        super().__init__(check.machine, check.program)
        self.check, self.name = check, type(check).__qualname__
        self._passing: Exception | None = None  # what the machine has raised

    def overrides(self, name: str) -> bool:
        return self.check.overrides(name)

    def ask(self, method: Callable[..., T], *arguments: object) -> T:
        """What a function of the check's gives."""
        try:
            return method(*arguments)
        except _OTHERS:
            raise
        except Exception as problem:
            pass_on(problem)
            if problem is self._passing:
                raise
            raise _failure(self.name, problem) from problem

    def _machines(self, step: Callable[..., T]) -> Callable[..., T]:
        """A step of the machine's, for the check to call."""

        def run(sel: Select, mask: Mask) -> T:
            try:
                return step(sel, mask)
            except Exception as problem:
                pass_on(problem)
                self._passing = problem
                raise

        return run

    def _checks(self, step: Callable[..., T], method: str) -> Callable[..., T]:
        """A step of the check's, for the machine to call."""
        if not callable(cast("object", step)):
            raise _failure(self.name, TypeError(f"{method} returns {kind_of(step)}, no step"))

        def run(sel: Select, mask: Mask) -> T:
            return self.ask(step, sel, mask)

        return run

    def partial(self) -> Any:
        return self.ask(self.check.partial)

    def merge(self, partial: Any) -> None:
        self.ask(self.check.merge, partial)

    def alone(self, instruction: Instruction) -> bool:
        return self.ask(self.check.alone, instruction)

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        found = self.ask(self.check.wrap, d, group, inner := self._machines(step))
        return step if found is inner else self._checks(found, "wrap")

    def wrap_guard(self, d: Decoder, instruction: Instruction, step: Step) -> Step:
        found = self.ask(self.check.wrap_guard, d, instruction, inner := self._machines(step))
        return step if found is inner else self._checks(found, "wrap_guard")

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        inner = self._machines(terminator)
        found = self.ask(self.check.wrap_terminator, d, instruction, inner)
        return terminator if found is inner else self._checks(found, "wrap_terminator")


def _guard(name: str) -> Callable[..., object]:
    def event(self: Guarded, *arguments: object) -> object:
        return self.ask(getattr(self.check, name), *arguments)

    event.__name__ = name
    return event


def _on_deadlock(self: Guarded) -> list[str]:
    return self.ask(lambda: [str(note) for note in self.check.on_deadlock()])


for _event in (name for name in vars(Observer) if name.startswith("on_")):
    setattr(Guarded, _event, _guard(_event))
Guarded.on_deadlock = _on_deadlock


#: `check=True`: the modules of this room and their checks, in the order in which they see
#: everything. They are imported only where they are asked for.
CHECK = (
    ("protocols.history", "History"),
    ("definedness.definedness", "Definedness"),
    ("races.races", "Races"),
    ("synchronisation", "Synchronisation"),
    ("schedules.generations", "Generations"),
    ("schedules.choices", "OpenChoices"),
    ("obliviousness.obliviousness", "Obliviousness"),
    ("conflicts", "Conflicts"),
    ("register_pool", "RegisterPool"),
    ("extents", "Extents"),
    ("tensor_maps", "TensorMaps"),
    ("tensor_maps", "RowEnds"),
    ("operand_contents", "SparseMetadata"),
    ("operand_contents", "OperandContents"),
)
#: `fragments=True`.
FRAGMENTS = (("fragments.fragments", "Fragments"),)


def hooks_for(
    machine: Machine,
    program: Program,
    *,
    check: bool,
    fragments: bool,
    checks: Sequence[MakesCheck] = (),
) -> list[Hooks]:
    """The checks in the order in which they see everything: ours, then the user's."""
    hooks: list[Hooks] = []
    for module, name in (*(CHECK if check else ()), *(FRAGMENTS if fragments else ())):
        kind: type[Hooks] = getattr(import_module(f"fragir.emulator.checks.{module}"), name)
        if kind.concerns(program):
            hooks.append(kind(machine, program))
    found = (foreign(makes, machine, program) for makes in checks)
    return hooks + [hook for hook in found if hook is not None]
