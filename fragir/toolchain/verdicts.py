"""What ptxas did to a kernel's schedule: products made serial, waits put in, registers spilled.

ptxas says so in notes with a code. The codes are no names: C7519 is an added `wgmma.fence` in
ptxas 12.9 and 13.0 and a serialised product from 13.2 on. So a verdict is told by its words, those
of 12.9, 13.0, 13.2 and 13.5 (`tests/toolchain/test_verdicts.py` has PTX for each that can be had).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

# -- resources -------------------------------------------------------------------------------------
# What a kernel takes of a machine.


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """What one kernel takes, as ptxas reports it: registers a thread, the rest in bytes."""

    registers: int
    spill_stores: int
    spill_loads: int
    shared: int
    """Static shared memory; what is given at launch is not known here."""
    stack: int
    barriers: int


Kind = Literal["serialized", "injected-wait", "injected-fence", "setmaxnreg", "spill"]

#: kind -> what it means.
KINDS: dict[Kind, str] = {
    "serialized": "ptxas lets every wgmma of a function end before the next begins (a remark)",
    "injected-wait": "ptxas waits for a wgmma where the program does not (a remark)",
    "injected-fence": "ptxas 12.9 and 13.0 put in a wgmma.fence that is missing (a remark)",
    "setmaxnreg": "ptxas ignores setmaxnreg: registers stay as the launch gave them (a remark)",
    "spill": "values do not fit into registers and go through local memory (a remark)",
}


@dataclass(frozen=True, slots=True)
class ScheduleVerdict:
    """One thing that ptxas did to the schedule of `function`.

    `line` is the place in the PTX (1-based), as near as ptxas says it, None where it does not;
    `code` is as in `C7514`, empty for spills; `hint` is a way out.
    """

    kind: Kind
    code: str
    message: str
    hint: str
    function: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        code = f" ({self.code})" if self.code else ""
        return f"{self.message}{code}; {self.hint}"


_SERIAL = "ptxas runs the wgmma of {function} one after the other: "
#: (kind, words of ptxas, what is said instead, a way out); the first that fits.
_WORDS: tuple[tuple[Kind, str, str, str], ...] = (
    (
        "serialized",
        "reading accumulator registers",
        _SERIAL + "an accumulator is read while its product is under way",
        "read it after the wgmma.wait_group that ends the product",
    ),
    (
        "serialized",
        "defining accumulator registers",
        _SERIAL + "an accumulator is written, or moved, while its product is under way",
        "keep it in the same registers round the loop, and let the first product overwrite it",
    ),
    (
        "serialized",
        "defining input registers",
        _SERIAL + "registers of A are written while a product that reads them is under way",
        "wait for that product first, or use other registers in turn",
    ),
    (
        "serialized",
        "divergent path",
        _SERIAL + "some threads branch, trap or call between a product and its wait",
        "let all threads of a warpgroup take the same way there",
    ),
    (
        "serialized",
        "crossing function boundary",
        _SERIAL + "a product is under way where a function is called, or returns",
        "wait for it before the call; printing and asserting are calls",
    ),
    (
        "serialized",
        "Extern calls",
        _SERIAL + "it calls functions from outside, as printing and asserting do",
        "leave those out of what is to be fast",
    ),
    (
        "serialized",
        "insufficient register resources",
        _SERIAL + "there are too few registers to keep it under way",
        "a smaller tile or more warpgroups take fewer; one accumulator must not have two values",
    ),
    (
        "serialized",
        "ill formed pipeline stage",
        _SERIAL + "fence, products, commit and wait are not in this order on every way",
        "write them in this order",
    ),
    (
        "serialized",
        "wgmma.mma_async instructions are serialized",
        _SERIAL + "{rest}",
        "wgmma that overlap need registers that nothing else touches until their wait",
    ),
    (
        "injected-wait",
        r"(?:wgmma\.wait_group|warpgroup\.wait) is injected",
        "ptxas puts a wgmma.wait_group into {function}: registers of a product are used before"
        " the program waits for it",
        "wait there, or later use them",
    ),
    (
        "injected-fence",
        r"(?:wgmma\.fence|warpgroup\.arrive) is injected",
        "ptxas puts a wgmma.fence into {function}: registers of a product are written before it"
        " and there is none",
        "write wgmma.fence between",
    ),
    (
        "setmaxnreg",
        "determine register count at entry",
        "ptxas ignores the setmaxnreg of {function}: it does not know how many registers a thread"
        " begins with",
        "say how many threads a block has (.reqntid or .maxntid) and .maxnreg",
    ),
    (
        "setmaxnreg",
        "maintain minimum register requirements",
        "ptxas ignores the setmaxnreg of {function}: the code after it needs more registers",
        "leave that role more of them",
    ),
    (
        "setmaxnreg",
        "'setmaxnreg' ignored",
        "ptxas ignores the setmaxnreg of {function}: {rest}",
        "registers are moved in whole programs without debugging and calls to other files only",
    ),
)
_FUNCTION = re.compile(r"function '([^']+)'")
_LINE = re.compile(r"^line (\d+): |(?:in|around) line (\d+)")
_PREFIX = re.compile(r"^(?:line \d+: )?(?:Potential Performance Loss: )?")


def verdicts(
    warnings: Iterable[tuple[str, str]], entries: Mapping[str, EntryInfo]
) -> list[ScheduleVerdict]:
    """What the warnings (code, message) and resources of an assembly say of its schedules."""
    found = [verdict for code, words in warnings if (verdict := verdict_of(code, words, entries))]
    return [*dict.fromkeys(found), *(_spill(*one) for one in entries.items() if spills(one[1]))]


def spills(info: EntryInfo) -> bool:
    """Whether values of a kernel go through local memory."""
    return bool(info.spill_stores or info.spill_loads)


def verdict_of(code: str, words: str, entries: Iterable[str] = ()) -> ScheduleVerdict | None:
    """A warning of ptxas as a verdict; None for one that says nothing of a schedule.

    Notes on setmaxnreg name no function: it is the kernel, where a module has one only.
    """
    for kind, pattern, message, hint in _WORDS:
        if re.search(pattern, words) is None:
            continue
        named = _FUNCTION.search(words)
        names = list(entries)
        function = named[1] if named else names[0] if len(names) == 1 else None
        line = _LINE.search(words)
        number = int(line[1] or line[2]) if line else 0  # 13.2 on says "line 0" where it has none
        rest = _PREFIX.sub("", words)
        said = message.format(function=function or "a kernel", rest=rest)
        return ScheduleVerdict(kind, code, said, hint, function, number or None)
    return None


MOST_REGISTERS = 255
"""Registers that a thread may have (PTX ISA 9.2, section 11.4.3; CUDA programming guide)."""


def _spill(name: str, info: EntryInfo) -> ScheduleVerdict:
    # what ptxas reports is a limit only where it is the machine's: it may spill around calls and
    # loops with fewer, and tells of setmaxnreg's roles what the launch gives each thread
    full = info.registers >= MOST_REGISTERS
    taken = (
        f"its values do not fit into {info.registers} registers"
        if full
        else (f"ptxas took {info.registers} registers a thread at its start")
    )
    return ScheduleVerdict(
        "spill",
        "",
        f"{name} spills: {taken}, and every thread "
        f"stores {info.spill_stores} and loads {info.spill_loads} bytes of them in local memory",
        "a smaller `tile` needs fewer; so do more `warps`, unless its sums fill all registers",
        name,
    )
