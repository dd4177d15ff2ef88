"""Host programs without fragir do what `Kernel` does, against a stand-in of the driver."""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragir
from fragir.compilation.kernel import Kernel
from fragir.errors import FragirError
from fragir.launchers import launcher
from fragir.launchers.plan import Array, Map, plan_of
from fragir.toolchain.find import PTXAS, find

FOLDER = Path(__file__).parent

GEMM = """\
func.func @add(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>,
               %alpha: f32, %beta: f32) {
  frag.matmul %a, %b into %c {tile = array<i64: 128, 256, 64>}
    : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32> epilogue {
  ^bb0(%sum: f32, %old: f32):
    %0 = arith.mulf %alpha, %sum : f32
    %1 = arith.mulf %beta, %old : f32
    %2 = arith.addf %0, %1 : f32
    frag.yield %2 : f32
  }
  func.return
}
"""

# Rows apart by a number that the launch gives, a half by value, blocks of a product of sizes.
STRIDES = """\
func.func @add(%x: memref<?x64xf16, strided<[?, 1]>> {frag.sizes = ["rows"]}, %half: f16,
               %count: i64, %y: memref<64xf32>) attributes {
                 frag.grid = #frag.grid<rows by 16 * 3 at most resident>,
                 frag.warps = array<i64: 1, 1>} {
  %zero = arith.constant 0 : index
  %t = frag.load %x[%zero, 0] masked : memref<?x64xf16, strided<[?, 1]>> -> !frag.tile<16x64xf16>
  frag.store %t, %x[%zero, 0] masked : !frag.tile<16x64xf16>, memref<?x64xf16, strided<[?, 1]>>
  func.return
}
"""


def cuda_header() -> Path | None:
    """The folder of cuda.h: that of the packages, or of an installed toolkit."""
    tool = find(PTXAS).path
    nvcc = shutil.which("nvcc")
    places = [tool.parents[1], Path("/usr/local/cuda"), *([Path(nvcc).parents[1]] if nvcc else [])]
    found = (place / "include" for place in places)
    return next((folder for folder in found if (folder / "cuda.h").is_file()), None)


COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
HEADER = cuda_header()
NEEDS = pytest.mark.skipif(
    COMPILER is None or HEADER is None or os.name != "posix",
    reason=f"no C compiler ({COMPILER}) or no cuda.h ({HEADER})",
)


