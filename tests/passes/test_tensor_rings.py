"""Rings that TMA fills for the roles of a block, and of all blocks of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fragir
from fragir import emulator

ORDERS: tuple[dict[str, Any], ...] = (
    {"asynchrony": "late"},
    {"asynchrony": "early"},
    {"asynchrony": "random", "schedule": 5},
)
A = "memref<32x64xf16, #frag.shared<swizzle = 128>>"
RING, SLOT = f"!frag.ring<{A}, {A}>", f"!frag.slot<{A}, {A}>"
ARRAY, TILE = "memref<?x?xf16>", "!frag.tile<32x64xf16>"


def program(cluster: int, slots: int) -> str:
    """c = the sum of a's pieces of 32 x 64 in a row, each times that of b, which all rows share."""
    many = "multicast" if cluster > 1 else ""
    return f"""
    func.func @k(%a: {ARRAY} {{frag.sizes = ["m", "n"]}}, %b: memref<32x?xf16>,
                 %c: memref<?x64xf16> {{frag.sizes = ["m"]}}) attributes {{
        frag.grid = #frag.grid<m by 64>, frag.cluster = array<i64: {cluster}, 1, 1>}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %n = memref.dim %a, %c1 : {ARRAY}
      %x = frag.block_id x
      %first = arith.muli %x, %c64 : index
      %ring = frag.ring {slots} : {RING}
      %out = memref.alloc() : {A}
      frag.roles "load" warps [1, 1] {{
        scf.for %i = %c0 to %c2 step %c1 {{
          %down = arith.muli %i, %c32 : index
          %row = arith.addi %first, %down : index
          scf.for %col = %c0 to %n step %c64 {{
            %s = frag.acquire %ring : {RING}
            %p = frag.part %s[0] : {SLOT}
            %q = frag.part %s[1] : {SLOT}
            frag.copy tma %a[%row, %col] to %p[] : {ARRAY} to {A}
            frag.copy tma %b[0, %col] to %q[] {many} : memref<32x?xf16> to {A}
            frag.publish %s : {SLOT}
          }}
        }}
      }}, "add" warps [2, 1] {{
        %zero = arith.constant 0.0 : f16
        %none = frag.fill %zero : {TILE}
        scf.for %i = %c0 to %c2 step %c1 {{
          %down = arith.muli %i, %c32 : index
          %row = arith.addi %first, %down : index
          %sum = scf.for %col = %c0 to %n step %c64 iter_args(%t = %none) -> ({TILE}) {{
            %s = frag.await %ring : {RING}
            %p = frag.part %s[0] : {SLOT}
            %q = frag.part %s[1] : {SLOT}
            %x0 = frag.load %p[0, 0] : {A} -> {TILE}
            %y0 = frag.load %q[0, 0] : {A} -> {TILE}
            %u = frag.map %t, %x0, %y0 : {TILE}, {TILE}, {TILE} -> {TILE} {{
            ^bb0(%v: f16, %w: f16, %z: f16):
              %wz = arith.mulf %w, %z : f16
              %r = arith.addf %v, %wz : f16
              frag.yield %r : f16
            }}
            frag.release %s : {SLOT}
            scf.yield %u : {TILE}
          }}
          frag.store %sum, %out[0, 0] : {TILE}, {A}
          frag.copy tma %out[] to %c[%row, 0] : {A} to memref<?x64xf16>
        }}
      }}
      func.return
    }}"""


def arguments(m: int, n: int) -> list[Any]:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, n), (32, n)))
    return [a, b, np.full((m, 64), 9, np.float16)]


