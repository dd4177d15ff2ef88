"""`make gpu` rehearsed: a stand-in of the driver runs kernels on the emulator."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir import emulator
from fragir.cli.main import main as fragir_main
from fragir.toolchain import driver, gpu_arguments, ptxas

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("fake_cuda", ROOT / "tests/toolchain/fake_cuda.py")
assert _spec is not None
assert _spec.loader is not None
_fake_cuda: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fake_cuda)
OK: Any = _fake_cuda.OK


class Emulating(_fake_cuda.FakeCuda):
    """The stand-in with kernels of any cubin that was assembled here: the emulator runs them."""

    def __init__(self) -> None:
        _fake_cuda.FakeCuda.__init__(self, ())
        self.cubins: dict[bytes, str] = {}
        self.modules: list[str] = []
        self.launches = 0
        self.spoil = self.broken = False
        self.clock = 0
        self.ran: set[tuple[int, tuple[int, ...]]] = set()

    def cuMemAlloc(self, size: int) -> tuple[Any, ...]:
        self.ran.clear()
        return super().cuMemAlloc(size)  # type: ignore[no-any-return]

    def cuMemcpyHtoDAsync(self, to: int, host: int, size: int, stream: int) -> tuple[Any, ...]:
        self.ran.clear()
        return super().cuMemcpyHtoDAsync(to, host, size, stream)  # type: ignore[no-any-return]

    def cuMemsetD8Async(self, to: int, value: int, size: int, stream: int) -> tuple[Any, ...]:
        ctypes.memset(to, value, size)
        return OK

    def cuEventCreate(self, flags: int) -> tuple[Any, ...]:
        return (*OK, [0])

    def cuEventRecord(self, event: list[int], stream: int) -> tuple[Any, ...]:
        self.clock += 1
        event[0] = self.clock
        return OK

    def cuEventElapsedTime(self, before: list[int], after: list[int]) -> tuple[Any, ...]:
        assert after[0] == before[0] + 1  # nothing stands between a run and its events
        return (*OK, 0.5 + before[0] % 7 / 100)

    def cuEventDestroy(self, event: list[int]) -> tuple[Any, ...]:
        return OK

    def cuStreamSynchronize(self, stream: int) -> tuple[Any, ...]:
        return (_fake_cuda.Code.CUDA_ERROR_ILLEGAL_ADDRESS,) if self.broken else OK

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, ...]:
        self.modules.append(self.cubins[image])
        return (*OK, len(self.modules) - 1)

    def cuModuleGetFunction(self, module: int, name: bytes) -> tuple[Any, ...]:
        return (*OK, module)

    def _sizes(self, function: int) -> list[int]:
        head = self.modules[function].partition("{")[0]
        found = re.findall(r"\.param (?:\.align \d+ )?\.[a-z](\d+)[^,\n[]*(?:\[(\d+)\])?", head)
        return [int(bits) // 8 * int(count or 1) for bits, count in found]

    def cuFuncGetParamInfo(self, function: int, index: int) -> tuple[Any, ...]:
        sizes = self._sizes(function)
        if index >= len(sizes):
            return _fake_cuda.Code.CUDA_ERROR_INVALID_VALUE, 0, 0
        return (*OK, 8 * index, sizes[index])

    def cuLaunchKernelEx(
        self, config: Any, function: int, parameters: int, extra: int
    ) -> tuple[Any, ...]:
        sizes, ptx = self._sizes(function), self.modules[function]
        pointers = (ctypes.c_void_p * len(sizes)).from_address(parameters)
        given: list[object] = []
        numbers: list[int] = []
        for pointer, size in zip(pointers, sizes, strict=True):
            number = int.from_bytes(ctypes.string_at(pointer or 0, size), "little")
            numbers.append(number)
            if size == 128:
                given.append(self._tensor_map(number % 256))
                continue
            block = self.memory.get(number)
            given.append(number if block is None else np.frombuffer(block, np.uint8))
        self.launches += 1
        key = function, tuple(numbers)
        if self.spoil or key in self.ran:  # a product in the same buffers is the same again
            return OK
        self.ran.add(key)
        emulator.run(
            ptx,
            grid=(config.gridDimX, config.gridDimY, config.gridDimZ),
            block=(config.blockDimX, config.blockDimY, config.blockDimZ),
            arguments=given,
            shared=config.sharedMemBytes,
            cluster=_cluster(config),
        )
        return OK

    def _tensor_map(self, number: int) -> emulator.TensorMap:
        """The n-th map that was encoded, over memory of the stand-in."""
        kind, _, address, extents, steps, box, _, _, swizzle, *_ = self.maps[number - 1]
        name = kind.name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_")
        element, size = TYPES[name]
        width: Any = int(re.sub(r"\D", "", swizzle.name) or 0)
        return emulator.TensorMap(
            np.frombuffer(self.memory[int(address)], np.uint8),
            tuple(int(one) for one in reversed(box)),
            width,
            strides=(*(int(one) for one in reversed(steps)), size),
            shape=tuple(int(one) for one in reversed(extents)),
            kind=element,
        )


TYPES = {
    "BFLOAT16": ("bf16", 2),
    "FLOAT16": ("f16", 2),
    "FLOAT32": ("f32", 4),
    "UINT8": ("u8", 1),
}
"""Elements as a map's type calls them and as the emulator does, with their bytes."""