def compiled(command: list[str | Path], folder: Path) -> None:
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a `libcuda.so.1` that records launches."""
    folder = tmp_path_factory.mktemp("driver")
    assert COMPILER is not None
    command = [COMPILER, "-shared", "-fPIC", "-isystem", HEADER, FOLDER / "fake_driver.c"]
    compiled([*map(str, command), "-o", "libcuda.so.1"], folder)
    (folder / "libcuda.so").symlink_to("libcuda.so.1")
    return folder


def build(text: str, folder: Path, stand_in: Path, *options: str) -> Path:
    """Compiles a host program, with every warning an error."""
    (folder / "program.c").write_text(text)
    assert COMPILER is not None
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Werror", *options]
    libraries = ["-isystem", str(HEADER), f"-L{stand_in}", "-lcuda", f"-Wl,-rpath,{stand_in}"]
    compiled([COMPILER, *warnings, "program.c", "-o", "program", *libraries], folder)
    return folder / "program"


def run(command: list[str], folder: Path, kernel: Kernel, **more: str) -> Any:
    sizes = " ".join(
        str(one["bytes"]) for one in json.loads(launcher(kernel, "json"))["parameters"]
    )
    (folder / "log").unlink(missing_ok=True)
    environment = os.environ | {"FAKE_CUDA_LOG": "log", "FAKE_CUDA_SIZES": sizes} | more
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def launches(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def same_as_kernel(launched: dict[str, Any], fake: Any, pointers: set[int]) -> None:
    """The launch is that which `Kernel` makes of the same arguments, addresses aside."""
    config = fake.config
    assert launched["grid"] == [config.gridDimX, config.gridDimY, config.gridDimZ]
    assert launched["block"] == [config.blockDimX, config.blockDimY, config.blockDimZ]
    assert launched["shared"] == launched["allowed"] == config.sharedMemBytes
    values = [bytes.fromhex(text) for text in launched["parameters"]]
    assert len(values) == len(fake.parameters)
    for number, (one, other) in enumerate(zip(values, fake.parameters, strict=True)):
        assert (one == other) or number in pointers


@functools.cache
def gemm_kernel() -> Kernel:
    return fragir.compile(GEMM, target="sm_90a")


@pytest.fixture
def gemm(make: Callable[..., Any]) -> tuple[Kernel, Any]:
    """A kernel with large shared memory, which `Kernel` launched: m = 300, n = 130, k = 77."""
    kernel = gemm_kernel()
    fake = make(8, 4, 4, 8, 4, 4, 8, 4, 4, 4, 4)
    a, b = np.zeros((300, 77), np.float16), np.zeros((77, 130), np.float16)
    kernel(a, b, np.zeros((300, 130), np.float32), 1.5, -0.25, on="gpu")
    return kernel, fake


SIZES = ["m=300", "n=130", "k=77", "alpha=1.5", "beta=-0.25"]


@NEEDS
def test_a_program_in_c(gemm: tuple[Kernel, Any], tmp_path: Path, stand_in: Path) -> None:
    kernel, fake = gemm
    assert kernel.shared > 48 * 1024
    program = build(launcher(kernel, "c"), tmp_path, stand_in)
    data = np.arange(300 * 77, dtype=np.uint16).tobytes()
    (tmp_path / "a.bin").write_bytes(data)
    arrays = ["a=a.bin,a.out", "b=", "c=,c.out"]
    done = run([str(program), *SIZES, *arrays], tmp_path, kernel)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (launched,) = launches(tmp_path)
    same_as_kernel(launched, fake, {0, 3, 6})
    # the stand-in's kernel adds 1 to every byte
    assert (tmp_path / "c.out").read_bytes() == b"\1" * (300 * 130 * 4)
    expected = bytes((byte + 1) % 256 for byte in data)
    assert (tmp_path / "a.out").read_bytes() == expected


@NEEDS
def test_a_program_in_c_tells_what_is_wrong(
    gemm: tuple[Kernel, Any], tmp_path: Path, stand_in: Path
) -> None:
    kernel, _ = gemm
    program = str(build(launcher(kernel, "c"), tmp_path, stand_in))
    (tmp_path / "a.bin").write_bytes(b"abc")
    for words, code, said in (
        (["m=3"], 2, "k=NUMBER is missing"),
        (["what"], 2, "usage: "),
        ([*SIZES, "a=a.bin"], 1, "a.bin: this file has not 46200 bytes"),
        ([*SIZES, "a=none.bin"], 1, "none.bin: cannot be read"),
        ([*SIZES, "m=-1"], 0, ""),  # the first counts
        (["m=-1", *SIZES[1:]], 1, ""),
    ):
        done = run([program, *words], tmp_path, kernel)
        assert done.returncode == code, words
        assert said in done.stderr
    for name in ("cuInit", "cuModuleLoadData", "cuMemAlloc", "cuLaunchKernelEx"):
        done = run([program, *SIZES], tmp_path, kernel, FAKE_CUDA_FAILS=name)
        assert done.returncode == 1
        assert done.stderr.endswith("invalid argument\n")
    empty = run([program, "m=0", *SIZES[1:]], tmp_path, kernel)
    assert (empty.returncode, (tmp_path / "log").exists()) == (0, False)


@NEEDS
def test_nvcc_and_cpp_take_the_program(gemm: tuple[Kernel, Any], tmp_path: Path) -> None:
    kernel, _ = gemm
    (tmp_path / "program.cpp").write_text(launcher(kernel, "c"))
    tried = 0
    for name in ("c++", "nvcc"):
        if compiler := shutil.which(name):
            include = ["-I", str(HEADER)] if name != "nvcc" else []
            compiled([compiler, "-c", "program.cpp", "-o", "program.o", *include], tmp_path)
            tried += 1
    if not tried:
        pytest.skip("neither a C++ compiler nor nvcc is here")


@NEEDS
def test_a_module_in_python(gemm: tuple[Kernel, Any], tmp_path: Path, stand_in: Path) -> None:
    """In a process that cannot import fragir."""
    kernel, fake = gemm
    (tmp_path / "add.py").write_text(launcher(kernel, "python"))
    (tmp_path / "main.py").write_text(
        """
import sys
sys.modules["fragir"] = None
import numpy as np
import add

class OnGpu:
    def __init__(self, array):
        self.__cuda_array_interface__ = dict(array.__array_interface__)

