"""The compiled core's mma, wgmma and wmma against numpy's, to the bit; a sweep has the rest."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fragir.emulator.native.library import library
from fragir.emulator.tensor_cores.compiled import (
    NativeMma,
    NativeWgmma,
)
from fragir.emulator.tensor_cores.compiled_plans import NativePlan

from .steps import KINDS, by_arithmetic, results

pytestmark = pytest.mark.skipif(library() is None, reason="the compiled core is not in use")


def test_structures_have_the_sizes_of_the_library() -> None:
    from ctypes import sizeof

    found = library()
    assert found is not None
    sizes = [sizeof(each) for each in (NativePlan, NativeMma, NativeWgmma)]
    assert sizes == [found.fragir_mma_sizes(which) for which in range(3)]


def test_the_arithmetics_are_many() -> None:
    """Each class of computation is there, dense and sparse, so that the samples mean something."""
    found = {(c[0].op.opcode[0], type(c[0].op.plan.compute).__name__) for c in by_arithmetic()}
    assert len(by_arithmetic()) > 200
    assert {name for head, name in found if head == "mma"} == {
        *("FusedMma", "EmulatedFp8", "SoftwareM8N8K4", "Double", "IntegerProducts"),
        *("Scaled", "ScaledGroups"),
    }
    assert {name for head, name in found if head == "wgmma"} == {"FusedMma", "IntegerProducts"}


@pytest.mark.parametrize("part", range(8))
def test_the_compiled_core_gives_the_bits_of_numpy(part: int) -> None:
    """Of every arithmetic one instruction, on one kind of operands each time; all in the sweep."""
    rng, chance = np.random.default_rng(part), random.Random(part)
    found = library()
    assert found is not None
    for group in by_arithmetic()[part::8]:
        case = chance.choice(group)
        for kind in chance.sample(KINDS, 2):
            for wanted, got in results(case.op, rng, kind, 3, found):
                wrong = np.argwhere(wanted != got)
                assert not len(wrong), f"{case}, {kind}: {wrong[0]}"
