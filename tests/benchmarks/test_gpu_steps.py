"""Steps of the GPU kit that measure kernels: the kit carries all that runs, here in emulation."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import attention, conversions, examples, kernels, linalg, stand_in
from benchmarks.gpu.build import Builder
from benchmarks.gpu.kit import Work
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.toolchain import driver, gpu_arguments, ptxas


@pytest.fixture
def kit(tmp_path: Path) -> Builder:
    """An empty one, small and without Triton."""
    return Builder(tmp_path, small=True)


@pytest.fixture
def there(kit: Builder, monkeypatch: pytest.MonkeyPatch) -> Callable[..., stand_in.StandIn]:
    """Goes to the machine: a stand-in of the driver, no ptxas, and what the kit carries."""

    def missing(*_: Any, **__: Any) -> Any:
        raise FragirError("the kit does not carry this")

    def go(**faults: Any) -> stand_in.StandIn:
        for module, name in ((driver, "_bindings"), (gpu_arguments, "_in_place")):
            monkeypatch.setattr(module, name, getattr(module, name))  # to be put back
        monkeypatch.setattr(driver, "_modules", OrderedDict[Any, Any]())
        monkeypatch.setattr(ptxas, "_cubin_and_log", missing)
        monkeypatch.setenv("FRAGIR_CUBINS", str(kit.cubins))
        return stand_in.replace(driver, {"ptx": [str(kit.path("ptx"))], **faults})

    return go


def result(step: Any, kit: Builder, unit: str, **without: str) -> dict[str, Any]:
    found: dict[str, Any] = step.run(Work(kit, unit, without))
    return found


# Attention ----------------------------------------------------------------------------------------


def test_attention(kit: Builder, there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "UNITS", {"d64 causal": (64, True)})
    attention.prepare(kit)
    gpu = there()
    found = result(attention, kit, "d64 causal")
    assert list(found["results"]) == ["fragir 128x64 w8", "fragir overlapped 128x128"]
    for one in found["results"].values():
        middle, low, high = one["tflops"]
        assert low <= middle <= high
        # Q K^T and P V of 2 heads, 128 x 128 x 64 each, half of it
        assert middle * one["ms"][0] == pytest.approx(2 * 2 * 2 * 128 * 128 * 64 / 2 / 1e9)
    assert found["absent"]["flash"].endswith("torch is not installed")
    assert gpu.memory == {}


def test_samples_of_attention_are_attention() -> None:
    """In f16 with P rounded, it lies within the bound; by a key more or less, it does not."""
    q, k, v = (kernels.drawn((2, 48, 64), np.float16, seed) for seed in range(3))
    wanted = list(attention.samples(q, k, v, causal=True))
    assert {0, 1, 47} <= {row for _, row, _, _ in wanted}
    for more in (0, 1, -1):
        scores = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 2, 1) / 8
        seen = np.tril(np.ones((48, 48), bool), more)
        seen[:, 0] = True  # one key at least
        p = np.exp(np.where(seen, scores, -np.inf)).astype(np.float16).astype(np.float32)
        o = (p @ v.astype(np.float32) / p.sum(2, keepdims=True)).astype(np.float16)
        assert (attention.wrong(wanted, o) == "") == (more == 0)


# Kernels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", kernels.CASES)
def test_what_is_wrong_with_a_kernel(name: str) -> None:
    """What the emulator computes is right; one element of another row's is not."""
    case = kernels.CASES[name]
    problem = case.make(*case.small)
    kernel = kernels.script(case.file)["k"].compile("sm_90a")
    kernel(*problem.arrays, *problem.numbers, on="emulator")
    output = problem.arrays[problem.output]
    assert problem.check("fragir", output) == ""
    assert problem.check("PyTorch", output) == ""
    output[-1] = np.roll(output, 1)[-1] if output.ndim == 1 else output[0]
    assert problem.check("fragir", output)


