// W4A16 of few rows, as a model answers token by token: each of 8 blocks adds up a part of K for 16 x
// 128 of C, writes its sums to %parts, and the last one of a tile to come adds them up in their order.
// Weights lie as of w4a16.mlir. @decode is of the host: it allocates %parts and %counts at each call.
//
//   fragir run examples/quantised/w4a16_few.mlir --size m=5,n=136,k=520,packed=544,groups=9

!halves = memref<?x?xf16>
!weights = memref<?x?xsi4>
!parts = memref<8x?x?xf32>
!counts = memref<?x?xi32>
!a_stages = memref<4x16x64xf16, #frag.shared<swizzle = 128>>
!w_stages = memref<4x128x64xsi4, #frag.shared<swizzle = 32>>
!sums = !frag.tile<16x128xf32>

func.func @decode(%a: !halves {frag.sizes = ["m", "k"]}, %w: !weights {frag.sizes = ["n", "packed"]},
                  %scale: !halves {frag.sizes = ["groups", "n"]}, %c: !halves {frag.sizes = ["m", "n"]})
    attributes {frag.host} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %16 = arith.constant 16 : index
  %128 = arith.constant 128 : index
  %m = memref.dim %c, %0 : !halves
  %n = memref.dim %c, %1 : !halves
  %rows = arith.ceildivsi %m, %16 : index
  %columns = arith.ceildivsi %n, %128 : index
  %parts = memref.alloc(%m, %n) : !parts
  %counts = memref.alloc(%rows, %columns) : !counts
  frag.launch @zeros(%counts) : !counts
  frag.launch @w4a16_few(%a, %w, %scale, %c, %parts, %counts) : !halves, !weights, !halves, !halves, !parts, !counts
  func.return
}

func.func @zeros(%counts: !counts {frag.sizes = ["rows", "columns"]})
    attributes {frag.warps = array<i64: 1, 1>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %rows = memref.dim %counts, %0 : !counts
  %columns = memref.dim %counts, %1 : !counts
  frag.for_tiles (%i, %j) of (%rows, %columns) by (8, 32) {
    %nothing = arith.constant 0 : i32
    %zero = frag.fill %nothing : !frag.tile<8x32xi32>
    frag.store %zero, %counts[%i, %j] masked : !frag.tile<8x32xi32>, !counts
  }
  func.return
}

