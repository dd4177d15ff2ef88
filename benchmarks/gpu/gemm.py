"""Products by wgmma: fragir's schedules beside cuBLAS, cuBLASLt's best and Triton, same arrays.

Inputs are of normal(0, 1). fp8 sums stay in the tensor cores with all of them (PyTorch's default,
which adds them up outside now and then, is one more). Triton knows all sizes at compile time, as
fragir does.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.gemm_cases import TYPES, Case, normal, program, wrong
from benchmarks.gpu import cublaslt, peers
from benchmarks.gpu.contest import Contender, Maker, contest, on_gpu, ours
from benchmarks.gpu.device import DeviceArray
from benchmarks.gpu.kit import MACHINE, TARGET, Kit, Work
from benchmarks.gpu.triton_cubins import Maker as TritonMaker
from benchmarks.gpu.triton_cubins import has_triton, slug, triton
from fragir.toolchain import driver, ptxas

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder
    from fragir.compilation.kernel import Kernel
    from fragir.scheduling.candidates import Configuration

CASES = (
    Case("square", "bf16", 8192, 8192, 8192),
    Case("square", "e4m3", 8192, 8192, 8192),
    Case("square", "bf16", 4096, 4096, 4096),
    Case("LLM", "bf16", 4096, 10240, 8192),  # Llama 3 70B: queries, keys and values together
    Case("square", "e4m3", 4096, 4096, 4096),
    Case("LLM", "e4m3", 4096, 10240, 8192),
)
SMALL = (
    Case("square", "bf16", 128, 128, 128),
    Case("square", "e4m3", 128, 128, 128),
    Case("LLM", "bf16", 64, 128, 192),
)
MOST = 6
"""Schedules of fragir's that a case is run with."""
SMS = 132
"""Of an H100 SXM and an H200 (NVIDIA's data sheets)."""

PACKAGES = ("torch",)


def units(kit: Kit) -> list[str]:
    return [case.key for case in kit.size(CASES, SMALL)]


def prepare(kit: Builder) -> None:
    make = TritonMaker(kit).make
    for case in kit.size(CASES, SMALL):
        for attributes in schedules(case, TARGET, MOST).values():
            kit.carry_kernel(compiled(case, TARGET, attributes))
        for tiling in kit.size(TILINGS, SMALL_TILINGS):
            make(tiling.name(case), tiling.request(case))


def run(work: Work) -> dict[str, Any]:
    case = next(one for one in work.kit.size(CASES, SMALL) if one.key == work.unit)
    kind = TYPES[case.type]

    def makers(arrays: Sequence[DeviceArray]) -> dict[str, Maker]:
        a, b, c = arrays
        types = kind.element, kind.result
        library = functools.partial(peers.matmul, a, b, c, *types, turned=kind.turned)
        found = fragir_makers(case, TARGET, MOST, arrays)
        found["cuBLAS"] = library
        found["cuBLASLt"] = lambda: cublaslt.best(a, b, c, *types, turned=kind.turned)
        if case.type == "e4m3":
            found["cuBLAS, use_fast_accum=False"] = functools.partial(library, fast=False)
        for tiling in work.kit.size(TILINGS, SMALL_TILINGS):
            found[tiling.label(case)] = functools.partial(tiling.start, work.kit, case, arrays)
        return found

    return product(work, case, makers)


def product(
    work: Work, case: Case, makers: Callable[[Sequence[DeviceArray]], Mapping[str, Maker]]
) -> dict[str, Any]:
    """What `contest` finds out about contenders on A, B and C of a case, with `tflops`."""
    kind = TYPES[case.type]
    a = normal((case.m, case.k), kind.element, 0)
    b = normal((case.n, case.k) if kind.turned else (case.k, case.n), kind.element, 1)
    c = np.zeros((case.m, case.n), normal((1, 1), kind.result, 0).dtype)
    with on_gpu((a, b, c)) as arrays:

        def problem() -> str:
            found = wrong(case, a, b, arrays[2].get())
            driver.call("cuMemsetD8Async", arrays[2].address, 0xFF, c.nbytes, 0)  # all NaN
            return found

        found = contest(work, makers(arrays), problem, rounds=work.kit.size(20, 2))
    for one in found["results"].values():
        one["tflops"] = tflops(case, one["ms"])
    return {"case": case._asdict(), **found}


