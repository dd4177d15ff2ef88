"""Products of few rows, which wait for memory: as many bytes under way as memory wants, by stages
of a role that fetches or of all threads; what `tile` or `stages` alone say keeps roles."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir.compiler import parse
from fragir.dialects import frag
from fragir.passes.tiling.choosing import choice_for
from fragir.passes.tiling.explained import explain_schedules
from fragir.passes.tiling.gemm_schedule import configuration_of, problem_of
from fragir.scheduling.candidates import FRAG_TILE, SPECIALISED, Configuration
from fragir.scheduling.cost import compulsory, deep, estimate, is_bound_by_memory


def program(sizes: tuple[int, int, int], words: str = "") -> str:
    """C = A B^T, the weights K-major."""
    m, n, k = sizes
    a, b, c = f"memref<{m}x{k}xf16>", f"memref<{n}x{k}xf16>", f"memref<{m}x{n}xf16>"
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) {{
      frag.matmul %a, %b transposed into %c {words} : {a}, {b} into {c}
      func.return
    }}"""


def matmul(text: str) -> frag.MatmulOp:
    return next(op for op in parse(text).walk() if isinstance(op, frag.MatmulOp))


def from_memory(one: Configuration, sizes: tuple[int, int, int], sms: int) -> float:
    """Bytes of B that are on their way to an SM, on the average of all SMs."""
    (m, n, k), columns = one.tile, sizes[1]
    blocks = -(-sizes[0] // m) * -(-columns // n)
    return (one.stages - 1) * n * k * 2 * blocks / sms


@pytest.mark.parametrize(
    ("sizes", "share"),
    [
        ((1, 4096, 4096), 0.99),
        ((16, 4096, 4096), 0.99),
        ((32, 8192, 8192), 0.99),
        ((64, 14336, 4096), 0.95),
        ((8, 8192, 28672), 0.99),
        ((16, 128256, 4096), 0.99),
    ],
)
def test_memory_is_kept_busy(sizes: tuple[int, int, int], share: float) -> None:
    """With so many bytes under way as an H100 wants; beside that a block begins and ends."""
    op = matmul(program(sizes))
    problem = problem_of(op, sizes, "sm_90a")
    found = configuration_of(choice_for(op, "sm_90a").schedule)
    cost = estimate(problem, found)
    assert from_memory(found, sizes, problem.device.sms) >= 32 << 10
    assert compulsory(problem) / cost.dram >= share
    assert cost.limit == "memory"
    # as it was: three stages, all threads copy and multiply
    before = Configuration((64, 32, 64), (1, 1), 3, True)
    if sizes[1] == 4096:
        assert from_memory(before, sizes, problem.device.sms) < 8 << 10
        assert estimate(problem, before).cycles > 2 * cost.cycles


def test_what_waits_for_memory() -> None:
    for rows in (1, 64, 128):
        assert is_bound_by_memory(
            problem_of(matmul(program((8, 8, 8))), (rows, 4096, 4096), "sm_90a")
        )
    problem = problem_of(matmul(program((8, 8, 8))), (1024, 4096, 4096), "sm_90a")
    assert not is_bound_by_memory(problem)
    # much of C and little of K: what is written needs nothing under way
    assert not is_bound_by_memory(problem._replace(m=4096, k=256))
    assert deep(FRAG_TILE, problem) == FRAG_TILE
    assert deep(FRAG_TILE, problem._replace(m=1)).deepest == 8
    assert deep(SPECIALISED, problem._replace(m=1)).deepest == 12


def test_a_tile_alone_keeps_roles() -> None:
    sizes = (8192, 8192, 8192)
    for words in ("{tile = array<i64: 128, 192, 64>}", "{stages = 2 : i64}"):
        op = matmul(program(sizes, words))
        choice = choice_for(op, "sm_90a")
        assert choice.schedule.roles
        assert choice.schedule.tile == (128, 192, 64) or choice.schedule.stages == 2
        (text,) = map(str, explain_schedules(parse(program(sizes, words)), "sm_90a"))
        name = words[1:].split()[0]
        assert f"{name} of the product says so; with roles 1." in text
    for words in (
        "{tile = array<i64: 128, 192, 64>, stages = 3 : i64}",
        "{tile = array<i64: 128, 192, 64>, warps = array<i64: 2, 1>}",
    ):
        assert not choice_for(matmul(program(sizes, words)), "sm_90a").schedule.roles


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("{tile = array<i64: 64, 32, 64>, stages = 12 : i64, roles}", "sm_90a"),
        ("{tile = array<i64: 64, 32, 64>, stages = 8 : i64}", "sm_90a"),
        ("{tile = array<i64: 32, 32, 64>, stages = 6 : i64}", "sm_80"),
    ],
)
def test_many_stages_are_right(words: str, target: str) -> None:
    """More stages than steps of a tile, and fewer."""
    for k in (200, 904):
        m, n = 5, 40
        kernel = fragir.compile(program((m, n, k), words), target=target)
        rng = np.random.default_rng(k)
        a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (n, k))
        c = np.zeros((m, n), np.float16)
        report = kernel(*(x.astype(np.float16) for x in (a, b)), c, on="emulator", check=True)
        assert not report.findings
        assert (c == (a @ b.T).astype(np.float16)).all()


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_120a"])
def test_tiles_go_in_groups_where_less_comes_from_memory(target: str) -> None:
    """By mma.sync too; not where all tiles run at once, nor where memory has little to do."""
    large = choice_for(matmul(program((4096, 14336, 4096))), target).schedule
    assert large.order == "grouped"
    assert not large.roles
    op = matmul(program((4096, 14336, 4096)))
    problem = problem_of(op, (4096, 14336, 4096), target)
    rows, groups = (
        estimate(problem, configuration_of(each)).dram
        for each in (large._replace(order=None), large)
    )
    assert rows > 2.5 * groups
    assert choice_for(matmul(program((512, 512, 4096))), target).schedule.order is None
    kernel = fragir.compile(program((4096, 14336, 4096)), target=target)
    m, n, _ = large.tile
    assert kernel.grid({}) == (4096 // m * (-(-14336 // n)), 1, 1)
