"""Arguments that lie in the same host memory are one piece of memory on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, Report, TensorMap, run
from fragir.emulator.launch.arguments import storages

Array = npt.NDArray[Any]

#: Every thread: y[tid] = x[tid + shift] + 1, after a barrier x[tid + far] = 7.
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 shift, .param .u32 far) {
.reg .b64 %rd<5>; .reg .b32 %r<6>;
ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; mov.u32 %r0, %tid.x;
ld.param.u32 %r1, [shift]; add.u32 %r1, %r1, %r0; mad.wide.u32 %rd2, %r1, 4, %rd0;
ld.global.u32 %r2, [%rd2]; add.u32 %r2, %r2, 1;
mad.wide.u32 %rd3, %r0, 4, %rd1; st.global.u32 [%rd3], %r2;
bar.sync 0;
ld.param.u32 %r3, [far]; add.u32 %r3, %r3, %r0; mad.wide.u32 %rd4, %r3, 4, %rd0;
st.global.u32 [%rd4], 7;
ret;
}
"""


def steps(x: Array, y: Array, shift: int, far: int, **options: Any) -> Report:
    return run(PTX, arguments=[x, y, np.uint32(shift), np.uint32(far)], check=True, **options)


def expected(base: Array, x: slice, y: slice, shift: int, far: int) -> Array:
    """What numpy makes of the same views."""
    base = base.copy()
    base[y][:32] = base[x][shift : shift + 32] + 1
    base[x][far : far + 32] = 7
    return base


@pytest.mark.parametrize(
    ("x", "y", "shift", "far"),
    [
        (slice(0, 128), slice(32, 96), 0, 40),  # y inside x: writes through x are in y
        (slice(32, 128), slice(0, 64), 0, 64),  # x begins inside y
        (slice(0, 128), slice(0, 64), 64, 32),  # the same first element, other sizes
        (slice(0, 128), slice(0, 128), 32, 64),  # the same bytes
    ],
)
def test_overlapping_views(x: slice, y: slice, shift: int, far: int) -> None:
    base = np.arange(128, dtype=np.uint32)
    wanted = expected(base, x, y, shift, far)
    assert steps(base[x], base[y], shift, far).findings == []
    assert base.tolist() == wanted.tolist()


def test_chain_of_views() -> None:
    """a overlaps b, b overlaps c; a and c do not."""
    base = np.arange(12, dtype=np.uint32)
    found = storages([base[8:], base[:5], base[4:9], base[4:4], base[:5].view(np.uint8)])
    assert [(s.arrays, s.size) for s in found] == [([0, 1, 2, 4], 48), ([3], 0)]


def test_neighbours_are_apart() -> None:
    """An access that runs out of one half of an array does not reach the other."""
    base = np.arange(128, dtype=np.uint32)
    with pytest.raises(EmulationError, match="offset 256 of argument 0") as caught:
        steps(base[:64], base[64:], 0, 64)
    assert caught.value.kind == "out-of-bounds"


def test_bounds_of_views() -> None:
    base = np.arange(64, dtype=np.uint32)
    words = r"offset 256 of argument 0 \(x\) and argument 1 \(y\), which has 256"
    with pytest.raises(EmulationError, match=words):
        steps(base[16:], base[:32], 0, 48)


def read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def test_read_only_view_of_what_is_written() -> None:
    """What one may write is written, though the other view may not."""
    base = np.arange(128, dtype=np.uint32)
    steps(read_only(base), base, 0, 0)
    assert base[:32].tolist() == [7] * 32


def test_read_only_bytes_are_refused() -> None:
    """Written bytes that no view may write; what may be written is."""
    base = np.arange(128, dtype=np.uint32)
    with pytest.raises(EmulationError, match=r"wrote to argument 0 \(x\), an array that is read"):
        steps(read_only(base), base[:64], 0, 96)
    assert base[:32].tolist() == list(range(1, 33))
    assert base[96:].tolist() == list(range(96, 128))


def test_read_only_views_stay_aligned() -> None:
    """Views that nothing can write are buffers of their own, each aligned."""
    base = read_only(np.arange(8, dtype=np.uint32))
    found = storages([base, base[1:], base])
    assert [s.arrays for s in found] == [[0, 2], [1]]


def test_tensor_map_over_an_argument() -> None:
    """A tile is copied from bytes that the kernel wrote through a pointer before."""
    ptx = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 p, .param .u64 out) {
.shared .align 128 .b8 s[64]; .shared .align 8 .b64 bar;
.reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p;
ld.param.u64 %rd0, [p]; st.global.u32 [%rd0], 42; fence.proxy.async.global;
mov.u32 %r0, bar; mov.u32 %r1, s; mbarrier.init.shared.b64 [%r0], 1;
fence.proxy.async.shared::cta;
mov.u64 %rd1, map; cvta.param.u64 %rd1, %rd1;
mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 64;
mov.u32 %r3, 0;
cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
  [%r1], [%rd1, {%r3}], [%r0];
W: mbarrier.try_wait.parity.shared.b64 %p, [%r0], 0; @!%p bra W;
ld.shared.u32 %r2, [%r1 + 16]; ld.param.u64 %rd2, [out]; st.global.u32 [%rd2], %r2;
ret;
}
"""
    base, out = np.zeros(32, np.uint32), np.zeros(1, np.uint32)
    run(ptx, block=(1,), arguments=[TensorMap(base[4:], (16,)), base[8:], out])
    assert (int(base[8]), int(out[0])) == (42, 42)


def test_stopped_kernels_write_too() -> None:
    """What is written before a fault is there, as it was for arrays that stand alone."""
    base = np.arange(128, dtype=np.uint32)
    with pytest.raises(EmulationError, match="bytes at offset"):
        steps(base, base[64:], 0, 1000)
    assert base[64:96].tolist() == list(range(1, 33))
