"""What the copy engine does that the PTX ISA says in passing or not at all: docs/copy-engine.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fragir.emulator import Im2col, TensorMap, run
from fragir.emulator.report import EmulationError
from fragir.errors import FragirError
from fragir.toolchain import ptxas

KERNEL = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128]) {{
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %m;
    .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;
    mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 32, %r1;
    st.shared.v4.b32 [%r1], {{0x01010101, 0x01010101, 0x01010101, 0x01010101}};
    st.shared.v4.b32 [%r1+16], {{0x01010101, 0x01010101, 0x01010101, 0x01010101}};
    setp.ne.u32 %p, %r0, 0;
    @%p bra ready;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
ready:
    fence.proxy.async;
    bar.sync 0;
    @%p bra end;
    mov.b64 %m, map; cvta.param.u64 %m, %m;
    {copy}
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
end:
    ret;
}}
"""
DONE = "mbarrier::complete_tx::bytes"
INTO = "cp.async.bulk.tensor.2d.shared::cta.global.tile"
OUT = "cp.async.bulk.tensor.2d.global.shared::cta.tile"
ROW, ROWS = "[%m, {{{0}, 0}}]", "[%m, {{{0}, 0, 1, 3, 2}}]"
STORE = f"{OUT}.bulk_group {ROW}, [tile];"
REDUCE = f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group {ROW}, [tile];"
SCATTER = f"{OUT}::scatter4.bulk_group {ROWS}, [tile];"
PIXELS = OUT.replace("2d", "3d").replace("tile", "im2col_no_offs")
PIXELS_OUT = f"{PIXELS}.bulk_group [%m, {{{{{{0}}, 0, 0}}}}], [tile];"
LOAD = f"{INTO}.{DONE} [tile], {ROW}, [bar];"
GATHER = f"{INTO}::gather4.{DONE} [tile], {ROWS}, [bar];"
COLUMNS = INTO.replace("2d", "3d").replace("tile", "im2col")
COLUMNS_IN = f"{COLUMNS}.{DONE} [tile], [%m, {{{{{{0}}, 0, 0}}}}], [bar], {{{{0}}}};"
TO_GLOBAL, FROM_GLOBAL = (STORE, REDUCE, SCATTER, PIXELS_OUT), (LOAD, GATHER, COLUMNS_IN)