func.func @w4a16_few(%a: !halves {frag.sizes = ["m", "k"]}, %w: !weights {frag.sizes = ["n", "packed"]},
                     %scale: !halves {frag.sizes = ["groups", "n"]}, %c: !halves {frag.sizes = ["m", "n"]},
                     %parts: !parts {frag.sizes = ["8", "m", "n"]},
                     %counts: !counts {frag.sizes = ["rows", "columns"]})
    attributes {frag.warps = array<i64: 1, 4>, frag.divisible = {packed = 32}} {
  %a_stages = memref.alloc() : !a_stages
  %w_stages = memref.alloc() : !w_stages
  %0 = arith.constant 0 : index
  %m = memref.dim %a, %0 : !halves
  %n = memref.dim %w, %0 : !weights
  %1 = arith.constant 1 : index
  %k = memref.dim %a, %1 : !halves
  frag.for_tiles (%row, %col) along (%from, %to, %part, %parts_1) of (%m, %n, %k) by (16, 128, 64) split 8 {
    %2 = arith.addi %from, %0 : index
    %3 = arith.cmpi slt, %2, %to : index
    scf.if %3 {
      %4 = arith.addi %from, %0 : index
      frag.copy async %a[%row, %4] to %a_stages[0] masked : !halves to !a_stages
      frag.copy async %w[%col, %4] to %w_stages[0] masked : !weights to !w_stages
    }
    frag.commit
    %5 = arith.constant 64 : index
    %6 = arith.addi %from, %5 : index
    %7 = arith.cmpi slt, %6, %to : index
    scf.if %7 {
      %8 = arith.addi %from, %5 : index
      frag.copy async %a[%row, %8] to %a_stages[1] masked : !halves to !a_stages
      frag.copy async %w[%col, %8] to %w_stages[1] masked : !weights to !w_stages
    }
    frag.commit
    %9 = arith.constant 128 : index
    %10 = arith.addi %from, %9 : index
    %11 = arith.cmpi slt, %10, %to : index
    scf.if %11 {
      %12 = arith.addi %from, %9 : index
      frag.copy async %a[%row, %12] to %a_stages[2] masked : !halves to !a_stages
      frag.copy async %w[%col, %12] to %w_stages[2] masked : !weights to !w_stages
    }
    frag.commit
    %13 = arith.constant 0.0 : f32
    %zero = frag.fill %13 : !sums
    %acc, %stage = scf.for %i = %from to %to step %5 iter_args(%acc_1 = %zero, %stage_1 = %0) -> (!sums, index) {
      frag.wait 2
      frag.barrier
      %14 = arith.constant 192 : index
      %ahead = arith.addi %i, %14 : index
      %15 = arith.cmpi slt, %ahead, %to : index
      scf.if %15 {
        %16 = arith.cmpi eq, %stage_1, %0 : index
        %17 = arith.subi %stage_1, %1 : index
        %18 = arith.constant 3 : index
        %19 = arith.select %16, %18, %17 : index
        frag.copy async %a[%row, %ahead] to %a_stages[%19] masked : !halves to !a_stages
        frag.copy async %w[%col, %ahead] to %w_stages[%19] masked : !weights to !w_stages
      }
      frag.commit
      %x = frag.load %a_stages[%stage_1, 0, 0] : !a_stages -> !frag.tile<16x64xf16>
      %held = frag.load %w_stages[%stage_1, 0, 0] : !w_stages -> !frag.tile<128x64xsi4>
      %20 = frag.reshape %held : !frag.tile<128x64xsi4> -> !frag.tile<256x4x2x4xsi4>
      %21 = frag.transpose %20 [0, 3, 1, 2] : !frag.tile<256x4x2x4xsi4> -> !frag.tile<256x4x4x2xsi4>
      %22 = frag.reshape %21 : !frag.tile<256x4x4x2xsi4> -> !frag.tile<128x64xsi4>
      %y = frag.transpose %22 [1, 0] : !frag.tile<128x64xsi4> -> !frag.tile<64x128xsi4>
      %23 = frag.cast %y : !frag.tile<64x128xsi4> -> !frag.tile<64x128xf16>
      %sums = frag.mma %x, %23, %zero : !frag.tile<16x64xf16>, !frag.tile<64x128xf16>, !sums -> !sums
      %24 = arith.divui %i, %5 : index
      %group = frag.load %scale[%24, %col] masked : !halves -> !frag.tile<128xf16>
      %25 = frag.cast %group : !frag.tile<128xf16> -> !frag.tile<128xf32>
      %26 = frag.broadcast %25 along 0 : !frag.tile<128xf32> -> !sums
      %acc_2 = frag.map %sums, %26, %acc_1 : !sums, !sums, !sums -> !sums {
      ^bb0(%sums_1: f32, %27: f32, %acc_3: f32):
        %acc_4 = math.fma %sums_1, %27, %acc_3 : f32
        frag.yield %acc_4 : f32
      }
      %28 = arith.constant 3 : index
      %29 = arith.cmpi eq, %stage_1, %28 : index
      %30 = arith.addi %stage_1, %1 : index
      %stage_2 = arith.select %29, %0, %30 : index
      scf.yield %acc_2, %stage_2 : !sums, index
    }
    frag.wait 0
    frag.store %acc, %parts[%part, %row, %col] masked : !sums, !parts
    %31 = arith.constant 16 : index
    %32 = arith.divui %row, %31 : index
    %33 = arith.divui %col, %9 : index
    %last = frag.arrive %counts[%32, %33] of %parts_1 : !counts
    scf.if %last {
      %first = frag.load %parts[0, %row, %col] masked : !parts -> !sums
      %acc_5 = scf.for %i_1 = %1 to %parts_1 step %1 iter_args(%acc_6 = %first) -> (!sums) {
        %34 = frag.load %parts[%i_1, %row, %col] masked : !parts -> !sums
        %35 = frag.map %acc_6, %34 : !sums, !sums -> !sums {
        ^bb0(%acc_7: f32, %36: f32):
          %37 = arith.addf %acc_7, %36 : f32
          frag.yield %37 : f32
        }
        scf.yield %35 : !sums
      }
      %38 = frag.cast %acc_5 : !sums -> !frag.tile<16x128xf16>
      frag.store %38, %c[%row, %col] masked : !frag.tile<16x128xf16>, !halves
    }
  }
  func.return
}
