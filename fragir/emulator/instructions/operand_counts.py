"""How many operands an instruction takes, by the first words of its opcode (PTX ISA 9.2, 9.7).

Counts that depend on further words or operands (bulk copies, mma) are checked where the operands
are decoded.
"""

from __future__ import annotations

from functools import cache

_COUNTS: dict[str, str] = {
    "0": "ret exit trap brkpt membar griddepcontrol barrier.cluster nop wgmma.fence "
    "wgmma.commit_group cp.async.commit_group cp.async.wait_all "
    "cp.async.bulk.commit_group",
    "0 2": "fence",
    "1": "activemask bra bar.warp barrier.warp prefetch prefetchu stacksave stackrestore "
    "mbarrier.inval setmaxnreg nanosleep pmevent wgmma.wait_group cp.async.wait_group "
    "cp.async.bulk.wait_group cp.async.mbarrier",
    "1 2": "bar.sync barrier.sync bar.cta.sync barrier.cta.sync",
    "2": "abs neg not cnot popc clz brev bfind mov cvta rcp sqrt rsqrt ex2 lg2 sin cos tanh "
    "testp elect ldmatrix stmatrix movmatrix getctarank isspacep ldu applypriority "
    "discard brx bar.arrive barrier.arrive bar.cta.arrive barrier.cta.arrive "
    "mbarrier.init mbarrier.expect_tx mbarrier.complete_tx mbarrier.pending_count "
    "clusterlaunchcontrol.query_cancel clusterlaunchcontrol.try_cancel",
    "2 3": "ld st red wmma.load wmma.store alloca tensormap.replace mbarrier.arrive "
    "mbarrier.arrive_drop",
    "2 3 4": "cvt",
    "3": "add sub mul mul24 div rem and or xor addc subc shl shr copysign bmsk szext mapa "
    "match redux vote mbarrier.test_wait tensormap.cp_fenceproxy",
    "3 4": "min max setp set bar.red barrier.red bar.cta.red barrier.cta.red mbarrier.try_wait "
    "cp.async.ca cp.async.cg vadd vsub vabsdiff vmin vmax vshl vshr vset",
    "3 4 5": "atom",
    "4": "mad madc mad24 fma sad shf bfe prmt dp4a dp2a selp slct fns wmma.mma vmad "
    + " ".join(
        f"v{name}{many}"
        for name in ("add", "sub", "avrg", "absdiff", "min", "max", "set")
        for many in (2, 4)
    ),
    "5": "bfi shfl",
    "5 6": "lop3",
}

COUNTS: dict[tuple[str, ...], tuple[int, ...]] = {
    tuple(head.split(".")): tuple(map(int, counts.split()))
    for counts, heads in _COUNTS.items()
    for head in heads.split()
}


@cache
def counts_of(opcode: tuple[str, ...]) -> tuple[int, ...] | None:
    """The numbers of operands that an opcode can have; None where it depends."""
    hint = "L2::cache_hint" in opcode
    for length in range(min(4, len(opcode)), 0, -1):
        found = COUNTS.get(opcode[:length])
        if found is not None:
            # a cache policy comes last, and is counted where it may be left out too
            return (*found, found[-1] + 1) if hint and found[-1] < 5 else found
    return None


def miscounted(opcode: tuple[str, ...], count: int) -> str | None:
    """What is wrong with the number of operands; None where nothing is."""
    wanted = counts_of(opcode)
    if wanted is None or count in wanted:
        return None
    numbers = " or ".join(map(str, wanted))
    return f"{'.'.join(opcode)} takes {numbers} operand{'s' * (wanted != (1,))}, not {count}"
