// C = A W in e4m3 with the scales of DeepSeek-V3: an f32 for 128 numbers of a row of A, one for 128 x 128
// of W. Each 128 of K is summed by the tensor cores, scaled, and added in f32. %w has a row for each
// column of W. @fp8 uses mma, @fp8_warpgroups wgmma, which reads shared memory.
//
//   fragir run examples/quantised/fp8.mlir --entry fp8 --size m=45,n=150,k=150,groups=2,blocks=2 --target sm_89
//   fragir run examples/quantised/fp8.mlir --entry fp8_warpgroups --size m=45,n=150,k=150,groups=2,blocks=2 --target sm_90a

!activations = memref<?x?xf8E4M3FN>
!weights = memref<?x?xf8E4M3FN>
!matrix = memref<64x128xf8E4M3FN, #frag.shared<swizzle = 128>>
!a_stages = memref<3x64x128xf8E4M3FN, #frag.shared<swizzle = 128>>
!w_stages = memref<3x64x128xf8E4M3FN, #frag.shared<swizzle = 128>>
!sums = !frag.tile<64x64xf32>

func.func @fp8(%a: !activations {frag.sizes = ["m", "k"]}, %w: !weights {frag.sizes = ["n", "k"]},
               %a_scale: memref<?x?xf32> {frag.sizes = ["groups", "m"]},
               %w_scale: memref<?x?xf32> {frag.sizes = ["groups", "blocks"]},
               %c: memref<?x?xbf16> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<n by 64, m by 64>, frag.warps = array<i64: 2, 2>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %64 = arith.constant 64 : index
  %128 = arith.constant 128 : index
  %256 = arith.constant 256 : index
  %k = memref.dim %a, %1 : !activations
  %by = frag.block_id y
  %row = arith.muli %by, %64 : index
  %bx = frag.block_id x
  %col = arith.muli %bx, %64 : index
  %as = memref.alloc() : !a_stages
  %ws = memref.alloc() : !w_stages
  frag.copy async %a[%row, 0] to %as[0] masked : !activations to !a_stages
  frag.copy async %w[%col, 0] to %ws[0] masked : !weights to !w_stages
  frag.commit
  frag.copy async %a[%row, 128] to %as[1] masked : !activations to !a_stages
  frag.copy async %w[%col, 128] to %ws[1] masked : !weights to !w_stages
  frag.commit
  %nothing = arith.constant 0.0 : f32
  %zero = frag.fill %nothing : !sums
  %total, %last = scf.for %i = %0 to %k step %128
      iter_args(%acc = %zero, %stage = %0) -> (!sums, index) {
    frag.wait 1
    frag.barrier
    %ahead = arith.addi %i, %256 : index
    %more = arith.cmpi slt, %ahead, %k : index
    scf.if %more {
      %first = arith.cmpi eq, %stage, %0 : index
      %before = arith.subi %stage, %1 : index
      %slot = arith.select %first, %2, %before : index
      frag.copy async %a[%row, %ahead] to %as[%slot] masked : !activations to !a_stages
      frag.copy async %w[%col, %ahead] to %ws[%slot] masked : !weights to !w_stages
    }
    frag.commit
    %x = frag.load %as[%stage, 0, 0] : !a_stages -> !frag.tile<64x128xf8E4M3FN>
    %y = frag.load %ws[%stage, 0, 0] transposed : !w_stages -> !frag.tile<128x64xf8E4M3FN>
    %s = frag.mma %x, %y, %zero
        : !frag.tile<64x128xf8E4M3FN>, !frag.tile<128x64xf8E4M3FN>, !sums -> !sums
    %g = arith.divui %i, %128 : index
    %of_rows = frag.load %a_scale[%g, %row] masked : memref<?x?xf32> -> !frag.tile<64xf32>
    %block = arith.divui %col, %128 : index
    %of_block = memref.load %w_scale[%g, %block] : memref<?x?xf32>
    %of_both = frag.map %of_rows : !frag.tile<64xf32> -> !frag.tile<64xf32> {
    ^bb0(%u: f32):
      %r = arith.mulf %u, %of_block : f32
      frag.yield %r : f32
    }
    %rows = frag.broadcast %of_both along 1 : !frag.tile<64xf32> -> !sums
    %next = frag.map %s, %rows, %acc : !sums, !sums, !sums -> !sums {
    ^bb0(%p: f32, %u: f32, %t: f32):
      %r = math.fma %p, %u, %t : f32
      frag.yield %r : f32
    }
    %end = arith.cmpi eq, %stage, %2 : index
    %after = arith.addi %stage, %1 : index
    %turn = arith.select %end, %0, %after : index
    scf.yield %next, %turn : !sums, index
  }
  frag.wait 0
  %result = frag.cast %total : !sums -> !frag.tile<64x64xbf16>
  frag.store %result, %c[%row, %col] masked : !frag.tile<64x64xbf16>, memref<?x?xbf16>
  func.return
}

