// Stream-K: six blocks share all steps along K of all tiles of C evenly, each beginning and ending anywhere
// within a tile. What a block has of a tile is added to C by atomics; blocks never wait for each other.
//
//   fragir run examples/products/stream_k.mlir --size m=70,n=130,k=101

!sums = !frag.tile<64x64xf32>

func.func @stream_k(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
                    %b: memref<?x?xf16> {frag.sizes = ["k", "n"]},
                    %c: memref<?x?xf32> {frag.sizes = ["m", "n"]})
    attributes {frag.warps = array<i64: 2, 2>, frag.grid = #frag.grid<6>} {
  %a_tile = memref.alloc() : memref<2x64x32xf16, #frag.shared<swizzle = 64>>
  %b_tile = memref.alloc() : memref<2x32x64xf16, #frag.shared<swizzle = 128>>
  %0 = arith.constant 1 : index
  %k = memref.dim %a, %0 : memref<?x?xf16>
  %1 = arith.constant 32 : index
  %2 = arith.addi %k, %1 : index
  %3 = arith.subi %2, %0 : index
  %steps = arith.divui %3, %1 : index
  %n = memref.dim %b, %0 : memref<?x?xf16>
  %4 = arith.constant 64 : index
  %5 = arith.addi %n, %4 : index
  %6 = arith.subi %5, %0 : index
  %across = arith.divui %6, %4 : index
  %7 = arith.constant 0 : index
  %m = memref.dim %a, %7 : memref<?x?xf16>
  %8 = arith.addi %m, %4 : index
  %9 = arith.subi %8, %0 : index
  %down = arith.divui %9, %4 : index
  %10 = arith.muli %steps, %across : index
  %11 = arith.muli %10, %down : index
  %12 = arith.constant 6 : index
  %13 = arith.addi %11, %12 : index
  %14 = arith.subi %13, %0 : index
  %share = arith.divui %14, %12 : index
  %bx = frag.block_id x
  %first = arith.muli %bx, %share : index
  %15 = arith.addi %first, %share : index
  %16 = arith.muli %steps, %across : index
  %17 = arith.muli %16, %down : index
  %last = arith.minsi %15, %17 : index
  %step = scf.while (%step_1 = %first) : (index) -> index {
    %18 = arith.cmpi slt, %step_1, %last : index
    scf.condition(%18) %step_1 : index
  } do {
  ^bb0(%step_2: index):
    %19 = arith.divui %step_2, %steps : index
    %20 = arith.remui %step_2, %steps : index
    %21 = arith.subi %last, %step_2 : index
    %22 = arith.addi %20, %21 : index
    %end = arith.minsi %22, %steps : index
    %23 = arith.divui %19, %across : index
    %24 = arith.muli %23, %4 : index
    %25 = arith.remui %19, %across : index
    %26 = arith.muli %25, %4 : index
    %27 = arith.muli %20, %1 : index
    frag.copy async %a[%24, %27] to %a_tile[0] masked : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
    %28 = arith.muli %20, %1 : index
    frag.copy async %b[%28, %26] to %b_tile[0] masked : memref<?x?xf16> to memref<2x32x64xf16, #frag.shared<swizzle = 128>>
    frag.commit
    %29 = arith.constant 0.000000e+00 : f32
    %30 = frag.fill %29 : !sums
    %acc, %stage = scf.for %i = %20 to %end step %0 iter_args(%acc_1 = %30, %stage_1 = %7) -> (!sums, index) {
      frag.wait 0
      frag.barrier
      %31 = arith.subi %0, %stage_1 : index
      %32 = arith.addi %i, %0 : index
      %33 = arith.muli %32, %1 : index
      frag.copy async %a[%24, %33] to %a_tile[%31] masked : memref<?x?xf16> to memref<2x64x32xf16, #frag.shared<swizzle = 64>>
      %34 = arith.muli %32, %1 : index
      frag.copy async %b[%34, %26] to %b_tile[%31] masked : memref<?x?xf16> to memref<2x32x64xf16, #frag.shared<swizzle = 128>>
      frag.commit
      %x = frag.load %a_tile[%stage_1, 0, 0] : memref<2x64x32xf16, #frag.shared<swizzle = 64>> -> !frag.tile<64x32xf16>
      %y = frag.load %b_tile[%stage_1, 0, 0] : memref<2x32x64xf16, #frag.shared<swizzle = 128>> -> !frag.tile<32x64xf16>
      %acc_2 = frag.mma %x, %y, %acc_1 : !frag.tile<64x32xf16>, !frag.tile<32x64xf16>, !sums -> !sums
      %stage_2 = arith.subi %0, %stage_1 : index
      scf.yield %acc_2, %stage_2 : !sums, index
    }
    frag.wait 0
    frag.barrier
    frag.atomic add %acc, %c[%24, %26] masked : !sums, memref<?x?xf32>, index, index
    %35 = arith.subi %end, %20 : index
    %step_3 = arith.addi %step_2, %35 : index
    scf.yield %step_3 : index
  }
  func.return
}
