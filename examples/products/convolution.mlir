// y = the convolution of images with filters (kh, kw, c, o), as a product whose A is never laid out: the rows of A
// are places of y, and for each element of a filter a row is the pixel under it, or zero outside of the image:
// rows by frag.gather. Channels come last; all images' pixels are the rows of x, all places those of y. No size is
// a multiple of anything. The sizes below are two images of 9 x 7 pixels, with stride 1 and padding 1.
//
//   fragir run examples/products/convolution.mlir --size pixels=126,c=35,kh=3,kw=3,o=66,places=126
//     --arg height=9 --arg width=7 --arg stride=1 --arg padding=1

!sums = !frag.tile<64x64xf32>
!ints = !frag.tile<64xi32>
!stages_a = memref<2x64x32xf16, #frag.shared<swizzle = 64>>
!stages_b = memref<2x32x64xf16, #frag.shared<swizzle = 128>>

func.func @convolution(%x: memref<?x?xf16> {frag.sizes = ["pixels", "c"]},
                       %f: memref<?x?x?x?xf16> {frag.sizes = ["kh", "kw", "c", "o"]},
                       %y: memref<?x?xf16> {frag.sizes = ["places", "o"]},
                       %height: i32, %width: i32, %stride: i32, %padding: i32)
    attributes {frag.warps = array<i64: 2, 2>, frag.grid = #frag.grid<o by 64, places by 64>} {
  %by = frag.block_id y
  %c64 = arith.constant 64 : index
  %place = arith.muli %by, %c64 : index
  %bx = frag.block_id x
  %column = arith.muli %bx, %c64 : index
  %two = arith.constant 2 : i32
  %4 = arith.muli %padding, %two : i32
  %5 = arith.addi %height, %4 : i32
  %c0 = arith.constant 0 : index
  %kh = memref.dim %f, %c0 : memref<?x?x?x?xf16>
  %7 = arith.index_cast %kh : index to i32
  %8 = arith.subi %5, %7 : i32
  %9 = arith.floordivsi %8, %stride : i32
  %one = arith.constant 1 : i32
  %rows = arith.addi %9, %one : i32
  %11 = arith.muli %padding, %two : i32
  %12 = arith.addi %width, %11 : i32
  %c1 = arith.constant 1 : index
  %kw = memref.dim %f, %c1 : memref<?x?x?x?xf16>
  %14 = arith.index_cast %kw : index to i32
  %15 = arith.subi %12, %14 : i32
  %16 = arith.floordivsi %15, %stride : i32
  %cols = arith.addi %16, %one : i32
  %iota = frag.iota dim 0 : !ints
  %first = arith.index_cast %place : index to i32
  %at = frag.map %iota : !ints -> !ints {
  ^bb0(%19: i32):
    %at_1 = arith.addi %19, %first : i32
    frag.yield %at_1 : i32
  }
  %line = frag.map %at : !ints -> !ints {
  ^bb0(%at_2: i32):
    %20 = arith.floordivsi %at_2, %cols : i32
    frag.yield %20 : i32
  }
  %image = frag.map %line : !ints -> !ints {
  ^bb0(%line_1: i32):
    %21 = arith.floordivsi %line_1, %rows : i32
    frag.yield %21 : i32
  }
  %top = frag.map %line, %image : !ints, !ints -> !ints {
  ^bb0(%line_2: i32, %image_1: i32):
    %22 = arith.muli %image_1, %rows : i32
    %23 = arith.subi %line_2, %22 : i32
    %24 = arith.muli %23, %stride : i32
    %25 = arith.subi %24, %padding : i32
    frag.yield %25 : i32
  }
  %left = frag.map %at, %line : !ints, !ints -> !ints {
  ^bb0(%at_3: i32, %line_3: i32):
    %26 = arith.muli %line_3, %cols : i32
    %27 = arith.subi %at_3, %26 : i32
    %28 = arith.muli %27, %stride : i32
    %29 = arith.subi %28, %padding : i32
    frag.yield %29 : i32
  }
  %corner = frag.map %image, %top, %left : !ints, !ints, !ints -> !ints {
  ^bb0(%image_2: i32, %top_1: i32, %left_1: i32):
    %30 = arith.muli %image_2, %height : i32
    %31 = arith.addi %30, %top_1 : i32
    %32 = arith.muli %31, %width : i32
    %33 = arith.addi %32, %left_1 : i32
    frag.yield %33 : i32
  }
  %a_tile = memref.alloc() : !stages_a
  %b_tile = memref.alloc() : !stages_b
  %none = arith.constant 0.000000e+00 : f32
  %zero = frag.fill %none : !sums
  %acc, %stage = scf.for %i = %c0 to %kh step %c1 iter_args(%acc_1 = %zero, %stage_1 = %c0) -> (!sums, index) {
    %dy = arith.index_cast %i : index to i32
    %acc_2, %stage_2 = scf.for %i_1 = %c0 to %kw step %c1 iter_args(%acc_3 = %acc_1, %stage_3 = %stage_1) -> (!sums, index) {
      %dx = arith.index_cast %i_1 : index to i32
      %35 = arith.muli %dy, %width : i32
      %shift = arith.addi %35, %dx : i32
      %pixels = frag.map %corner : !ints -> !ints {
      ^bb0(%corner_1: i32):
        %36 = arith.addi %corner_1, %shift : i32
        frag.yield %36 : i32
      }
      %inside = frag.map %top, %left : !ints, !ints -> !frag.tile<64xi1> {
      ^bb0(%top_2: i32, %left_2: i32):
        %y_1 = arith.addi %top_2, %dy : i32
        %x_1 = arith.addi %left_2, %dx : i32
        %zero_i = arith.constant 0 : i32
        %39 = arith.cmpi sge, %y_1, %zero_i : i32
        %40 = arith.cmpi slt, %y_1, %height : i32
        %41 = arith.andi %39, %40 : i1
        %42 = arith.cmpi sge, %x_1, %zero_i : i32
        %43 = arith.andi %41, %42 : i1
        %44 = arith.cmpi slt, %x_1, %width : i32
        %45 = arith.andi %43, %44 : i1
        frag.yield %45 : i1
      }
      %c = memref.dim %x, %c1 : memref<?x?xf16>
      %c32 = arith.constant 32 : index
      %acc_4, %stage_4 = scf.for %i_2 = %c0 to %c step %c32 iter_args(%acc_5 = %acc_3, %stage_5 = %stage_3) -> (!sums, index) {
        frag.copy async %f[%i, %i_1, %i_2, %column] to %b_tile[%stage_5] masked : memref<?x?x?x?xf16> to !stages_b
        frag.commit
        %a = frag.gather %x[%pixels, %i_2] masked where %inside : memref<?x?xf16>, !ints, index where !frag.tile<64xi1> -> !frag.tile<64x32xf16>
        frag.store %a, %a_tile[%stage_5, 0, 0] : !frag.tile<64x32xf16>, !stages_a
        frag.wait 0
        frag.barrier
        %a_1 = frag.load %a_tile[%stage_5, 0, 0] : !stages_a -> !frag.tile<64x32xf16>
        %b_1 = frag.load %b_tile[%stage_5, 0, 0] : !stages_b -> !frag.tile<32x64xf16>
        %acc_next = frag.mma %a_1, %b_1, %acc_5 : !frag.tile<64x32xf16>, !frag.tile<32x64xf16>, !sums -> !sums
        %stage_next = arith.subi %c1, %stage_5 : index
        scf.yield %acc_next, %stage_next : !sums, index
      }
      scf.yield %acc_4, %stage_4 : !sums, index
    }
    scf.yield %acc_2, %stage_2 : !sums, index
  }
  %out = frag.cast %acc : !sums -> !frag.tile<64x64xf16>
  frag.store %out, %y[%place, %column] masked : !frag.tile<64x64xf16>, memref<?x?xf16>
  func.return
}