def tflops(case: Case, ms: Sequence[float]) -> list[float]:
    """Median, low and high of TFLOP/s, of those of milliseconds."""
    median, low, high = ms
    return [case.flops / one / 1e9 for one in (median, high, low)]


# fragir ------------------------------------------------------------------------------------------


@functools.cache
def compiled(case: Case, target: str, attributes: str = "") -> Kernel:
    """The product as fragir compiles it; `attributes` override what it chooses."""
    import fragir

    return fragir.compile(program(case, attributes), target=target)


def fragir_makers(
    case: Case, target: str, count: int, arrays: Sequence[DeviceArray]
) -> dict[str, Maker]:
    """So many of its schedules as contenders."""
    return {
        name: functools.partial(_fragir, case, target, attributes, arrays)
        for name, attributes in schedules(case, target, count).items()
    }


def _fragir(case: Case, target: str, attributes: str, arrays: Sequence[DeviceArray]) -> Contender:
    kernel = compiled(case, target, attributes)
    # parts of sums may hold anything, counts of them begin with zeros
    shapes, types = kernel.least_shapes({}).values(), (np.float32, np.int32)
    memory = tuple(
        DeviceArray(np.zeros(shape, type)) for shape, type in zip(shapes, types, strict=False)
    )
    assembled = ptxas.assemble(kernel.ptx, ptxas.target_for(target, MACHINE))
    notes = [str(verdict) for verdict in assembled.verdicts]
    found = ours(kernel, (*arrays, *memory), attributes=attributes, notes=notes)
    found.memory = memory
    return found


@functools.cache
def schedules(case: Case, target: str, count: int) -> dict[str, str]:
    """Attributes of `frag.matmul` by names: none, and the first of each kind in the order of the
    chooser, each of another PTX. Kinds differ in tile, warps, roles, cluster or sums in parts."""
    import fragir
    from fragir.dialects import frag
    from fragir.passes.tiling.gemm_schedule import problem_of, unmapped_reason
    from fragir.scheduling.candidates import FRAG_TILE, SPECIALISED, configurations, in_parts
    from fragir.scheduling.choice import rank

    module = fragir.parse(program(case))
    matmul = next(op for op in module.walk() if isinstance(op, frag.MatmulOp))
    problem = problem_of(matmul, (case.m, case.n, case.k), target)
    spaces = [FRAG_TILE]
    if problem.wgmma and unmapped_reason(matmul, target) is None:
        spaces.append(SPECIALISED)
    spaces = [space._replace(parts=space.parts + in_parts(16)) for space in spaces]
    every = [one for space in spaces for one in configurations(problem, space)]
    kinds: dict[tuple[object, ...], Configuration] = {}
    for one, _ in rank(problem, every):
        kind = one.tile, one.warps, one.roles, one.cluster, one.parts > 1, one.even
        kinds.setdefault(kind, one)
    found, texts = {"fragir": ""}, {compiled(case, target).ptx}
    for one in kinds.values():
        attributes = attributes_of(one)
        if len(found) < count and (text := compiled(case, target, attributes).ptx) not in texts:
            texts.add(text)
            found[f"fragir, {repr(one)[1:-1]}"] = attributes
    return found


def attributes_of(one: Configuration) -> str:
    """A schedule as attributes of `frag.matmul`."""
    words = [
        f"tile = array<i64: {', '.join(map(str, one.tile))}>",
        f"warps = array<i64: {', '.join(map(str, one.warps))}>",
        f"stages = {one.stages} : i64",
        *(["roles"] if one.roles != "together" else []),
        *(["consumers = 2 : i64"] if one.roles == "ping-pong" else []),
        *([f"cluster = {one.cluster} : i64"] if one.cluster > 1 else []),
        *([f"{'stream_k' if one.even else 'split_k'} = {one.parts} : i64"] * (one.parts > 1)),
    ]
    return ", ".join(words)


# Triton ------------------------------------------------------------------------------------------


