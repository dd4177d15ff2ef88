"""numba's mma, wgmma and wmma against numpy's, to the bit; when it computes, and when it cannot."""

from __future__ import annotations

import random
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import run
from fragir.emulator.native import library, numba_choice
from fragir.emulator.tensor_cores import tensor_instruction
from fragir.emulator.tensor_cores.numba_core import NumbaMma, covers
from fragir.errors import FragirError

from .steps import KINDS, Case, by_arithmetic, registers, results

pytestmark = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
KERNEL = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 turns) {{
    .reg .b32 %r<9>; .reg .f32 %f<5>; .reg .b64 %d<3>; .reg .pred %p;
    mov.u32 %r1, %laneid;
    mul.lo.u32 %r2, %r1, 0x00010003;
    and.b32 %r2, %r2, 0x03ff03ff;
    or.b32 %r2, %r2, 0x3c003800;
    xor.b32 %r3, %r2, 0x80000000;
    mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f3f800000; mov.f32 %f3, %f1; mov.f32 %f4, %f2;
    ld.param.u32 %r4, [turns];
L:
    {MMA} {{%f1,%f2,%f3,%f4}}, {{%r2,%r3,%r2,%r3}}, {{%r3,%r2}}, {{%f1,%f2,%f3,%f4}};
    add.u32 %r2, %r2, 0x00010001;
    sub.u32 %r4, %r4, 1;
    setp.ne.u32 %p, %r4, 0;
    @%p bra L;
    ld.param.u64 %d1, [out];
    mad.wide.u32 %d1, %r1, 16, %d1;
    st.global.v4.f32 [%d1], {{%f1,%f2,%f3,%f4}};
    ret;
}}
"""


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process had neither used numba nor counted products."""
    monkeypatch.setattr(library, "numba_trouble", [])
    monkeypatch.setattr(numba_choice, "state", numba_choice.NumbaState())


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were no compiled core."""
    missing = library.CompiledLibrary(reason="it was not built")
    monkeypatch.setattr(library, "loaded", lambda: missing)
    forget(monkeypatch)
    monkeypatch.delenv(library.VARIABLE, raising=False)


def covered() -> list[list[Case]]:
    return [group for group in by_arithmetic() if covers(group[0].op)]


def test_what_numba_covers() -> None:
    """All but what numpy alone computes: f64, single bits, scales, m8n8k4 as a routine."""
    other = {
        type(group[0].op.plan.compute).__name__
        for group in by_arithmetic()
        if not covers(group[0].op)
    }
    assert other == {"Double", "IntegerProducts", "Scaled", "ScaledGroups", "SoftwareM8N8K4"}
    assert len(covered()) > 200


@pytest.mark.parametrize("part", range(8))
def test_numba_gives_the_bits_of_numpy(part: int) -> None:
    """Of every arithmetic one instruction, on one kind of operands each time; all in the sweep."""
    rng, chance = np.random.default_rng(part), random.Random(part)
    for group in covered()[part::8]:
        case = chance.choice(group)
        for kind in chance.sample(KINDS, 2):
            for wanted, got in results(case.op, rng, kind, 2, None):
                wrong = np.argwhere(wanted != got)
                assert not len(wrong), f"{case}, {kind}: {wrong[0]}"


def test_threads_share_warps_and_instructions() -> None:
    """The same bits by two threads, of many warps and of one warp's many instructions."""
    op: Any = tensor_instruction(tuple(MMA.split(".")), "sm_90a")
    rng = np.random.default_rng(1)
    for warps, instructions in ((600, 1), (1, 600)):
        shape = (instructions * warps, 32)
        a, b, c = (
            registers(rng, kind, "close", (count, *shape))
            for kind, count in (("f16", 4), ("f16", 2), ("f32", 4))
        )
        core = NumbaMma(op, instructions, None, None, None, None)
        found = [np.zeros((4, *shape), np.uint32) for _ in range(2)]
        for jobs, d in enumerate(found, 1):
            core(slice(0, warps), jobs, {"d": d, "a": a, "b": b, "c": c})
        assert (found[0] == found[1]).all()
        assert (found[0] == op.execute(a, b, c)).all()


