"""What a target is, and NVIDIA's: the rows of the table that are no instructions.

A target is spelt as in PTX's `.target`: `sm_80`, `sm_90a` (features of exactly this machine),
`sm_100f` (features of this family, PTX ISA 9.2, section 11.1.2). PTX versions are written
"8.0"; compare them with `version_key`, never as text. What a target takes of a launch stands in
`fragir.ptx.machines`, which the emulator reads too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from fragir.isa.model import Lowering

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


# Lowest PTX version that knows the target (PTX ISA 9.2, section 11.1.2; asked of ptxas 13.5
# and, for sm_70 and sm_72, of ptxas 12.9).
_NVIDIA = """
sm_70 6.0   sm_72 6.1   sm_75 6.3
sm_80 7.0   sm_86 7.1   sm_87 7.4   sm_88 9.0   sm_89 7.8
sm_90 7.8   sm_90a 8.0
sm_100 8.6  sm_100a 8.6  sm_100f 8.8
sm_103 8.8  sm_103a 8.8  sm_103f 8.8
sm_107 9.4  sm_107a 9.4  sm_107f 9.4
sm_110 9.0  sm_110a 9.0  sm_110f 9.0
sm_120 8.7  sm_120a 8.7  sm_120f 8.8
sm_121 8.8  sm_121a 8.8  sm_121f 8.8
"""
_WORDS = _NVIDIA.split()
NVIDIA: Mapping[str, Target] = {
    name: Target(name, version) for name, version in zip(_WORDS[::2], _WORDS[1::2], strict=True)
}

# The server and the consumer Blackwells; only their a and f targets have their own instructions.
BLACKWELL_SERVER = (
    *("sm_100a", "sm_100f", "sm_103a", "sm_103f"),
    *("sm_107a", "sm_107f", "sm_110a", "sm_110f"),
)
BLACKWELL_CONSUMER = ("sm_120a", "sm_120f", "sm_121a", "sm_121f")
BLACKWELL = (*BLACKWELL_SERVER, *BLACKWELL_CONSUMER)

# Those that ptxas 13 has dropped.
ONLY_PTXAS_12 = ("sm_70", "sm_72")
# The newest PTX version this table was checked with (ptxas 13.5).
NEWEST_VERSION = "9.5"


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