a, b = np.zeros((300, 77), np.float16), np.zeros((77, 130), np.float16)
c = np.zeros((300, 130), np.float32)
add.launch(OnGpu(a), OnGpu(b), OnGpu(c), 1.5, -0.25)
for wrong in ([a], [a, a, c, 1, 1], [a, b, c.T, 1, 1], [a, b, c[:, :7], 1, 1], [a[0], b, c, 1, 1],
              [a[:, ::2], b[:39], c, 1, 1]):
    try:
        add.launch(*(OnGpu(x) if isinstance(x, np.ndarray) else x for x in wrong))
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
"""
    )
    done = run([sys.executable, "main.py"], tmp_path, kernel, LD_LIBRARY_PATH=str(stand_in))
    assert (done.returncode, done.stderr) == (0, "")
    (launched,) = launches(tmp_path)
    same_as_kernel(launched, fake, {0, 3, 6})
    said = done.stdout.splitlines()
    assert len(said) == 6
    assert said[0] == "TypeError add takes (a, b, c, alpha, beta), not 1 arguments"
    assert said[1].startswith("ValueError b has shape (300, 77), not ('k', 'n')")


@NEEDS
def test_strides_and_residents(tmp_path: Path, stand_in: Path, make: Callable[..., Any]) -> None:
    kernel = fragir.compile(STRIDES, target="sm_80")
    sizes = [one["bytes"] for one in json.loads(launcher(kernel, "json"))["parameters"]]
    assert sizes == [8, 4, 4, 2, 8, 8]
    fake = make(*sizes)
    x = np.zeros((100000, 96), np.float16)[:, :64]
    kernel(x, np.float16(1.0), 5, np.zeros(64, np.float32), on="gpu")
    plan = plan_of(kernel)
    assert plan.resident
    (stride,) = (name for name in plan.sizes if name != "rows")
    program = build(launcher(kernel, "c"), tmp_path, stand_in)
    words = ["rows=100000", f"{stride}=96", "half=0x3c00", "count=5"]
    done = run([str(program), *words], tmp_path, kernel)
    assert (done.returncode, done.stderr) == (0, "")
    (launched,) = launches(tmp_path)
    assert launched["grid"] == [132 * 2048 // 32, 1, 1]
    same_as_kernel({**launched, "allowed": 0}, fake, {0, 5})


COUNTED = """
func.func @add(%x: memref<?x?x4xf32> {frag.sizes = ["m", "n"]}, %y: memref<32xf32>)
    attributes {frag.grid = #frag.grid<1>, frag.warps = array<i64: 1, 1>} {
  %v = memref.collapse_shape %x [[0, 1, 2]] : memref<?x?x4xf32> into memref<?xf32>
  %c = arith.constant 4 : index
  %t = frag.load %v[%c] masked : memref<?xf32> -> !frag.tile<32xf32>
  frag.store %t, %y[0] : !frag.tile<32xf32>, memref<32xf32>
  func.return
}
"""


@NEEDS
def test_what_the_kernel_counts_in_32_bits(tmp_path: Path, stand_in: Path) -> None:
    """As `Kernel.check` refuses it: products of sizes from 2^31 on, and sizes."""
    kernel = fragir.compile(COUNTED, target="sm_80")
    assert kernel.counts == plan_of(kernel).counts == ((4, ("m", "n")),)
    assert json.loads(launcher(kernel, "json"))["counts"] == [{"number": 4, "sizes": ["m", "n"]}]
    text = f"""#define ADD_NO_MAIN
#include <stdlib.h>
{launcher(kernel, "c")}
int main(int count, char **s)
{{
    return add_launch(0, 0, atoi(s[count - 2]), atoi(s[count - 1]), 4096, 4096) != CUDA_SUCCESS;
}}
"""
    program = str(build(text, tmp_path, stand_in, "-Wno-unused"))
    (tmp_path / "add.py").write_text(launcher(kernel, "python"))
    (tmp_path / "main.py").write_text(
        """
import sys
import add

class OnGpu:
    def __init__(self, *shape):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<f4", "data": (4096, False),
                                         "version": 3}

try:
    add.launch(OnGpu(*map(int, sys.argv[1:]), 4), OnGpu(32))
except ValueError as error:
    print(error)
