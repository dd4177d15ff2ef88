"""Products on a GPU: fragir beside cuBLAS (through PyTorch) and Triton, on the same buffers.

    python benchmarks/gemm.py [--rounds 20] [--only PATTERN] [--results results] [--minutes N]

Inputs are of normal(0, 1); the L2 cache is written over before each run; rounds in which all take
turns, in another order each; medians with their 95 % interval. What a contender computes is checked
first: the time of a wrong result is not taken. Results are kept after each case, with device,
driver, ptxas, clocks, date and the PTX's hash; what is there already for the same PTX, device and
driver is not measured again (`--again` does). Without a GPU nothing is measured, and it says so.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import fnmatch
import hashlib
import importlib
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from device import DeviceArray, clocks, measured, median
from gemm_cases import TYPES, Array, Case, cases, normal, program, wrong

import fragir
from fragir.errors import FragirError
from fragir.toolchain import driver
from fragir.toolchain.find import PTXAS, find

ROOT = Path(__file__).parents[1]
LEFT = 3
"""The exit code where cases are left."""


@dataclass
class Contender:
    """Something that computes C; `start` queues one run of it."""

    name: str
    start: Callable[[], None]
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    memory: tuple[DeviceArray, ...] = ()
    """What it has on the GPU beside A, B and C: for parts of sums."""

    def free(self) -> None:
        """Gives that memory back."""
        for array in self.memory:
            array.free()


@dataclass
class Buffers:
    """A, B and C of a case, on the host and on the GPU."""

    case: Case
    a: Array
    b: Array
    c: Array
    on_gpu: tuple[DeviceArray, DeviceArray, DeviceArray]

    @classmethod
    def of(cls, case: Case, seed: int = 0) -> Buffers:
        kind = TYPES[case.type]
        b_shape = (case.n, case.k) if kind.turned else (case.k, case.n)
        a = normal((case.m, case.k), kind.element, seed)
        b = normal(b_shape, kind.element, seed + 1)
        c = np.zeros((case.m, case.n), normal((1, 1), kind.result, 0).dtype)
        return cls(case, a, b, c, (DeviceArray(a), DeviceArray(b), DeviceArray(c)))

    def wrong(self, contender: Contender) -> str:
        """What is wrong with a contender's result; empty where nothing is."""
        self.on_gpu[2].put(self.c)
        contender.start()
        driver.call("cuStreamSynchronize", 0)
        return wrong(self.case, self.a, self.b, self.on_gpu[2].get())

    def free(self) -> None:
        for array in self.on_gpu:
            array.free()


# Contenders --------------------------------------------------------------------------------------


def target_of_gpu() -> str:
    """The target to compile for: sm_90a for a GPU that calls itself sm_90."""
    from fragir.validation.sweep import target_of_gpu as found

    return found()


def fragir_contender(
    buffers: Buffers, target: str, attributes: str = "", name: str = "fragir"
) -> Contender:
    """The product as fragir compiles it; `attributes` override what it chooses."""
    kernel = fragir.compile(program(buffers.case, attributes), target=target)
    return contender_of(kernel, buffers, name, attributes)


def contender_of(kernel: Any, buffers: Buffers, name: str, attributes: str = "") -> Contender:
    """A compiled kernel on the buffers of a case."""
    # parts of sums may hold anything, counts of them begin with zeros
    shapes = kernel.least_shapes({}).values()
    types = (np.float32, np.int32)
    memory = tuple(
        DeviceArray(np.zeros(shape, type)) for shape, type in zip(shapes, types, strict=False)
    )
    arrays = (*buffers.on_gpu, *memory)
    given: list[Any] = [
        value.address if isinstance(value, DeviceArray) else value
        for value in kernel.parameters(arrays)
    ]
    sizes = kernel.sizes(arrays)
    start = driver.prepare(
        kernel.cubin,
        kernel.name,
        grid=kernel.grid(sizes, kernel.resident("gpu")),
        block=kernel.block,
        arguments=given,
        shared=kernel.shared,
        cluster=getattr(kernel, "cluster", (1, 1, 1)),
    )
    info = kernel.assembled.entries[kernel.name]
    facts = {
        "ptx_sha256": hashlib.sha256(kernel.ptx.encode()).hexdigest(),
        "attributes": attributes,
        "registers": info.registers,
        "notes": kernel.schedule_notes(),
    }
    return Contender(name, start, facts, memory)


