"""Special registers (PTX ISA 9.2, section 10) of every thread, in launches of three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from fragir.emulator import run

Triple = tuple[int, int, int]


class Thread(NamedTuple):
    """One thread: where it is, and what it was launched with. All triples are x, y, z."""

    grid: Triple
    block: Triple
    cluster: Triple
    ctaid: Triple
    tid: Triple

    @property
    def number(self) -> int:
        """Its number within the block: x fastest."""
        (x, y, z), (bx, by, _) = self.tid, self.block
        return x + bx * (y + by * z)

    @property
    def rank(self) -> int:
        """The number of its block within the cluster: x fastest."""
        x, y, z = (i % c for i, c in zip(self.ctaid, self.cluster, strict=True))
        return x + self.cluster[0] * (y + self.cluster[1] * z)


def threads(grid: Triple, block: Triple, cluster: Triple) -> Iterator[Thread]:
    """Blocks with x fastest, and within each the threads likewise."""
    for z, y, x in product(*(range(n) for n in reversed(grid))):
        for k, j, i in product(*(range(n) for n in reversed(block))):
            yield Thread(grid, block, cluster, (x, y, z), (i, j, k))


def axis(part: int) -> dict[str, Callable[[Thread], int]]:
    letter = "xyz"[part]
    return {
        f"tid.{letter}": lambda t: t.tid[part],
        f"ntid.{letter}": lambda t: t.block[part],
        f"ctaid.{letter}": lambda t: t.ctaid[part],
        f"nctaid.{letter}": lambda t: t.grid[part],
        f"clusterid.{letter}": lambda t: t.ctaid[part] // t.cluster[part],
        f"nclusterid.{letter}": lambda t: t.grid[part] // t.cluster[part],
        f"cluster_ctaid.{letter}": lambda t: t.ctaid[part] % t.cluster[part],
        f"cluster_nctaid.{letter}": lambda t: t.cluster[part],
    }


#: Name -> what a thread reads there.
MODEL: dict[str, Callable[[Thread], int]] = {
    **axis(0),
    **axis(1),
    **axis(2),
    "laneid": lambda t: t.number % 32,
    "warpid": lambda t: t.number // 32,
    "nwarpid": lambda t: -(-t.block[0] * t.block[1] * t.block[2] // 32),
    "cluster_ctarank": lambda t: t.rank,
    "cluster_nctarank": lambda t: t.cluster[0] * t.cluster[1] * t.cluster[2],
    "lanemask_eq": lambda t: 1 << t.number % 32,
    "lanemask_lt": lambda t: sum(1 << i for i in range(t.number % 32)),
    "lanemask_le": lambda t: sum(1 << i for i in range(t.number % 32 + 1)),
    "lanemask_gt": lambda t: sum(1 << i for i in range(t.number % 32 + 1, 32)),
    "lanemask_ge": lambda t: sum(1 << i for i in range(t.number % 32, 32)),
    "dynamic_smem_size": lambda _: 4096,
}


@pytest.mark.parametrize(
    ("grid", "block", "cluster"),
    [
        ((5, 1, 1), (32, 1, 1), (1, 1, 1)),
        ((4, 6, 3), (3, 5, 4), (2, 3, 1)),
        ((2, 2, 4), (40, 1, 2), (1, 2, 2)),
        ((8, 1, 2), (2, 2, 17), (4, 1, 1)),
    ],
)
def test_special_registers(grid: Triple, block: Triple, cluster: Triple) -> None:
    """The block's place in the grid comes from its own %ctaid, which must be complete."""
    names = list(MODEL)
    total = int(np.prod(grid)) * int(np.prod(block))
    out = np.full((total, len(names)), 0xDEAD, np.uint32)
    stores = "".join(
        f"mov.u32 %v, %{name}; st.global.u32 [%to+{4 * i}], %v;\n" for i, name in enumerate(names)
    )
    per_block = int(np.prod(block))
    text = f"""
.version 8.0
.target sm_90
.address_size 64
.extern .shared .b8 dynamic[];
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %v, %n, %m, %x; .reg .b64 %to;
    mov.u32 %n, dynamic;
    mov.u32 %n, %ctaid.z; mad.lo.u32 %n, %n, {grid[1]}, 0; mov.u32 %x, %ctaid.y;
    add.u32 %n, %n, %x; mul.lo.u32 %n, %n, {grid[0]}; mov.u32 %x, %ctaid.x; add.u32 %n, %n, %x;
    mov.u32 %m, %tid.z; mul.lo.u32 %m, %m, {block[1]}; mov.u32 %x, %tid.y; add.u32 %m, %m, %x;
    mul.lo.u32 %m, %m, {block[0]}; mov.u32 %x, %tid.x; add.u32 %m, %m, %x;
    mad.lo.u32 %n, %n, {per_block}, %m;
    ld.param.u64 %to, [out]; mad.wide.u32 %to, %n, {4 * len(names)}, %to;
    {stores}
    ret;
}}
"""
    run(text, grid=grid, block=block, cluster=cluster, shared=4096, arguments=[out])
    for thread, row in zip(threads(grid, block, cluster), out.tolist(), strict=True):
        assert dict(zip(names, row, strict=True)) == {n: f(thread) for n, f in MODEL.items()}


def test_clocks_tick_by_reads() -> None:
    """Every read is later, by every name of the clock, and two launches see the same times."""
    names = ("clock64", "globaltimer", "clock", "globaltimer_lo", "clock_hi", "globaltimer_hi")
    reads = "".join(
        f"mov.u{64 if n in names[:2] else 32} %{'d' if n in names[:2] else 'r'}{i}, %{n};\n"
        for i, n in enumerate(names)
    )
    text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .b64 %a;
    ld.param.u64 %a, [out];
    {reads}
    st.global.u64 [%a], %d0; st.global.u64 [%a+8], %d1;
    cvt.u64.u32 %d2, %r2; cvt.u64.u32 %d3, %r3; cvt.u64.u32 %d4, %r4; cvt.u64.u32 %d5, %r5;
    st.global.u64 [%a+16], %d2; st.global.u64 [%a+24], %d3;
    st.global.u64 [%a+32], %d4; st.global.u64 [%a+40], %d5;
    ret;
}}
"""
    times = [np.zeros(6, np.uint64) for _ in range(2)]
    for each in times:
        run(text, block=(1,), arguments=[each])
    assert times[0].tolist() == times[1].tolist()
    first, second, low, lower, high, higher = times[0].tolist()
    assert first < second
    assert second >> 32 == high == higher
    assert (second & 0xFFFFFFFF) < low < lower
