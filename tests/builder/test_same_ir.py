"""What the builder makes is what one would write as MLIR."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation

import fragir
from fragir import Scalar, f16, f32, s8, s32
from fragir.builder import KernelBuilder
from fragir.compiler import parse
from fragir.layout import Layout

FILE = __file__


def one_mma() -> KernelBuilder:
    with fragir.kernel("one") as k:
        a = k.memory("a", f16, (16, 16))
        b = k.memory("b", f16, (8, 16))
        d = k.memory("d", f32, (16, 8))
        x = k.load(a, (0, 0), shape=(16, 16))
        y = k.load(b, (0, 0), shape=(16, 8), transposed=True)
        k.store(k.mma(x, y, k.fill(0, (16, 8), f32)), d, (0, 0))
    return k


ONE_MMA = """
func.func @one(%a: memref<16x16xf16>, %b: memref<8x16xf16>, %d: memref<16x8xf32>) {
  %x = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %y = frag.load %b[0, 0] transposed : memref<8x16xf16> -> !frag.tile<16x8xf16>
  %zero = arith.constant 0.0 : f32
  %c = frag.fill %zero : !frag.tile<16x8xf32>
  %r = frag.mma %x, %y, %c : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32>
    -> !frag.tile<16x8xf32>
  frag.store %r, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}"""


def four_products() -> KernelBuilder:
    with fragir.kernel("quad") as k:
        a = k.memory("a", f16, (8, 4, 4))
        b = k.memory("b", f16, (4, 8, 4))
        c = k.memory("c", f16, (8, 8, 4))
        d = k.memory("d", f32, (8, 8, 4))
        first = (0, 0, 0)
        x = k.load(a, first, shape=(8, 4, 4))
        y = k.load(b, first, shape=(4, 8, 4))
        z = k.load(c, first, shape=(8, 8, 4))
        k.store(k.mma(x, y, z, using="m8n8k4.f16.col.row", result=f32), d, first)
    return k


FOUR_PRODUCTS = """
func.func @quad(%a: memref<8x4x4xf16>, %b: memref<4x8x4xf16>, %c: memref<8x8x4xf16>,
                %d: memref<8x8x4xf32>) {
  %0 = frag.load %a[0, 0, 0] : memref<8x4x4xf16> -> !frag.tile<8x4x4xf16>
  %1 = frag.load %b[0, 0, 0] : memref<4x8x4xf16> -> !frag.tile<4x8x4xf16>
  %2 = frag.load %c[0, 0, 0] : memref<8x8x4xf16> -> !frag.tile<8x8x4xf16>
  %3 = frag.mma %0, %1, %2 using "m8n8k4.f16.col.row" : !frag.tile<8x4x4xf16>,
    !frag.tile<4x8x4xf16>, !frag.tile<8x8x4xf16> -> !frag.tile<8x8x4xf32>
  frag.store %3, %d[0, 0, 0] : !frag.tile<8x8x4xf32>, memref<8x8x4xf32>
  func.return
}"""


def looped() -> KernelBuilder:
    with fragir.kernel("looped", warps=(2, 1)) as k:
        a = k.memory("a", s8, ("m", "k"))
        b = k.memory("b", s8, ("k", 8), strides=(None, 1))
        c = k.memory("c", s32, ("m", 8))
        k.grid(1, "m / 32")
        row = k.block_id("y") * 32
        part = k.shared((2, 32, 32), s8, swizzle=32)
        with k.loop(0, a.shape[1], 32, acc=k.fill(0, (32, 8), s32), turn=0) as loop:
            k.copy(a, (row, loop.index), part, (loop.turn,), masked=True, asynchronous=True)
            k.commit()
            k.wait()
            k.barrier()
            x = k.load(part, (loop.turn, 0, 0), shape=(32, 32))
            y = k.load(b, (loop.index, 0), shape=(32, 8), masked=True)
            loop.acc = k.mma(x, y, loop.acc)
            loop.turn = 1 - loop.turn
        k.store(loop.acc, c, (row, 0), masked=True)
    return k


LOOPED = """
func.func @looped(%a: memref<?x?xi8> {frag.sizes = ["m", "k"]},
                  %b: memref<?x8xi8, strided<[?, 1]>> {frag.sizes = ["k"]},
                  %c: memref<?x8xi32> {frag.sizes = ["m"]})
    attributes {frag.warps = array<i64: 2, 1>, frag.grid = #frag.grid<1, m by 32>} {
  %by = frag.block_id y
  %32 = arith.constant 32 : index
  %row = arith.muli %by, %32 : index
  %part = memref.alloc() : memref<2x32x32xi8, #frag.shared<swizzle = 32>>
  %1 = arith.constant 1 : index
  %k = memref.dim %a, %1 : memref<?x?xi8>
  %0 = arith.constant 0 : i32
  %zero = frag.fill %0 : !frag.tile<32x8xi32>
  %first = arith.constant 0 : index
  %sum, %last = scf.for %i = %first to %k step %32 iter_args(%acc = %zero, %turn = %first)
      -> (!frag.tile<32x8xi32>, index) {
    frag.copy async %a[%row, %i] to %part[%turn] masked
      : memref<?x?xi8> to memref<2x32x32xi8, #frag.shared<swizzle = 32>>
    frag.commit
    frag.wait 0
    frag.barrier
    %x = frag.load %part[%turn, 0, 0]
      : memref<2x32x32xi8, #frag.shared<swizzle = 32>> -> !frag.tile<32x32xi8>
    %y = frag.load %b[%i, 0] masked : memref<?x8xi8, strided<[?, 1]>> -> !frag.tile<32x8xi8>
    %r = frag.mma %x, %y, %acc : !frag.tile<32x32xi8>, !frag.tile<32x8xi8>, !frag.tile<32x8xi32>
      -> !frag.tile<32x8xi32>
    %other = arith.subi %1, %turn : index
    scf.yield %r, %other : !frag.tile<32x8xi32>, index
  }
  frag.store %sum, %c[%row, 0] masked : !frag.tile<32x8xi32>, memref<?x8xi32>
  func.return
}"""


def mapped() -> KernelBuilder:
    """Expressions of tiles are one frag.map; a use in between does not cut one that goes on."""
    with fragir.kernel("mapped") as k:
        a = k.memory("a", f32, (16, 8))
        b = k.memory("b", f32, (8,))
        s = k.scalar("s", f32)
        x = k.load(a, (0, 0), shape=(16, 8))
        y = k.load(b, (0,), shape=(16, 8), broadcast=True)
        inner = x * s + y
        k.store(k.select(inner > 0, inner, k.exp(inner) - 1), a, (0, 0))
        half = k.map(lambda v: (v / 2).cast(f16), x)
        k.store(half.cast(f32), a, (0, 0))
    return k


MAPPED = """
func.func @mapped(%a: memref<16x8xf32>, %b: memref<8xf32>, %s: f32) {
  %x = frag.load %a[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %y = frag.load %b[0] broadcast : memref<8xf32> -> !frag.tile<16x8xf32>
  %elu = frag.map %x, %y : !frag.tile<16x8xf32>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32> {
  ^bb0(%p: f32, %q: f32):
    %0 = arith.mulf %p, %s : f32
    %1 = arith.addf %0, %q : f32
    %2 = arith.constant 0.0 : f32
    %3 = arith.cmpf ogt, %1, %2 : f32
    %4 = math.exp %1 : f32
    %5 = arith.constant 1.0 : f32
    %6 = arith.subf %4, %5 : f32
    %7 = arith.select %3, %1, %6 : f32
    frag.yield %7 : f32
  }
  frag.store %elu, %a[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  %half = frag.map %x : !frag.tile<16x8xf32> -> !frag.tile<16x8xf16> {
  ^bb0(%v: f32):
    %2 = arith.constant 2.0 : f32
    %8 = arith.divf %v, %2 : f32
    %9 = arith.truncf %8 : f32 to f16
    frag.yield %9 : f16
  }
  %wide = frag.cast %half : !frag.tile<16x8xf16> -> !frag.tile<16x8xf32>
  frag.store %wide, %a[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}"""


def branched() -> KernelBuilder:
    with fragir.kernel("branched") as k:
        c = k.memory("c", f32, ("m", "n"))
        n = k.scalar("n", s32)
        x = k.load(c, (0, 0), shape=(8, 8), masked=True)
        with k.if_((n > 3) & ~(k.size("m") == 0), x=x, count=1) as branch:
            branch.x = branch.x * 2
        with branch.else_():
            branch.count = k.size("n") // 3 % 5
        with k.if_(branch.count != 0):
            k.store(branch.x, c, (0, branch.count), transposed=True)
    return k


BRANCHED = """
func.func @branched(%c: memref<?x?xf32> {frag.sizes = ["m", "n"]}, %n: i32) {
  %x = frag.load %c[0, 0] masked : memref<?x?xf32> -> !frag.tile<8x8xf32>
  %3 = arith.constant 3 : i32
  %more = arith.cmpi sgt, %n, %3 : i32
  %0 = arith.constant 0 : index
  %m = memref.dim %c, %0 : memref<?x?xf32>
  %none = arith.cmpi eq, %m, %0 : index
  %true = arith.constant true
  %some = arith.xori %none, %true : i1
  %both = arith.andi %more, %some : i1
  %1 = arith.constant 1 : index
  %r, %count = scf.if %both -> (!frag.tile<8x8xf32>, index) {
    %twice = frag.map %x : !frag.tile<8x8xf32> -> !frag.tile<8x8xf32> {
    ^bb0(%v: f32):
      %2 = arith.constant 2.0 : f32
      %4 = arith.mulf %v, %2 : f32
      frag.yield %4 : f32
    }
    scf.yield %twice, %1 : !frag.tile<8x8xf32>, index
  } else {
    %size = memref.dim %c, %1 : memref<?x?xf32>
    %three = arith.constant 3 : index
    %5 = arith.divui %size, %three : index
    %five = arith.constant 5 : index
    %6 = arith.remui %5, %five : index
    scf.yield %x, %6 : !frag.tile<8x8xf32>, index
  }
  %7 = arith.cmpi ne, %count, %0 : index
  scf.if %7 {
    frag.store %r, %c[0, %count] transposed : !frag.tile<8x8xf32>, memref<?x?xf32>
  }
  func.return
}"""


def whole() -> KernelBuilder:
    with fragir.kernel("whole") as k:
        a = k.memory("a", f16, ("m", "k"))
        b = k.memory("b", f16, ("n", "k"))
        c = k.memory("c", f16, ("m", "n"))
        bias = k.memory("bias", f32, ("n",))
        alpha = k.scalar("alpha", f32)

        def epilogue(total: Scalar, old: Scalar, shift: Scalar) -> Scalar:
            return k.max(alpha * total + old.cast(f32) + shift, 0).cast(f16)

        k.matmul(
            a,
            b,
            into=c,
            transposed_b=True,
            extra=[bias],
            epilogue=epilogue,
            accumulate=f32,
            tile=(64, 64, 32),
            warps=(2, 2),
            stages=2,
        )
    return k


WHOLE = """
func.func @whole(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
                 %b: memref<?x?xf16> {frag.sizes = ["n", "k"]},
                 %c: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                 %bias: memref<?xf32> {frag.sizes = ["n"]}, %alpha: f32) {
  frag.matmul %a, %b transposed into %c accumulate f32 with %bias
    {tile = array<i64: 64, 64, 32>, warps = array<i64: 2, 2>, stages = 2 : i64}
    : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> with memref<?xf32> epilogue {
  ^bb0(%sum: f32, %old: f16, %shift: f32):
    %0 = arith.mulf %alpha, %sum : f32
    %1 = arith.extf %old : f16 to f32
    %2 = arith.addf %0, %1 : f32
    %3 = arith.addf %2, %shift : f32
    %4 = arith.constant 0.0 : f32
    %5 = arith.maximumf %3, %4 : f32
    %6 = arith.truncf %5 : f32 to f16
    frag.yield %6 : f16
  }
  func.return
}"""


def scaled() -> KernelBuilder:
    with fragir.kernel("scaled", target="sm_90a") as k:
        a = k.memory("a", f16, (64, 256))
        b = k.memory("b", f16, (256, 32))
        x = k.memory("x", f32, (2, 64))
        c = k.memory("c", f32, (64, 32))
        k.matmul(
            a,
            b,
            into=c,
            scale_a=x,
            block_a=(1, 128),
            transposed_scale_a=True,
            scale_b=0.5,
            promote=64,
        )
    return k


SCALED = """
func.func @scaled(%a: memref<64x256xf16>, %b: memref<256x32xf16>, %x: memref<2x64xf32>,
                  %c: memref<64x32xf32>) {
  %0 = arith.constant 0.5 : f32
  frag.matmul %a scaled %x transposed by [1, 128], %b scaled %0 into %c {promote = 64 : i64}
    : memref<64x256xf16> scaled memref<2x64xf32>, memref<256x32xf16> scaled f32
    into memref<64x32xf32>
  func.return
}"""


def by_warpgroups() -> KernelBuilder:
    with fragir.kernel("group", warpgroups=(1, 1), target="sm_90a") as k:
        a = k.memory("a", f16, (64, 64))
        b = k.memory("b", f16, (96, 64))
        c = k.memory("c", f32, (64, 96))
        right = k.shared((1, 96, 64), f16, swizzle=128)
        k.copy(b, (0, 0), right, (0,))
        k.barrier()
        left = k.load(a, (0, 0), shape=(64, 64))
        start = k.fill(0, (64, 96), f32)
        product = k.wgmma(left, k.view(right, (0,)), start, transposed_b=True)
        k.store(product, c, (0, 0))
    return k


BY_WARPGROUPS = """
func.func @group(%a: memref<64x64xf16>, %b: memref<96x64xf16>, %c: memref<64x96xf32>)
    attributes {frag.warpgroups = array<i64: 1, 1>} {
  %right = memref.alloc() : memref<1x96x64xf16, #frag.shared<swizzle = 128>>
  frag.copy %b[0, 0] to %right[0]
    : memref<96x64xf16> to memref<1x96x64xf16, #frag.shared<swizzle = 128>>
  frag.barrier
  %left = frag.load %a[0, 0] : memref<64x64xf16> -> !frag.tile<64x64xf16>
  %zero = arith.constant 0.0 : f32
  %start = frag.fill %zero : !frag.tile<64x96xf32>
  %view = frag.view %right[0] : memref<1x96x64xf16, #frag.shared<swizzle = 128>>
    -> memref<96x64xf16, #frag.shared<swizzle = 128>>
  %r = frag.wgmma %left, %view transposed, %start
    : !frag.tile<64x64xf16>, memref<96x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x96xf32>
  frag.store %r, %c[0, 0] : !frag.tile<64x96xf32>, memref<64x96xf32>
  func.return
}"""


def placed() -> KernelBuilder:
    """Layouts by name and written out."""
    rows = Layout.parse("lane [16:(1,0) 2:(0,8)] element [8:(0,1)]")
    with fragir.kernel("placed") as k:
        a = k.memory("a", f16, (16, 16))
        x = k.load(a, (0, 0), shape=(16, 16), layout=rows)
        k.store(k.convert(x, fragir.fragment("m16n8k16.f16", "a")), a, (0, 0))
    return k


PLACED = """
#rows = #frag.layout<"lane [16:(1,0) 2:(0,8)] element [8:(0,1)]">
func.func @placed(%a: memref<16x16xf16>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #rows>
  %1 = frag.convert %0 : !frag.tile<16x16xf16, #rows>
    -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  frag.store %1, %a[0, 0]
    : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>, memref<16x16xf16>
  func.return
}"""


def other_value() -> KernelBuilder:
    with fragir.kernel("lowest") as k:
        a = k.memory("a", f32, ("m", "n"))
        b = k.memory("b", f32, (16, 8))
        x = k.load(a, (-1, 0), shape=(16, 8), masked=True, other=-float("inf"))
        k.store(x, b, (0, 0))
    return k


OTHER_VALUE = """
func.func @lowest(%a: memref<?x?xf32> {frag.sizes = ["m", "n"]}, %b: memref<16x8xf32>) {
  %lowest = arith.constant 0xFF800000 : f32
  %x = frag.load %a[-1, 0] masked other %lowest : memref<?x?xf32> -> !frag.tile<16x8xf32>
  frag.store %x, %b[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}"""


def paged() -> KernelBuilder:
    with fragir.kernel("paged") as k:
        a = k.memory("a", f32, (640, 8))
        pages = k.memory("pages", s32, (4, 10))
        b = k.memory("b", f32, (16, 8))
        page = k.load_scalar(pages, (1, 3)).cast(fragir.index)
        k.store(k.load(a, (page * 16, 0), shape=(16, 8)), b, (0, 0))
    return k


PAGED = """
func.func @paged(%a: memref<640x8xf32>, %pages: memref<4x10xi32>, %b: memref<16x8xf32>) {
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %n = memref.load %pages[%one, %three] : memref<4x10xi32>
  %page = arith.index_cast %n : i32 to index
  %size = arith.constant 16 : index
  %row = arith.muli %page, %size : index
  %x = frag.load %a[%row, 0] : memref<640x8xf32> -> !frag.tile<16x8xf32>
  frag.store %x, %b[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}"""


def embedded() -> KernelBuilder:
    with fragir.kernel("embed") as k:
        a = k.memory("a", f32, (640, 64))
        ids = k.memory("ids", s32, (32,))
        b = k.memory("b", f32, (640, 64))
        i = k.load(ids, (0,), shape=(32,))
        x = k.gather(a, (i, 16), shape=(32, 32), masked=True, where=i > 0, other=1)
        k.scatter(x, b, (i, 0), where=i > 0)
    return k


EMBEDDED = """
func.func @embed(%a: memref<640x64xf32>, %ids: memref<32xi32>, %b: memref<640x64xf32>) {
  %i = frag.load %ids[0] : memref<32xi32> -> !frag.tile<32xi32>
  %one = arith.constant 1.0 : f32
  %p = frag.map %i : !frag.tile<32xi32> -> !frag.tile<32xi1> {
  ^bb0(%v: i32):
    %zero = arith.constant 0 : i32
    %c = arith.cmpi sgt, %v, %zero : i32
    frag.yield %c : i1
  }
  %x = frag.gather %a[%i, 16] masked where %p other %one
    : memref<640x64xf32>, !frag.tile<32xi32> where !frag.tile<32xi1> -> !frag.tile<32x32xf32>
  %q = frag.map %i : !frag.tile<32xi32> -> !frag.tile<32xi1> {
  ^bb0(%v: i32):
    %zero = arith.constant 0 : i32
    %c = arith.cmpi sgt, %v, %zero : i32
    frag.yield %c : i1
  }
  frag.scatter %x, %b[%i, 0] where %q
    : !frag.tile<32x32xf32>, memref<640x64xf32>, !frag.tile<32xi32> where !frag.tile<32xi1>
  func.return
}"""


def counted() -> KernelBuilder:
    with fragir.kernel("count") as k:
        a = k.memory("a", s32, (256,))
        h = k.memory("h", s32, (16,))
        last = k.memory("last", s32, (256,))
        i = k.load(a, (0,), shape=(256,))
        k.atomic("add", k.fill(1, (256,), s32), h, (i,), masked=True)
        before = k.atomic("cas", i, last, (0,), expected=i, old=True)
        assert before is not None
        k.store(before, a, (0,))
    return k


COUNTED = """
func.func @count(%a: memref<256xi32>, %h: memref<16xi32>, %last: memref<256xi32>) {
  %i = frag.load %a[0] : memref<256xi32> -> !frag.tile<256xi32>
  %one = arith.constant 1 : i32
  %t = frag.fill %one : !frag.tile<256xi32>
  frag.atomic add %t, %h[%i] masked : !frag.tile<256xi32>, memref<16xi32>, !frag.tile<256xi32>
  %before = frag.atomic cas %i, %last[0] expected %i
    : !frag.tile<256xi32>, memref<256xi32> -> !frag.tile<256xi32>
  frag.store %before, %a[0] : !frag.tile<256xi32>, memref<256xi32>
  func.return
}"""


def shaped() -> KernelBuilder:
    with fragir.kernel("shaped") as k:
        a = k.memory("a", f16, (16, 64))
        c = k.memory("c", f16, (32, 49))
        t = k.load(a, (0, 0), shape=(16, 64))
        turned = t[:, 32:].T
        first, second = t[3, 1::2].reshape(-1, 2).transpose(1, 0).T.split()
        column = k.join(first, second).reshape(32)[..., None]
        k.store(k.concatenate([turned, turned, turned, column], 1), c, (0, 0))
    return k


SHAPED = """
func.func @shaped(%a: memref<16x64xf16>, %c: memref<32x49xf16>) {
  %t = frag.load %a[0, 0] : memref<16x64xf16> -> !frag.tile<16x64xf16>
  %right = frag.slice %t [0, 32] : !frag.tile<16x64xf16> -> !frag.tile<16x32xf16>
  %turned = frag.transpose %right [1, 0] : !frag.tile<16x32xf16> -> !frag.tile<32x16xf16>
  %row = frag.slice %t [3, 1] strides [1, 2] : !frag.tile<16x64xf16> -> !frag.tile<1x32xf16>
  %odd = frag.reshape %row : !frag.tile<1x32xf16> -> !frag.tile<32xf16>
  %pairs = frag.reshape %odd : !frag.tile<32xf16> -> !frag.tile<16x2xf16>
  %there = frag.transpose %pairs [1, 0] : !frag.tile<16x2xf16> -> !frag.tile<2x16xf16>
  %back = frag.transpose %there [1, 0] : !frag.tile<2x16xf16> -> !frag.tile<16x2xf16>
  %x, %y = frag.split %back : !frag.tile<16x2xf16> -> !frag.tile<16xf16>, !frag.tile<16xf16>
  %xy = frag.join %x, %y : !frag.tile<16xf16>, !frag.tile<16xf16> -> !frag.tile<16x2xf16>
  %flat = frag.reshape %xy : !frag.tile<16x2xf16> -> !frag.tile<32xf16>
  %column = frag.reshape %flat : !frag.tile<32xf16> -> !frag.tile<32x1xf16>
  %2 = frag.concat %turned, %turned dim 1
    : !frag.tile<32x16xf16>, !frag.tile<32x16xf16> -> !frag.tile<32x32xf16>
  %3 = frag.concat %2, %turned dim 1
    : !frag.tile<32x32xf16>, !frag.tile<32x16xf16> -> !frag.tile<32x48xf16>
  %4 = frag.concat %3, %column dim 1
    : !frag.tile<32x48xf16>, !frag.tile<32x1xf16> -> !frag.tile<32x49xf16>
  frag.store %4, %c[0, 0] : !frag.tile<32x49xf16>, memref<32x49xf16>
  func.return
}"""


PAIRS = [
    (shaped, SHAPED),
    (counted, COUNTED),
    (embedded, EMBEDDED),
    (paged, PAGED),
    (other_value, OTHER_VALUE),
    (one_mma, ONE_MMA),
    (four_products, FOUR_PRODUCTS),
    (looped, LOOPED),
    (mapped, MAPPED),
    (branched, BRANCHED),
    (whole, WHOLE),
    (scaled, SCALED),
    (by_warpgroups, BY_WARPGROUPS),
    (placed, PLACED),
]


@pytest.mark.parametrize(("build", "text"), PAIRS, ids=[build.__name__ for build, _ in PAIRS])
def test_same_ir(build: Callable[[], KernelBuilder], text: str) -> None:
    built = build()
    written = parse(text)
    assert built.module.is_structurally_equivalent(written), f"{built.mlir}\n{written}"


@pytest.mark.parametrize("build", [build for build, _ in PAIRS], ids=lambda b: b.__name__)
def test_text_parses_back(build: Callable[[], KernelBuilder]) -> None:
    built = build()
    assert parse(built.mlir).is_structurally_equivalent(built.module)


def operations(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if op is not module]


@pytest.mark.parametrize("build", [build for build, _ in PAIRS], ids=lambda b: b.__name__)
def test_every_operation_has_a_place(build: Callable[[], KernelBuilder]) -> None:
    for op in operations(build().module):
        assert isinstance(op.location, FileLineColLoc), str(op)
        assert op.location.filename.data == FILE, str(op)


def test_places_and_names() -> None:
    source = "\n".join(
        (
            "from fragir import kernel, f32",
            "with kernel('named') as k:",
            "    c = k.memory('c', f32, (8, 8))",
            "    row = k.block_id('y') * 8 + 1",
            "    old = k.load(",
            "        c, (row, 0), shape=(8, 8)",
            "    )",
            "    with k.loop(0, 4, total=old) as loop:",
            "        loop.total = loop.total + 1",
            "    k.store(loop.total, c, (row, 0))",
        )
    )
    space: dict[str, KernelBuilder] = {}
    exec(compile(source, "named.py", "exec"), {}, space)
    found = {
        op.name: (op.location.line.data, op.location.column.data, op.results[0].name_hint)
        for op in operations(space["k"].module)
        if isinstance(op.location, FileLineColLoc) and op.results
    }
    assert found["frag.block_id"] == (4, 11, "by")
    assert found["arith.muli"] == (4, 11, None)
    assert found["arith.addi"] == (4, 11, "row")
    assert found["frag.load"] == (5, 11, "old")
    assert found["scf.for"] == (8, 10, "total")
    assert found["frag.map"] == (9, 22, "total")
    assert found["arith.addf"] == (9, 22, "total")