def test_rows(kit: Builder, there: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels.script("rows/softmax.py")
    monkeypatch.setattr(kernels, "CASES", {"softmax": kernels.CASES["softmax"]})
    monkeypatch.setattr(examples, "FOLDER", tmp_path / "none")
    kernels.prepare(kit)
    there()
    assert kernels.units(kit) == ["softmax 32 x 256"]
    found = result(kernels, kit, "softmax 32 x 256")
    one = found["results"]["fragir"]
    assert found["bytes"] == 2 * 4 * 32 * 256
    assert one["gbs"][0] * one["ms"][0] * 1e6 == pytest.approx(found["bytes"])
    assert set(found["absent"]) == {"PyTorch", "copy", "Triton softmax 32x256 w4"}


def test_what_is_not_written_is_wrong(there: Any) -> None:
    gpu = there()
    with kernels.on_gpu([np.zeros(40, np.float16)]) as (array,):
        judge = kernels.Judge(array, lambda name, found: f"{name} wrote {found[7]:g}")

        def writes(count: int) -> str:
            def make() -> kernels.Contender:
                gpu.cuMemsetD8Async(array.address, 0, 2 * count, 0)
                return kernels.Contender(lambda: None)

            judge.of({"one": make})["one"]()
            return judge()

        assert writes(37) == "3 elements are not written"
        assert writes(40) == "one wrote 0"


# Examples -----------------------------------------------------------------------------------------


def test_examples(kit: Builder, there: Any) -> None:
    """A program and a script of a folder; one that has ended a process is not run again."""
    examples.prepare(kit, "rows")
    there()
    assert examples.units(kit) == ["examples/rows"]
    program, script = examples.parts(kit, "examples/rows")
    found = result(examples, kit, "examples/rows")
    assert "wrong" not in found
    assert found["examples"][program]["result"] == "PASS"
    assert found["examples"][program]["on"] == "gpu"
    assert found["examples"][script]["launches"] == 3
    assert found["examples"][script]["printed"].endswith("PASS")
    found = result(examples, kit, program, **{program: "ended by SIGKILL"})
    assert found["wrong"] == f"{program}: ended by SIGKILL"


def test_an_example_that_cannot_be_had_is_left_out(kit: Builder) -> None:
    examples.prepare(kit, "quantised")
    left = {one["what"]: one["why"] for one in kit.left_out}
    assert "sm_120a" in left["examples/quantised/block_scaled.mlir mxfp8"]
    assert "examples/quantised/block_scaled.mlir mxfp8" not in examples.listed(kit)


def test_a_script_that_fails_or_launches_nothing(kit: Builder, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("print('no')\nraise SystemExit('FAIL')\n", "utf-8")
    with pytest.raises(FragirError, match="FAIL: no"):
        examples.carry_script(kit, path)
    path.write_text("", "utf-8")
    with pytest.raises(FragirError, match="it launches nothing"):
        examples.carry_script(kit, path)


# Conversions --------------------------------------------------------------------------------------


def test_conversions(kit: Builder, there: Any) -> None:
    conversions.prepare(kit)
    there()
    names = conversions.units(kit)
    assert len(names) == 3  # one of each width
    found = result(conversions, kit, names[0])
    assert list(found["results"]) == ["fragir", "nothing"]
    assert all(len(one["cycles"]) == 3 for one in found["results"].values())


def test_a_loop_that_moves_elements_elsewhere_has_no_time(kit: Builder, there: Any) -> None:
    conversions.prepare(kit)
    name = conversions.units(kit)[-1]
    facts = conversions.loaded(kit)
    facts[name]["kernels"]["fragir"]["sha256"] = facts[name]["kernels"]["nothing"]["sha256"]
    kit.keep("conversions.json", json.dumps(facts).encode())
    there()
    found = result(conversions, kit, name)
    assert found["absent"] == {"fragir": "the elements are elsewhere"}
    assert list(found["results"]) == ["nothing"]


def test_turns_are_those_of_layouts() -> None:
    """Two threads of two bytes exchange halves; the key is there after an odd number of turns."""
    rows, columns = (
        conversions.places(Layout.parse(text))
        for text in ("lane [2:(1,0)] element [4:(0,1)]", "lane [2:(0,1)] element [2:(1,0) 2:(0,2)]")
    )
    words = np.array([[0x03020100], [0x13121110]], np.uint32)
    once = conversions.turned(rows, columns, words, 1)
    key = 0x5A5A5A5A
    assert [hex(x ^ key) for x in once[:, 0].tolist()] == ["0x12021000", "0x13031101"]
    assert (conversions.turned(rows, rows, words, 2) == words).all()


def test_a_kernel_with_branches_has_no_loop() -> None:
    load = "{ .reg .b32 t; mad.wide.u32 a, t, 8, %p; ld.volatile.global.b32 %r0, [a]; }"
    text = f".reqntid 32\n{{\n{load}\nHERE: bra HERE;\nst.volatile.global.b32 [%p], %r0;\n}}"
    with pytest.raises(FragirError, match="branches"):
        conversions.looped(text, 3)
    with pytest.raises(FragirError, match="1 words become 0"):
        conversions.looped(text.replace("st.vol", "st.weak.vol"), 3)


# linalg -------------------------------------------------------------------------------------------


def test_linalg(kit: Builder, there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linalg, "PROGRAMS", {"linears": linalg.PROGRAMS["linears"]})
    linalg.prepare(kit)
    gpu = there()
    found = result(linalg, kit, "linears")
    assert found["results"]["fragir"]["launches"] == 3
    assert set(found["absent"]) == {"PyTorch", "PyTorch, graph"}
    assert gpu.memory == {}
