"""The machine a kernel runs on, and the assembler whose emulation is imitated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, run
from fragir.emulator.launch.limits import can_run

EMPTY = ".version 8.7\n.target {}\n.address_size 64\n.visible .entry k()\n{{\n    ret;\n}}\n"


@pytest.mark.parametrize(
    ("code", "machine", "possible"),
    [
        ("sm_80", "sm_80", True),
        ("sm_80", "sm_90a", True),
        ("sm_80", "sm_75", False),
        ("sm_90a", "sm_90a", True),
        ("sm_90a", "sm_90", False),
        ("sm_90a", "sm_100a", False),
        ("sm_90", "sm_120", True),
        ("sm_100f", "sm_103a", True),
        ("sm_100f", "sm_103", False),
        ("sm_100f", "sm_120f", False),
    ],
)
def test_which_code_runs_where(code: str, machine: str, possible: bool) -> None:
    assert can_run(code, machine) == possible
    text = EMPTY.format(code)
    if possible:
        assert run(text, target=machine).statistics.total == 1
    else:
        with pytest.raises(EmulationError, match=f"code for {code}.*not run on {machine}"):
            run(text, target=machine)


def test_targets_have_names() -> None:
    with pytest.raises(EmulationError, match="'hopper' is no target"):
        run(EMPTY.format("sm_80"), target="hopper")
    with pytest.raises(EmulationError, match="'hopper' is no target"):  # nothing to hold it against
        run(EMPTY.replace(".target {}", "").format(), target="hopper")


FP8 = """
.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .b32 %r<12>; .reg .f32 %f<5>; .reg .b64 %rd<5>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [in]; mad.wide.u32 %rd1, %r1, 32, %rd1;
    ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd1];
    ld.global.v2.b32 {%r6, %r7}, [%rd1+16];
    mov.f32 %f1, 0f00000000;
    mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
        {%f1, %f2, %f3, %f4}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%f1, %f1, %f1, %f1};
    ld.param.u64 %rd2, [out]; mad.wide.u32 %rd2, %r1, 16, %rd2;
    st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};
    ret;
}
"""


def product(ptxas: str | None, target: str = "sm_90") -> npt.NDArray[np.float32]:
    codes = np.random.default_rng(3).integers(0, 0x78, (32, 32), np.uint8)
    out = np.zeros((32, 4), np.float32)
    run(FP8, arguments=[codes, out], target=target, ptxas=ptxas)
    return out


def test_emulated_fp8_depends_on_the_assembler() -> None:
    newest, old = product(None), product("12.4.131")
    assert (newest == product("13.2")).all()
    assert (newest != old).any()
    np.testing.assert_allclose(newest, old, rtol=0.05, atol=1)
    assert (product("12.4", "sm_120") == product("13.2", "sm_120")).all()  # it has the instruction


@pytest.mark.parametrize("version", ["", "13", "new", "13.x", "-1.2"])
def test_versions_are_numbers(version: str) -> None:
    with pytest.raises(EmulationError, match="no version of ptxas"):
        product(version)