def torch_contender(buffers: Buffers) -> Contender:
    """cuBLAS, as PyTorch calls it, on the same buffers. FragirError where it is not there."""
    torch = _imported("torch")
    a, b, c = (torch.as_tensor(array, device="cuda") for array in buffers.on_gpu)
    kind = TYPES[buffers.case.type]
    facts = {"torch": torch.__version__, "cuda": torch.version.cuda}
    if kind.element == "f8E4M3FN":
        one = torch.ones((), device="cuda")
        a, b = a.view(torch.float8_e4m3fn), b.view(torch.float8_e4m3fn)
        c = c.view(torch.bfloat16)

        def scaled() -> None:
            torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, out=c)

        return Contender("cuBLAS", scaled, facts)
    if kind.element == "bf16":
        a, b, c = (x.view(torch.bfloat16) for x in (a, b, c))
    torch.backends.cuda.matmul.allow_tf32 = kind.element == "tf32"
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    right = b.t() if kind.turned else b

    def product() -> None:
        torch.mm(a, right, out=c)

    return Contender("cuBLAS", product, facts)


def triton_contender(buffers: Buffers) -> Contender:
    """Triton's tutorial with its choice among configurations. FragirError where it is not there."""
    torch = _imported("torch")
    _imported("triton")
    worker = importlib.import_module("workers.triton_gemm")
    start, facts = worker.contender(torch, buffers.case, TYPES[buffers.case.type], buffers.on_gpu)
    return Contender("Triton", start, facts)


