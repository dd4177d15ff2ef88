"""Two bulk copies to one place of global memory, or a thread's store and a copy: who is last?"""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import run
from fragir.emulator.report import Asynchrony

KERNEL = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .pred %p; .reg .b32 %t, %s, %v, %b; .reg .b64 %out;
    .shared .align 128 .b8 tile[256];
    mov.u32 %t, %tid.x; mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s; mov.u32 %b, %ctaid.x;
    ld.param.u64 %out, [out];
    mov.u32 %v, {value};
    st.shared.v4.b32 [%s], {{%v, %v, %v, %v}};
    fence.proxy.async;
    bar.sync 0;
    {body}
    ret;
}}
"""
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%out], [tile+{0}], 64;"
ADD = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [tile+{0}], 64;"
DONE = "cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;"
READ = "cp.async.bulk.commit_group;\n cp.async.bulk.wait_group.read 0;"


def by(lane: int, *lines: str) -> str:
    """Lines for one lane."""
    label = f"L{lane}_{len(lines)}"
    return "\n".join((f"setp.ne.u32 %p, %t, {lane}; @%p bra {label};", *lines, f"{label}:"))


def kinds(
    body: str, value: str = "%t", blocks: int = 1, asynchrony: Asynchrony = "late"
) -> list[str]:
    ptx = KERNEL.format(body=body, value=value)
    out = np.zeros(64, np.uint32)
    found = run(
        ptx, grid=(blocks,), block=(16,), arguments=[out], check=True, asynchrony=asynchrony
    ).findings
    return [f"{one.severity} {one.kind}" for one in found]


FIRST, SECOND = STORE.format(0), STORE.format(64)
RACES = {
    "one thread, no wait": by(0, FIRST, SECOND, DONE),
    "one thread, of sources only": by(0, FIRST, READ, SECOND, DONE),
    "two threads": by(0, FIRST, DONE) + by(1, SECOND, DONE),
    "a sum and a store": by(0, ADD.format(0), SECOND, DONE),
    "a thread's store": by(1, "st.global.u32 [%out], 77;") + by(0, FIRST, DONE),
}
ORDERED = {
    "one thread, waited for": by(0, FIRST, DONE, SECOND, DONE),
    "two threads and a barrier": by(0, FIRST, DONE) + "bar.sync 0;" + by(1, SECOND, DONE),
    "sums": by(0, ADD.format(0), ADD.format(64), DONE),
}


@pytest.mark.parametrize("asynchrony", ["late", "early", "random"])
@pytest.mark.parametrize("name", RACES)
def test_what_nothing_orders(name: str, asynchrony: Asynchrony) -> None:
    assert kinds(RACES[name], asynchrony=asynchrony) == ["error race"]


@pytest.mark.parametrize("name", ORDERED)
def test_what_is_ordered(name: str) -> None:
    assert kinds(ORDERED[name]) == []


@pytest.mark.parametrize("asynchrony", ["late", "early"])
def test_the_same_bytes_are_no_race(asynchrony: Asynchrony) -> None:
    """As where tiles overlap at an edge; of two blocks too."""
    assert kinds(RACES["one thread, no wait"], "5", asynchrony=asynchrony) == []
    assert kinds(by(0, FIRST, DONE), "5", blocks=2, asynchrony=asynchrony) == []


def test_blocks() -> None:
    assert kinds(by(0, FIRST, DONE), "%b", blocks=2) == ["error race"]
    assert kinds(by(0, ADD.format(0), DONE), "%b", blocks=2) == []
