// C = A W with unsigned weights of four bits, packed along N, with zero points: W4A16 as AWQ has it. %w is
// K x N; a zero point and a scale stand for each group of 128 of K and each column. Columns of W are
// counted so that those in a lane's byte are its own (`n =`). Rows of %w and %zeros are padded to
// whole 16 bytes (`packed`).
//
//   fragir run examples/quantised/w4a16_zeros.mlir --size m=45,n=71,k=150,packed=96,groups=2

#b = #frag.mma<m16n8k16.bf16, b, warps = [2, 2], n = "8:4 4:1">
!b = !frag.tile<128x64xbf16, #b>

!activations = memref<?x?xbf16>
!weights = memref<?x?xui4>
!a_stages = memref<2x64x128xbf16, #frag.shared<swizzle = 128>>
!w_stages = memref<2x128x64xui4, #frag.shared<swizzle = 32>>
!sums = !frag.tile<64x64xf32>

func.func @w4a16_zeros(%a: !activations {frag.sizes = ["m", "k"]}, %w: !weights {frag.sizes = ["k", "packed"]},
                       %zeros: !weights {frag.sizes = ["groups", "packed"]},
                       %scale: memref<?x?xbf16> {frag.sizes = ["groups", "n"]},
                       %c: memref<?x?xbf16> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<n by 64, m by 64>, frag.warps = array<i64: 2, 2>,
                frag.divisible = {packed = 32}} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %64 = arith.constant 64 : index
  %128 = arith.constant 128 : index
  %k = memref.dim %a, %1 : !activations
  %by = frag.block_id y
  %row = arith.muli %by, %64 : index
  %bx = frag.block_id x
  %col = arith.muli %bx, %64 : index
  %as = memref.alloc() : !a_stages
  %ws = memref.alloc() : !w_stages
  frag.copy async %a[%row, 0] to %as[0] masked : !activations to !a_stages
  frag.copy async %w[0, %col] to %ws[0] masked : !weights to !w_stages
  frag.commit
  %nothing = arith.constant 0.0 : f32
  %zero = frag.fill %nothing : !sums
  %total, %last = scf.for %i = %0 to %k step %128
      iter_args(%acc = %zero, %stage = %0) -> (!sums, index) {
    frag.wait 0
    frag.barrier
    %ahead = arith.addi %i, %128 : index
    %more = arith.cmpi slt, %ahead, %k : index
    scf.if %more {
      %first = arith.cmpi eq, %stage, %0 : index
      %before = arith.subi %stage, %1 : index
      %slot = arith.select %first, %1, %before : index
      frag.copy async %a[%row, %ahead] to %as[%slot] masked : !activations to !a_stages
      frag.copy async %w[%ahead, %col] to %ws[%slot] masked : !weights to !w_stages
    }
    frag.commit
    %x = frag.load %as[%stage, 0, 0] : !a_stages -> !frag.tile<64x128xbf16>
    %held = frag.load %ws[%stage, 0, 0] : !w_stages -> !frag.tile<128x64xui4, #b>
    %g = arith.divui %i, %128 : index
    %middle = frag.load %zeros[%g, %col] masked : !weights -> !frag.tile<64xui4>
    %points = frag.cast %middle : !frag.tile<64xui4> -> !frag.tile<64xbf16>
    %numbers = frag.cast %held : !frag.tile<128x64xui4, #b> -> !b
    %below = frag.broadcast %points along 0 : !frag.tile<64xbf16> -> !b
    %y = frag.map %numbers, %below : !b, !b -> !b {
    ^bb0(%u: bf16, %v: bf16):
      %r = arith.subf %u, %v : bf16
      frag.yield %r : bf16
    }
    %s = frag.mma %x, %y, %zero : !frag.tile<64x128xbf16>, !b, !sums -> !sums
    %narrow = frag.load %scale[%g, %col] masked : memref<?x?xbf16> -> !frag.tile<64xbf16>
    %wide = frag.cast %narrow : !frag.tile<64xbf16> -> !frag.tile<64xf32>
    %scales = frag.broadcast %wide along 0 : !frag.tile<64xf32> -> !sums
    %next = frag.map %s, %scales, %acc : !sums, !sums, !sums -> !sums {
    ^bb0(%u: f32, %v: f32, %t: f32):
      %r = math.fma %u, %v, %t : f32
      frag.yield %r : f32
    }
    %end = arith.cmpi eq, %stage, %1 : index
    %after = arith.addi %stage, %1 : index
    %turn = arith.select %end, %0, %after : index
    scf.yield %next, %turn : !sums, index
  }
  frag.wait 0
  %result = frag.cast %total : !sums -> !frag.tile<64x64xbf16>
  frag.store %result, %c[%row, %col] masked : !frag.tile<64x64xbf16>, memref<?x?xbf16>
  func.return
}
