"""Tensor maps: packed types, gathered rows, im2col, swizzle atoms, reductions, replaced fields."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, Im2col, Report, TensorMap, run
from fragir.emulator.instructions.alu import of2
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.numbers.types import where
from tests.emulator.kernels import HEAD

MBAR = "mbarrier::complete_tx::bytes"


def kernel(load: str, size: int, count: int, store: str = "", before: str = "") -> str:
    """Load `size` bytes of shared memory (`count` signalled), write them out, and `store`."""
    return f"""{HEAD}
.visible .entry k(.param .align 64 .b8 m[128], .param .align 64 .b8 n[128], .param .u64 out)
{{
    .shared .align 1024 .b8 buffer[{size}]; .shared .align 8 .b64 bar;
    .shared .align 128 .b8 copy[128];
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .b64 %m, %n, %out;
    mov.u32 %r1, %tid.x; mov.b64 %m, m; mov.b64 %n, n; cvta.param.u64 %m, %m;
    cvta.param.u64 %n, %n; ld.param.u64 %out, [out]; setp.ne.u32 %p2, %r1, 0;
    shl.b32 %r9, %r1, 2; mov.u32 %r8, buffer; {before}
    @%p2 bra READY;
    mbarrier.init.shared.b64 [bar], 1; fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], {count};
    {load}
READY:
    bar.sync 0;
W:  mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;
C:  add.u32 %r3, %r8, %r9; ld.shared.u32 %r4, [%r3]; cvt.u64.u32 %d1, %r9;
    add.u64 %d1, %out, %d1; st.global.u32 [%d1], %r4; add.u32 %r9, %r9, 128;
    setp.lt.u32 %p1, %r9, {size}; @%p1 bra C;
    @%p2 bra END;
    {store}
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
    ret;
}}
"""


def go(
    text: str, size: int, load: TensorMap, store: TensorMap | None = None, **options: Any
) -> tuple[npt.NDArray[np.uint8], Report]:
    out = np.zeros(size, np.uint8)
    arguments = [load, store if store is not None else bytes(128), out]
    return out, run(text, arguments=arguments, **options)


@pytest.mark.parametrize("swizzle", [0, 128])
def test_rows_are_gathered_and_scattered(swizzle: Any) -> None:
    array = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    back = np.zeros_like(array)
    rows = [50, 3, -1, 17]
    text = kernel(
        f"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.{MBAR} "
        "[buffer], [%m, {8, 50, 3, -1, 17}], [bar];",
        256,
        256,
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
        "[%n, {32, 1, 70, 0, 2}], [buffer];",
    )
    maps = [TensorMap(a, (1, 32), swizzle) for a in (array, back)]
    out, report = go(text, 256, *maps, check=True)
    wanted = np.stack([array[r, 8:40] if r >= 0 else np.zeros(32, np.uint16) for r in rows])
    got = out.view(np.uint16).reshape(4, 4, 8)
    if swizzle:  # two rows of 64 bytes make a line of 128
        lines = out.view(np.uint16).reshape(2, 8, 8)
        got = np.stack([line[np.arange(8) ^ i] for i, line in enumerate(lines)]).reshape(4, 4, 8)
    assert (got.reshape(4, 32) == wanted).all()
    assert (back[[1, 0, 2], 32:] == wanted[[0, 2, 3]]).all()
    assert not back[:, :32].any()
    assert not back[3:].any()
    assert report.findings == []


@pytest.mark.parametrize(
    ("kind", "data", "room"), [("b4x16", 8, 8), ("b4x16_p64", 8, 16), ("b6x16_p32", 12, 16)]
)
def test_packed_types(kind: str, data: int, room: int) -> None:
    """16 elements are 8 or 12 bytes in global and 8 or 16 in shared memory."""
    rows, groups = 4, 8  # 128 elements a row
    array = np.random.default_rng(2).integers(1, 256, (8, 2 * groups * data), dtype=np.uint8)
    load = (
        f"cp.async.bulk.tensor.2d.shared::cta.global.tile.{MBAR} [buffer], [%m, {{128, 6}}], [bar];"
    )
    size = rows * groups * room
    the_map = TensorMap(array, (rows, 128), kind=kind)
    out, _ = go(kernel(load, size, rows * groups * data), size, the_map)
    got = out.reshape(rows, groups, room)
    wanted = array[6:, groups * data :].reshape(2, groups, data)
    assert (got[:2, :, :data] == wanted).all()
    assert not got[2:].any()
    odd = load.replace("128, 6", "1, 6")
    with pytest.raises(EmulationError, match="the innermost coordinate is 1, "):
        go(kernel(odd, size, rows * groups * data), size, the_map)


@pytest.mark.parametrize("atom", [16, 32, 64])
def test_atoms_of_the_swizzle(atom: Any) -> None:
    array = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32)
    load = f"cp.async.bulk.tensor.2d.shared::cta.global.{MBAR} [buffer], [%m, {{0, 0}}], [bar];"
    out, _ = go(kernel(load, 2048, 2048), 2048, TensorMap(array, (16, 32), 128, atom=atom))
    pieces = out.view(np.uint32).reshape(16, 128 // atom, atom // 4)
    for row in range(16):
        order = np.array([piece ^ (row % (128 // atom)) for piece in range(128 // atom)])
        assert (pieces[row, order].reshape(-1) == array[row]).all()


REDUCTIONS: list[tuple[str, Any, Any]] = [
    ("add", np.float16, np.add),
    ("add", ml_dtypes.bfloat16, np.add),
    ("max", np.float16, np.maximum),
    ("min", np.int64, np.minimum),
    ("xor", np.uint32, np.bitwise_xor),
    ("and", np.int32, np.bitwise_and),
    ("inc", np.uint32, of2(lambda a, b: where(a >= b, 0, a + 1))),
]


@pytest.mark.parametrize(("operation", "dtype", "function"), REDUCTIONS)
def test_reductions_of_tiles(operation: str, dtype: Any, function: Any) -> None:
    rng = np.random.default_rng(4)
    array, target = ((rng.normal(size=(8, 16)) * 50).astype(np.int8).astype(dtype) for _ in "ab")
    size = array.nbytes
    wide = np.float32 if dtype is ml_dtypes.bfloat16 else dtype
    wanted = function(target.astype(wide), array.astype(wide)).astype(dtype)
    load = f"cp.async.bulk.tensor.2d.shared::cta.global.{MBAR} [buffer], [%m, {{0, 0}}], [bar];"
    store = (
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group "
        "[%n, {0, 0}], [buffer];"
    )
    maps = [TensorMap(a, (8, 16)) for a in (array, target)]
    go(kernel(load, size, size, store), size, *maps)
    assert (target == wanted).all()


def test_reductions_that_do_not_exist() -> None:
    array = np.zeros((8, 16), np.float32)
    load = f"cp.async.bulk.tensor.2d.shared::cta.global.{MBAR} [buffer], [%m, {{0, 0}}], [bar];"
    store = (
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.bulk_group [%n, {0, 0}], [buffer];"
    )
    maps = [TensorMap(a, (8, 16)) for a in (array, array)]
    with pytest.raises(EmulationError, match=r"no \.max of \.f32"):
        go(kernel(load, 512, 512, store), 512, *maps)


# -- im2col ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [1, 2])
def test_im2col_walks_the_pixels_of_a_convolution(stride: int) -> None:
    """A 3x3 filter with padding 1: rows are output pixels, the offsets choose the filter's tap."""
    n, height, width, channels = 2, 6, 8, 16
    array = np.arange(n * height * width * channels, dtype=np.float32)
    array = array.reshape(n, height, width, channels)
    pixels, first = 16, (1, 2, 1)  # (image, row, column) of the output where the copy begins
    the_map = TensorMap(
        array,
        (1, 1, 1, 16),
        element_strides=(1, stride, stride, 1),
        im2col=Im2col((-1, -1), (-1, -1), channels, pixels),
    )
    tap = (2, 1)  # row, column of the filter
    corner = (0, first[2] * stride - 1, first[1] * stride - 1, first[0])
    load = (
        f"mov.b16 %h0, {tap[1]}; mov.b16 %h1, {tap[0]};"
        f"cp.async.bulk.tensor.4d.shared::cta.global.im2col.{MBAR} "
        f"[buffer], [%m, {{{', '.join(map(str, corner))}}}], [bar], {{%h0, %h1}};"
    )
    size = pixels * channels * 4
    out, _ = go(kernel(load, size, size), size, the_map)
    rows, columns = -(-height // stride), -(-width // stride)
    padded = np.zeros((n + 9, height + 2, width + 2, channels), np.float32)
    padded[:n, 1:-1, 1:-1] = array
    begin = (first[0] * rows + first[1]) * columns + first[2]
    wanted: list[npt.NDArray[np.float32]] = []
    for pixel in range(begin, begin + pixels):
        image, place = divmod(pixel, rows * columns)
        row, column = divmod(place, columns)
        wanted.append(padded[image, row * stride + tap[0], column * stride + tap[1]])
    assert (out.view(np.float32).reshape(pixels, channels) == np.stack(wanted)).all()


def test_modes_do_not_mix() -> None:
    array = np.zeros((2, 4, 4, 16), np.float32)
    load = (
        f"cp.async.bulk.tensor.4d.shared::cta.global.tile.{MBAR} "
        "[buffer], [%m, {0, 0, 0, 0}], [bar];"
    )
    the_map = TensorMap(array, (1, 1, 1, 16), im2col=Im2col((0, 0), (0, 0), 16, 4))
    with pytest.raises(EmulationError, match="of another mode"):
        go(kernel(load, 256, 256), 256, the_map)


# -- tensormap.replace -----------------------------------------------------------------------------


def replaced(space: str) -> str:
    """Take the map m, change every field, and load by the copy at `out + 4096`."""
    name = {"shared": "copy", "global": "%d5"}[space]
    word = {"shared": "shared::cta", "global": "global"}[space]
    moves = "".join(
        f"ld.param.b64 %d2, [m+{i}]; st.{space}.b64 [{name}+{i}], %d2;" for i in range(0, 128, 8)
    )
    change = f"tensormap.replace.tile.{{}}.{word}.b1024.{{}} [{name}], {{}};"
    fields = [
        ("global_address", "b64", "%d6"),
        ("rank", "b32", "1"),
        ("box_dim", "b32", "0, 16"),
        ("box_dim", "b32", "1, %r10"),
        ("global_dim", "b32", "0, 24"),
        ("global_dim", "b32", "1, 8"),
        ("global_stride", "b64", "0, %d7"),
        ("element_stride", "b32", "1, 1"),
        ("elemtype", "b32", "7"),
        ("swizzle_mode", "b32", "0"),
        ("fill_mode", "b32", "1"),
        ("interleave_layout", "b32", "0"),
    ]
    changes = " ".join(change.format(*f) for f in fields)
    publish = (
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        "[%d5], [copy], 128;"
        if space == "shared"
        else "fence.proxy.tensormap::generic.release.gpu;"
    )
    before = f"""
        add.u64 %d5, %out, 4096; mov.u32 %r10, 4; mov.u64 %d7, 96; mov.u64 %d6, gl;
        @%p2 bra CHANGED;
        {moves} {changes}
    CHANGED:
        bar.warp.sync 0xffffffff; {publish}
        fence.proxy.tensormap::generic.acquire.gpu [%d5], 128;
    """
    load = (
        f"cp.async.bulk.tensor.2d.shared::cta.global.tile.{MBAR} [buffer], [%d5, {{16, 6}}], [bar];"
    )
    text = kernel(load, 256, 256, before=before)
    values = ", ".join(f"{i}.0" for i in range(192))
    return text.replace(HEAD, f"{HEAD}.global .align 16 .f32 gl[192] = {{{values}}};\n")


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize("zeros", [False, True])
def test_fields_can_be_replaced(space: str, zeros: bool) -> None:
    """Those of another map, or of zeros: a map made on the device."""
    other = bytes(128) if zeros else TensorMap(np.zeros((3, 4, 16), np.uint16), (1, 1, 8))
    out = np.zeros(4096 + 128, np.uint8)
    text = replaced(space)
    report = run(text, arguments=[other, bytes(128), out], check=True)
    gl = np.arange(192, dtype=np.float32).reshape(8, 24)
    got = out[:256].view(np.float32).reshape(4, 16)
    assert (got[:2, :8] == gl[6:, 16:]).all()
    assert np.isnan(got[:, 8:]).all()
    assert np.isnan(got[2:]).all()
    assert report.findings == []


@pytest.mark.parametrize("space", ["shared", "global"])
def test_copies_must_be_told_of_changes(space: str) -> None:
    out = np.zeros(4096 + 128, np.uint8)
    text = replaced(space).replace("fence.proxy.tensormap::generic.acquire.gpu [%d5], 128;", "")
    report = run(text, arguments=[bytes(128), bytes(128), out], check=True)
    (finding,) = report.findings
    assert finding.kind == "proxy-fence"
    assert "the tensor map was changed at line" in finding.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensormap.replace.tile.elemtype.global.b1024.b32 [%out], %r1;", "constant from 0 to 15"),
        ("tensormap.replace.tile.box_dim.global.b1024.b32 [%out], 5, %r1;", "number of a dim"),
        ("tensormap.replace.tile.global_address.global.b1024.b32 [%out], %r1;", r"as \.b64"),
        (
            "st.global.u32 [%out], 7; tensormap.replace.tile.rank.global.b1024.b32 [%out], 1;",
            "no tensor map",
        ),
        ("tensormap.replace.tile.rank.b1024.b32 [%m], 5;", "minus one is 5"),
    ],
)
def test_changes_that_are_none(text: str, message: str) -> None:
    array = np.zeros((8, 16), np.float32)
    with pytest.raises(EmulationError, match=message):
        go(kernel("", 256, 256, before=text), 4096, TensorMap(array, (8, 16)))


