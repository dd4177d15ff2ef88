"""The kit for a GPU, rehearsed on the emulator: made, run, killed, gone on with, reported."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragir
from benchmarks import gemm_cases
from benchmarks.gpu import build, device, probes, rehearse, report, stand_in, steps
from benchmarks.gpu.kit import Kit
from fragir.toolchain import driver, gpu_arguments, ptxas

ROOT = Path(__file__).parents[2]
STEPS = ("machine", "probes", "facts")
"""Of the short rehearsal."""


def quiet(_: str) -> None:
    pass


# The short form of a rehearsal -------------------------------------------------------------------


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small kit of some steps, for this Python and with what is installed in it."""
    with pytest.MonkeyPatch.context() as patch:
        units = probes.table(True)
        few = {name: units[name] for name in list(units)[:5]}
        patch.setattr(probes, "table", {True: few}.get)
        patch.setattr(probes, "first", {True: dict[str, Any]()}.get)
        patch.setattr(probes, "ProcessPoolExecutor", InThisProcess)
        out = tmp_path_factory.mktemp("kit") / "gpu-kit"
        build.build(out, small=True, only=STEPS, with_wheels=False, say=quiet)
    return out


class InThisProcess:
    """In place of a pool: tests run side by side already, and see what is replaced."""

    def __init__(self, _: object) -> None:
        self.map = map

    def __enter__(self) -> InThisProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_a_rehearsal(kit: Path, tmp_path: Path) -> None:
    """As `python -m benchmarks.gpu.rehearse` with less to do: killed and gone on with; five probes
    that go wrong are named, by a driver that refuses the cubins."""
    stage = rehearse.Stage.of(kit, tmp_path, sys.executable)
    run = rehearse.killed(stage, ("--minutes", "2.5"), (4.0,), quiet)
    assert set(run.head["steps"]) == set(STEPS)
    text = report.page_of(run)
    assert "* 20 of 20 kernels of instructions" in text
    assert "* 7 of 7 facts of the machine are as assumed." in text
    with pytest.raises(SystemExit, match="a rehearsal's: no hardware has said this"):
        report.take(tmp_path / "killed", tmp_path / "results")
    # a vector has the inputs and both results
    wrong = rehearse.faulty(stage, 2.5, 0, refuse=True)
    assert wrong.head["cubins"]["taken"] is False
    vectors = [x for _, result in wrong.of_step("probes") for x in result["vectors"]]
    assert len({vector["probe"] for vector in vectors}) == 3
    for vector in vectors:
        (entry,) = vector["results"]
        word = np.dtype(entry["type"])
        ours, theirs = (
            np.frombuffer(probes.bytes_of(entry[key]), word) for key in ("ours", "theirs")
        )
        (at,) = np.frombuffer(probes.bytes_of(entry["at"]), np.int32)
        # the bit that the stand-in changes: number 2 of byte 5
        assert (ours ^ theirs).tolist() == [4 << 8 * (5 - at * word.itemsize)]
        assert all(probes.bytes_of(text) for text in entry["inputs"])


def test_what_a_kit_has(kit: Path) -> None:
    found = json.loads((kit / "kit.json").read_text())
    assert list(found["steps"]) == list(STEPS)
    assert all(len(digest) == 64 for pair in found["cubins"].items() for digest in pair)
    assert all(set(one) == {"what", "why"} for one in found["left_out"])
    with tarfile.open(kit / "data.tar.xz") as archive:
        names = archive.getnames()
        assert all(info.mtime == 0 for info in archive.getmembers())
    cubins = [name for name in names if name.startswith("data/cubins/")]
    assert len(cubins) == len(found["cubins"])
    assert not [name for name in names if name.startswith(("/", ".."))]
    text = (kit / "run.sh").read_text() + (kit / "start.py").read_text()
    assert str(ROOT) not in text


def test_a_kit_is_made_again_alike(tmp_path: Path) -> None:
    made: list[dict[str, Any]] = []
    for name in "ab":
        out = tmp_path / name
        made.append(build.build(out, small=True, only=["machine"], with_wheels=False, say=quiet))
    assert made[0] == made[1]
    one, other = ((tmp_path / name / "data.tar.xz").read_bytes() for name in "ab")
    assert hashlib.sha256(one).digest() == hashlib.sha256(other).digest()


def test_wheels_that_are_needed() -> None:
    """fragir's own needs, and nothing that the machine has or that only NVIDIA's compiler needs."""
    names = {one.partition("==")[0] for one in build.needed()}
    assert {"xdsl", "lark", "immutabledict", "jsonschema"} <= names
    assert not names & {"numpy", "torch", "fragir", "pytest"}
    assert not [name for name in names if name.startswith("nvidia")]