def launched(copy: str, memory: Any, width: int, pitch: int, kind: str, column: int = 0) -> Any:
    """What is found of a copy of four rows of `width` elements, `pitch` bytes apart."""
    size = {"u8": 1, "b4x16": 1, "f16": 2, "f32": 4, "s32": 4, "f64": 8, "u16": 2}[kind]
    given: dict[str, Any] = {"strides": (pitch, size), "shape": (4, width), "kind": kind}
    box: tuple[int, ...] = (4, 32 // size)
    if "scatter" in copy or "gather" in copy:
        box = (1, 32 // size)
    if "3d" in copy:
        given |= {"strides": (4 * pitch, pitch, size), "shape": (1, 4, width)}
        given["im2col"] = Im2col((0,), (0,), 32 // size, 4)
        box = (1, 1, 32 // size)
    tiles = TensorMap(memory, box, **given)
    ptx = KERNEL.format(copy=copy.format(column))
    return run(ptx, block=(32,), arguments=[tiles], target="sm_100a", check=True).findings


@pytest.mark.parametrize("copy", TO_GLOBAL)
@pytest.mark.parametrize(
    ("kind", "width", "behind"), [("u16", 11, 10), ("s32", 6, 8), ("u8", 17, 15)]
)
def test_whole_chunks_are_written(copy: str, kind: str, width: int, behind: int) -> None:
    """As measured on an H100 (triton 11583): int8, int16 and int32 up to the next 16 bytes."""
    if copy is REDUCE and kind != "s32":
        pytest.skip("no reduction of this type")
    size = width * {"u8": 1, "u16": 2, "s32": 4}[kind]
    memory = np.full((4, 48), 7, np.uint8)
    (finding,) = launched(copy, memory, width, 48, kind)
    assert (finding.kind, finding.severity) == ("out-of-bounds", "error")
    assert f"writes {behind} bytes behind the end of a row, from byte {size} of" in finding.message
    written = 8 if copy is REDUCE else 1
    assert (memory[:, : size + behind] == written).all()
    assert (memory[:, size + behind :] == 7).all()


@pytest.mark.parametrize("copy", [STORE, REDUCE])
def test_behind_a_buffer_is_nobodys(copy: str) -> None:
    """Of the last row alone: memory is given out in multiples of 256 bytes."""
    memory = np.full(24, 7, np.uint8)
    given: dict[str, Any] = {"strides": (32, 4), "shape": (1, 6), "kind": "s32"}
    ptx = KERNEL.format(copy=copy.format(0))
    tiles = TensorMap(memory, (4, 8), **given)
    report = run(ptx, block=(32,), arguments=[tiles], target="sm_100a", check=True)
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("out-of-bounds", "letter")
    assert "all of them behind its end" in finding.message


@pytest.mark.parametrize("copy", TO_GLOBAL)
@pytest.mark.parametrize(("width", "column"), [(8, 0), (12, 4), (4, 0), (12, -4), (6, 8)])
def test_rows_of_whole_chunks_are_legal(copy: str, width: int, column: int) -> None:
    """Also where the box ends behind the row, or lies outside of it altogether."""
    memory = np.full((4, 48), 7, np.uint8)
    assert launched(copy, memory, width, 48, "s32", column) == []
    first, last = 4 * max(column, 0), 4 * min(width, column + 8)
    touched = np.zeros((4, 48), np.bool_)
    touched[:, first:last] = True
    assert ((memory != 7) == touched).all()


@pytest.mark.parametrize("copy", TO_GLOBAL + FROM_GLOBAL)
@pytest.mark.parametrize(
    ("kind", "column"),
    [("s32", 1), ("s32", 2), ("s32", -2), ("f16", 4), ("u8", 8), ("f64", 1), ("u16", 33)],
)
def test_a_box_begins_at_16_bytes(copy: str, kind: str, column: int) -> None:
    """PTX ISA 9.2, section 5.5.3.1; machines stop: tilelang 2527 and 2681, triton 7385 and 9112."""
    if copy is REDUCE and kind in ("u8", "u16", "f64"):
        pytest.skip("no reduction of this type")
    with pytest.raises(EmulationError, match=f"the innermost coordinate is {column}, ") as caught:
        launched(copy, np.zeros((4, 64), np.uint8), 8, 64, kind, column)
    assert (caught.value.kind, caught.value.warp, caught.value.lane) == ("misaligned", 0, 0)


def test_packed_types_count_elements() -> None:
    memory = np.zeros((4, 64), np.uint8)
    with pytest.raises(EmulationError, match=r"of \.b4x16 it is a multiple of 32 \(16 bytes\)"):
        launched(LOAD, memory, 128, 64, "b4x16", 16)


@pytest.mark.parametrize(
    "copy", [SCATTER, GATHER, GATHER.replace("shared::cta", "shared::cluster")]
)
def test_rows_are_not_of_every_target(copy: str) -> None:
    """As ptxas has it: sm_120 gathers into the block's own memory, and scatters nowhere."""
    for target in ("sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120", "sm_120a", "sm_121a"):
        ptx = KERNEL.format(copy=copy.format(0)).replace("sm_100a", target)
        ptx = ptx.replace(".version 8.6", ".version 9.0")
        try:
            ptxas.assemble(ptx, target)
            taken = True
        except FragirError:
            taken = False
        tiles = TensorMap(np.zeros((4, 16), np.float32), (1, 4))
        if taken:
            run(ptx, block=(32,), arguments=[tiles], target=target)
            continue
        with pytest.raises(EmulationError, match=f"target {target} does not have it"):
            run(ptx, block=(32,), arguments=[tiles], target=target)
