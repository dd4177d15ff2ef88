"""Which code runs on which machine (PTX ISA 9.2, section 11.1.2)."""

from __future__ import annotations

import re

from fragir.emulator.report import EmulationError

_NAME = re.compile(r"sm_([0-9]+)([af]?)")


def split(target: str) -> tuple[int, str]:
    """The number and the suffix of a target's name. Raises EmulationError where it is none."""
    found = _NAME.fullmatch(target)
    if found is None:
        raise EmulationError(f"{target!r} is no target", hint="they are called sm_80, sm_90a, ...")
    return int(found[1]), found[2]


def runs(code: str, machine: str) -> bool:
    """Whether code for one target runs on another.

    Plain targets run on every later machine, `a` only on that very one, `f` on the later members
    of the family: machines whose numbers begin alike (sm_100f: 100 and 103, but not 120).
    """
    number, suffix = split(code)
    other, other_suffix = split(machine)
    if suffix == "a":
        return code == machine
    if suffix == "f":
        return other_suffix != "" and number // 20 == other // 20 and other >= number
    return other >= number