def launch(turns: int = 9, **options: Any) -> npt.NDArray[np.float32]:
    out = np.zeros((32, 4), np.float32)
    run(KERNEL, "k", grid=(1,), block=(32,), arguments=[out, turns], **options)
    return out


def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every call of NumbaMma."""
    seen: list[int] = []
    call = NumbaMma.__call__

    def counted(self: NumbaMma, *arguments: Any, **words: Any) -> None:
        seen.append(1)
        call(self, *arguments, **words)

    monkeypatch.setattr(NumbaMma, "__call__", counted)
    return seen


def test_numpy_until_numba_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fourth product of nine is numba's: after three the limit is reached."""
    wanted = launch()
    seen = calls(monkeypatch)
    launch()
    assert not seen
    forget(monkeypatch)
    for name in ("WARM", "COLD"):
        monkeypatch.setattr(numba_choice, name, 3 * 16 * 8 * 16)
    assert (launch() == wanted).all()
    assert len(seen) == 6
    assert (launch(5) == launch(5)).all()
    assert len(seen) == 16


def test_numba_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first product on; and what it does not cover is left to numpy."""
    wanted = launch()
    seen = calls(monkeypatch)
    monkeypatch.setenv(library.VARIABLE, "numba")
    assert (launch() == wanted).all()
    assert len(seen) == 9
    assert (launch(jobs=2) == wanted).all()
    double: Any = tensor_instruction(
        tuple("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64".split(".")), "sm_80"
    )
    assert not covers(double)


def test_numpy_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = calls(monkeypatch)
    monkeypatch.setenv(library.VARIABLE, "numpy")
    for name in ("WARM", "COLD"):
        monkeypatch.setattr(numba_choice, name, 0)
    launch()
    assert not seen


def broken(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    for name in ("WARM", "COLD"):
        monkeypatch.setattr(numba_choice, name, 0)
    if how == "import":
        monkeypatch.setitem(sys.modules, "fragir.emulator.native.numba_mma", None)
        monkeypatch.delattr("fragir.emulator.native.numba_mma", raising=False)
        return
    from fragir.emulator.native import numba_mma

    class Refused(Exception):
        pass

    def refuses(*arguments: object) -> None:
        raise Refused("no such type\nand a long story")

    monkeypatch.setattr(numba_mma, "entries", lambda: (refuses, refuses))


@pytest.mark.parametrize("how", ["import", "compile"])
def test_numba_that_does_not_work(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """numpy computes, and the reason is told; asked for by name it is an error."""
    wanted = launch()
    broken(monkeypatch, how)
    assert (launch() == wanted).all()
    assert library.core() == "numpy"
    told = str(library.why_not_faster())
    assert "numba does not work here: " in told
    assert ("Refused: no such type" in told) == (how == "compile")
    assert "long story" not in told
    assert "pip install" not in told
    forget(monkeypatch)
    monkeypatch.setenv(library.VARIABLE, "numba")
    with pytest.raises(FragirError, match="FRAGIR_CORE asks for numba: numba does not work here"):
        launch()


def test_without_a_directory_for_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numba can write nowhere, functions are compiled and not kept."""
    from numba.core import caching  # pyright: ignore[reportMissingTypeStubs]

    from fragir.emulator.native import numba_mma

    assert numba_mma.cache_path() is not None
    classes: Any = caching.CacheImpl  # pyright: ignore[reportUnknownMemberType]
    monkeypatch.setattr(classes, "_locator_classes", [])
    mma, wgmma = numba_mma._entries(1)  # pyright: ignore[reportPrivateUsage]
    assert mma.stats.cache_path is wgmma.stats.cache_path is None
