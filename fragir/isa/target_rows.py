"""What a target is, and NVIDIA's: the rows of the table that are no instructions.

A target is spelt as in PTX's `.target`: `sm_80`, `sm_90a` (features of exactly this machine),
`sm_100f` (features of this family, PTX ISA 9.2, section 11.1.2). PTX versions are written
"8.0"; compare them with `version_key`, never as text. NVIDIA's machines are the rows of
`fragir.ptx.targets`, which the emulator reads too, and `fragir.ptx.machines`: what a launch may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from fragir.isa.model import Lowering
from fragir.ptx.targets import MACHINES, targets_with

NAME = re.compile(r"sm_([0-9]+)([af]?)")
VERSION = re.compile(r"[0-9]+\.[0-9]+")


class Target(NamedTuple):
    """A target: its name, and the lowest PTX version that knows it.

    One of a user's own (`fragir.isa.register_target`) `inherits` the instructions and the
    arithmetic of another, all but those whose mnemonic or opcode a pattern of `lacks` matches
    (`stmatrix*`); the first pattern of `lowering` that matches says what is native there, else it
    is what it is on the other. `shared` (bytes of a block's shared memory), `static_shared`
    (those that code may declare) and `cluster` (blocks) are 0 where they are those of the other.
    `assembled_as` is the target to name to a ptxas that does not know this one.
    """

    name: str
    version: str
    inherits: str = ""
    lacks: tuple[str, ...] = ()
    lowering: Mapping[str, Lowering] = MappingProxyType({})
    shared: int = 0
    static_shared: int = 0
    cluster: int = 0
    assembled_as: str = ""

    def __repr__(self) -> str:
        return f"<target {self.name}, PTX {self.version} and newer>"

    def has(self, opcode: str) -> bool:
        """Whether it has what the target that it inherits has under this name."""
        return not any(fnmatchcase(opcode, pattern) for pattern in self.lacks)

    def lowered(self, mnemonic: str, inherited: Lowering) -> Lowering:
        """What ptxas makes of an instruction here."""
        for pattern, lowering in self.lowering.items():
            if fnmatchcase(mnemonic, pattern):
                return lowering
        return inherited


NVIDIA: Mapping[str, Target] = {
    f"sm_{machine.number}{suffix}": Target(f"sm_{machine.number}{suffix}", version)
    for machine in MACHINES
    for suffix, version in machine.versions.items()
}

# The server and the consumer Blackwells; only their a and f targets have their own instructions.
BLACKWELL_SERVER = targets_with("server")
BLACKWELL_CONSUMER = targets_with("consumer")
BLACKWELL = (*BLACKWELL_SERVER, *BLACKWELL_CONSUMER)

# Those that ptxas 13 has dropped.
ONLY_PTXAS_12 = targets_with("dropped", " ")
# The newest PTX version this table was checked with (ptxas 13.5).
NEWEST_VERSION = "9.5"


_GPUS = {
    70: "v100",
    75: "t4",
    80: "a100 a30",
    86: "a10 a40 rtx3090",
    89: "l4 l40 l40s rtx4090",
    90: "h100 h200 h800 gh200",
    100: "b100 b200 gb200",
    103: "b300 gb300",
    120: "rtx5090",
    121: "gb10 spark",
}


def meant_targets(name: object, targets: Iterable[str]) -> str:
    """`did you mean sm_90a? `, of a name that is no target but a machine's, a generation's, or
    nearly a target's; empty where nothing is near."""
    from difflib import get_close_matches  # few names are wrong

    if not isinstance(name, str):
        return ""
    known = list(targets)
    word = re.sub(r"^(?:nvidia|compute|sm)|[\s_-]", "", name.lower())
    word = word.removeprefix("geforce")
    machine = next((number for number, gpus in _GPUS.items() if word in gpus.split()), None)
    machine = machine or next((m.number for m in MACHINES if m.cores.lower() == word), None)
    wanted = f"sm_{machine or word}"
    if machine is not None and f"{wanted}a" in known:
        wanted += "a"
    if wanted not in known:
        wanted = next(iter(get_close_matches(wanted, known, 1, 0.8)), "")
    return f"did you mean {wanted}? " if wanted else ""


def version_key(version: str) -> tuple[int, int]:
    """("9.0" -> (9, 0)), for comparisons."""
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def newest(versions: Iterable[str]) -> str:
    """The highest of some PTX versions."""
    return max(versions, key=version_key)


def number(target: str) -> int:
    """The machine's number: 90 for sm_90 and for sm_90a."""
    return int(target.removeprefix("sm_").rstrip("af"))


def suffix(target: str) -> str:
    """ "a", "f" or ""."""
    return target.lstrip("sm_0123456789")


@cache
def at_least(lowest: str) -> tuple[str, ...]:
    """NVIDIA's targets from a plain one on: sm_80, sm_86, ..., sm_121f of `at_least("sm_80")`."""
    return tuple(target for target in NVIDIA if number(target) >= number(lowest))


def versions(targets: Iterable[str], feature: str) -> dict[str, str]:
    """The lowest PTX version on each target of a feature that came with PTX `feature`.

    Of a target that is not NVIDIA's it is `feature`.
    """
    return {
        target: newest((feature, NVIDIA[target].version)) if target in NVIDIA else feature
        for target in targets
    }


def supports(target: str, lowest: str) -> bool:
    """Whether code for `lowest` may be compiled for `target`.

    A plain `lowest` is inherited by every later machine. `sm_90a` means exactly that machine;
    `sm_100f` its family: the f and a targets of the same hundred-decade (sm_100, 103, 110 and
    sm_120, 121) from that machine on.
    """
    if suffix(lowest) == "a":
        return target == lowest
    if suffix(lowest) == "f":
        same = number(target) // 20 == number(lowest) // 20
        return same and suffix(target) != "" and number(target) >= number(lowest)
    return number(target) >= number(lowest)