"""
    )
    for m, n in ((536870911, 1), (3, 4), (536870912, 1), (65536, 65536), (2**31 - 1, 2**31 - 1)):
        wrong = 4 * m * n >= 2**31
        done = run([program, str(m), str(n)], tmp_path, kernel)
        assert bool(done.returncode) == wrong, (m, n)
        command = [sys.executable, "main.py", str(m), str(n)]
        done = run(command, tmp_path, kernel, LD_LIBRARY_PATH=str(stand_in))
        assert done.stderr == ""
        assert ("4 x m x n is 2^31 or more" in done.stdout) == wrong


@NEEDS
def test_sizes_of_more_than_32_bits(tmp_path: Path, stand_in: Path) -> None:
    """A module in Python does not cut them off."""
    kernel = fragir.compile(COUNTED.replace("x4xf32", "x1xf32"))
    (tmp_path / "add.py").write_text(launcher(kernel, "python"))
    (tmp_path / "main.py").write_text("""
import add
try:
    add.launch(*(type("A", (), {"__cuda_array_interface__": {
        "shape": shape, "typestr": "<f4", "data": (4096, False), "version": 3}})
        for shape in ((2**32 + 1, 0, 1), (32,))))
except ValueError as error:
    print(error)
""")
    done = run([sys.executable, "main.py"], tmp_path, kernel, LD_LIBRARY_PATH=str(stand_in))
    assert (done.stderr, done.stdout[:21]) == ("", "m is 2^31 or more wit")


HELD = """
func.func @add(%x: memref<32xf32>, %c: memref<32xf32> {frag.constant = dense<"0xBYTES"> :
    tensor<32xf32>}, %y: memref<32xf32>) attributes {frag.warps = array<i64: 1, 1>} {
  %a = frag.load %x[0] : memref<32xf32> -> !frag.tile<32xf32>
  %b = frag.load %c[0] : memref<32xf32> -> !frag.tile<32xf32>
  %s = frag.map %a, %b : !frag.tile<32xf32>, !frag.tile<32xf32> -> !frag.tile<32xf32> {
  ^bb0(%v: f32, %w: f32):
    %z = arith.addf %v, %w : f32
    frag.yield %z : f32
  }
  frag.store %s, %y[0] : !frag.tile<32xf32>, memref<32xf32>
  func.return
}
"""


@NEEDS
def test_constants_are_put_on_the_gpu(tmp_path: Path, stand_in: Path) -> None:
    """Once, by launchers that have their bytes."""
    held = np.arange(32, dtype=np.float32)
    kernel = fragir.compile(HELD.replace("BYTES", held.tobytes().hex()))
    parameters = json.loads(launcher(kernel, "json"))["parameters"]
    assert [one["name"] for one in parameters] == ["x", "c", "y"]
    assert [base64.b64decode(one.get("constant", "")) for one in parameters] == [
        b"",
        held.tobytes(),
        b"",
    ]
    text = f"""#define ADD_NO_MAIN
{launcher(kernel, "c")}
int main(void)
{{
    unsigned char found[128];
    CUfunction function = 0;
    if (add_launch(function, 0, 4096, 8192) || add_launch(function, 0, 4096, 8192)) return 1;
    cuMemcpyDtoH(found, CONSTANT, sizeof found);
    for (int i = 0; i < 128; i++) printf("%d ", found[i]);
    return 0;
}}
"""
    # the launch's own variable, as one of the file, so that its memory can be looked at
    own, head = "    static CUdeviceptr c = 0;\n", "static CUresult add_launch"
    assert (text.count(own), text.count(head)) == (1, 1)
    text = text.replace(own, "").replace(head, f"static CUdeviceptr c;\n{head}")
    text = text.replace("CONSTANT", "c")
    program = build(text, tmp_path, stand_in, "-Wno-unused")
    done = run([str(program)], tmp_path, kernel)
    assert (done.returncode, done.stderr) == (0, "")
    # the stand-in's kernel adds one to every byte, and has run twice
    assert [int(word) for word in done.stdout.split()] == [
        (byte + 2) % 256 for byte in held.tobytes()
    ]
    (tmp_path / "add.py").write_text(launcher(kernel, "python"))
    (tmp_path / "main.py").write_text(
        """
import numpy as np
import add

class OnGpu:
    def __init__(self, array):
        self.__cuda_array_interface__ = dict(array.__array_interface__)

x, y = np.zeros(32, np.float32), np.zeros(32, np.float32)
for _ in range(2):
    add.launch(OnGpu(x), OnGpu(y))
