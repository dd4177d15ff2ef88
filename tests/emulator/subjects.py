"""Correct kernels whose synchronisation is changed, and which changes do no harm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import fragir
import fragir.emulator
from benchmarks import emulator_kernels as BENCHMARK

from .mutation import Arguments, Mutant, Subject, mutants, verdict
from .patterns import PATTERNS, zeros
from .patterns.rings import NAMED, RING, SPLIT, SPLIT_CLUSTER, ring_arguments

SIZE = 128
"""Of the benchmark's GEMM."""
EXAMPLES = Path(__file__).parents[2] / "examples"


def _benchmark() -> Arguments:
    a = np.ones((SIZE, 2 * SIZE), np.float16)
    return [a, a.copy(), np.zeros((SIZE, SIZE), np.float32), SIZE, 2 * SIZE]


SUBJECTS = [
    *(subject for subject, _, _ in PATTERNS),
    Subject("ring", RING, lambda: list(ring_arguments()[0]), 256),
    Subject("named", NAMED, lambda: [zeros(32)], 64),
    Subject("split", SPLIT, lambda: [zeros(64)], 64),
    Subject("split_cluster", SPLIT_CLUSTER, lambda: [zeros(64)], 32, 2, 2),
]
GEMM_BY_HAND = Subject(
    "gemm_by_hand",
    BENCHMARK.gemm_ptx(),
    _benchmark,
    128,
    shared=2 * BENCHMARK.STAGES * BENCHMARK.STAGE_BYTES,
)

#: (kernel, statement, which of them, change) -> why the mutant is as good as the original.
EQUIVALENT = {
    (
        "named",
        "@%p3 bar.arrive %r9, 64;",
        0,
        "without its guard",
    ): "nobody waits for the last arrivals",
    (
        "ping_pong",
        "@!%p3 bar.arrive %r7, 256;",
        0,
        "without its guard",
    ): "nobody waits for the last arrival",
    (
        "copies",
        "cp.async.wait_all;",
        0,
        "deleted",
    ): "the mbarriers wait for every copy, and the producer reads nothing",
    (
        "hopper",
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r9], 4352;",
        0,
        "relaxed",
    ): "the producer has written nothing itself",
    (
        "split_cluster",
        "barrier.cluster.arrive.release.aligned;",
        0,
        "relaxed",
    ): "it keeps blocks from writing too early; nothing has been written before it",
}


def compiled(target: str) -> Subject:
    """Our own GEMM, with the arguments that its PTX takes."""
    source = (EXAMPLES / "gemm.mlir").read_text()
    kernel = fragir.compile(source, target=target)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 320), (320, 64)))
    values = [a, b, np.ones((64, 64), np.float32), 1.0, 0.5]
    calls: list[dict[str, Any]] = []

    def record(*_: Any, **named: Any) -> fragir.emulator.Report:
        calls.append(named)
        return fragir.emulator.Report()

    with mock.patch.object(fragir.emulator, "run", record):
        kernel.launch(kernel.grid(kernel.sizes(values)), kernel.block, *values, on="emulator")
    (call,) = calls

    def arguments() -> Arguments:
        return [x.copy() if isinstance(x, np.ndarray) else x for x in call["arguments"]]

    shared = call.get("shared", 0)
    return Subject(
        f"gemm_{target}", kernel.ptx, arguments, call["block"][0], call["grid"][0], shared=shared
    )


#: The last wait of our own kernels has nothing left to wait for: all groups are empty.
DRAINED = "cp.async.wait_group 0;"
COMPILED = ("gemm_sm_80", "gemm_sm_90a")


@cache
def subject_called(name: str) -> Subject:
    """A subject by its name: of `SUBJECTS`, the GEMM by hand, or one that we compile."""
    if name in COMPILED:
        return compiled(name.removeprefix("gemm_"))
    return next(s for s in (*SUBJECTS, GEMM_BY_HAND) if s.name == name)


@cache
def mutants_of(name: str) -> Sequence[Mutant]:
    return tuple(mutants(subject_called(name).text))


def is_equivalent(name: str, mutant: Mutant) -> bool:
    """Whether the mutant is as right as the original."""
    if name in COMPILED and mutant.what == DRAINED:
        return True
    return (name, *mutant.key) in EQUIVALENT


def survivors(name: str, some: Sequence[Mutant]) -> list[str]:
    """The mutants that nothing is said of although they are wrong."""
    subject = subject_called(name)
    return [
        f"line {m.line}: {m.name}"
        for m in some
        if not is_equivalent(name, m) and not verdict(subject, m.text)
    ]
