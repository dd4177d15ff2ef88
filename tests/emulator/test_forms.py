"""The emulator knows every spelling of the scalar instructions that ptxas takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from fragir.emulator import run
from fragir.errors import FragirError
from fragir.toolchain.find import PTXAS, find

from . import forms

Family = Callable[[], Iterator[str]]
#: Family, target that has all of it, and at least so many forms.
FAMILIES: list[tuple[Family, str, int]] = [
    (forms.floating, "sm_120a", 400),
    (forms.comparing, "sm_120a", 1500),
    (forms.integers, "sm_120a", 190),
    (forms.conversions, "sm_100a", 900),
    (forms.conversions, "sm_103a", 900),
    (forms.video, "sm_90a", 700),
]
#: Registers with bits of all kinds, so that executing them meets signs, NaN and ranges.
FILL = "".join(
    f"mov.u32 %r{i}, %laneid; mad.lo.u32 %r{i}, %r{i}, {0x9E3779B1 * (2 * i + 1) & 0xFFFFFFFF}, "
    f"{0x3F9A1234 * i & 0x7FFFFFFF}; mov.b64 %q{i}, {{%r{i}, %r{i // 2}}}; "
    f"cvt.u16.u32 %h{i}, %r{i}; cvt.u8.u32 %c{i}, %r{i}; setp.lt.s32 %p{i}, %r{i}, 0;\n"
    for i in range(9)
)


def has_ptxas() -> bool:
    try:
        find(PTXAS)
    except FragirError:
        return False
    return True


@pytest.mark.skipif(not has_ptxas(), reason="needs ptxas")
@pytest.mark.parametrize(
    ("family", "target", "least"), FAMILIES, ids=lambda x: getattr(x, "__name__", str(x))
)
def test_every_form_is_known_and_runs(family: Family, target: str, least: int) -> None:
    lines = forms.accepted(list(dict.fromkeys(family())), target)
    assert len(lines) > least
    report = run(forms.kernel(lines, target, FILL), block=(64,))
    assert sum(report.statistics.instructions.values()) > 2 * len(lines)


def test_types_may_come_before_modifiers() -> None:
    lines = [
        "add.f32.rn %r0, %r1, %r2",
        "max.f32.NaN %r0, %r1, %r2",
        "setp.f32.lt %p0, %r1, %r2",
        "cvt.bf16.f16.rz %h0, %h1",
        "cvt.u32.f32.rzi %r0, %r1",
        "fma.f32.f16.rn %r0, %h1, %h2, %r3",
        "ex2.f16.approx %h0, %h1",
        "testp.f32.finite %p0, %r1",
    ]
    run(forms.kernel(lines, "sm_100a", FILL))
