// C = A W with weights of four bits and f16 activations (W4A16), f32 sums, a scale for each 64 of K
// and each column. M, N and K are any; rows of %w are padded to whole 16 bytes (`packed`). Of every
// 32 weights of a row those that one lane multiplies lie together, in the order in which a register
// is unpacked with the fewest instructions: the reshapes say so, and move nothing.
//
//   fragir run examples/quantised/w4a16.mlir --size m=45,n=71,k=150,packed=160,groups=3
//   fragir compile examples/quantised/w4a16.mlir --explain-layouts

!activations = memref<?x?xf16>
!weights = memref<?x?xsi4>
!a_stages = memref<3x32x64xf16, #frag.shared<swizzle = 128>>
!w_stages = memref<3x64x64xsi4, #frag.shared<swizzle = 32>>
!sums = !frag.tile<32x64xf32>

func.func @w4a16(%a: !activations {frag.sizes = ["m", "k"]}, %w: !weights {frag.sizes = ["n", "packed"]},
                 %scale: memref<?x?xf16> {frag.sizes = ["groups", "n"]},
                 %c: memref<?x?xf16> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<n by 64, m by 32>, frag.warps = array<i64: 1, 4>,
                frag.divisible = {packed = 32}} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %32 = arith.constant 32 : index
  %64 = arith.constant 64 : index
  %128 = arith.constant 128 : index
  %k = memref.dim %a, %1 : !activations
  %by = frag.block_id y
  %row = arith.muli %by, %32 : index
  %bx = frag.block_id x
  %col = arith.muli %bx, %64 : index
  %as = memref.alloc() : !a_stages
  %ws = memref.alloc() : !w_stages
  frag.copy async %a[%row, 0] to %as[0] masked : !activations to !a_stages
  frag.copy async %w[%col, 0] to %ws[0] masked : !weights to !w_stages
  frag.commit
  frag.copy async %a[%row, 64] to %as[1] masked : !activations to !a_stages
  frag.copy async %w[%col, 64] to %ws[1] masked : !weights to !w_stages
  frag.commit
  %nothing = arith.constant 0.0 : f32
  %zero = frag.fill %nothing : !sums
  %total, %last = scf.for %i = %0 to %k step %64
      iter_args(%acc = %zero, %stage = %0) -> (!sums, index) {
    frag.wait 1
    frag.barrier
    %ahead = arith.addi %i, %128 : index
    %more = arith.cmpi slt, %ahead, %k : index
    scf.if %more {
      %first = arith.cmpi eq, %stage, %0 : index
      %before = arith.subi %stage, %1 : index
      %slot = arith.select %first, %2, %before : index
      frag.copy async %a[%row, %ahead] to %as[%slot] masked : !activations to !a_stages
      frag.copy async %w[%col, %ahead] to %ws[%slot] masked : !weights to !w_stages
    }
    frag.commit
    %x = frag.load %as[%stage, 0, 0] : !a_stages -> !frag.tile<32x64xf16>
    // memory has lane, half of a pair, number of the pair; K counts number, lane, half
    %held = frag.load %ws[%stage, 0, 0] : !w_stages -> !frag.tile<64x64xsi4>
    %parts = frag.reshape %held : !frag.tile<64x64xsi4> -> !frag.tile<128x4x2x4xsi4>
    %order = frag.transpose %parts [0, 3, 1, 2] : !frag.tile<128x4x2x4xsi4> -> !frag.tile<128x4x4x2xsi4>
    %rows = frag.reshape %order : !frag.tile<128x4x4x2xsi4> -> !frag.tile<64x64xsi4>
    %q = frag.transpose %rows [1, 0] : !frag.tile<64x64xsi4> -> !frag.tile<64x64xsi4>
    %y = frag.cast %q : !frag.tile<64x64xsi4> -> !frag.tile<64x64xf16>
    %s = frag.mma %x, %y, %zero : !frag.tile<32x64xf16>, !frag.tile<64x64xf16>, !sums -> !sums
    %g = arith.divui %i, %64 : index
    %narrow = frag.load %scale[%g, %col] masked : memref<?x?xf16> -> !frag.tile<64xf16>
    %wide = frag.cast %narrow : !frag.tile<64xf16> -> !frag.tile<64xf32>
    %scales = frag.broadcast %wide along 0 : !frag.tile<64xf32> -> !sums
    %next = frag.map %s, %scales, %acc : !sums, !sums, !sums -> !sums {
    ^bb0(%u: f32, %v: f32, %t: f32):
      %r = math.fma %u, %v, %t : f32
      frag.yield %r : f32
    }
    %end = arith.cmpi eq, %stage, %2 : index
    %after = arith.addi %stage, %1 : index
    %turn = arith.select %end, %0, %after : index
    scf.yield %next, %turn : !sums, index
  }
  frag.wait 0
  %result = frag.cast %total : !sums -> !frag.tile<32x64xf16>
  frag.store %result, %c[%row, %col] masked : !frag.tile<32x64xf16>, memref<?x?xf16>
  func.return
}