def _cluster(config: Any) -> tuple[int, int, int]:
    """The blocks of a cluster that a launch asks for."""
    for attribute in config.attrs[: config.numAttrs]:
        if attribute.id.name == "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION":
            size = attribute.value.clusterDim
            return size.x, size.y, size.z
    return 1, 1, 1


class Benchmarks:
    """The scripts, which import each other as a folder's."""

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module(name)


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    names = ("device", "gemm", "gemm_cases", "gpu", "gpu_table", "tune")
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    before = set(sys.modules)
    yield Benchmarks()
    for name in {*names} - before:
        sys.modules.pop(name, None)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scripts: Any) -> Any:
    """The stand-in in the driver's place; small cases in place of large ones."""
    fake = Emulating()
    assemble = ptxas.assemble

    def noted(ptx: str, target: str, **options: Any) -> Any:
        made = assemble(ptx, target, **options)
        fake.cubins[made.cubin] = ptx
        return made

    monkeypatch.setenv("FRAGIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ptxas, "assemble", noted)
    monkeypatch.setattr(driver, "_bindings", lambda: fake)
    monkeypatch.setattr(driver, "_modules", type(driver._modules)())  # pyright: ignore[reportPrivateUsage]

    def place_of(array: Any, *_: object) -> int:
        return int(array.address)

    # cuda-core, which knows where an array of another package lies, needs a GPU
    monkeypatch.setattr(gpu_arguments, "_in_place", place_of)
    monkeypatch.setattr(scripts.device, "_FLUSH", 1 << 10)
    small = [scripts.gemm_cases.Case("square", "bf16", 64, 64, 64)]
    small.append(scripts.gemm_cases.Case("odd", "f16", 40, 72, 24))
    monkeypatch.setattr(scripts.gemm, "cases", lambda: small)
    monkeypatch.setattr(scripts.tune, "cases", lambda: small[:1])
    monkeypatch.setattr(scripts.tune, "FEW", 2)
    monkeypatch.setattr(scripts.tune, "MORE", 3)
    return fake


TILES = ("", "tile = array<i64: 64, 64, 64>", "tile = array<i64: 64, 128, 64>", "tile = 7 : i64")


PROBE = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"


def tiles(case: Any, target: str) -> Sequence[str]:
    return TILES


def quiet(_: str) -> None:
    pass


def test_products_are_measured_and_kept(gpu: Any, scripts: Any, tmp_path: Path) -> None:
    gemm, said = scripts.gemm, list[str]()
    chosen = gemm.cases()
    assert gemm.measure(chosen, tmp_path, 6, say=said.append)
    rows = json.loads((tmp_path / "a-gpu" / "gemm.json").read_text())
    assert sorted(rows) == ["bf16 64x64x64", "f16 40x72x24"]
    row = rows["bf16 64x64x64"]
    assert row["machine"]["gpu"] == "A GPU"
    assert row["machine"]["ptxas"]
    assert len(row["ptx_sha256"]) == 64
    assert row["clocks"]["before"].keys() == {"sm", "memory", "power", "temperature"}
    middle, low, high = row["results"]["fragir"]["tflops"]
    assert low <= middle <= high
    assert row["results"]["fragir"]["ms"][0] == pytest.approx(2 * 64**3 / middle / 1e9)
    assert set(row["absent"]) == {"cuBLAS", "Triton"}  # neither is installed here
    # what is there is not measured again, but for another PTX, or more rounds
    before = gpu.launches
    assert before == 2 * (1 + 3 + 6)  # the check, warming up, and the rounds
    assert gemm.measure(chosen, tmp_path, 6, say=said.append)
    assert gpu.launches == before
    assert said[-2:] == [f"{key}: kept" for key in rows]
    rows["bf16 64x64x64"]["ptx_sha256"] = "another"
    gemm.save(tmp_path / "a-gpu" / "gemm.json", rows)
    assert gemm.measure(chosen, tmp_path, 6, say=quiet)
    assert gpu.launches == before + 10
    assert not gemm.measure(chosen, tmp_path, 7, say=quiet, seconds=-1)
    assert gpu.memory == {}


def test_what_is_wrong_has_no_time(gpu: Any, scripts: Any, tmp_path: Path) -> None:
    gpu.spoil = True
    assert scripts.gemm.measure(scripts.gemm.cases()[:1], tmp_path, 6, say=quiet)
    (row,) = json.loads((tmp_path / "a-gpu" / "gemm.json").read_text()).values()
    assert row["results"] == {}
    assert "elements are wrong: C[" in row["absent"]["fragir"]
    assert scripts.gpu_table.table(tmp_path) == scripts.gpu_table.NONE


def test_a_kernel_that_ends_the_context_is_not_run_again(
    gpu: Any, scripts: Any, tmp_path: Path
) -> None:
    said: list[str] = []
    gpu.broken = True
    chosen = scripts.gemm.cases()
    with pytest.raises(Exception, match="illegal address"):
        scripts.gemm.measure(chosen, tmp_path, 6, say=said.append)  # not even buffers
    launch = gpu.cuLaunchKernelEx
    gpu.broken = False

    def breaks(*arguments: Any) -> Any:
        gpu.broken = True
        return launch(*arguments)

    gpu.cuLaunchKernelEx = breaks
    assert not scripts.gemm.measure(chosen, tmp_path, 6, say=said.append)
    assert said[-1].startswith("a kernel has ended the context")
    gpu.cuLaunchKernelEx, gpu.broken = launch, False
    assert scripts.gemm.measure(chosen, tmp_path, 6, say=said.append)
    assert said[-2] == "bf16 64x64x64: kept"
    rows = json.loads((tmp_path / "a-gpu" / "gemm.json").read_text())
    assert [sorted(row["results"]) for row in rows.values()] == [[], ["fragir"]]


def test_schedules_are_tried(gpu: Any, scripts: Any, tmp_path: Path) -> None:
    chosen = scripts.tune.cases()
    assert scripts.tune.run(chosen, tmp_path, tried=TILES, say=quiet)
    path = tmp_path / "a-gpu" / "tuning.json"
    (row,) = json.loads(path.read_text()).values()
    assert {one["attributes"] for one in row["ranking"]} <= set(TILES[:3])
    assert set(row["left_out"]) == {TILES[3]}
    times = [one["ms"][0] for one in row["ranking"]]
    assert times == sorted(times)
    before = gpu.launches
    assert scripts.tune.run(chosen, tmp_path, tried=TILES, say=quiet)
    assert gpu.launches == before
    best = scripts.gemm.best_of(path, row["machine"])
    assert set(best.values()) <= set(TILES[1:3])
    assert not scripts.tune.run(chosen, tmp_path / "more", tried=TILES, seconds=-1, say=quiet)


def test_roles_clusters_and_parts_are_tried(gpu: Any, scripts: Any, tmp_path: Path) -> None:
    """Of the candidates some with each of them, measured: their results are right."""
    case = scripts.gemm_cases.Case("deep", "bf16", 128, 64, 1024)
    every = scripts.tune.candidates(case, "sm_90a")
    words = ("roles", "cluster = 2", "consumers = 2", "split_k")
    found = [next(one for one in every if word in one) for word in words]
    tried = list(dict.fromkeys([*found, found[-1].replace("split_k", "stream_k")]))
    assert scripts.tune.run([case], tmp_path, tried=tried, say=quiet)
    (row,) = json.loads((tmp_path / "a-gpu" / "tuning.json").read_text()).values()
    assert list(row["left_out"].values()) == []
    assert set(row["first_rounds"]) == set(tried)
    assert gpu.memory == {}
    # what was found best is measured beside the others with its memory
    best = scripts.gemm.run_case(case, 2, next(one for one in every if "split_k" in one))
    assert "fragir, tuned" in best["results"]
    assert gpu.memory == {}


def test_candidates_are_of_each_kind(scripts: Any) -> None:
    """Of a large product no sums in parts; of a machine without tensor maps no roles."""
    cases = scripts.gemm_cases
    large = scripts.tune.candidates(cases.Case("square", "bf16", 8192, 8192, 8192), "sm_90a")
    assert any("roles" in one and "cluster = 2" in one for one in large)
    assert not any("split_k" in one or "stream_k" in one for one in large)
    deep = cases.Case("deep", "bf16", 1024, 1024, 65536)
    older = scripts.tune.candidates(deep, "sm_80")
    assert any("split_k" in one for one in older)
    assert not any("roles" in one for one in older)
    odd = scripts.tune.candidates(cases.Case("odd", "bf16", 4095, 4097, 4104), "sm_90a")
    assert not any("roles" in one for one in odd)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("type", ["bf16", "tf32", "e4m3"])
def test_candidates_compile(scripts: Any, target: str, type: str) -> None:
    import fragir

    case = scripts.gemm_cases.Case("square", type, 512, 512, 512)
    if type == "e4m3" and target == "sm_80":
        return  # which has no fp8
    found = scripts.tune.candidates(case, target)
    assert len(found) == len(set(found)) > 15
    for attributes in found[:: len(found) // 3]:
        fragir.compile(scripts.gemm_cases.program(case, attributes), target=target)


def test_a_session_is_broken_off_and_goes_on(gpu: Any, scripts: Any, tmp_path: Path) -> None:
    done: list[str] = []
    stop = "tune"

    def run(command: Sequence[str], seconds: float) -> int:
        """The commands themselves, in this process and with less to do."""
        assert seconds > 0
        match list(command):
            case ["benchmarks/gemm.py", *options]:
                done.append("gemm")
                return int(scripts.gemm.main([*options, "--rounds", "6"]))
            case ["benchmarks/tune.py", *options]:
                if stop == "tune":
                    raise KeyboardInterrupt
                done.append("tune")
                scripts.tune.candidates = tiles
                return int(scripts.tune.main(options))
            case ["-m", "fragir.cli.main", "validate", *options]:
                done.append("validate")
                few = [word for word in options if word not in ("--only", "wgmma*")]
                return fragir_main(["validate", *few, "--only", PROBE, "--cases", "1"])
            case ["-m", name, *options]:
                done.append(options[0] if name == "fragir.cli.main" else name)
                return 0
            case _:
                return 1

    with pytest.raises(KeyboardInterrupt):
        scripts.gpu.session(tmp_path, 5, run=run, say=quiet)
    path = tmp_path / "a-gpu" / "session.json"
    states = {name: one["state"] for name, one in json.loads(path.read_text())["steps"].items()}
    names = [step.name for step in scripts.gpu.STEPS]
    assert list(states) == names[: names.index("tune") + 1]
    assert states["tune"] == "running"
    before, stop = len(done), ""
    state = scripts.gpu.session(tmp_path, 5, run=run, say=quiet)
    assert done[before:] == ["tune", "gemm", "validate"]
    assert {one["state"] for one in state["steps"].values()} == {"done"}
    assert list(state["steps"]) == names
    # all is done, unless it is asked for again
    before = len(done)
    scripts.gpu.session(tmp_path, 5, run=run, say=quiet, again=["smoke"])
    assert len(done) == before + 1
    text = scripts.gpu_table.table(tmp_path)
    assert text.startswith("**TFLOP/s on A GPU** (driver 13.0, ptxas ")
    assert "| bf16, 64 x 64 x 64 | " in text
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- gpu -->\nold\n<!-- /gpu -->\nb\n")
    scripts.gpu_table.update(page, tmp_path)
    assert page.read_text() == f"a\n<!-- gpu -->\n{text}\n<!-- /gpu -->\nb\n"


def test_commands_of_the_steps_are_taken(scripts: Any) -> None:
    """Options that the commands have; a step that is over is told apart from one that failed."""
    for step in scripts.gpu.STEPS:
        words = [word.format(folder="f", results="r", minutes="1") for word in step.command]
        assert all((ROOT / word).exists() for word in words if word.endswith((".py", ".mlir")))
        if words[0].startswith("benchmarks/"):
            script: Callable[[list[str]], int] = importlib.import_module(Path(words[0]).stem).main
            assert script(words[1:]) == 1  # no GPU
    assert scripts.gpu.run_command(["-c", "import sys; sys.exit(5)"], 60) == 5
    sleeps = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: pass"
    assert scripts.gpu.run_command(["-c", sleeps], 0.5) == scripts.gemm.LEFT


def test_readme_says_what_was_measured_and_nothing_else(scripts: Any) -> None:
    part = re.search(r"<!-- gpu -->\n(.*?)\n<!-- /gpu -->", (ROOT / "README.md").read_text(), re.S)
    assert part is not None
    assert part[1] == scripts.gpu_table.table(ROOT / "results")


def test_the_interval_of_a_median(scripts: Any) -> None:
    """Sorted values 6 and 15 of 20 (their coverage is 0.9586), 14 and 27 of 40."""
    median = scripts.device.median
    assert median(range(20)) == (9.5, 5, 14)
    assert median(range(40)) == (19.5, 13, 26)
    assert median([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)


def test_numbers_are_rounded_as_types_are(scripts: Any) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    cases = scripts.gemm_cases
    values = (np.random.default_rng(1).standard_normal(4096) * 30).astype(np.float32)
    values = np.clip(values, -440, 440)
    for name, dtype in (("bf16", ml_dtypes.bfloat16), ("f8E4M3FN", ml_dtypes.float8_e4m3fn)):
        wanted = values.astype(dtype)
        bits = cases.encode(values, name)
        assert (bits == wanted.view(bits.dtype)).all()
        assert (cases.decode(bits, name) == wanted.astype(np.float64)).all()