class Tiling(NamedTuple):
    """How Triton cuts a product; `width` of a tile along K is in bytes.

    `way`: through pointers, by TMA, or by TMA with as many programs as the machine has SMs.
    """

    way: str
    m: int
    n: int
    width: int
    warps: int
    stages: int
    target: int = 90

    def k(self, case: Case) -> int:
        return self.width // normal((1, 1), TYPES[case.type].element, 0).itemsize

    def label(self, case: Case) -> str:
        way = {"pointers": "", "maps": "TMA ", "persistent": "TMA persistent "}[self.way]
        size = f"{self.m}x{self.n}x{self.k(case)}"
        return f"Triton {way}{size} w{self.warps} s{self.stages}"

    def name(self, case: Case) -> str:
        """In a kit."""
        return f"{self.label(case)} sm_{self.target} {case.key}"

    def programs(self, case: Case) -> int:
        tiles = case.m // self.m * (case.n // self.n)
        return min(tiles, SMS) if self.way == "persistent" else tiles

    def request(self, case: Case) -> dict[str, Any]:
        """What `workers/triton_kernels.py` is asked for."""
        kind = TYPES[case.type]
        element, result = (
            {"f8E4M3FN": "fp8e4nv", "f16": "fp16", "tf32": "fp32", "f32": "fp32"}.get(one, one)
            for one in (kind.element, kind.result)
        )
        tk = self.k(case)
        sizes = {"M": case.m, "N": case.n, "K": case.k, "TURNED": kind.turned}
        constants = {**sizes, "TM": self.m, "TN": self.n, "TK": tk, "GROUP": 8}
        if self.way == "pointers":
            signature = {"a": f"*{element}:16", "b": f"*{element}:16", "c": f"*{result}:16"}
        else:
            constants["PROGRAMS"] = self.programs(case)
            b = (self.n, tk) if kind.turned else (tk, self.n)
            signature = {
                "a": f"tensordesc<{element}[{self.m},{tk}]>",
                "b": f"tensordesc<{element}[{b[0]},{b[1]}]>",
                "c": f"tensordesc<{result}[{self.m},{self.n}]>",
            }
        return {
            "kernel": "gemm" if self.way == "pointers" else "gemm_maps",
            "signature": signature,
            "constants": constants,
            "warps": self.warps,
            "stages": self.stages,
            "target": self.target,
        }

    def start(self, kit: Kit, case: Case, arrays: Sequence[DeviceArray]) -> Contender:
        """It on A, B and C; FragirError where the kit does not have it."""
        name, given = self.name(case), list[Any](arrays)
        if self.way != "pointers" and has_triton(kit, name):
            facts = json.loads(kit.path(f"triton/{slug(name)}.json").read_text("utf-8"))
            pairs = zip(arrays, facts["maps"], strict=True)
            given = [one for array, map in pairs for one in _mapped(array, map)]
        return triton(kit, name, given, (self.programs(case),))


TILINGS = (
    Tiling("pointers", 128, 256, 128, 8, 3),
    Tiling("pointers", 128, 128, 128, 4, 4),
    Tiling("maps", 128, 256, 128, 8, 3),
    Tiling("maps", 128, 128, 128, 8, 4),
    Tiling("persistent", 128, 256, 128, 8, 3),
    Tiling("persistent", 128, 128, 128, 8, 4),
)
SMALL_TILINGS = (
    Tiling("pointers", 64, 64, 128, 4, 2),
    Tiling("maps", 64, 64, 128, 4, 2),
    Tiling("persistent", 64, 64, 128, 4, 3),
)


def _mapped(array: DeviceArray, map: Mapping[str, Any]) -> list[Any]:
    """A tensor map as Triton's launcher makes it (L2_128B), and its sizes and strides behind it."""
    from fragir.compilation.arrays import GpuTensorMap

    columns = int(array.shape[1])
    size = array.dtype.itemsize
    kind = {1: "u8", 2: "u16", 4: "u32"}[size]
    strides = columns * size, size
    box = tuple(map["box"])
    return [
        GpuTensorMap(array, box, map["swizzle"], strides, array.shape, kind, promotion=128),
        *array.shape,
        columns,
        1,
    ]
