"""Operands that name a block which the cluster does not have: told as that, not as an offset."""

from __future__ import annotations

import re

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
    .reg .pred %p; .reg .b32 %a, %s, %b, %v; .reg .b64 %data, %m, %g;
    .shared .align 1024 .b8 tile[1024]; .shared .align 8 .b64 bar;
    mov.u32 %a, %tid.x; ld.param.u64 %data, [data]; mov.b64 %m, map; cvta.param.u64 %m, %m;
    setp.eq.u32 %p, %a, 3; mov.u32 %v, 7;
    @%p mbarrier.init.shared.b64 [bar], 1;
    @%p fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %s, tile; mov.u32 %b, bar;
    mapa.shared::cluster.u32 %s, %s, {rank}; mapa.shared::cluster.u32 %b, %b, {rank};
    cvta.shared.u64 %g, tile; mapa.u64 %g, %g, {rank};
    @%p {statement}
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}}
"""
DONE = "mbarrier::complete_tx::bytes"
BULK = f"cp.async.bulk.shared::cluster.global.{DONE}"
TENSOR = "cp.async.bulk.tensor.2d.shared::cluster.global.tile"
ADDRESSES = {
    "load": "ld.shared::cluster.u32 %v, [%s];",
    "store": "st.shared::cluster.u32 [%s], %v;",
    "generic": "ld.u32 %v, [%g];",
    "atomic": "atom.shared::cluster.add.u32 %v, [%s], 1;",
    "arrive": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%b];",
    "st.async": f"st.async.shared::cluster.{DONE}.b32 [%s], %v, [%b];",
    "copy": f"{BULK} [%s], [%data], 128, [%b];",
    "tensor copy": f"{TENSOR}.{DONE} [%s], [%m, {{0, 0}}], [%b];",
}
MASKS = {
    "copy": f"{BULK}.multicast::cluster [tile], [%data], 128, [bar], {{mask}};",
    "tensor copy": f"{TENSOR}.{DONE}.multicast::cluster [tile], [%m, {{{{0, 0}}}}], [bar], "
    "{mask};",
}


def said(statement: str, rank: int, cluster: int) -> str:
    """What stops the run, which is of lane 3."""
    ptx = KERNEL.format(statement=statement, rank=rank)
    maps = TensorMap(np.zeros((8, 8), np.float32), (8, 4))
    arguments = [np.zeros(256, np.uint32), maps]
    with pytest.raises(EmulationError) as caught:
        run(ptx, grid=(4,), block=(32,), cluster=(cluster, 1, 1), arguments=arguments, check=True)
    assert (caught.value.kind, caught.value.lane) == ("out-of-bounds", 3)
    return str(caught.value)


@pytest.mark.parametrize("name", ADDRESSES)
def test_addresses(name: str) -> None:
    words = "the address is of block 1 of a cluster, and this launch has clusters of one block "
    assert words + "(--cluster)" in said(ADDRESSES[name], 1, 1)
    assert "the address is of block 3, and the cluster has 2 blocks" in said(ADDRESSES[name], 3, 2)


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_multicasts(name: str) -> None:
    one, two = (said(MASKS[name].format(mask=mask), 0, n) for mask, n in ((3, 1), (0x8003, 2)))
    assert re.search(r"the mask 0x3 names block 1 of a cluster, .* clusters of one block", one)
    assert "the mask 0x8003 names block 15, and the cluster has 2 blocks" in two
