// C = A W with bytes on both sides (W8A8): s32 sums of mma, scaled in f32. %w has a row for each column
// of W. @w8a8 has a scale for each row of A, found while it was quantised, and one for each column of
// W; the sums of the whole K are scaled once. In @w8a8_groups both have a scale for every 128 of K too:
// the sums of each group are promoted to f32.
//
//   fragir run examples/quantised/w8a8.mlir --entry w8a8 --size m=45,n=71,k=150
//   fragir run examples/quantised/w8a8.mlir --entry w8a8_groups --size m=45,n=71,k=150,groups=2

!activations = memref<?x?xsi8>
!weights = memref<?x?xsi8>
!a_stages = memref<3x64x128xsi8, #frag.shared<swizzle = 128>>
!w_stages = memref<3x64x128xsi8, #frag.shared<swizzle = 128>>
!whole = !frag.tile<64x64xi32>
!sums = !frag.tile<64x64xf32>

func.func @w8a8(%a: !activations {frag.sizes = ["m", "k"]}, %w: !weights {frag.sizes = ["n", "k"]},
                %a_scale: memref<?xf32> {frag.sizes = ["m"]},
                %w_scale: memref<?xf32> {frag.sizes = ["n"]},
                %c: memref<?x?xf16> {frag.sizes = ["m", "n"]})
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
  %nothing = arith.constant 0 : i32
  %zero = frag.fill %nothing : !whole
  %total, %last = scf.for %i = %0 to %k step %128
      iter_args(%acc = %zero, %stage = %0) -> (!whole, index) {
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
    %x = frag.load %as[%stage, 0, 0] : !a_stages -> !frag.tile<64x128xsi8>
    %y = frag.load %ws[%stage, 0, 0] transposed : !w_stages -> !frag.tile<128x64xsi8>
    %next = frag.mma %x, %y, %acc : !frag.tile<64x128xsi8>, !frag.tile<128x64xsi8>, !whole -> !whole
    %end = arith.cmpi eq, %stage, %2 : index
    %after = arith.addi %stage, %1 : index
    %turn = arith.select %end, %0, %after : index
    scf.yield %next, %turn : !whole, index
  }
  frag.wait 0
  %of_rows = frag.load %a_scale[%row] masked : memref<?xf32> -> !frag.tile<64xf32>
  %of_columns = frag.load %w_scale[%col] masked : memref<?xf32> -> !frag.tile<64xf32>
  %rows = frag.broadcast %of_rows along 1 : !frag.tile<64xf32> -> !sums
  %columns = frag.broadcast %of_columns along 0 : !frag.tile<64xf32> -> !sums
  %sums = frag.cast %total : !whole -> !sums
  %scaled = frag.map %sums, %rows, %columns : !sums, !sums, !sums -> !sums {
  ^bb0(%s: f32, %u: f32, %v: f32):
    %su = arith.mulf %s, %u : f32
    %r = arith.mulf %su, %v : f32
    frag.yield %r : f32
  }
  %result = frag.cast %scaled : !sums -> !frag.tile<64x64xf16>
  frag.store %result, %c[%row, %col] masked : !frag.tile<64x64xf16>, memref<?x?xf16>
  func.return
}

func.func @w8a8_groups(%a: !activations {frag.sizes = ["m", "k"]}, %w: !weights {frag.sizes = ["n", "k"]},
                       %a_scale: memref<?x?xf32> {frag.sizes = ["groups", "m"]},
                       %w_scale: memref<?x?xf32> {frag.sizes = ["groups", "n"]},
                       %c: memref<?x?xf16> {frag.sizes = ["m", "n"]})
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
  %nothing = arith.constant 0 : i32
  %zero = frag.fill %nothing : !whole
  %none = arith.constant 0.0 : f32
  %start = frag.fill %none : !sums
  %total, %last = scf.for %i = %0 to %k step %128
      iter_args(%acc = %start, %stage = %0) -> (!sums, index) {
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
    %x = frag.load %as[%stage, 0, 0] : !a_stages -> !frag.tile<64x128xsi8>
    %y = frag.load %ws[%stage, 0, 0] transposed : !w_stages -> !frag.tile<128x64xsi8>
    %g = arith.divui %i, %128 : index
    %of_rows = frag.load %a_scale[%g, %row] masked : memref<?x?xf32> -> !frag.tile<64xf32>
    %of_columns = frag.load %w_scale[%g, %col] masked : memref<?x?xf32> -> !frag.tile<64xf32>
    %rows = frag.broadcast %of_rows along 1 : !frag.tile<64xf32> -> !sums
    %columns = frag.broadcast %of_columns along 0 : !frag.tile<64xf32> -> !sums
    %whole = frag.mma %x, %y, %zero : !frag.tile<64x128xsi8>, !frag.tile<128x64xsi8>, !whole -> !whole
    %s = frag.cast %whole : !whole -> !sums
    %next = frag.map %s, %rows, %columns, %acc : !sums, !sums, !sums, !sums -> !sums {
    ^bb0(%p: f32, %u: f32, %v: f32, %t: f32):
      %uv = arith.mulf %u, %v : f32
      %r = math.fma %p, %uv, %t : f32
      frag.yield %r : f32
    }
    %end = arith.cmpi eq, %stage, %2 : index
    %after = arith.addi %stage, %1 : index
    %turn = arith.select %end, %0, %after : index
    scf.yield %next, %turn : !sums, index
  }
  frag.wait 0
  %result = frag.cast %total : !sums -> !frag.tile<64x64xf16>
  frag.store %result, %c[%row, %col] masked : !frag.tile<64x64xf16>, memref<?x?xf16>
  func.return
}
