"""Which value of which execution is asked for, as a text: that of `fragir explain --values`.

%acc                  a tile or scalar of the placed level, by its name, the first time
gemm:%acc@last        of that kernel, the last time
72:12@5[1,0]          what is made at line 72, column 12 of the program; the fifth time,
                      in block (1,0,0)
58                    of PTX: the operands of the statement in line 58, as matrices
58=bf16/2             those of warp 2, their elements read as bf16
58:%r1,%r2=f16x2      registers ahead of it; behind it: 58+:%r1
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fragir.errors import FragirError, of_kind

_FORM = re.compile(
    r"(?:(?P<kernel>[A-Za-z_$][\w$.]*):)?"
    r"(?:%(?P<name>[\w$.\-]+)"
    r"|(?P<line>[0-9]+)(?P<after>\+)?"
    r"(?::(?:(?P<col>[0-9]+)|(?P<registers>%[^@\[/]+))|=(?P<type>\w+))?)"
    r"(?:@(?P<occurrence>[0-9]+|last))?"
    r"(?:\[(?P<block>[0-9]+(?:,[0-9]+){0,2})\])?"
    r"(?:/(?P<warp>[0-9]+))?"
)
_REGISTER = re.compile(r"(%[\w$.]+)(?:=(\w+))?")
_HINT = "write %acc, %acc@last, 72:12@5[1,0], of PTX 58 or 58:%r1,%r2=f16x2"


class RegisterAsked(NamedTuple):
    """A register of PTX, and as what it is read; empty: as its statement does."""

    name: str
    type: str = ""


class ValueAsked(NamedTuple):
    """What is asked for: a `name` (without %), or a `line` (1-based) with what follows it.

    `occurrence` counts executions by a lane from 1 on, None is the last. `block` is a block's place
    in the grid. `where` is the text of the place.
    """

    where: str
    kernel: str | None = None
    name: str | None = None
    line: int = 0
    col: int | None = None
    after: bool = False
    registers: tuple[RegisterAsked, ...] = ()
    type: str = ""
    occurrence: int | None = 1
    block: tuple[int, int, int] = (0, 0, 0)
    warp: int | None = None

    @property
    def when(self) -> str:
        """The execution and the block, in words."""
        which = "the last time" if self.occurrence is None else f"time {self.occurrence}"
        return f"{which}, in block ({','.join(map(str, self.block))})"


def asked(text: str | ValueAsked) -> ValueAsked:
    """What a text asks for; FragirError with a way out for one that asks for nothing."""
    if isinstance(text, ValueAsked):
        return text
    of_kind(text, str, "what is asked for is a text")
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise FragirError(f"`{text}` names no value", hint=_HINT)
    found = match.groupdict()
    occurrence = found["occurrence"] or "1"
    if occurrence == "0":
        raise FragirError(f"`{text}`: executions count from 1", hint="@1 is the first")
    if found["line"] is not None and int(found["line"]) == 0:
        raise FragirError(f"`{text}`: lines count from 1", hint=_HINT)
    block = [int(n) for n in (found["block"] or "0").split(",")]
    x, y, z = (*block, 0, 0)[:3]
    registers = tuple(
        _register(part, text) for part in (found["registers"] or "").split(",") if part
    )
    return ValueAsked(
        text.strip().partition("@")[0].partition("[")[0].partition("/")[0],
        found["kernel"],
        found["name"],
        int(found["line"] or 0),
        None if found["col"] is None else int(found["col"]),
        found["after"] is not None,
        registers,
        found["type"] or "",
        None if occurrence == "last" else int(occurrence),
        (x, y, z),
        None if found["warp"] is None else int(found["warp"]),
    )


def _register(text: str, whole: str) -> RegisterAsked:
    match = _REGISTER.fullmatch(text.strip())
    if match is None:
        raise FragirError(f"`{whole}`: `{text}` is no register", hint="write %r1, or %r1=f16x2")
    return RegisterAsked(match[1], match[2] or "")
