"""GPU targets: which exist, from which PTX version, and what runs on what.

A target is spelt as in PTX's `.target`: `sm_80`, `sm_90a` (features of exactly this machine),
`sm_100f` (features of this family, PTX ISA 9.2, section 11.1.2). PTX versions are written
"8.0"; compare them with `version_key`, never as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import cast

from fragir.errors import FragirError

# Lowest PTX version that knows the target (PTX ISA 9.2, section 11.1.2; asked of ptxas 13.2
# and, for sm_70 and sm_72, of ptxas 12.9).
TARGETS: dict[str, str] = {
    "sm_70": "6.0",
    "sm_72": "6.1",
    "sm_75": "6.3",
    "sm_80": "7.0",
    "sm_86": "7.1",
    "sm_87": "7.4",
    "sm_88": "9.0",
    "sm_89": "7.8",
    "sm_90": "7.8",
    "sm_90a": "8.0",
    "sm_100": "8.6",
    "sm_100a": "8.6",
    "sm_100f": "8.8",
    "sm_103": "8.8",
    "sm_103a": "8.8",
    "sm_103f": "8.8",
    "sm_110": "9.0",
    "sm_110a": "9.0",
    "sm_110f": "9.0",
    "sm_120": "8.7",
    "sm_120a": "8.7",
    "sm_120f": "8.8",
    "sm_121": "8.8",
    "sm_121a": "8.8",
    "sm_121f": "8.8",
}

# The server and the consumer Blackwells; only their a and f targets have their own instructions.
BLACKWELL_SERVER = ("sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f")
BLACKWELL_CONSUMER = ("sm_120a", "sm_120f", "sm_121a", "sm_121f")
BLACKWELL = (*BLACKWELL_SERVER, *BLACKWELL_CONSUMER)

# The newest PTX version this table was checked with (ptxas 13.2).
NEWEST_VERSION = "9.2"


def version_key(version: str) -> tuple[int, int]:
    """("9.0" -> (9, 0)), for comparisons."""
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def newest(versions: Iterable[str]) -> str:
    """The highest of some PTX versions."""
    return max(versions, key=version_key)


def known(target: str) -> str:
    """`target` itself; an error that lists the targets where it is none of them."""
    if not isinstance(cast("object", target), str) or target not in TARGETS:
        shown = repr(target) if len(repr(target)) < 80 else "this"
        raise FragirError(
            f"{shown} is no target of this compiler", hint=f"one of {', '.join(TARGETS)}"
        )
    return target


def number(target: str) -> int:
    """The machine's number: 90 for sm_90 and for sm_90a."""
    return int(target.removeprefix("sm_").rstrip("af"))


def suffix(target: str) -> str:
    """ "a", "f" or ""."""
    return target.lstrip("sm_0123456789")


@cache
def at_least(lowest: str) -> tuple[str, ...]:
    """Every target from a plain one on: `at_least("sm_80")` has sm_80, sm_86, ..., sm_121f."""
    return tuple(target for target in TARGETS if number(target) >= number(lowest))


def versions(targets: Iterable[str], feature: str) -> dict[str, str]:
    """The lowest PTX version on each target of a feature that came with PTX `feature`."""
    return {target: newest((feature, TARGETS[target])) for target in targets}


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
