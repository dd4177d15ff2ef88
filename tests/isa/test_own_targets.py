"""A target of a user's own: what it has, and that every part of the project knows it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import fragir
from fragir import isa
from fragir.cli.main import main
from fragir.errors import FragirError
from fragir.isa import Target
from fragir.isa.targets import TARGETS, require_target
from fragir.isa.versions import has, lowest_version, requirement
from fragir.ptx.machines import machine, shared_problem
from fragir.toolchain.ptxas import assemble

OWN = Target(
    "sm_95a",
    "9.0",
    inherits="sm_90a",
    lacks=("stmatrix*", "redux.sync*"),
    lowering={"mma.sync.*.f64.*": "emulated"},
    shared=300 << 10,
    static_shared=64 << 10,
)
K16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F64 = "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"
STMATRIX = "stmatrix.sync.aligned.m8n8.x4.b16"
# five stages of 48 KiB each: more than the 227 KiB of an sm_90a
GEMM = """
func.func @gemm(%a: memref<128x64xf16>, %b: memref<64x256xf16>, %c: memref<128x256xf32>) {
  frag.matmul %a, %b into %c {tile = array<i64: 128, 256, 64>, stages = 5 : i64}
    : memref<128x64xf16>, memref<64x256xf16> into memref<128x256xf32>
  func.return
}
"""


@pytest.fixture
def own() -> Iterator[Target]:
    isa.register_target(OWN)
    yield OWN
    isa.unregister_target(OWN.name)


def mnemonics(target: str) -> set[str]:
    return {instruction.mnemonic for instruction in isa.instructions(target=target)}


def test_it_has_what_the_other_has_but_what_it_lacks(own: Target) -> None:
    assert require_target("sm_95a") == list(TARGETS)[-1] == "sm_95a"
    missing = mnemonics("sm_90a") - mnemonics("sm_95a")
    assert missing == {name for name in mnemonics("sm_90a") if name.startswith("stmatrix")}
    assert mnemonics("sm_95a") < mnemonics("sm_90a")
    found = isa.lookup(K16, target="sm_95a")
    assert (found.targets["sm_95a"], found.lowering["sm_95a"]) == ("9.0", "native")
    assert isa.lookup(F64).lowering["sm_95a"] == "emulated"
    with pytest.raises(isa.UnknownInstruction, match="sm_95a does not have it"):
        isa.lookup(STMATRIX, target="sm_95a")


def test_opcodes_around_the_tensor_cores(own: Target) -> None:
    assert has("wgmma.fence", "sm_95a")
    assert "sm_95a" not in requirement("redux.sync.add.s32").targets
    assert "sm_90a" in requirement("redux.sync.add.s32").targets
    assert not has("cvt.e2m1x2", "sm_95a")  # a later machine's, although 95 is above 90
    assert requirement("setmaxnreg").lowest_target == "sm_90a"
    assert lowest_version("cvt.rn.satfinite.e4m3x2.f32", "sm_95a") == "9.0"


def test_instructions_of_ones_own_are_inherited_too(own: Target) -> None:
    isa.register(isa.lookup(K16).with_operands())
    assert "sm_95a" in isa.lookup(K16).targets
    isa.unregister(K16)


def test_it_is_compiled_for_and_emulated(own: Target) -> None:
    with pytest.raises(FragirError, match="take 245760 bytes of shared memory, sm_90a has 232448"):
        fragir.compile(GEMM, target="sm_90a")
    kernel = fragir.compile(GEMM, target="sm_95a")
    assert kernel.ptx.startswith(".version 9.0\n.target sm_95a\n")
    assert "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16" in kernel.ptx
    a = np.arange(128 * 64).reshape(128, 64) % 7 - 3
    b = np.arange(64 * 256).reshape(64, 256) % 5 - 2
    c = np.zeros((128, 256), np.float32)
    kernel(a.astype(np.float16), b.astype(np.float16), c, on="emulator")
    assert (c == a @ b).all()


def test_limits(own: Target) -> None:
    assert machine("sm_95a").shared == 300 << 10
    assert machine("sm_95a").static_shared == 64 << 10
    assert machine("sm_95a").cluster == machine("sm_90a").cluster
    assert shared_problem("sm_95a", 300 << 10) is None
    problem = shared_problem("sm_95a", (300 << 10) + 1)
    assert problem is not None
    assert "sm_95a has at most 307200" in problem[0]


def test_the_command_line_knows_it(own: Target, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["instructions", "--target", "sm_95a", "--only", "ldmatrix*"]) == 0
    assert "native" in capfd.readouterr().out
    assert main(["emit", K16, "--target", "sm_95a"]) == 0
    assert ".target sm_95a" in capfd.readouterr().out


def test_ptxas(own: Target) -> None:
    """What ptxas does not know it cannot assemble, unless the target says as what."""
    ptx = fragir.compile(GEMM, target="sm_95a").ptx
    with pytest.raises(FragirError, match="knows no target `sm_95a`") as refused:
        assemble(ptx, "sm_95a", cache=False)
    assert "`assembled_as`" in str(refused.value.hint)
    small = GEMM.replace("stages = 5", "stages = 2")
    isa.register_target(OWN._replace(assembled_as="sm_90a", version="8.0"))
    ptx = fragir.compile(small, target="sm_95a").ptx
    assert ".target sm_95a" in ptx
    assert list(assemble(ptx, "sm_95a", cache=False).entries) == ["gemm"]


def test_what_cannot_be_a_target(own: Target) -> None:
    refused = (
        (OWN._replace(name="hopper"), "no target's name"),
        (OWN._replace(name="sm_90a"), "sm_90a is NVIDIA's"),
        (OWN._replace(name="sm_96a", inherits=""), "inherits the instructions of no target"),
        (OWN._replace(name="sm_96a", inherits="sm_96a"), "inherits the instructions of sm_96a"),
        (OWN._replace(name="sm_96a", version="nine"), "no PTX version"),
    )
    for target, words in refused:
        with pytest.raises(FragirError, match=words):
            isa.register_target(target)
    isa.register_target(Target("sm_96", "9.1", inherits="sm_95a"))
    with pytest.raises(FragirError, match="sm_96 inherits sm_95a"):
        isa.unregister_target("sm_95a")
    assert machine("sm_96").shared == 300 << 10
    assert isa.lookup(K16).targets["sm_96"] == "9.1"
    isa.unregister_target("sm_96")
    with pytest.raises(FragirError, match="was registered"):
        isa.unregister_target("sm_96")


def test_it_goes_again() -> None:
    before = isa.current()
    with isa.using(before.with_target(OWN)):
        assert require_target("sm_95a")
    with pytest.raises(FragirError, match="'sm_95a' is no target of this compiler"):
        fragir.compile(GEMM, target="sm_95a")
    assert "sm_95a" not in isa.lookup(K16).targets