def test_a_kernel_that_is_too_new_is_refused(tmp_path: Path) -> None:
    kit = build.Builder(tmp_path)
    kit.keep("ptx/a.ptx", b".version 9.0\n.target sm_90a\n")
    build.check_versions(kit)
    kit.keep("ptx/b.ptx", b"//\n.version 9.1\n.target sm_90a\n")
    with pytest.raises(SystemExit, match=r"needs PTX 9\.1"):
        build.check_versions(kit)


# Steps -------------------------------------------------------------------------------------------


def test_every_step_has_a_module_with_units() -> None:
    kit = Kit(ROOT, small=True)
    for step in steps.STEPS:
        made = steps.module(step.name)
        units = made.units(kit)
        assert len(set(units)) == len(units)
        assert units or step.name == "conversions"  # which are those that a kit has of Triton's
        assert callable(made.prepare)
        assert callable(made.run)
    assert sum(step.seconds for step in steps.STEPS) == 60 * steps.WHOLE


def test_probes_reach_every_instruction() -> None:
    """All of the table that sm_90a has, and first those that the project began with."""
    from fragir import isa

    probed = {job.instruction.mnemonic for jobs in probes.table(False).values() for job in jobs}
    wanted = {one.mnemonic for one in isa.instructions(target="sm_90a") if not one.refused}
    assert probed == wanted
    first = [job for jobs in probes.first(False).values() for job in jobs]
    shapes = {job.instruction.mnemonic.split(".")[-5 if "wgmma" in job.instruction.mnemonic else 3]
              for job in first}  # fmt: skip
    assert {"m8n8k4", "m8n8k16"} < shapes
    widths = {
        int(n) for n in re.findall(r"m64n(\d+)k16", " ".join(j.instruction.mnemonic for j in first))
    }
    assert widths == set(range(8, 257, 8))


# The stand-in ------------------------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[stand_in.StandIn]:
    """The stand-in in the driver's place, which knows what is assembled in this test."""
    folder = tmp_path / "ptx"
    folder.mkdir()
    fake = stand_in.StandIn({"ptx": [str(folder)]})
    assemble = ptxas.assemble

    def noted(ptx: str, target: str, **options: Any) -> Any:
        made = assemble(ptx, target, **options)
        (folder / f"{hashlib.sha256(made.cubin).hexdigest()}.ptx").write_text(ptx)
        return made

    monkeypatch.setattr(ptxas, "assemble", noted)
    monkeypatch.setattr(driver, "_bindings", lambda: fake)
    monkeypatch.setattr(driver, "_modules", type(driver._modules)())  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(gpu_arguments, "_in_place", stand_in.place_of)
    driver._device.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield fake
    driver._device.cache_clear()  # pyright: ignore[reportPrivateUsage]


def test_a_kernel_for_an_older_machine_runs(gpu: stand_in.StandIn) -> None:
    """It is assembled for the GPU at hand: machine code for sm_80 does not run on sm_90."""
    kernel = fragir.compile((ROOT / "examples/gemm.mlir").read_text(), target="sm_80")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((20, 24), (24, 40)))
    c = np.zeros((20, 40), np.float32)
    kernel(a, b, c, 1.0, 0.0, on="gpu")
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()
    assert gpu.memory == {}


def test_entries_are_texts_of_their_own() -> None:
    text = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.global .b32 g;\n"
        ".visible .entry a() { { ret; } }\n.visible .entry b() { ret; }\n"
    )
    found = stand_in.entries(text)
    assert list(found) == ["a", "b"]
    assert "entry a" in found["a"]
    assert "entry b" not in found["a"]
    assert all(".global .b32 g;" in one and ".version" in one for one in found.values())


# The report --------------------------------------------------------------------------------------


def kept(folder: Path, lines: list[dict[str, Any]], **steps_: Any) -> Path:
    """The results of a run that never was."""
    folder.mkdir(parents=True)
    machine = {"gpu": "NVIDIA A 1", "driver": "580.1", "cuda": "13.0", "ptxas_there": "13.0.1"}
    kit: dict[str, Any] = {
        "commit": "0123456789abcdef",
        "ptxas": "13.2.86",
        "small": False,
        "steps": {"smoke": {}, "gemm": {}, "linalg": {}},
        "left_out": [{"what": "a thing", "why": "its reason"}],
    }
    head: dict[str, Any] = {
        "kit": kit,
        "machine": machine,
        "started": "2026-11-27T00:00:00+00:00",
        "steps": steps_,
    }
    (folder / "session.json").write_text(json.dumps(head))
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