def _imported(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise FragirError(f"{package} is not installed") from error


OTHERS: dict[str, Callable[[Buffers], Contender]] = {
    "cuBLAS": torch_contender,
    "Triton": triton_contender,
}


# Measuring ---------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """What the results hold for; FragirError where there is no GPU."""
    gpu = driver.gpu()
    return {
        "gpu": gpu.name,
        "target": gpu.target,
        "driver": gpu.driver,
        "memory": gpu.memory,
        "ptxas": find(PTXAS).version,
    }


def slug(facts: Mapping[str, Any]) -> str:
    """A file's name for a machine: `nvidia-h100-80gb-hbm3`."""
    return re.sub(r"[^a-z0-9]+", "-", str(facts["gpu"]).lower()).strip("-")


def run_case(case: Case, rounds: int, tuned: str | None = None) -> dict[str, Any]:
    """Measures one case: a row of the results."""
    buffers = Buffers.of(case)
    target = target_of_gpu()
    ready: dict[str, Contender] = {}
    made: list[Contender] = []
    absent: dict[str, str] = {}
    makers: dict[str, Callable[[], Contender]] = {
        "fragir": lambda: fragir_contender(buffers, target),
        **{name: (lambda make=make: make(buffers)) for name, make in OTHERS.items()},
    }
    if tuned:
        makers["fragir, tuned"] = lambda: fragir_contender(buffers, target, tuned, "fragir, tuned")
    try:
        for name, make in makers.items():
            try:
                found = make()
                made.append(found)
                problem = buffers.wrong(found)
            except Exception as error:  # another package's may be anything
                problem, found = f"{type(error).__name__}: {error}", None
            if problem or found is None:
                absent[name] = " ".join(problem.split())[:300]
            else:
                ready[name] = found
        before = clocks()
        times = measured({name: one.start for name, one in ready.items()}, rounds)
        after = clocks()
    except FragirError as error:  # a kernel has ended the context: nothing works any more
        absent |= dict.fromkeys(ready, str(error))
        ready, times, before, after = {}, {}, clocks(), clocks()
    finally:
        with contextlib.suppress(FragirError):
            for one in made:
                one.free()
            buffers.free()
    results: dict[str, Any] = {}
    for name, one in ready.items():
        middle = median(times[name])
        results[name] = {
            "ms": list(middle),
            "tflops": [case.flops / ms / 1e9 for ms in (middle.median, middle.high, middle.low)],
            **one.facts,
        }
    return {
        "case": case._asdict(),
        "rounds": rounds,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "clocks": {"before": before._asdict(), "after": after._asdict()},
        "results": results,
        "absent": absent,
    }


def is_done(
    kept: Mapping[str, Any] | None, facts: Mapping[str, Any], ptx: str, rounds: int
) -> bool:
    """Whether a kept row holds: of the same machine and PTX, with at least so many rounds.

    Also where it says that this PTX fails: what it did once to the GPU it need not do again.
    """
    return (
        kept is not None
        and kept["machine"] == facts
        and kept["rounds"] >= rounds
        and kept["ptx_sha256"] == ptx
    )


def hash_of(case: Case, target: str) -> str:
    ptx = fragir.compile(program(case), target=target).ptx
    return hashlib.sha256(ptx.encode()).hexdigest()


def measure(
    chosen: Sequence[Case],
    folder: Path,
    rounds: int,
    *,
    again: bool = False,
    seconds: float | None = None,
    say: Callable[[str], None] = print,
) -> bool:
    """Measures cases, each kept in `folder/GPU/gemm.json` as soon as it is known.

    Whether all are there; not where `seconds` were over first.
    """
    facts, end = machine(), None if seconds is None else time.monotonic() + seconds
    path = folder / slug(facts) / "gemm.json"
    rows: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    tuned = best_of(path.with_name("tuning.json"), facts)
    target = target_of_gpu()
    for number, case in enumerate(chosen):
        if end is not None and time.monotonic() > end:
            say(f"time is over: {len(chosen) - number} of {len(chosen)} cases are left")
            return False
        if not again and is_done(rows.get(case.key), facts, hash_of(case, target), rounds):
            say(f"{case.key}: kept")
            continue
        row = run_case(case, rounds, tuned.get(case.key))
        rows[case.key] = {"machine": facts, "ptx_sha256": hash_of(case, target), **row}
        save(path, rows)
        say(f"{case.key}: {line_of(row)}")
        if not alive():
            say("a kernel has ended the context of the GPU: start again for the rest")
            return False
    return True


def alive() -> bool:
    """Whether the GPU still does what it is told."""
    try:
        driver.call("cuStreamSynchronize", 0)
    except FragirError:
        return False
    return True


def best_of(path: Path, facts: Mapping[str, Any]) -> dict[str, str]:
    """The best attributes of each case that was tuned on this machine."""
    if not path.exists():
        return {}
    rows: dict[str, Any] = json.loads(path.read_text())
    return {
        key: row["ranking"][0]["attributes"]
        for key, row in rows.items()
        if row["machine"] == facts and row["ranking"] and row["ranking"][0]["attributes"]
    }


def save(path: Path, rows: object) -> None:
    """Replaces a file as a whole: an abort leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(rows, indent=1) + "\n")
    part.replace(path)


def line_of(row: Mapping[str, Any]) -> str:
    parts = [f"{name} {one['tflops'][0]:.1f} TFLOP/s" for name, one in row["results"].items()]
    parts += [f"{name}: {why}" for name, why in row["absent"].items()]
    return "; ".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, metavar="N")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="as in 'bf16 8192*'")
    parser.add_argument("--results", type=Path, default=ROOT / "results", metavar="FOLDER")
    parser.add_argument("--minutes", type=float, metavar="N", help="start no case after so long")
    parser.add_argument("--again", action="store_true", help="measure what is there already too")
    options = parser.parse_args(argv)
    if (reason := driver.available()) is not None:
        print(f"nothing is measured: {reason}", file=sys.stderr)
        return 1
    chosen = [case for case in cases() if fnmatch.fnmatch(case.key, options.only)]
    seconds = None if options.minutes is None else 60 * options.minutes
    done = measure(chosen, options.results, options.rounds, again=options.again, seconds=seconds)
    return 0 if done else LEFT


if __name__ == "__main__":
    sys.exit(main())