def test_the_mbarrier_of_a_pair_of_blocks() -> None:
    """.cta_group::2 with multicast: of each pair, the block with the parity of the mbarrier."""
    array = np.arange(32, dtype=np.uint32)
    ptx = f"""{HEAD}
.visible .entry k(.param .align 64 .b8 m[128], .param .u64 out) .reqnctapercluster 2
{{
    .shared .align 128 .b8 buffer[128]; .shared .b64 bar;
    .reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<8>; .reg .b64 %m, %d<4>;
    mov.b64 %m, m; cvta.param.u64 %m, %m; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, bar;
    mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; mov.b16 %h0, 3; mov.u32 %r3, buffer;
    and.b32 %r2, %r2, 0xFEFFFFFF;
    cp.async.bulk.tensor.1d.shared::cluster.global.tile.{MBAR}.multicast::cluster.cta_group::2
        [%r3], [%m, {{0}}], [%r2], %h0;
W:  mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
DONE:
    barrier.cluster.arrive; barrier.cluster.wait;
    ld.shared.u32 %r4, [buffer+124]; ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 4;
    add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r4; ret;
}}
"""
    out = np.zeros(2, np.uint32)
    run(ptx, grid=(2,), block=(1,), arguments=[TensorMap(array, (32,)), out])
    assert out.tolist() == [31, 31]


