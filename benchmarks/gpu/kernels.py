"""Kernels that memory bounds, of the examples: bytes a second, and their share of a copy's.

The bytes are those that must move: each input read once, each output written once, however often a
kernel reads. The copy is PyTorch's, of the largest input, in the same rounds. Of the answer some
rows are held against numpy in f64; of the others none may be left unwritten.

Every example runs once, too (`examples`).
"""

from __future__ import annotations

import functools
import runpy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.gpu import examples, peers
from benchmarks.gpu.contest import Contender, Maker, contest, on_gpu, ours
from benchmarks.gpu.device import DeviceArray
from benchmarks.gpu.kit import TARGET, Kit, Work
from benchmarks.gpu.triton_cubins import Maker as TritonMaker
from benchmarks.gpu.triton_cubins import triton
from fragir.reference.formats import decode, encode
from fragir.toolchain import driver

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
SAMPLES = 32
"""Rows that are looked at."""
EPS, IGNORED = 1e-5, -100
PACKAGES = ("torch",)


@dataclass
class Judge:
    """Looks at the output after a contender's first run, then fills it with ones (NaN)."""

    output: DeviceArray
    check: Callable[[str, Array], str]
    """What is wrong, of a contender's name and its output."""
    name: str = ""

    def of(self, makers: Mapping[str, Maker]) -> dict[str, Maker]:
        """The same contenders, whose names this notes."""
        return {name: partial(self._make, name, make) for name, make in makers.items()}

    def _make(self, name: str, make: Maker) -> Contender:
        self.name = name
        driver.call("cuMemsetD8Async", self.output.address, 0xFF, self.output.bytes, 0)
        return make()

    def __call__(self) -> str:
        if self.name == "copy":
            return ""
        found = self.output.get()
        words = found.view(f"u{found.itemsize}")
        if left := np.count_nonzero(words == np.iinfo(words.dtype).max):
            return f"{left} elements are not written"
        return self.check(self.name, found)


def drawn(shape: Shape, kind: Any, seed: int = 0) -> Array:
    """Of normal(0, 1), f32 or f16, or bf16 as u16; a million numbers over and over."""
    numbers = np.random.default_rng(seed).standard_normal((1 << 20) + 7, np.float32)
    return np.resize(encode(numbers, "bf16") if kind is np.uint16 else numbers.astype(kind), shape)


def far(found: Array, wanted: Array, bound: Any) -> str:
    """Where something is farther off than its bound."""
    error = np.abs(found - wanted)
    if np.all(error <= bound):  # NaN is not
        return ""
    at = np.unravel_index(np.argmax(np.nan_to_num(error - bound, nan=np.inf)), error.shape)
    return f"{found[at]:.6g} at {tuple(map(int, at))}, but {wanted[at]:.6g}"


@functools.cache
def script(name: str) -> dict[str, Any]:
    """What an example defines: `rows/softmax.py`."""
    return runpy.run_path(str(examples.FOLDER / name), run_name="example")


def picked(m: int) -> Array:
    """Rows that are looked at: the first, the last and others."""
    return np.unique([0, m - 1, *np.random.default_rng(0).integers(0, m, SAMPLES)])


# What is computed --------------------------------------------------------------------------------


class Problem(NamedTuple):
    """Arguments of the kernel, Triton's too: arrays, one of them the output, and numbers."""

    arrays: list[Array]
    output: int
    numbers: tuple[float, ...]
    check: Callable[[str, Array], str]
    peer: Callable[..., Contender]
    """PyTorch's, of the arrays up to the output."""


def softmax(m: int, n: int) -> Problem:
    """f32. Errors of f32: of e^x 2^-20 at most, and one rounding for each part that a lane adds."""
    x, rows = drawn((m, n), np.float32), picked(m)
    e = np.exp(x[rows].astype(np.float64))
    wanted = e / e.sum(1, keepdims=True)

    def check(_: str, found: Array) -> str:
        return far(found[rows], wanted, (2**-19 + n * 2**-31) * wanted)

    return Problem([x, np.empty_like(x)], 1, (), check, partial(peers.softmax, kind="f32"))


def layer_norm(m: int, n: int) -> Problem:
    """f16. The answer is rounded to within 2^-11, and so are PyTorch's gamma and beta."""
    x, rows = drawn((m, n), np.float16), picked(m)
    gamma, beta = (drawn((n,), np.float32, seed) for seed in (1, 2))
    v = x[rows].astype(np.float64)
    d = v - v.mean(1, keepdims=True)
    scaled = d / np.sqrt((d * d).mean(1, keepdims=True) + EPS) * gamma
    bound = 2**-10 * (np.abs(scaled) + np.abs(beta)) + 2**-16

    def check(_: str, found: Array) -> str:
        return far(found[rows].astype(np.float64), scaled + beta, bound)

    arrays = [x, gamma, beta, np.empty_like(x), *(np.empty(m, np.float32) for _ in range(2))]
    peer = partial(peers.layer_norm, eps=EPS, kind="f16")
    return Problem(arrays, 3, (EPS,), check, peer)


