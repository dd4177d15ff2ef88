"""Whether single statements are legal: what a launch would say of a kernel that has them.

A statement is looked at in a kernel of its own, which is decoded and not run, for the machines
that together have every opcode.
"""

from __future__ import annotations

from functools import lru_cache

from fragir.emulator.launch.launch import Launch
from fragir.errors import FragirError
from fragir.ptx.opcodes.row import NOT_EMULATED
from fragir.ptx.opcodes.table import Names
from fragir.ptx.reader import parse

#: Together they have every opcode; what the others lack the first has.
MACHINES = ("sm_100a", "sm_90a", "sm_120a")
#: Of a parameter, whose size does not matter here.
_BYTES = 64
_LACKS = "does not have it"
_MODULE = """.version 9.2
.target {machine}
.address_size 64
{outside}
.visible .entry k({parameters}) {{
{inside}
{statement};
END: ret;
}}
"""


@lru_cache(maxsize=1 << 14)
def problem(statement: str, names: Names) -> tuple[str, str | None] | None:
    """What is wrong with a statement (without its semicolon), and a way out; None: nothing.

    What the emulator does not know how to execute is not refused.
    """
    first: tuple[str, str | None] | None = None
    parameters = ", ".join(f".param .align 64 .b8 {name}[{_BYTES}]" for name in names.parameters)
    for machine in MACHINES:
        text = _MODULE.format(
            machine=machine,
            statement=statement,
            outside=names.outside,
            parameters=parameters,
            inside=names.inside,
        )
        try:
            _decode(text, len(names.parameters))
        except FragirError as error:
            if NOT_EMULATED in error.message:
                return None
            if _LACKS not in error.message:
                return error.message, error.hint
            first = first or (error.message, error.hint)
        else:
            return None
    return first


def _decode(text: str, parameters: int) -> None:
    """A launch of one warpgroup, up to where it would begin."""
    Launch(
        parse(text),
        None,
        grid=(1, 1, 1),
        block=(128, 1, 1),
        arguments=[bytes(_BYTES)] * parameters,
        cluster=(1, 1, 1),
        shared=0,
        target=None,
        seed=None,
        asynchrony="late",
        trace=None,
        resident=4,
    )