"""
    )
    done = run([sys.executable, "main.py"], tmp_path, kernel, LD_LIBRARY_PATH=str(stand_in))
    assert (done.returncode, done.stderr) == (0, "")
    first, second = (one["parameters"][1] for one in launches(tmp_path))
    assert first == second


ROWS, TURNED = "memref<?x?xf16, strided<[?, 1]>>", "memref<?x?xf16, strided<[1, ?]>>"
BUFFER = "memref<64x64xf16, #frag.shared<swizzle = 128>>"
ASIDE = 'memref<64x64xf16, #frag.layout<"row [64:1] col [64:64]">, #frag.shared>'
SIZES_OF = '{frag.sizes = ["m", "n"]}'

# By TMA from rows with gaps to columns with gaps, in clusters of two blocks.
MAPS = f"""\
func.func @add(%a: {ROWS} {SIZES_OF}, %c: {TURNED} {SIZES_OF}) attributes {{
    frag.cluster = array<i64: 2, 1, 1>, frag.grid = #frag.grid<m by 64, n by 64>}} {{
  %x = frag.block_id x
  %y = frag.block_id y
  %c64 = arith.constant 64 : index
  %row = arith.muli %x, %c64 : index
  %col = arith.muli %y, %c64 : index
  %s = memref.alloc() : {BUFFER}
  %t = memref.alloc() : {ASIDE}
  frag.copy tma %a[%row, %col] to %s[] : {ROWS} to {BUFFER}
  %v = frag.load %s[0, 0] : {BUFFER} -> !frag.tile<64x64xf16>
  frag.store %v, %t[0, 0] : !frag.tile<64x64xf16>, {ASIDE}
  frag.copy tma %t[] to %c[%row, %col] : {ASIDE} to {TURNED}
  func.return
}}
"""


@NEEDS
@pytest.mark.parametrize(("m", "n"), [(200, 130), (8, 1), (0, 64)])
def test_tensor_maps_and_clusters(
    m: int, n: int, tmp_path: Path, stand_in: Path, make: Callable[..., Any]
) -> None:
    kernel = fragir.compile(MAPS, target="sm_90a")
    plan = plan_of(kernel)
    assert plan.cluster == (2, 1, 1)
    assert [one.turned for one in plan.parameters if isinstance(one, Map)] == [False, True]
    fake = make(*(one["bytes"] for one in json.loads(launcher(kernel, "json"))["parameters"]))
    a = np.zeros((m, 144), np.float16)[:, :n]
    c = np.zeros((n, 208), np.float16)[:, :m].T
    if m:
        kernel(a, c, on="gpu")
    (tmp_path / "add.py").write_text(launcher(kernel, "python"))
    (tmp_path / "main.py").write_text(
        f"""
import numpy as np
import add

class OnGpu:
    def __init__(self, array):
        self.__cuda_array_interface__ = dict(array.__array_interface__, strides=array.strides)

add.launch(OnGpu(np.zeros(({m}, 144), np.float16)[:, :{n}]),
           OnGpu(np.zeros(({n}, 208), np.float16)[:, :{m}].T))
