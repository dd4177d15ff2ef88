"""Whoever forgets one synchronisation statement of a correct kernel is told so.

Every statement that synchronises is deleted or altered, one at a time; `fragir check`'s runs must
report something for each mutant but those of `EQUIVALENT`, which are as right as the original.
A sample is tried unless FRAGIR_ALL_MUTANTS=1.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import fragir
import fragir.emulator

from .mutation import Arguments, Mutant, Subject, mutants, verdict
from .patterns import PATTERNS, zeros
from .test_gemm import BENCHMARK, SIZE
from .test_patterns import NAMED, RING, SPLIT, SPLIT_CLUSTER, ring_arguments

EVERY = os.environ.get("FRAGIR_ALL_MUTANTS") == "1"
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
        "grid_barrier",
        "fence.acq_rel.gpu;",
        1,
        "deleted",
    ): "behind the poll: a barrier of the block follows, which counts as acquiring",
    (
        "stream_k",
        "ld.acquire.gpu.global.u32 %r6, [%rd6];",
        0,
        "relaxed",
    ): "a barrier of the block follows, which counts as acquiring",
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


def survivors(subject: Subject, some: list[Mutant]) -> list[str]:
    known = {key[1:] for key in EQUIVALENT if key[0] == subject.name}
    return [
        f"line {m.line}: {m.name}"
        for m in some
        if m.key not in known and not verdict(subject, m.text)
    ]


@cache
def sample(subject: Subject) -> tuple[Mutant, ...]:
    every = tuple(mutants(subject.text))
    return every if EVERY else every[hash_of(subject.name) % 4 :: 4] or every[:1]


def hash_of(name: str) -> int:
    return sum(map(ord, name))


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_every_mutant_is_reported(subject: Subject) -> None:
    assert survivors(subject, list(sample(subject))) == []


@pytest.mark.parametrize("target", ["by_hand", "sm_80", "sm_90a"])
def test_gemms(target: str) -> None:
    subject = GEMM_BY_HAND if target == "by_hand" else compiled(target)
    every = mutants(subject.text)
    assert every
    if not EVERY:
        every = every[:: 6 if target != "by_hand" else 3]
    assert verdict(subject) == []
    # The last wait of our own kernels has nothing left to wait for: all groups are empty.
    drained = [m for m in every if m.what == "cp.async.wait_group 0;"]
    assert survivors(subject, [m for m in every if m not in drained]) == []


@pytest.mark.parametrize("key", EQUIVALENT, ids=lambda k: f"{k[0]}-{k[1][:20]}")
def test_equivalents_exist_and_are_silent(key: tuple[str, str, int, str]) -> None:
    """The list holds nothing that the checks would report after all."""
    subject = next(s for s in SUBJECTS if s.name == key[0])
    (mutant,) = (m for m in mutants(subject.text) if m.key == key[1:])
    assert verdict(subject, mutant.text) == []