def expected(a: Any, b: Any) -> Any:
    wide = np.zeros((a.shape[0], -(-a.shape[1] // 64) * 64), np.float32)
    wide[:, : a.shape[1]] = a * np.tile(b, (-(-a.shape[0] // 32), 1))[: a.shape[0]]
    return wide.reshape(a.shape[0], -1, 64).sum(1).astype(np.float16)


@pytest.mark.parametrize(("cluster", "slots"), [(1, 2), (4, 3)])
def test_roles_and_clusters(cluster: int, slots: int) -> None:
    kernel = fragir.compile(program(cluster, slots), target="sm_90a")
    assert kernel.assembled.warnings == []
    for (m, n), order in zip(((64 * cluster, 64), (100, 136), (70, 264)), ORDERS, strict=True):
        a, b, c = arguments(m, n)
        assert kernel(a, b, c, on="emulator", check=True, **order).findings == []
        assert (c == expected(a, b)).all()


def faults(ptx: str) -> dict[str, str]:
    """The kernel with one thing left out or wrong, by what it is."""
    changes = {
        "the last barrier": ("barrier.cluster.wait.aligned;", ""),
        "bytes": (", 8192;", ", 8184;"),
        "more bytes": (", 8192;", ", 8200;"),
        "mask": ("], 3;", "], 1;"),
        "no remote arrival": ("mbarrier.arrive.shared::cluster.b64", "// "),
        "the wait for the copy out": ("cp.async.bulk.wait_group.read 0;", ""),
        "the fence of the copy out": ("fence.proxy.async.shared::cta;", ""),
    }
    return {name: ptx.replace(*change) for name, change in changes.items()}


def is_found(kernel: fragir.Kernel, ptx: str, order: dict[str, Any]) -> bool:
    a, b, c = arguments(128, 136)
    try:
        report = emulator.run(
            ptx,
            grid=(2,),
            block=kernel.block,
            cluster=kernel.cluster,
            shared=kernel.shared,
            arguments=kernel.parameters([a, b, c]),
            check=True,
            **order,
        )
    except fragir.FragirError:
        return True
    return bool(report.findings) or bool((c != expected(a, b)).any())


def test_faults_are_found() -> None:
    """What the lowering arranges is needed: the emulator's checks miss nothing that is left out."""
    kernel = fragir.compile(program(2, 2), target="sm_90a")
    missed: list[str] = []
    for name, ptx in faults(kernel.ptx).items():
        if ptx == kernel.ptx:
            missed.append(f"{name} is not there")
            continue
        if not any(is_found(kernel, ptx, order) for order in ORDERS):
            missed.append(name)
    assert missed == []


def doubled_in_place() -> str:
    """c = 2 a; tiles come and go by TMA through the same slots."""
    return f"""
    func.func @k(%a: memref<?x64xf16> {{frag.sizes = ["m"]}},
                 %c: memref<?x64xf16> {{frag.sizes = ["m"]}}) {{
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %m = memref.dim %a, %c0 : memref<?x64xf16>
      %ring = frag.ring 2 : {RING}
      frag.roles "load" warps [1, 1] {{
        scf.for %row = %c0 to %m step %c32 {{
          %s = frag.acquire %ring : {RING}
          %p = frag.part %s[0] : {SLOT}
          frag.copy tma %a[%row, 0] to %p[] : memref<?x64xf16> to {A}
          frag.publish %s : {SLOT}
        }}
      }}, "double" warps [2, 1] {{
        scf.for %row = %c0 to %m step %c32 {{
          %s = frag.await %ring : {RING}
          %p = frag.part %s[0] : {SLOT}
          %q = frag.part %s[0] : {SLOT}
          %x = frag.load %p[0, 0] : {A} -> {TILE}
          %u = frag.map %x : {TILE} -> {TILE} {{
          ^bb0(%v: f16):
            %w = arith.addf %v, %v : f16
            frag.yield %w : f16
          }}
          frag.store %u, %p[0, 0] : {TILE}, {A}
          frag.copy tma %q[] to %c[%row, 0] : {A} to memref<?x64xf16>
          frag.release %s : {SLOT}
        }}
      }}
      func.return
    }}"""


WAIT = "cp.async.bulk.wait_group.read 0;"


def test_a_slot_is_copied_out_before_it_is_free() -> None:
    kernel = fragir.compile(doubled_in_place(), target="sm_90a")
    assert kernel.ptx.count(WAIT) == 1
    a = np.arange(200 * 64).reshape(200, 64).astype(np.float16)
    for order in ORDERS:
        c = np.zeros_like(a)
        assert kernel(a, c, on="emulator", check=True, **order).findings == []
        assert (c == a + a).all()
    lost = [
        emulator.run(
            kernel.ptx.replace(WAIT, ""),
            grid=(1,),
            block=kernel.block,
            shared=kernel.shared,
            arguments=kernel.parameters([a, np.zeros_like(a)]),
            check=True,
            **order,
        ).findings
        for order in ORDERS
    ]
    assert any(lost)


def test_a_slot_that_is_being_filled_is_not_copied_out() -> None:
    out = f"frag.copy tma %p[] to %c[%row, 0] : {A} to memref<?x64xf16>\n frag.publish"
    text = doubled_in_place().replace("frag.publish", out)
    with pytest.raises(fragir.FragirError, match="this slot is being filled; copy from one"):
        fragir.compile(text, target="sm_90a")
