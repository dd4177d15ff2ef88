"""cp.async.bulk.tensor: tiles there and back."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, TensorMap, run


def kernel(rank: int, size: int, *, store: str = "global", wait: bool = True) -> str:
    """One tile: by tensor map into shared memory, out plainly and by a second tensor map."""
    coordinates = "{" + ", ".join(f"%c{i}" for i in range(rank)) + "}"
    loads = "".join(f"ld.param.s32 %c{i}, [at+{4 * i}];" for i in range(rank))
    loop = "L: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra L;" if wait else ""
    verb = "cp.async.bulk" if store == "global" else "cp.reduce.async.bulk"
    suffix = "" if store == "global" else f".{store}"
    return f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 from[128], .param .align 64 .b8 into[128],
    .param .align 4 .b8 at[20], .param .u64 out)
{{
    .reg .b32 %r<10>; .reg .b32 %c<5>; .reg .b64 %rd<10>; .reg .pred %p<3>;
    .shared .align 1024 .b8 buffer[{size}]; .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; setp.ne.u32 %p2, %r1, 0; mov.u32 %r3, buffer; mov.u32 %r5, bar;
    cvta.param.u64 %rd1, from; mov.b64 %rd2, into; cvta.param.u64 %rd2, %rd2; {loads}
    @%p2 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], {size};
    cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r3], [%rd1, {coordinates}], [%r5];
READY:
    bar.sync 0;
    {loop}
    ld.param.u64 %rd4, [out];
C:  add.u32 %r4, %r3, %r1; ld.shared.u8 %r6, [%r4];
    cvt.u64.u32 %rd5, %r1; add.u64 %rd6, %rd4, %rd5; st.global.u8 [%rd6], %r6;
    add.u32 %r1, %r1, 32; setp.lt.u32 %p1, %r1, {size}; @%p1 bra C;
    @%p2 bra END;
    {verb}.tensor.{rank}d.global.shared::cta{suffix}.tile.bulk_group [%rd2, {coordinates}], [%r3];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
END:
    ret;
}}
"""


def tile(
    array: npt.NDArray[Any],
    box: tuple[int, ...],
    corner: tuple[int, ...],
    swizzle: Literal[0, 32, 64, 128] = 0,
    store: str = "global",
    **options: Any,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(the bytes in shared memory as elements, the array stored into)."""
    back = np.ones_like(array)
    size = int(np.prod(box)) * array.itemsize
    out = np.zeros(size // array.itemsize, array.dtype)
    at = np.array([*reversed(corner), *[0] * (5 - len(corner))], np.int32).tobytes()
    maps = [TensorMap(a, box, swizzle, **options) for a in (array, back)]
    run(kernel(array.ndim, size, store=store), arguments=[*maps, at, out])
    return out.reshape(box), back


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_rank_there_and_back(rank: int) -> None:
    shape = (5, 6, 7, 8, 32)[-rank:]
    box = (2, 3, 2, 4, 16)[-rank:]
    corner = (1, 2, 3, 4, 8)[-rank:]
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    got, back = tile(array, box, corner)
    where = tuple(slice(c, c + b) for c, b in zip(corner, box, strict=True))
    assert (got == array[where]).all()
    wanted = np.ones_like(array)
    wanted[where] = array[where]
    assert (back == wanted).all()


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_swizzles(swizzle: Literal[32, 64, 128]) -> None:
    """Chunk c of 128-byte line r goes to c ^ (r % W), W = swizzle / 16 (32-byte: pairs)."""
    columns = swizzle // 2
    array = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    got, back = tile(array, (16, columns), (8, 0), swizzle)
    plain = array[8:24, :columns].reshape(-1, 8)
    for number, chunk in enumerate(plain):
        line, place = divmod(number, 8)
        to = 8 * line + (place ^ (line % (swizzle // 16)))
        assert (got.reshape(-1, 8)[to] == chunk).all()
    assert (back[8:24, :columns] == array[8:24, :columns]).all()


def test_outside_is_filled_and_not_stored() -> None:
    array = np.arange(8 * 16, dtype=np.float32).reshape(8, 16)
    got, back = tile(array, (4, 8), (-2, 12))
    assert not got[:2].any()
    assert (got[2:, :4] == array[:2, 12:]).all()
    assert not got[:, 4:].any()
    assert (back[:2, 12:] == array[:2, 12:]).all()
    got, _ = tile(array, (4, 8), (6, 8), fill="nan")
    assert (got[:2] == array[6:, 8:]).all()
    assert np.isnan(got[2:]).all()


def test_reduction() -> None:
    array = np.arange(64, dtype=np.float32).reshape(8, 8)
    _, back = tile(array, (4, 4), (2, 4), store="add")
    wanted = np.ones_like(array)
    wanted[2:6, 4:] += array[2:6, 4:]
    assert (back == wanted).all()


def test_without_waiting() -> None:
    array = np.arange(64, dtype=np.float32).reshape(8, 8)
    maps = [TensorMap(array, (4, 4)) for _ in range(2)]
    with pytest.raises(EmulationError, match="asynchronous copy"):
        run(kernel(2, 64, wait=False), arguments=[*maps, bytes(20), np.zeros(64, np.uint8)])


def test_multicast_to_a_cluster() -> None:
    """Block 0 sends one tile to both blocks; each waits on its own mbarrier."""
    array = np.arange(64, dtype=np.float32).reshape(4, 16)
    out = np.zeros((2, 64), np.float32)
    run(
        """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 from[128], .param .u64 out)
{
    .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p<4>; .reg .b16 %m;
    .shared .align 1024 .b8 buffer[256]; .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, buffer; mov.u32 %r5, bar;
    setp.eq.u32 %p1, %r1, 0; mov.b16 %m, 3; mov.u32 %r7, 0;
    @%p1 mbarrier.init.shared.b64 [%r5], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 256;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    or.b32 %r4, %r1, %r2; setp.eq.u32 %p2, %r4, 0; cvta.param.u64 %rd1, from;
    @%p2 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        .multicast::cluster [%r3], [%rd1, {%r7, %r7}], [%r5], %m;
L:  mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
    @!%p3 bra L;
    mad.lo.u32 %r6, %r1, 4, %r3; ld.shared.u32 %r8, [%r6];
    ld.param.u64 %rd2, [out]; mad.lo.u32 %r9, %r2, 64, %r1; mad.wide.u32 %rd2, %r9, 4, %rd2;
    st.global.u32 [%rd2], %r8;
    ret;
}
""",
        grid=(2,),
        cluster=(2,),
        block=(64,),
        arguments=[TensorMap(array, (4, 16)), out],
    )
    assert (out == array.ravel()).all()


def test_wrong_maps() -> None:
    array = np.zeros((8, 8), np.float32)
    maps: list[tuple[tuple[Any, ...], str]] = [
        ((array, (4,)), "1 to 5 dimensions"),
        ((array, (4, 3)), "multiple of 16 bytes"),
        ((array, (4, 300)), "1 to 256"),
        ((array, (4, 16), 32), "swizzle 32"),
    ]
    for options, words in maps:
        with pytest.raises(EmulationError, match=words):
            TensorMap(*options)
