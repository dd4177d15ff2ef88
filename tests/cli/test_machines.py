"""`fragir run --as`: one kernel with the arithmetic of several machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir.cli.machines import common_target, differences
from fragir.cli.trial import Trial
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded

Fragir = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("kept_cubins")

TERMS = """\
func.func @terms(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.fill %zero : !frag.tile<16x8xf32>
  %td = frag.mma %ta, %tb, %tc : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>,
    !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %td, %c[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
"""


def run_as(fragir: Fragir, machines: str, *more: str) -> Any:
    """Row 3 of A and all columns of B: 1 and four products of 2^-25; else zeros."""
    a, b = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16)
    a[3, 0], b[0] = 1, 1
    a[3, 1:5], b[1:5] = 2.0**-12, 2.0**-13
    Path("terms.mlir").write_text(TERMS)
    np.save("a.npy", a)
    np.save("b.npy", b)
    given = ("--arg", "a=a.npy", "--arg", "b=b.npy", "--as", machines)
    return fragir("run", "terms.mlir", "--on", "emulator", *given, *more)


def test_bits_that_the_parameters_say(fragir: Fragir):
    result = run_as(fragir, "sm_80,sm_89,sm_90", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert (found["target"], found["result"]) == ("sm_80", "PASS")
    first, second, third = found["machines"]
    assert [each["target"] for each in (first, second, third)] == ["sm_80", "sm_89", "sm_90"]
    assert {each["result"] for each in (first, second, third)} == {"PASS"}
    assert first["differing"] == second["differing"] == {}
    # beside 1 Ampere cuts each product at 2^-24, Hopper at 2^-25 (docs/arithmetic.md)
    of_hopper = {"differing": 8, "size": 128, "largest": 2.0**-23}
    assert third["differing"]["c"] == {**of_hopper, "first": [3, 0], "values": [1, 1 + 2.0**-23]}


def test_told(fragir: Fragir):
    told = run_as(fragir, "sm_90a,sm_80")
    assert told.code == 0, told.err
    flat = " ".join(told.out.split())
    assert "on sm_90a PASS" in flat
    assert "c has other bits in 8 of 128 elements, up to 1.19e-07 apart; [3, 0] is 1, and" in flat


def test_one_machine_that_fails_fails_all(monkeypatch: pytest.MonkeyPatch):
    trial = Trial(TERMS, "terms.mlir", None, "sm_80", "emulator", "sm_80")
    trial.compile()
    trial.prepare({}, {}, "normal", 0)
    trial.choose_entry()
    trial.evaluate()
    trial.execute()
    trial.judge()
    evaluate = Trial.evaluate

    def other_meaning(trial: Trial) -> None:
        evaluate(trial)
        if trial.machine == "sm_90":
            trial.expected = {
                i: Bounded(one.value + 1, one.bound) for i, one in trial.expected.items()
            }

    monkeypatch.setattr(Trial, "evaluate", other_meaning)
    assert trial.verdict == "PASS"
    trial.run_on_others(("sm_80", "sm_89", "sm_90"))
    assert [each.verdict for each in trial.machines] == ["PASS", "PASS", "FAIL"]
    assert (trial.verdict, trial.mismatches, trial.machine) == ("FAIL", 128, "sm_80")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--as", "sm_80"), "one machine"),
        (("--as", "sm_80,sm_80"), "one machine"),
        (("--as", "sm_80,sm_81"), "sm_81"),
        (("--as", "sm_80,sm_90", "--target", "sm_90a"), "code for sm_90a does not run on sm_80"),
        (("--as", "sm_80,sm_90", "--target", "sm_89"), "code for sm_89 does not run on sm_80"),
    ],
)
def test_refused(fragir: Fragir, options: tuple[str, ...], message: str):
    Path("terms.mlir").write_text(TERMS)
    result = fragir("run", "terms.mlir", "--on", "emulator", *options)
    assert result.code in (1, 2)
    assert message in result.err


def test_the_target_that_all_can_run():
    assert common_target(("sm_89", "sm_80"), None) == "sm_80"
    assert common_target(("sm_90a", "sm_120"), None) == "sm_90"
    assert common_target(("sm_90a", "sm_120"), "sm_80") == "sm_80"
    with pytest.raises(FragirError, match="does not run"):
        common_target(("sm_90a", "sm_120"), "sm_90a")


def test_differences():
    one = np.array([[0.0, 1.0, np.nan], [2.0, 3.0, 4.0]], np.float32)
    other = one.copy()
    assert differences(one, other, "f32") is None
    other[0, 0], other[1, 1], other[1, 2] = -0.0, 3.5, np.inf
    found = differences(one, other, "f32")
    assert found is not None
    assert (found.differing, found.size, found.largest) == (3, 6, np.inf)
    assert (found.first, found.values, found.document["largest"]) == ((0, 0), (0.0, -0.0), None)
    packed = np.array([0x21, 0x43], np.uint8)
    found = differences(packed, np.array([0x21, 0x53], np.uint8), "u4")
    assert found is not None
    assert (found.differing, found.size, found.first, found.values) == (1, 4, (3,), (4, 5))
