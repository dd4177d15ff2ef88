"""The instruction table: a value with every instruction and every target.

Nothing changes a table: `with_instruction`, `without` and the like give another one;
`fragir.isa.registry` says which one the compiler asks. Nothing is generated ahead: `lookup` takes
the mnemonic apart and asks the rules of its family, so an answer costs some tens of microseconds.
What follows from a table is kept by it (`answers`), so no answer outlives its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from fragir.errors import FragirError, kind_of
from fragir.isa import spelling
from fragir.isa.model import Form, Instruction, UnknownInstruction, rules_of
from fragir.isa.target_rows import NAME, NVIDIA, VERSION, Target, meant_targets, newest
from fragir.ptx.machines import BlockLimits, machine

Own = Mapping[str, Instruction | None]


def canonical(mnemonic: str) -> str:
    """The spelling that `resolve` looks for; words that no family has stay as they are."""
    form = spelling.parse(mnemonic)
    return mnemonic if form is None else spelling.mnemonic(form)


class Table:
    """Every instruction, by rules and by rows of one's own, and every target.

    `own` are the rows besides the rules, by canonical mnemonic: an instruction is added, or
    overrides what the rules have; None takes theirs away. `targets` has NVIDIA's first.
    """

    __slots__ = ("_by_rule", "answers", "own", "targets")

    def __repr__(self) -> str:
        return f"<{len(self.targets)} targets, {len(self.own)} instructions besides the rules>"

    def __init__(self, own: Own | None = None, targets: Mapping[str, Target] = NVIDIA):
        self.own: Own = own or {}
        self.targets: Mapping[str, Target] = targets
        self._by_rule: dict[Form, Instruction] = {}
        #: function -> its arguments -> what it answered about this table
        self.answers: dict[Callable[..., Any], dict[tuple[Any, ...], Any]] = {}

    # --- other tables -------------------------------------------------------------------------

    def with_instruction(self, instruction: Instruction) -> Table:
        """With an instruction added, or in the place of the one with the same mnemonic."""
        return self._with({**self.own, canonical(instruction.mnemonic): instruction})

    def without(self, mnemonic: str) -> Table:
        """Without an instruction; `UnknownInstruction` where there is none."""
        return self._with({**self.own, canonical(self.lookup(mnemonic).mnemonic): None})

    def as_ruled(self, mnemonic: str) -> Table:
        """With what the rules have under a mnemonic; an error where that is what it has."""
        name = canonical(mnemonic)
        if name not in self.own:
            raise UnknownInstruction(f"{mnemonic!r} was not registered")
        return self._with({key: row for key, row in self.own.items() if key != name})

    def _with(self, own: Own) -> Table:
        table = Table(own, self.targets)
        table._by_rule = self._by_rule  # what the rules say depends on the targets alone
        return table

    def with_target(self, target: Target) -> Table:
        """With a target of one's own; FragirError where it cannot be one."""
        if not NAME.fullmatch(target.name):
            raise FragirError(
                f"{target.name!r} is no target's name", hint="they are called sm_80, sm_90a, ..."
            )
        if target.name in NVIDIA:
            raise FragirError(
                f"{target.name} is NVIDIA's", hint="give the target another number, as in sm_95a"
            )
        if target.inherits == target.name or target.inherits not in self.targets:
            raise FragirError(
                f"{target.name} inherits the instructions of {target.inherits or 'no target'}",
                hint=f"say which it resembles: one of {', '.join(self.targets)}",
            )
        if not VERSION.fullmatch(target.version):
            raise FragirError(f"{target.version!r} is no PTX version", hint='write it as "9.0"')
        return Table(self.own, {**self.targets, target.name: target})

    def without_target(self, name: str) -> Table:
        """Without a target of one's own; FragirError where it is none, or others inherit it."""
        if name in NVIDIA or name not in self.targets:
            raise FragirError(f"{name} is no target that was registered")
        heirs = [target.name for target in self.targets.values() if target.inherits == name]
        if heirs:
            raise FragirError(f"{', '.join(heirs)} inherits {name}", hint="take that away first")
        return Table(self.own, {key: t for key, t in self.targets.items() if key != name})

    # --- targets ------------------------------------------------------------------------------

    def target(self, name: object) -> Target:
        """The target called so; an error that lists them where there is none."""
        found = self.targets.get(name) if isinstance(name, str) else None
        if found is None:
            shown = repr(name) if len(repr(name)) < 80 else "this"
            raise FragirError(
                f"{shown} is no target of this compiler",
                hint=f"{meant_targets(name, self.targets)}one of {', '.join(self.targets)}",
            )
        return found

    def heirs(self) -> Iterator[Target]:
        """The targets of one's own, each after the one that it inherits."""
        return (target for target in self.targets.values() if target.inherits)

    def machines(self) -> dict[str, BlockLimits]:
        """What each target of one's own takes of a launch."""
        found: dict[str, BlockLimits] = {}
        for heir in self.heirs():
            base = found.get(heir.inherits) or machine(heir.inherits)
            found[heir.name] = BlockLimits(
                shared=heir.shared or base.shared,
                static_shared=heir.static_shared or base.static_shared,
                cluster=heir.cluster or base.cluster,
                like=base.like or heir.inherits,
                assembled_as=heir.assembled_as,
            )
        return found

    # --- instructions -------------------------------------------------------------------------

    def lookup(self, mnemonic: str, *, target: str | None = None) -> Instruction:
        """The instruction of a mnemonic in any spelling that ptxas takes.

        Raises `UnknownInstruction`, which names the part that is wrong and the nearest legal
        mnemonics; with `target` also where the instruction does not exist there.
        """
        for text in cast("tuple[object, ...]", (mnemonic, target or "")):
            if not isinstance(text, str):
                raise FragirError(f"a mnemonic or target is a str, not {kind_of(text)}")
        found = self._row(mnemonic)
        if found is None:
            form = spelling.parse(mnemonic)
            if form is not None and spelling.complaint(mnemonic) is None:
                found = self.resolve(form)
        if found is None:
            from fragir.isa.nearest import unknown_instruction

            raise unknown_instruction(self, mnemonic, target)
        if target is not None and target not in found.targets:
            from fragir.isa.nearest import missing

            raise missing(self, found, self.target(target).name)
        return found

    def of(self, form: Form) -> Instruction:
        """The instruction of a form; `UnknownInstruction` where there is none."""
        found = self.resolve(spelling.normal(form))
        if found is None:
            from fragir.isa.nearest import unknown_instruction

            raise unknown_instruction(self, spelling.mnemonic(spelling.normal(form)))
        return found

    def resolve(self, form: Form) -> Instruction | None:
        """The instruction of a canonical form; None where there is none."""
        if self.own:
            name = spelling.mnemonic(form)
            if name in self.own:
                return self._row(name)
        return self._ruled(form)

    def _row(self, name: str) -> Instruction | None:
        own = self.own.get(name)
        return None if own is None else self._inherited(own)

    def _ruled(self, form: Form) -> Instruction | None:
        """What the rules have."""
        found = self._by_rule.get(form)
        if found is None:
            for rules in rules_of(form.family) if form.family else ():
                found = rules.resolve(form)
            if found is not None:
                found = self._by_rule[form] = self._inherited(found)
        return found

    def _inherited(self, instruction: Instruction) -> Instruction:
        """The instruction on the targets of one's own too."""
        if len(self.targets) == len(NVIDIA):
            return instruction
        on, lowering = dict(instruction.targets), dict(instruction.lowering)
        for heir in self.heirs():
            version = on.get(heir.inherits)
            if heir.name in on or version is None or not heir.has(instruction.mnemonic):
                continue
            on[heir.name] = newest((version, heir.version))
            inherited = lowering.get(heir.inherits)
            if inherited is not None:
                lowering[heir.name] = heir.lowered(instruction.mnemonic, inherited)
        return replace(instruction, targets=on, lowering=lowering)

    def forms(self, family: str = "", a: str = "") -> Iterator[Form]:
        """The canonical form of every instruction; of one family, or with this type of A."""
        for rules in rules_of(family):
            for form in rules.forms(family, a):
                if not self.own or self.own.get(spelling.mnemonic(form), form) is not None:
                    yield form
        for mnemonic in self._added():
            form = spelling.parse(mnemonic)
            if form is not None and family in ("", form.family) and (not a or a in form.types[1:2]):
                yield form

    def _added(self) -> Iterator[str]:
        """The mnemonics of rows that the rules do not have."""
        for mnemonic, row in self.own.items():
            form = spelling.parse(mnemonic)
            if row is not None and (form is None or self._ruled(form) is None):
                yield mnemonic

    def instructions(self, *, target: str | None = None) -> Iterator[Instruction]:
        """Every instruction; with `target` only what it has."""
        for form in self.forms():
            found = self.resolve(form)
            if found is not None and (target is None or target in found.targets):
                yield found
        for mnemonic in self._added():
            found = self._row(mnemonic)
            unread = spelling.parse(mnemonic) is None
            if found is not None and unread and (target is None or target in found.targets):
                yield found
