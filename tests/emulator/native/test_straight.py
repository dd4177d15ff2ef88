"""Straight-line runs of the compiled core: every operation gives the bits of its step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fragir.emulator.native.straight import functions
from tests.emulator.native.straight_forms import Machine, forms, hard_bits

pytestmark = pytest.mark.skipif(functions() is None, reason="the compiled core is not in use")

WARPS = 12  # more than are taken together


def _is_apart(form: str) -> bool:
    """Forms whose step runs: 64-bit integers to other than f32 by nearest, small integers into
    wider registers."""
    opcode = form.split()[0]
    words = opcode.split(".")
    if words[0] != "cvt":
        return False
    into, kind = words[-2:]
    if kind in ("u64", "s64"):
        return into[0] in "fb" and opcode not in ("cvt.rn.f32.u64", "cvt.rn.f32.s64")
    return into in ("u8", "s8") and kind in ("f32", "f16", "bf16", "f64")


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine(" ".join(f"{form};" for form in forms()), WARPS)


def test_every_form_is_an_operation(machine: Machine) -> None:
    missing = [form for at, form in enumerate(forms()) if machine.encoder.codes(at) is None]
    assert missing == [form for form in forms() if _is_apart(form)]


def _masks(random: np.random.Generator) -> list[tuple[Any, Any]]:
    """Selections of warps, each with the lanes that take part."""
    some = np.array([0, 1, 2, 5, 7, 8, 11])
    lanes = random.random((WARPS, 32)) < 0.5
    return [
        (slice(0, WARPS), None),
        (slice(3, 5), None),
        (slice(1, WARPS), lanes[1:]),
        (some, None),
        (some, lanes[some]),
    ]


def test_every_operation_gives_the_bits_of_its_step(machine: Machine) -> None:
    random = np.random.default_rng(7)
    files = machine.machine.files
    wrong: list[str] = []
    with np.errstate(all="ignore"):
        for at, form in enumerate(forms()):
            run = machine.run(at)
            if run is None:
                continue
            before = {width: hard_bits(random, width, file.shape) for width, file in files.items()}
            changed = False
            for sel, mask in _masks(random):
                after: list[dict[int, Any]] = []
                for step in (machine.step(at), run):
                    for width, file in files.items():
                        file[...] = before[width]
                    step(sel, mask)
                    after.append({width: file.copy() for width, file in files.items()})
                if any((after[0][width] != after[1][width]).any() for width in files):
                    wrong.append(form)
                changed |= any((after[1][width] != before[width]).any() for width in files)
            assert changed, form
            assert run.stopped is None
    assert not wrong