@pytest.mark.parametrize(
    ("group", "sender", "message"),
    [
        (".cta_group::2", 0, ""),
        (".cta_group::2", 1, ""),
        ("", 0, ""),
        (".cta_group::1", 1, "another block's than the tile's, which takes .cta_group::2"),
        ("", 1, "another block's than the tile's, which takes .cta_group::2"),
        (".cta_group::2", 2, "neither of the tile's block nor of the other one of its pair"),
    ],
)
def test_the_mbarrier_of_another_block(group: str, sender: int, message: str) -> None:
    """A block of four copies to itself and signals the first; only to its pair it may."""
    ptx = f"""{HEAD}
.visible .entry k(.param .align 64 .b8 m[128]) .reqnctapercluster 4
{{
    .shared .align 128 .b8 buffer[128]; .shared .b64 bar;
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %m;
    mov.b64 %m, m; cvta.param.u64 %m, %m; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, bar;
    mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    mapa.shared::cluster.u32 %r2, %r2, 0; mov.u32 %r3, buffer;
    setp.eq.u32 %p1, %r1, {sender}; setp.ne.u32 %p2, %r1, 0;
    @%p1 cp.async.bulk.tensor.1d.shared::cluster.global.tile.{MBAR}{group}
        [%r3], [%m, {{0}}], [%r2];
    @%p2 bra DONE;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
W:  mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra W;
DONE:
    barrier.cluster.arrive; barrier.cluster.wait; ret;
}}
"""
    arguments = [TensorMap(np.arange(32, dtype=np.uint32), (32,))]
    if message:
        with pytest.raises(EmulationError, match=message):
            run(ptx, grid=(4,), block=(1,), arguments=arguments)
    else:
        assert not run(ptx, grid=(4,), block=(1,), arguments=arguments, check=True).findings