func.func @fp8_warpgroups(%a: !activations {frag.sizes = ["m", "k"]}, %w: !weights {frag.sizes = ["n", "k"]},
               %a_scale: memref<?x?xf32> {frag.sizes = ["groups", "m"]},
               %w_scale: memref<?x?xf32> {frag.sizes = ["groups", "blocks"]},
               %c: memref<?x?xbf16> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<n by 64, m by 64>, frag.warpgroups = array<i64: 1, 1>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %64 = arith.constant 64 : index
  %128 = arith.constant 128 : index
  %256 = arith.constant 256 : index
  %k = memref.dim %a, %1 : !activations
  %by = frag.block_id y
  %row = arith.muli %by, %64 : index
  %bx = frag.block_id x
  %col = arith.muli %bx, %64 : index
  %as = memref.alloc() : !a_stages
  %ws = memref.alloc() : !w_stages
  frag.copy async %a[%row, 0] to %as[0] masked : !activations to !a_stages
  frag.copy async %w[%col, 0] to %ws[0] masked : !weights to !w_stages
  frag.commit
  frag.copy async %a[%row, 128] to %as[1] masked : !activations to !a_stages
  frag.copy async %w[%col, 128] to %ws[1] masked : !weights to !w_stages
  frag.commit
  %nothing = arith.constant 0.0 : f32
  %zero = frag.fill %nothing : !sums
  %total, %last = scf.for %i = %0 to %k step %128
      iter_args(%acc = %zero, %stage = %0) -> (!sums, index) {
    frag.wait 1
    frag.barrier
    %ahead = arith.addi %i, %256 : index
    %more = arith.cmpi slt, %ahead, %k : index
    scf.if %more {
      %first = arith.cmpi eq, %stage, %0 : index
      %before = arith.subi %stage, %1 : index
      %slot = arith.select %first, %2, %before : index
      frag.copy async %a[%row, %ahead] to %as[%slot] masked : !activations to !a_stages
      frag.copy async %w[%col, %ahead] to %ws[%slot] masked : !weights to !w_stages
    }
    frag.commit
    %x = frag.view %as[%stage] : !a_stages -> !matrix
    %y = frag.view %ws[%stage] : !w_stages -> !matrix
    %s = frag.wgmma %x, %y transposed, %zero : !matrix, !matrix, !sums
    %g = arith.divui %i, %128 : index
    %of_rows = frag.load %a_scale[%g, %row] masked : memref<?x?xf32> -> !frag.tile<64xf32>
    %block = arith.divui %col, %128 : index
    %of_block = memref.load %w_scale[%g, %block] : memref<?x?xf32>
    %of_both = frag.map %of_rows : !frag.tile<64xf32> -> !frag.tile<64xf32> {
    ^bb0(%u: f32):
      %r = arith.mulf %u, %of_block : f32
      frag.yield %r : f32
    }
    %rows = frag.broadcast %of_both along 1 : !frag.tile<64xf32> -> !sums
    %next = frag.map %s, %rows, %acc : !sums, !sums, !sums -> !sums {
    ^bb0(%p: f32, %u: f32, %t: f32):
      %r = math.fma %p, %u, %t : f32
      frag.yield %r : f32
    }
    %end = arith.cmpi eq, %stage, %2 : index
    %after = arith.addi %stage, %1 : index
    %turn = arith.select %end, %0, %after : index
    scf.yield %next, %turn : !sums, index
  }
  frag.wait 0
  %result = frag.cast %total : !sums -> !frag.tile<64x64xbf16>
  frag.store %result, %c[%row, %col] masked : !frag.tile<64x64xbf16>, memref<?x?xbf16>
  func.return
}