def rms_norm(m: int, n: int) -> Problem:
    """bf16. The answer is rounded to within 2^-8; PyTorch rounds gamma and x rstd before."""
    x, rows, gamma = drawn((m, n), np.uint16), picked(m), drawn((n,), np.float32, 1)
    v = decode(x[rows], "bf16").astype(np.float64)
    wanted = v / np.sqrt((v * v).mean(1, keepdims=True) + EPS) * gamma

    def check(name: str, found: Array) -> str:
        bound = (3.1 if name == "PyTorch" else 1.01) * 2**-8 * np.abs(wanted) + 2**-20
        return far(decode(found[rows], "bf16").astype(np.float64), wanted, bound)

    arrays = [x, gamma, np.empty_like(x), np.empty(m, np.float32)]
    return Problem(arrays, 2, (EPS,), check, partial(peers.rms_norm, eps=EPS, kind="bf16"))


def cross_entropy(m: int, n: int) -> Problem:
    """bf16, losses in f32; PyTorch's are rounded to bf16, and so may be logarithms before them."""
    x, rows = drawn((m, n), np.uint16), picked(m)
    targets = np.random.default_rng(1).integers(0, n, m).astype(np.int32)
    targets[7::16] = IGNORED
    v, chosen = decode(x[rows], "bf16").astype(np.float64), targets[rows]
    losses = np.log(np.exp(v).sum(1)) - v[np.arange(len(rows)), chosen % n]
    wanted = np.where(chosen == IGNORED, 0, losses)

    def check(name: str, found: Array) -> str:
        bound = 2**-7 * wanted + 1e-5 if name == "PyTorch" else 1e-4
        return far(found[rows].astype(np.float64), wanted, bound)

    arrays = [x, targets, *(np.empty(m, np.float32) for _ in range(2))]
    peer = partial(peers.cross_entropy, ignored=IGNORED, kind="bf16")
    return Problem(arrays, 2, (IGNORED,), check, peer)


def transpose(m: int, n: int) -> Problem:
    """f32, to the bit."""
    x, rows = drawn((m, n), np.float32), picked(n)
    wanted = np.ascontiguousarray(x[:, rows].T)

    def check(_: str, found: Array) -> str:
        return far(found[rows], wanted, 0)

    arrays = [x, np.empty((n, m), np.float32)]
    return Problem(arrays, 1, (), check, partial(peers.transpose, kind="f32"))


