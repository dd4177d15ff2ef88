"""Functions that take several instructions: short PTX texts, by operation and type.

`SUBJECTS` says which module has the texts of an operation; it is imported when a program has one.
"""

from __future__ import annotations

from importlib import import_module

from fragir.passes.writer.sequences.sequence import Sequence

SUBJECTS: dict[str, str] = {
    **dict.fromkeys(("math.expm1", "math.sinh", "math.cosh", "math.erf"), "exponential"),
    "math.cbrt": "exponential",
    **dict.fromkeys(("math.log1p", "math.asinh", "math.acosh", "math.atanh"), "exponential"),
    **dict.fromkeys(("math.powf", "math.fpowi", "math.ipowi"), "power"),
    **dict.fromkeys(("math.tan", "math.atan", "math.atan2", "math.asin", "math.acos"), "circular"),
    **dict.fromkeys(("math.round", "math.copysign", "math.rsqrt"), "rounding"),
    **dict.fromkeys(("arith.ceildivui", "arith.ceildivsi", "arith.floordivsi"), "rounding"),
    **dict.fromkeys(("math.ctlz", "math.cttz", "math.ctpop"), "rounding"),
    **dict.fromkeys(("arith.mului_extended", "arith.mulsi_extended"), "rounding"),
    "arith.addui_extended": "rounding",
}  # fmt: skip


def sequence(name: str, type_: str) -> Sequence | None:
    """The text of an operation on a PTX type, where there is one."""
    subject = SUBJECTS.get(name)
    if subject is None:
        return None
    return import_module(f"{__name__}.{subject}").SEQUENCES.get((name, type_))
