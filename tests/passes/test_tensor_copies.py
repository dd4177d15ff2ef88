"""Copies by TMA into and out of shared memory: types, swizzles, sizes, clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.emulator import TensorMap
from fragir.errors import FragirError
from tests.properties.judge import judge, text_of

SIZES = {"m": 70, "n": 144}
"""No multiple of a tile; rows of every type are multiples of 16 bytes."""

ORDERS: tuple[dict[str, Any], ...] = (
    {"asynchrony": "late"},
    {"asynchrony": "early"},
    {"asynchrony": "random", "schedule": 3},
)


def shared(shape: tuple[int, int], element: str, swizzle: int) -> str:
    space = f"#frag.shared<swizzle = {swizzle}>" if swizzle else "#frag.shared"
    return f"memref<{shape[0]}x{shape[1]}x{element}, {space}>"


def program(shape: tuple[int, int], element: str, swizzle: int) -> str:
    """d = c = a, tile by tile: c by way of registers, d straight from where a was copied to."""
    rows, cols = shape
    memory, tile = shared(shape, element, swizzle), f"!frag.tile<{rows}x{cols}x{element}>"
    array = f"memref<?x?x{element}>"
    sizes = '{frag.sizes = ["m", "n"]}'
    return f"""
    func.func @k(%a: {array} {sizes}, %c: {array} {sizes}, %d: {array} {sizes}) attributes {{
        frag.grid = #frag.grid<n by {cols}, m by {rows}>,
        frag.warps = array<i64: 2, 1>}} {{
      %x = frag.block_id x
      %y = frag.block_id y
      %rows = arith.constant {rows} : index
      %cols = arith.constant {cols} : index
      %row = arith.muli %y, %rows : index
      %col = arith.muli %x, %cols : index
      %in = memref.alloc() : {memory}
      %out = memref.alloc() : {memory}
      frag.copy tma %a[%row, %col] to %in[] : {array} to {memory}
      %t = frag.load %in[0, 0] : {memory} -> {tile}
      frag.store %t, %out[0, 0] : {tile}, {memory}
      frag.copy tma %out[] to %c[%row, %col] : {memory} to {array}
      frag.copy tma %in[] to %d[%row, %col] : {memory} to {array}
      func.return
    }}"""


def rows_are_cut(shape: tuple[int, int]) -> bool:
    return shape[0] > 256


@pytest.mark.parametrize(
    ("element", "shape", "swizzle"),
    [
        ("f16", (64, 128), 128),
        ("bf16", (32, 64), 64),
        ("f32", (16, 64), 32),
        ("f64", (24, 16), 0),
        ("f8E4M3FN", (48, 128), 128),
        ("si8", (8, 32), 32),
        ("i32", (40, 16), 64),
        ("f16", (512, 32), 64),
    ],
)
def test_what_goes_in_comes_out(element: str, shape: tuple[int, int], swizzle: int) -> None:
    kernel = judge(program(shape, element, swizzle), "sm_90", SIZES, assemble=rows_are_cut(shape))
    assert len(kernel.tensor_maps) == 3
    assert {record.swizzle for record in kernel.tensor_maps} == {swizzle}
    assert all(max(record.box) <= 256 for record in kernel.tensor_maps)


@pytest.mark.parametrize("target", ["sm_100a", "sm_120"])
def test_newer_machines_have_it_too(target: str) -> None:
    judge(program((64, 64), "f16", 128), target, SIZES)


def arrays(m: int, n: int) -> list[npt.NDArray[np.float16]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((m, n)).astype(np.float16) for _ in range(3)]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize(("m", "n"), [(1, 8), (65, 72)])
def test_sizes_and_orders(m: int, n: int, order: dict[str, Any]) -> None:
    kernel = fragir.compile(program((64, 64), "f16", 128), target="sm_90")
    a, c, d = arrays(m, n)
    assert kernel(a, c, d, on="emulator", check=True, **order).findings == []
    assert (c == a).all()
    assert (d == a).all()


# --- loops: what waits for what -------------------------------------------------------------------

TILE = "!frag.tile<32x64xf16>"
BUFFER = "memref<32x64xf16, #frag.shared<swizzle = 128>>"
LOOP = f"""
func.func @k(%a: memref<?x64xf16> {{frag.sizes = ["m"]}},
             %c: memref<?x64xf16> {{frag.sizes = ["m"]}})
    attributes {{frag.warps = array<i64: 2, 1>}} {{
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %m = memref.dim %a, %c0 : memref<?x64xf16>
  %in = memref.alloc() : {BUFFER}
  %out = memref.alloc() : {BUFFER}
  scf.for %row = %c0 to %m step %c32 {{
    frag.copy tma %a[%row, 0] to %in[] : memref<?x64xf16> to {BUFFER}
    %t = frag.load %in[0, 0] : {BUFFER} -> {TILE}
    %u = frag.map %t : {TILE} -> {TILE} {{
    ^bb0(%x: f16):
      %y = arith.addf %x, %x : f16
      frag.yield %y : f16
    }}
    frag.barrier
    frag.store %u, %out[0, 0] : {TILE}, {BUFFER}
    frag.copy tma %out[] to %c[%row, 0] : {BUFFER} to memref<?x64xf16>
  }}
  func.return
}}
"""


def test_a_store_into_memory_that_is_copied_out_waits() -> None:
    kernel = judge(LOOP, "sm_90", {"m": 200})
    assert kernel.ptx.count("cp.async.bulk.wait_group.read 0") == 1
    assert kernel.ptx.count("cp.async.bulk.wait_group 0") == 1  # the end
    for order in ORDERS:
        a, c = (np.ones((200, 64), np.float16) * i for i in (3, 0))
        assert kernel(a, c, on="emulator", check=True, **order).findings == []
        assert (c == 6).all()


@pytest.mark.parametrize(
    "lost", ["cp.async.bulk.wait_group.read 0", "fence.proxy.async", "expect_tx"]
)
def test_without_its_waits_it_is_found_out(lost: str) -> None:
    """The checks see what the lowering would have left out."""
    from fragir import emulator

    kernel = fragir.compile(LOOP, target="sm_90")
    lines = [line for line in kernel.ptx.splitlines() if lost not in line]
    a, c = (np.ones((200, 64), np.float16) * i for i in (3, 0))
    try:
        report = emulator.run(
            "\n".join(lines),
            grid=(1,),
            block=(64,),
            arguments=kernel.parameters([a, c]),
            check=True,
        )
    except fragir.FragirError:
        return
    assert report.findings


def test_two_buffers_in_turn_wait_for_the_older_one() -> None:
    """A copy may be under way while the other buffer is written."""
    memory = "memref<32x64xf16, #frag.shared<swizzle = 128>>"
    one = f"""
      frag.store %t, %NAME[0, 0] : !frag.tile<32x64xf16>, {memory}
      frag.copy tma %NAME[] to %c[%ROW, 0] : {memory} to memref<?x64xf16>"""
    text = f"""
    func.func @k(%c: memref<?x64xf16> {{frag.sizes = ["m"]}}) {{
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %m = memref.dim %c, %c0 : memref<?x64xf16>
      %p = memref.alloc() : {memory}
      %q = memref.alloc() : {memory}
      %v = arith.constant 2.0 : f16
      %t = frag.fill %v : !frag.tile<32x64xf16>
      scf.for %row = %c0 to %m step %c64 {{
        %next = arith.addi %row, %c32 : index
        {one.replace("NAME", "p").replace("ROW", "row")}
        {one.replace("NAME", "q").replace("ROW", "next")}
      }}
      func.return
    }}"""
    kernel = judge(text, "sm_90", {"m": 256})
    # ahead of the copy of the other one, where all threads meet anyway
    assert kernel.ptx.count("cp.async.bulk.wait_group.read 0") == 2
    assert kernel.ptx.count("bar.sync") == 2
    c = np.zeros((256, 64), np.float16)
    for order in ORDERS:
        assert kernel(c, on="emulator", check=True, **order).findings == []
        assert (c == 2).all()


def test_what_was_copied_out_is_read_after_it_is_there() -> None:
    """And is written by threads after it is there."""
    memory = "memref<32x64xf16, #frag.shared<swizzle = 128>>"
    text = f"""
    func.func @k(%c: memref<32x64xf16>, %d: memref<32x64xf16>) {{
      %p = memref.alloc() : {memory}
      %v = arith.constant 2.0 : f16
      %t = frag.fill %v : !frag.tile<32x64xf16>
      frag.store %t, %p[0, 0] : !frag.tile<32x64xf16>, {memory}
      frag.copy tma %p[] to %c[0, 0] : {memory} to memref<32x64xf16>
      %u = frag.load %c[0, 0] : memref<32x64xf16> -> !frag.tile<32x64xf16>
      frag.store %u, %d[0, 0] : !frag.tile<32x64xf16>, memref<32x64xf16>
      func.return
    }}"""
    kernel = judge(text, "sm_90")
    assert kernel.ptx.count("cp.async.bulk.wait_group 0") == 2
    for order in ORDERS:
        c, d = np.zeros((2, 32, 64), np.float16)
        assert kernel(c, d, on="emulator", check=True, **order).findings == []
        assert (d == 2).all()


def in_roles(second: str) -> str:
    """A role copies out of memory, which is written anew behind the roles."""
    return f"""
    func.func @k(%c: memref<32x64xf16>, %d: memref<32x64xf16>) {{
      %p = memref.alloc() : {BUFFER}
      %one = arith.constant 1.0 : f16
      frag.roles "first" warps [1, 1] {{
        %t = frag.fill %one : {TILE}
        frag.store %t, %p[0, 0] : {TILE}, {BUFFER}
        frag.copy tma %p[] to %c[0, 0] : {BUFFER} to memref<32x64xf16>
      }}, "second" warps [1, 1] {{
        %t = frag.fill %one : {TILE}
        frag.store %t, {second}[0, 0] : {TILE}, {BUFFER}
      }}
      %two = arith.constant 2.0 : f16
      %t = frag.fill %two : {TILE}
      frag.store %t, %p[0, 0] : {TILE}, {BUFFER}
      frag.copy tma %p[] to %d[0, 0] : {BUFFER} to memref<32x64xf16>
      func.return
    }}"""


def test_what_a_role_copies_out_is_waited_for_behind_it() -> None:
    text = in_roles("%q").replace("%one =", f"%q = memref.alloc() : {BUFFER}\n      %one =")
    kernel = fragir.compile(text, target="sm_90")
    for order in ORDERS:
        c, d = np.zeros((2, 32, 64), np.float16)
        assert kernel(c, d, on="emulator", check=True, **order).findings == []
        assert (c == 1).all()
        assert (d == 2).all()


def test_another_role_cannot_wait_for_it() -> None:
    with pytest.raises(FragirError, match="another role copies this memory by TMA, and it alone"):
        fragir.compile(in_roles("%p"), target="sm_90")


@pytest.mark.parametrize("element", ["f16", "f32", "i32"])
def test_sums_of_all_blocks(element: str) -> None:
    """Each block adds its rows to the same ones, of which some lie outside."""
    memory, tile = shared((16, 32), element, 32), f"!frag.tile<16x32x{element}>"
    array = f"memref<?x32x{element}>"
    text = f"""
    func.func @k(%a: {array} {{frag.sizes = ["m"]}}, %c: {array} {{frag.sizes = ["n"]}})
        attributes {{frag.grid = #frag.grid<m by 16>}} {{
      %x = frag.block_id x
      %c16 = arith.constant 16 : index
      %row = arith.muli %x, %c16 : index
      %s = memref.alloc() : {memory}
      %t = frag.load %a[%row, 0] masked : {array} -> {tile}
      frag.store %t, %s[0, 0] : {tile}, {memory}
      frag.copy tma add %s[] to %c[-3, 0] : {memory} to {array}
      func.return
    }}"""
    kernel = judge(text, "sm_90", {"m": 70, "n": 11}, assemble=element == "f16")
    assert "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add" in kernel.ptx


def test_what_is_added_to_is_there() -> None:
    """Copies and sums of one place are ordered."""
    text = f"""
    func.func @k(%c: memref<32x64xf16>) {{
      %s = memref.alloc() : {BUFFER}
      %v = arith.constant 2.0 : f16
      %t = frag.fill %v : {TILE}
      frag.store %t, %s[0, 0] : {TILE}, {BUFFER}
      frag.copy tma %s[] to %c[0, 0] : {BUFFER} to memref<32x64xf16>
      frag.copy tma add %s[] to %c[0, 0] : {BUFFER} to memref<32x64xf16>
      frag.barrier
      frag.copy tma add %s[] to %c[0, 0] : {BUFFER} to memref<32x64xf16>
      func.return
    }}"""
    kernel = judge(text, "sm_90", assemble=False)
    assert kernel.ptx.count("cp.async.bulk.wait_group 0") == 3
    for order in ORDERS:
        c = np.zeros((32, 64), np.float16)
        assert kernel(c, on="emulator", check=True, **order).findings == []
        assert (c == 6).all()


# --- clusters -------------------------------------------------------------------------------------


def multicast(shape: tuple[int, int], swizzle: int, cluster: int) -> str:
    """c = a in every block: each copies the same matrix."""
    memory, array = shared(shape, "f16", swizzle), f"memref<{shape[0]}x{shape[1]}xf16>"
    out = f"memref<?x{shape[1]}xf16>"
    return f"""
    func.func @k(%a: {array}, %c: {out} {{frag.sizes = ["m"]}}) attributes {{
        frag.cluster = array<i64: {cluster}, 1, 1>, frag.grid = #frag.grid<m by {shape[0]}>}} {{
      %x = frag.block_id x
      %rows = arith.constant {shape[0]} : index
      %row = arith.muli %x, %rows : index
      %s = memref.alloc() : {memory}
      frag.copy tma %a[0, 0] to %s[] multicast : {array} to {memory}
      frag.copy tma %s[] to %c[%row, 0] : {memory} to {out}
      func.return
    }}"""


@pytest.mark.parametrize(
    ("shape", "swizzle", "cluster"),
    [((64, 128), 128, 2), ((16, 32), 64, 4), ((24, 192), 128, 2)],
)
def test_each_block_of_a_cluster_sends_its_share(
    shape: tuple[int, int], swizzle: int, cluster: int
) -> None:
    kernel = judge(multicast(shape, swizzle, cluster), "sm_90a", {"m": shape[0] * cluster})
    assert kernel.cluster == (cluster, 1, 1)
    assert kernel.grid({"m": shape[0] + 1}) == (-(-2 // cluster) * cluster, 1, 1)
    a = np.arange(shape[0] * shape[1]).reshape(shape).astype(np.float16)
    for order in ORDERS:
        c = np.zeros((shape[0] * cluster, shape[1]), np.float16)
        report = kernel(a, c, on="emulator", check=True, **order)
        assert report.findings == []
        assert (c.reshape(cluster, *shape) == a).all()


def test_a_grid_grows_only_where_all_is_masked() -> None:
    text = multicast((64, 64), 128, 2).replace(
        "func.return",
        """%v = arith.constant 1.0 : f16
        %t = frag.fill %v : !frag.tile<64x64xf16>
        frag.store %t, %c[%row, 0] : !frag.tile<64x64xf16>, memref<?x64xf16>
        func.return""",
    )
    kernel = fragir.compile(text, target="sm_90a")
    assert kernel.grid({"m": 128}) == (2, 1, 1)
    with pytest.raises(FragirError, match="3x1x1 blocks is not made of clusters of 2x1x1"):
        kernel.grid({"m": 192})


# --- launches -------------------------------------------------------------------------------------


def test_maps_stand_behind_the_parameters_that_users_see() -> None:
    kernel = fragir.compile(program((64, 64), "f16", 128), target="sm_90")
    assert [argument.name for argument in kernel.signature] == ["a", "c", "d"]
    a, c, d = arrays(70, 144)
    *given, first, second, third = kernel.parameters([a, c, d])
    assert len(given) == 9
    assert isinstance(first, TensorMap)
    assert first.array is a
    assert (first.box, first.swizzle, first.kind, first.shape) == ((64, 64), 128, "f16", (70, 144))
    assert (first.strides, first.promotion) == ((288, 2), 128)
    assert getattr(second, "array", None) is c
    assert getattr(third, "array", None) is d


def test_a_program_of_lanes_takes_maps_itself() -> None:
    """Printed at lane level and compiled again it is the same kernel, which is given the maps."""
    text = multicast((16, 32), 64, 2)
    module = fragir.parse(text)
    fragir.lower(module, "lane", target="sm_90a")
    tiles = fragir.compile(text, target="sm_90a")
    lanes = fragir.compile(text_of(module), target="sm_90a")
    assert lanes.ptx == tiles.ptx
    assert (lanes.cluster, lanes.tensor_maps) == ((2, 1, 1), ())
    a, c = np.ones((16, 32), np.float16), np.zeros((32, 32), np.float16)
    given = tiles.parameters([a, c])
    assert lanes.launch((2, 1, 1), None, *given, on="emulator", check=True).findings == []
    assert (c == 1).all()


def test_rows_of_other_lengths_are_refused() -> None:
    kernel = fragir.compile(program((64, 64), "f16", 128), target="sm_90")
    with pytest.raises(FragirError, match="a has a stride of 66 bytes in dimension 0"):
        kernel(*arrays(64, 33), on="emulator")
    # of a single row nobody needs the stride, but a store would end behind it
    with pytest.raises(FragirError, match="c has rows of 66 bytes; the kernel writes it by TMA"):
        kernel(*arrays(1, 33), on="emulator")


@pytest.mark.parametrize(("m", "n"), [(0, 64), (64, 0)])
def test_empty_arrays(m: int, n: int) -> None:
    kernel = fragir.compile(program((64, 64), "f16", 128), target="sm_90")
    kernel(*arrays(m, n), on="emulator", check=True)


def test_of_an_array_without_elements_zeros_are_read() -> None:
    text = LOOP.replace("memref.dim %a", "memref.dim %c").replace('["m"]', '["k"]', 1)
    kernel = fragir.compile(text, target="sm_90")
    c = np.ones((64, 64), np.float16)
    assert kernel(np.zeros((0, 64), np.float16), c, on="emulator", check=True).findings == []
    assert (c == 0).all()


def test_arrays_with_gaps_and_columns_side_by_side() -> None:
    rows, cols = "memref<?x?xf16, strided<[?, 1]>>", "memref<?x?xf16, strided<[1, ?]>>"
    turned = 'memref<32x64xf16, #frag.layout<"row [32:1] col [64:32]">, #frag.shared>'
    text = f"""
    func.func @k(%a: {rows} {{frag.sizes = ["m", "n"]}}, %c: {cols} {{frag.sizes = ["m", "n"]}}) {{
      %s = memref.alloc() : {BUFFER}
      %t = memref.alloc() : {turned}
      frag.copy tma %a[0, 0] to %s[] : {rows} to {BUFFER}
      %x = frag.load %s[0, 0] : {BUFFER} -> {TILE}
      frag.store %x, %t[0, 0] : {TILE}, {turned}
      frag.copy tma %t[] to %c[0, 0] : {turned} to {cols}
      func.return
    }}"""
    kernel = fragir.compile(text, target="sm_90")
    whole = np.arange(40 * 72).reshape(40, 72).astype(np.float16)
    a, c = whole[:32, :64], np.zeros((64, 32), np.float16).T
    report = kernel(a, c, on="emulator", check=True)
    assert report.findings == []
    assert (c == a).all()
    with pytest.raises(FragirError, match="c has a stride of 66 bytes in dimension 1"):
        kernel(a, np.zeros((64, 33), np.float16).T[:32], on="emulator")


def test_what_threads_write_is_not_read_by_the_engine() -> None:
    text = program((64, 64), "f16", 128).replace(
        "func.return",
        """frag.store %t, %a[%row, %col] masked : !frag.tile<64x64xf16>, memref<?x?xf16>
        func.return""",
    )
    with pytest.raises(FragirError, match="threads of this kernel write what it reads"):
        fragir.compile(text, target="sm_90")


def test_older_machines_say_so() -> None:
    with pytest.raises(FragirError, match="sm_80 has no tensor memory accelerator"):
        fragir.compile(program((64, 64), "f16", 128), target="sm_80")