# -- whole tiles -----------------------------------------------------------------------------------


def test_a_tile_inside_of_the_array_is_copied_by_chunks() -> None:
    rng = np.random.default_rng(0)
    whole = 0
    for _ in range(400):
        rank = int(rng.integers(1, 6))
        box = [int(rng.integers(1, 5)) for _ in range(rank - 1)] + [int(rng.choice([8, 16, 64]))]
        steps = [int(rng.integers(1, 3)) for _ in range(rank - 1)] + [1]
        array = np.zeros([int(b + rng.integers(0, 5)) for b in box[:-1]] + [box[-1] + 16], np.int16)
        swizzle, atom = [(0, 16), (32, 16), (64, 16), (128, 16), (128, 64)][rng.integers(0, 5)]
        if box[-1] * 2 > swizzle > 0:
            continue
        made = TensorMap(array, tuple(box), swizzle, None, tuple(steps), atom=atom)  # type: ignore[arg-type]
        fields = made.fields(GLOBAL_BASE + 4096)
        corner = [8 * int(rng.integers(0, 3)), *(int(rng.integers(-1, 4)) for _ in box[1:])]
        address, inside = (each.ravel() for each in fields.tile(corner))
        found = fields.whole_tile(corner)
        assert (found is not None) == bool(inside.all())
        if found is None:
            continue
        whole += 1
        first, offsets, length = found
        each = np.arange(0, 16, 2)
        assert ((first + offsets)[:, None] + each).ravel().tolist() == address.tolist()
        assert first + length == int(address.max()) + 2
        start = 128 * int(rng.integers(0, 20))
        places = fields.chunk_places(start, len(offsets))[:, None] + each
        assert places.ravel().tolist() == fields.swizzled(start, len(address)).tolist()
    assert whole > 50
