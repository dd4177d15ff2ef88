"""Accesses to what a copy has yet to write: whoever makes them, they are told with their place."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import TensorMap, run
from fragir.emulator.report import EmulationError

KERNEL = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .align 64 .b8 map[128])
{{
    .reg .pred %p, %q, %r; .reg .b32 %a, %s, %b, %v, %w; .reg .b64 %data, %m, %g;
    .shared .align 1024 .b8 tile[1024]; .shared .align 8 .b64 bar[2];
    mov.u32 %a, %tid.x; mov.u32 %s, tile; mov.u32 %b, bar; ld.param.u64 %data, [data];
    mov.b64 %m, map; cvta.param.u64 %m, %m; mov.u32 %v, 7;
    setp.eq.u32 %p, %a, 37;
    @%p mbarrier.init.shared.b64 [%b], 1;
    @%p mbarrier.init.shared.b64 [%b+8], 1;
    @%p fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    mapa.shared::cluster.u32 %s, %s, 0; mapa.shared::cluster.u32 %b, %b, 0;
    @%p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 512;
    @%p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar+8], 512;
    bar.sync 0;
    @%p {first}
    @%p {second}
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}}
"""
DONE = "mbarrier::complete_tx::bytes"
BULK = f"cp.async.bulk.shared::cluster.global.{DONE} [%s+{{0}}], [%data], 128, [%b+8];"
PENDING = {
    "bulk": BULK.format(128).replace("%b+8", "%b"),
    "tensor": f"cp.async.bulk.tensor.2d.shared::cluster.global.tile.{DONE} [%s+128], "
    "[%m, {0, 0}], [%b];",
    "st.async": f"st.async.shared::cluster.{DONE}.b32 [%s+192], %v, [%b];",
    "cp.async": "cp.async.ca.shared.global [tile+192], [%data], 16;",
}
LATER = {
    "bulk": BULK.format(112),
    "multicast": f"cp.async.bulk.shared::cluster.global.{DONE}.multicast::cluster [%s+112], "
    "[%data], 128, [%b+8], 1;",
    "tensor": f"cp.async.bulk.tensor.2d.shared::cluster.global.tile.{DONE} [%s+128], "
    "[%m, {0, 0}], [%b+8];",
    "st.async": f"st.async.shared::cluster.{DONE}.b32 [%s+192], %v, [%b+8];",
    "red.async": f"red.async.relaxed.cluster.shared::cluster.{DONE}.add.u32 [%s+192], %v, [%b+8];",
    "cp.async": "cp.async.ca.shared.global [tile+192], [%data], 16;",
    "st.bulk": "st.bulk.weak.shared::cta [tile+192], 8, 0;",
    "store": "st.shared.u32 [tile+192], %v;",
    "load": "ld.shared.u32 %w, [tile+192];",
    "atomic": "atom.shared.add.u32 %w, [tile+192], 1;",
}
SAID = {"bulk": "cp.async.bulk", "tensor": "cp.async.bulk.tensor", "st.async": "st.async"}


@pytest.mark.parametrize("second", LATER)
@pytest.mark.parametrize("first", PENDING)
def test_a_place(first: str, second: str) -> None:
    """Thread 37 is lane 5 of warp 1; what it waits for is named with its parity."""
    ptx = KERNEL.format(first=PENDING[first], second=LATER[second])
    target = "sm_100a" if second == "st.bulk" else "sm_90a"
    ptx = ptx.replace("sm_90a", target)
    data = np.zeros(256, np.uint32)
    maps = TensorMap(np.zeros((8, 8), np.float32), (8, 4))
    with pytest.raises(EmulationError, match="still pending; wait for it first") as caught:
        run(
            ptx,
            block=(64,),
            cluster=(1, 1, 1),
            arguments=[data, maps],
            target=target,
            check=True,
            fragments=True,
        )
    error = caught.value
    assert (error.kind, error.warp, error.lane) == ("pending-copy", 1, 5)
    assert error.line is not None
    assert "@%p " + LATER[second] in ptx.splitlines()[error.line - 1]
    wanted = "in no group yet"
    if first in SAID:
        wanted = f": {SAID[first]} counts at the mbarrier at shared offset 1024, whose phase of "
        wanted += "parity 0 is not complete (a wait for parity 1 passes at once)"
    assert wanted in str(error)


def test_the_group_that_would_have_to_be_waited_for() -> None:
    first = "cp.async.ca.shared.global [tile+192], [%data], 16;"
    groups = "\n    cp.async.commit_group;" * 3 + "\n    cp.async.wait_group 3;\n"
    ptx = KERNEL.format(first=first + groups, second=LATER["load"])
    maps = TensorMap(np.zeros((8, 8), np.float32), (8, 4))
    with pytest.raises(EmulationError, match=r"cp\.async\.wait_group 2 of that thread waits for"):
        run(ptx, block=(64,), arguments=[np.zeros(256, np.uint32), maps], check=True)