GEMM = {
    "rounds": 20,
    "absent": {"Triton": "not installed"},
    "results": {
        "fragir": {"tflops": [600.0, 590.0, 610.0]},
        "fragir 128x256": {"tflops": [640.5, 630.0, 650.0]},
        "cuBLASLt": {"tflops": [800.0, 790.0, 801.0]},
        "cuBLAS": {"tflops": [780.0, 770.0, 790.0]},
    },
}


def test_a_report(tmp_path: Path) -> None:
    probe = {"name": "mma.x", "cases": {"bits": 4}, "differ": {"bits": [1, 3]}}
    same = {"name": "mma.y", "cases": {"bits": 4, "onehot": 6}, "differ": {}}
    lines = [
        {"step": "probes", "unit": "table:1", "result": {"probes": [probe, same], "wrong": "x"}},
        {"step": "gemm", "unit": "bf16 1x1x1", "result": GEMM},
        {"step": "gemm", "unit": "hung", "failed": "no answer in 9 s"},
        {"step": "facts", "unit": "a", "result": {"wrong": "so | not so"}},
    ]
    done = {"state": "done", "left": 0, "units": 2, "seconds": 1.0}
    results = tmp_path / "results"
    folder = kept(tmp_path / "run", lines, gemm=done, smoke={**done, "state": "left", "left": 1})
    to = report.take(folder, results)
    assert to == results / "nvidia-a-1"
    run = report.Run.of(to)
    assert run.disagreements == [
        ("probes", "mma.x", "other bits in 2 bits"),
        ("gemm", "hung", "no answer in 9 s"),
        ("facts", "a", "so | not so"),
    ]
    text = report.page(results)
    for words in (
        "## NVIDIA A 1",
        "2026-11-27, driver 580.1 (CUDA 13.0), cubins by ptxas 13.2.86, commit `0123456789ab`",
        "* 1 of 2 kernels of instructions (1 instructions) give the emulator's bits in all of 10",
        "| probes | mma.x | other bits in 2 bits |",
        "| facts | a | so / not so |",
        "* smoke: 1 of 2 units",
        "* linalg: all",
        "* Triton, not installed: bf16 1x1x1",
        "* a thing: its reason",
        "| TFLOP/s | fragir | fragir, best | cuBLASLt | cuBLAS |",
        "| bf16 1x1x1 | 600 (590 to 610) | 640 (630 to 650) 128x256 | 800 (790 to 801) | 780 (",
    ):
        assert words in text, words
    made = report.table(results)
    assert made.startswith("**TFLOP/s on NVIDIA A 1** (driver 580.1, ptxas 13.2.86, 2026-11-27;")
    assert made.endswith("fragir beside cuBLASLt's best, geometric mean of 1: 0.75.")
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("a\n<!-- gpu -->\nold\n<!-- /gpu -->\nb\n")
    report.update(results, tmp_path)
    assert (tmp_path / "README.md").read_text() == f"a\n<!-- gpu -->\n{made}\n<!-- /gpu -->\nb\n"
    assert (tmp_path / "docs/hardware.md").read_text() == text
    with pytest.raises(SystemExit, match=r"has no session\.json"):
        report.Run.of(tmp_path / "nothing")


def test_pages_say_what_was_measured_and_nothing_else() -> None:
    part = re.search(r"<!-- gpu -->\n(.*?)\n<!-- /gpu -->", (ROOT / "README.md").read_text(), re.S)
    assert part is not None
    assert part[1] == report.table(ROOT / "results")
    assert (ROOT / "docs/hardware.md").read_text() == report.page(ROOT / "results")


# Numbers -----------------------------------------------------------------------------------------


def test_the_interval_of_a_median() -> None:
    """Sorted values 6 and 15 of 20 (their coverage is 0.9586), 14 and 27 of 40."""
    assert device.median(range(20)) == (9.5, 5, 14)
    assert device.median(range(40)) == (19.5, 13, 26)
    assert device.median([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)


def test_numbers_are_rounded_as_types_are() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = (np.random.default_rng(1).standard_normal(4096) * 30).astype(np.float32)
    values = np.clip(values, -440, 440)
    for name, dtype in (("bf16", ml_dtypes.bfloat16), ("f8E4M3FN", ml_dtypes.float8_e4m3fn)):
        wanted = values.astype(dtype)
        bits = gemm_cases.encode(values, name)
        assert (bits == wanted.view(bits.dtype)).all()
        assert (gemm_cases.decode(bits, name) == wanted.astype(np.float64)).all()
