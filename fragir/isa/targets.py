"""GPU targets: which exist in the table that is in force, and what runs on what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from fragir.errors import FragirError, pass_on
from fragir.isa.registry import current, register_target
from fragir.isa.target_rows import (
    BLACKWELL,
    BLACKWELL_CONSUMER,
    BLACKWELL_SERVER,
    NEWEST_VERSION,
    ONLY_PTXAS_12,
    Target,
    newest,
    number,
    suffix,
    supports,
    version_key,
)

__all__ = [
    "BLACKWELL",
    "BLACKWELL_CONSUMER",
    "BLACKWELL_SERVER",
    "NEWEST_VERSION",
    "ONLY_PTXAS_12",
    "TARGETS",
    "Target",
    "ask_packages",
    "newest",
    "number",
    "require_target",
    "suffix",
    "supports",
    "version_key",
    "with_features",
]


class _Versions(Mapping[str, str]):
    """Name -> lowest PTX version, of every target that the table has when it is asked."""

    def __repr__(self) -> str:
        names = list(self)
        return f"<PTX versions of {len(names)} targets, {names[0]} to {names[-1]}>"

    def __getitem__(self, target: str) -> str:
        return current().targets[target].version

    def __iter__(self) -> Iterator[str]:
        return iter(current().targets)

    def __len__(self) -> int:
        return len(current().targets)


TARGETS: Mapping[str, str] = _Versions()


def require_target(target: str) -> str:
    """`target` itself; an error that lists the targets where it is none of them."""
    if isinstance(cast("object", target), str) and target not in TARGETS:
        ask_packages(target)
    return current().target(target).name


def ask_packages(name: str) -> None:
    """Registers a target that an installed package gives (entry point `fragir.targets`), if any.

    Looking for entry points takes some 30 ms, so only a name that nobody knows has it done.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group="fragir.targets", name=name):
        try:
            found = entry.load()
        except Exception as error:
            pass_on(error)
            raise FragirError(f"target {name} of {entry.value} fails: {error}") from error
        if not isinstance(found, Target) or found.name != name:
            raise FragirError(f"{entry.value} is no fragir.isa.Target called {name}")
        register_target(found)
        return


def with_features(machine: str) -> str:
    """The target for exactly this machine: `sm_90a` of `sm_90`, `sm_80` of `sm_80`."""
    own = machine + "a"
    return own if own in TARGETS else machine
