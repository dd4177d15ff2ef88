"""Which directives the head of a function takes, by its kind (PTX ISA 9.2, section 11.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from fragir.ptx.limits import Refused
from fragir.ptx.tree import FunctionDirective, Pragma

# Directive of a function's head -> the kinds of functions that have it, and how many values it has.
DIRECTIVES: dict[str, tuple[tuple[str, ...], int, int]] = {
    **dict.fromkeys(("maxntid", "reqntid", "reqnctapercluster"), ((".entry",), 1, 3)),
    **dict.fromkeys(("minnctapersm", "maxnctapersm", "maxnreg"), ((".entry",), 1, 1)),
    **dict.fromkeys(("maxclusterrank", "local_maxnreg"), ((".entry",), 1, 1)),
    **dict.fromkeys(("explicitcluster", "blocksareclusters"), ((".entry",), 0, 0)),
    "noreturn": ((".func",), 0, 0),
    **dict.fromkeys(("abi_preserve", "abi_preserve_control"), ((".func",), 1, 1)),
}


D = TypeVar("D", bound=Sequence[FunctionDirective | Pragma])


def check_directives(kind: str, directives: D) -> D:
    """The directives, refused where this kind of function or their number of values has none."""
    for directive in directives:
        if isinstance(directive, Pragma):
            if kind != ".entry":
                raise Refused("a .pragma in the head of a .func", directive.at)
            continue
        kinds, least, most = DIRECTIVES[directive.name]
        if kind not in kinds:
            raise Refused(f".{directive.name} in the head of a {kind}", directive.at)
        if not least <= len(directive.values) <= most:
            wanted = f"{least} to {most}" if least < most else least or "no"
            message = f".{directive.name} takes {wanted} values, not {len(directive.values)}"
            raise Refused(message, directive.at)
    return directives