"""
    )
    program = build(launcher(kernel, "c"), tmp_path, stand_in)
    strides = [name for name in plan.sizes if name not in ("m", "n")]
    words = [f"m={m}", f"n={n}", f"{strides[0]}=144", f"{strides[1]}=208"]
    for command in ([str(program), *words], [sys.executable, "main.py"]):
        done = run(command, tmp_path, kernel, LD_LIBRARY_PATH=str(stand_in))
        assert (done.returncode, done.stderr) == (0, "")
        if not m:
            assert not (tmp_path / "log").exists()
            continue
        *maps, launched = launches(tmp_path)
        assert launched["cluster"] == [2, 1, 1]
        own = [isinstance(one, Array | Map) for one in plan.parameters]
        same_as_kernel(launched, fake, {number for number, one in enumerate(own) if one})
        assert len(maps) == len(fake.maps) == 2
        for found, wanted in zip(maps, fake.maps, strict=True):
            kind, rank, _, extents, steps, box, apart, *rest = wanted
            assert found["map"] == [int(one) for one in (kind, *rest)]
            columns = [extents, [0, *steps], box, apart]
            assert found["dims"] == [[int(column[i]) for column in columns] for i in range(rank)]


@NEEDS
def test_a_grid_that_makes_no_whole_clusters(tmp_path: Path, stand_in: Path) -> None:
    """Only where all accesses are masked may more blocks run: a plain store forbids it."""
    plain = MAPS.replace(
        "  frag.copy tma %t[]",
        "  %z = arith.constant 0 : index\n"
        f"  frag.store %v, %c[%z, %z] : !frag.tile<64x64xf16>, {TURNED}\n  frag.copy tma %t[]",
    )
    for text, whole in ((MAPS, True), (plain, False)):
        kernel = fragir.compile(text, target="sm_90a")
        assert kernel.whole_clusters == plan_of(kernel).whole_clusters == whole
        program = build(launcher(kernel, "c"), tmp_path, stand_in)
        strides = [name for name in plan_of(kernel).sizes if name not in ("m", "n")]
        words = ["m=64", "n=64", f"{strides[0]}=64", f"{strides[1]}=64"]
        done = run([str(program), *words], tmp_path, kernel)
        assert (done.returncode, "invalid argument" in done.stderr) == (int(not whole), not whole)


PARTS = """\
func.func @add(%a: memref<?x64xf16>, %b: memref<64x?xf16>, %c: memref<?x?xf32>,
               %partial: memref<?x?x?xf32>,
               %counts: memref<?x?xi32> {frag.sizes = ["rows", "cols"]}) {
  frag.matmul %a, %b into %c through %partial, %counts
      {tile = array<i64: 32, 32, 32>, split_k = 2 : i64}
      : memref<?x64xf16>, memref<64x?xf16> into memref<?x?xf32>
      through memref<?x?x?xf32>, memref<?x?xi32>
  func.return
}
"""


@NEEDS
def test_memory_for_parts_that_is_too_small(tmp_path: Path, stand_in: Path) -> None:
    """Counts for 2 x 3 tiles of 40 x 70, and two parts; one of either less is refused."""
    kernel = fragir.compile(PARTS, target="sm_80")
    assert kernel.least_shapes({"m": 40, "n": 70}) == {"partial": (2, 40, 70), "counts": (2, 3)}
    document = json.loads(launcher(kernel, "json"))
    least = {one["name"]: one["least"] for one in document["parameters"] if one.get("least")}
    assert least["counts"] == [{"size": "m", "divisor": 32}, {"size": "n", "divisor": 32}]
    program = build(launcher(kernel, "c"), tmp_path, stand_in)
    (tmp_path / "add.py").write_text(launcher(kernel, "python"))
    (tmp_path / "main.py").write_text(
        """
import sys
import numpy as np
import add

class OnGpu:
    def __init__(self, *shape, dtype=np.float32):
        self.__cuda_array_interface__ = dict(np.zeros(shape, dtype).__array_interface__)

parts, rows, cols = map(int, sys.argv[1:])
add.launch(OnGpu(40, 64, dtype=np.float16), OnGpu(64, 70, dtype=np.float16), OnGpu(40, 70),
           OnGpu(parts, 40, 70), OnGpu(rows, cols, dtype=np.int32))
"""
    )
    for parts, rows, cols, fits in ((2, 2, 3, True), (1, 2, 3, False), (2, 2, 2, False)):
        words = ["m=40", "n=70", f"parts={parts}", f"rows={rows}", f"cols={cols}"]
        done = run([str(program), *words], tmp_path, kernel)
        assert (done.returncode == 0) == fits
        numbers = [str(number) for number in (parts, rows, cols)]
        command = [sys.executable, "main.py", *numbers]
        done = run(command, tmp_path, kernel, LD_LIBRARY_PATH=str(stand_in))
        assert (done.returncode == 0) == fits
        assert fits or "is too small" in done.stderr


def test_the_document_says_what_a_launch_needs(gemm: tuple[Kernel, Any]) -> None:
    kernel, _ = gemm
    document = json.loads(launcher(kernel, "json"))
    assert [one["formula"] for one in document["grid"]] == ["ceil(n / 256)", "ceil(m / 128)", "1"]
    assert document["shared"] == kernel.shared
    names = [(one["kind"], one["name"]) for one in document["parameters"]]
    assert names[:4] == [("array", "a"), ("size", "a_d0"), ("size", "a_d1"), ("array", "b")]
    assert names[-2:] == [("scalar", "alpha"), ("scalar", "beta")]
    with pytest.raises(FragirError, match="one of"):
        launcher(kernel, "rust")