def w4a16(m: int, n: int, k: int) -> Problem:
    """f16 activations, weights of 4 bits; PyTorch's product has the same weights in f16.

    Scales have seven bits, so that a weight times its scale is exact in f16. The answer is rounded
    to within 2^-11; sums lose at most a bit of f32 for each product, of numbers of their size.
    """
    rng, a, columns = np.random.default_rng(0), drawn((m, k), np.float16), picked(n)
    w = np.resize(rng.integers(-8, 8, (1 << 20) + 7, np.int8), (n, k))
    scale = (rng.integers(64, 128, (k // 64, n)) * 2.0**-10).astype(np.float16)
    dense = (w.reshape(n, -1, 64).astype(np.float16) * scale.T[:, :, None]).reshape(n, k)
    x, real = a.astype(np.float64), dense[columns].astype(np.float64)
    wanted, size = x @ real.T, np.sqrt((x * x) @ (real * real).T)

    def check(_: str, found: Array) -> str:
        bound = 2**-10 * np.abs(wanted) + k * 2**-24 * size
        return far(found[:, columns].astype(np.float64), wanted, bound)

    def peer(a: DeviceArray, _w: DeviceArray, _scale: DeviceArray, c: DeviceArray) -> Contender:
        peers.imported("torch")  # before the memory
        weights = DeviceArray(dense)
        found = peers.matmul(a, weights, c, "f16", "f16", turned=True)
        found.memory += (weights,)
        found.facts["bytes"] = a.bytes + weights.bytes + c.bytes
        return found

    packed = script("quantised/w4a16.py")["packed_order"](w)
    return Problem([a, packed, scale, np.empty((m, n), np.float16)], 3, (), check, peer)


class Case(NamedTuple):
    """A kernel of the examples, its problem, sizes, and Triton's pointers and numbers."""

    file: str
    make: Callable[..., Problem]
    sizes: tuple[Shape, ...]
    small: Shape
    signature: str = ""


CASES = {
    "softmax": Case(
        *("rows/softmax.py", softmax, ((16384, 4096), (4096, 32768)), (32, 256)),
        "x:*fp32:16 y:*fp32:16",
    ),
    "rms_norm": Case(
        *("rows/rms_norm.py", rms_norm, ((16384, 8192),), (32, 256)),
        "x:*bf16:16 gamma:*fp32:16 y:*bf16:16 rstds:*fp32:16 eps:fp32",
    ),
    "layer_norm": Case(
        *("rows/layer_norm.py", layer_norm, ((16384, 8192),), (32, 256)),
        "x:*fp16:16 gamma:*fp32:16 beta:*fp32:16 y:*fp16:16 means:*fp32:16 rstds:*fp32:16 eps:fp32",
    ),
    "cross_entropy": Case(
        *("rows/cross_entropy.py", cross_entropy, ((8192, 32768),), (32, 256)),
        "x:*bf16:16 targets:*i32:16 losses:*fp32:16 logsums:*fp32:16 ignored:i32",
    ),
    "w4a16": Case(
        *("quantised/w4a16.py", w4a16, ((16, 8192, 8192), (64, 8192, 8192)), (16, 64, 128)),
    ),
    "transpose": Case(
        *("data/transpose.py", transpose, ((8192, 8192),), (64, 128)),
        "x:*fp32:16 y:*fp32:16",
    ),
}
WARPS = (4, 8, 16)
LARGEST = 16384
"""Elements of a row that Triton's programs take at a time, at most."""


def versions(kit: Kit, name: str, shape: Shape) -> Iterator[tuple[str, dict[str, Any], Shape]]:
    """Triton's kernels for a case: name, request and grid."""
    case = CASES[name]
    if not case.signature:
        return
    m, n = shape
    signature = dict(word.split(":", 1) for word in case.signature.split())
    for warps in kit.size(WARPS, WARPS[:1]):
        if name == "transpose":
            constants, grid = {"M": m, "N": n, "TM": 64, "TN": 64}, (n // 64, m // 64)
        else:
            constants, grid = {"COLUMNS": n, "TILE": min(n, LARGEST)}, (m,)
        request = {"kernel": name, "signature": signature, "constants": constants}
        options = {"warps": warps, "stages": 3, "target": 90}
        yield f"Triton {name} {m}x{n} w{warps}", {**request, **options}, grid


# The step ----------------------------------------------------------------------------------------


def chosen(kit: Kit) -> dict[str, tuple[str, Shape]]:
    """Units and what they measure: `softmax 16384 x 4096`."""
    return {
        f"{name} {' x '.join(map(str, shape))}": (name, shape)
        for name, case in CASES.items()
        for shape in kit.size(case.sizes, (case.small,))
    }


def units(kit: Kit) -> list[str]:
    return [*chosen(kit), *examples.units(kit)]


def parts(kit: Kit, unit: str) -> list[str]:
    return examples.parts(kit, unit) or [unit]


def prepare(kit: Builder) -> None:
    make = TritonMaker(kit).make
    for name, shape in chosen(kit).values():
        kit.carry_kernel(script(CASES[name].file)["k"].compile(TARGET))
        for label, request, _ in versions(kit, name, shape):
            make(label, request)
    examples.prepare(kit)


def run(work: Work) -> dict[str, Any]:
    """What `contest` finds out, with `gbs` (GB/s) and the share `of_copy`; or what examples say."""
    if work.unit not in chosen(work.kit):
        return examples.run(work)
    name, shape = chosen(work.kit)[work.unit]
    problem, kernel = CASES[name].make(*shape), script(CASES[name].file)["k"].compile(TARGET)
    with on_gpu(problem.arrays) as arrays:
        given = (*arrays, *problem.numbers)
        makers: dict[str, Maker] = {
            "fragir": lambda: ours(kernel, given),
            "PyTorch": lambda: problem.peer(*arrays[: problem.output + 1]),
            "copy": lambda: copying(max(arrays, key=lambda one: one.bytes)),
        }
        for label, _, grid in versions(work.kit, name, shape):
            makers[label] = partial(triton, work.kit, label, given, grid)
        judge = Judge(arrays[problem.output], problem.check)
        found = contest(work, judge.of(makers), judge, rounds=work.kit.size(20, 2))
    moved = sum(one.nbytes for one in problem.arrays)
    results = found["results"]
    for one in results.values():
        middle, low, high = one["ms"]
        one["gbs"] = [one.get("bytes", moved) / ms / 1e6 for ms in (middle, high, low)]
    for one in results.values() if "copy" in results else ():
        one["of_copy"] = one["gbs"][0] / results["copy"]["gbs"][0]
    return {"bytes": moved, **found}


def copying(array: DeviceArray) -> Contender:
    """A plain copy of an array, to memory of its own."""
    peers.imported("torch")  # before the memory
    to = DeviceArray(np.empty(array.shape, array.dtype))
    found = peers.copy(array, to, "f16")
    found.memory += (to,)
    found.facts["bytes"] = 2 * array.bytes
    return found
