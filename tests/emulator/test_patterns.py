"""Correct real-world patterns are silent under every schedule, and one step away from them is not.

A producer/consumer ring of a Hopper GEMM (bulk copies, wgmma, full and empty mbarriers), a software
pipeline of cp.async with `wait_group 1`, named barriers, and barriers with arrive and wait apart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, run
from fragir.emulator.report import Asynchrony

from .patterns.rings import NAMED, RING, SPLIT, SPLIT_CLUSTER, ring_arguments
from .subjects import BENCHMARK, SIZE

Ways = pytest.mark.parametrize(
    ("schedule", "asynchrony"),
    [(None, "late"), (None, "early"), (1, "random"), (2, "random"), (3, "late")],
)


def kinds(
    text: str,
    arguments: list[npt.NDArray[np.generic]],
    block: int,
    schedule: int | None = None,
    asynchrony: Asynchrony = "late",
    *,
    cluster: int = 1,
    shared: int = 0,
) -> list[str]:
    """The kinds of what is found."""
    try:
        report = run(
            text,
            block=(block,),
            grid=(cluster,),
            cluster=(cluster,),
            arguments=arguments,
            shared=shared,
            check=True,
            schedule=schedule,
            asynchrony=asynchrony,
        )
    except EmulationError as error:
        before = error.report.findings if error.report else []
        return [f.kind for f in before] + [error.kind]
    return [f.kind for f in report.findings]


# -- the ring --------------------------------------------------------------------------------------


@Ways
def test_ring(schedule: int | None, asynchrony: Asynchrony) -> None:
    arguments, wanted = ring_arguments()
    assert kinds(RING, arguments, 256, schedule, asynchrony) == []
    assert (arguments[2] == wanted).all()


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        # The consumer lets go of the stage that its wgmma still reads.
        ("xor.b32 %r12, %r8, 8", "mov.b32 %r12, %r8", {"pending-source", "deadlock"}),
        ("wait_group.sync.aligned 1", "wait_group.sync.aligned 2", {"pending-source", "schedule"}),
        # The producer does not wait for the consumer.
        (
            "@!%p3 bra WAIT_EMPTY;",
            "",
            {"pending-source", "pending-copy", "race", "deadlock", "schedule"},
        ),
        # The consumer does not wait for the producer.
        ("@!%p3 bra WAIT_FULL;", "", {"race", "pending-copy", "uninitialised", "schedule"}),
        ("bar.sync 0;", "", {"mbarrier"}),
        ("2304;", "2048;", {"mbarrier", "deadlock", "pending-copy", "race", "schedule"}),
    ],
)
def test_broken_rings(old: str, new: str, found: set[str]) -> None:
    assert old in RING
    result: set[str] = set()
    for schedule in (None, 1):
        arguments, _ = ring_arguments()
        result |= set(kinds(RING.replace(old, new), arguments, 256, schedule))
    assert result
    assert result <= found


# -- cp.async --------------------------------------------------------------------------------------


def gemm(text: str, schedule: int | None = None, asynchrony: Asynchrony = "late") -> list[str]:
    a = np.ones((SIZE, 2 * SIZE), np.float16)
    c = np.zeros((SIZE, SIZE), np.float32)
    return kinds(
        text,
        [a, a, c, np.uint32(SIZE), np.uint32(2 * SIZE)],  # pyright: ignore[reportArgumentType]
        128,
        schedule,
        asynchrony,
        shared=2 * BENCHMARK.STAGES * BENCHMARK.STAGE_BYTES,
    )


@Ways
def test_pipeline_of_copies(schedule: int | None, asynchrony: Asynchrony) -> None:
    assert gemm(BENCHMARK.gemm_ptx(), schedule, asynchrony) == []


def test_pipeline_without_barriers() -> None:
    assert set(gemm(BENCHMARK.gemm_ptx().replace("bar.sync 0;", ""))) == {"race"}


# -- named barriers --------------------------------------------------------------------------------


@Ways
def test_named_barriers(schedule: int | None, asynchrony: Asynchrony) -> None:
    out = np.zeros(32, np.uint32)
    assert kinds(NAMED, [out], 64, schedule, asynchrony) == []
    assert (out == 28 + 8 * (31 - np.arange(32))).all()


def test_named_barriers_mixed_up() -> None:
    """One buffer for all steps, and still two pairs of barriers."""
    text = NAMED.replace("shl.b32 %r10, %r7, 7;", "mov.u32 %r10, 0;")
    assert set(kinds(text, [np.zeros(32, np.uint32)], 64)) == {"race"}


# -- arrive and wait apart -------------------------------------------------------------------------


@Ways
def test_arrive_and_wait_apart(schedule: int | None, asynchrony: Asynchrony) -> None:
    out = np.zeros(64, np.uint32)
    assert kinds(SPLIT, [out], 64, schedule, asynchrony) == []
    assert (out == 4 * ((np.arange(64) + 32) % 64) + 6).all()
    assert kinds(SPLIT_CLUSTER, [out], 32, schedule, asynchrony, cluster=2) == []
    assert (out == (np.arange(64) + 32) % 64).all()


@pytest.mark.parametrize("label", ["FILLED", "READ"])
def test_arrive_without_wait(label: str) -> None:
    text = SPLIT.replace(f"@!%p2 bra {label};", "")
    results = [kinds(text, [np.zeros(64, np.uint32)], 64, s) for s in (None, 1, 2)]
    assert any("race" in r for r in results)
