// Layer norm of rows of any length: y = (x - mean) rstd gamma + beta, rstd = 1 / sqrt(variance + eps).
// Three passes over a row: its sum, the sum of squares of what is left without the mean, the result.
//
//   fragir run examples/rows/layer_norm.mlir --entry layer_norm --size m=20,n=300 --arg eps=1e-5
//   fragir run examples/rows/layer_norm.mlir --entry layer_norm_backward --size m=20,n=300
//   fragir run examples/rows/layer_norm.mlir --entry layer_norm_weights --size m=40,n=300,parts=2

!part = !frag.tile<1x1024xf32>
!read = !frag.tile<1x1024xf16>
!rows = !frag.tile<1xf32>
!columns = !frag.tile<1024xf32>
!places = !frag.tile<1x1024xi32>
!block = !frag.tile<16x128xf32>
!half = !frag.tile<16x128xf16>
!height = !frag.tile<16xf32>
!width = !frag.tile<128xf32>
!line = !frag.tile<1x128xf32>

func.func @layer_norm(%x: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                      %gamma: memref<?xf32> {frag.sizes = ["n"]},
                      %beta: memref<?xf32> {frag.sizes = ["n"]},
                      %y: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                      %means: memref<?xf32> {frag.sizes = ["m"]},
                      %rstds: memref<?xf32> {frag.sizes = ["m"]},
                      %eps: f32)
    attributes {frag.grid = #frag.grid<m>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %f1 = arith.constant 1.0 : f32
  %f0 = arith.constant 0.0 : f32
  %bx = frag.block_id x
  %n = memref.dim %x, %c1 : memref<?x?xf16>
  %0 = arith.index_cast %n : index to i32
  %1 = arith.sitofp %0 : i32 to f32
  %count = arith.maximumf %1, %f1 : f32
  %zero = frag.fill %f0 : !part
  %sums = scf.for %i = %c0 to %n step %c1024 iter_args(%sums_1 = %zero) -> (!part) {
    %2 = frag.load %x[%bx, %i] masked : memref<?x?xf16> -> !read
    %3 = frag.cast %2 : !read -> !part
    %4 = frag.map %sums_1, %3 : !part, !part -> !part {
    ^bb0(%sums_2: f32, %5: f32):
      %6 = arith.addf %sums_2, %5 : f32
      frag.yield %6 : f32
    }
    scf.yield %4 : !part
  }
  %7 = frag.reduce add dim 1 %sums : !part -> !rows
  %mean = frag.map %7 : !rows -> !rows {
  ^bb0(%8: f32):
    %mean_1 = arith.divf %8, %count : f32
    frag.yield %mean_1 : f32
  }
  frag.store %mean, %means[%bx] masked : !rows, memref<?xf32>
  %place = frag.iota dim 1 : !places
  %squares = scf.for %i_1 = %c0 to %n step %c1024 iter_args(%squares_1 = %zero) -> (!part) {
    %9 = frag.load %x[%bx, %i_1] masked : memref<?x?xf16> -> !read
    %v = frag.cast %9 : !read -> !part
    %d = frag.broadcast %mean along 1 : !rows -> !part
    %10 = arith.subi %n, %i_1 : index
    %left = arith.index_cast %10 : index to i32
    %squares_2 = frag.map %place, %v, %d, %squares_1, %squares_1
        : !places, !part, !part, !part, !part -> !part {
    ^bb0(%place_1: i32, %v_1: f32, %d_1: f32, %squares_3: f32, %squares_4: f32):
      %11 = arith.cmpi slt, %place_1, %left : i32
      %d_2 = arith.subf %v_1, %d_1 : f32
      %12 = math.fma %d_2, %d_2, %squares_3 : f32
      %squares_5 = arith.select %11, %12, %squares_4 : f32
      frag.yield %squares_5 : f32
    }
    scf.yield %squares_2 : !part
  }
  %13 = frag.reduce add dim 1 %squares : !part -> !rows
  %rstd = frag.map %13 : !rows -> !rows {
  ^bb0(%14: f32):
    %15 = arith.divf %14, %count : f32
    %16 = arith.addf %15, %eps : f32
    %rstd_1 = math.rsqrt %16 : f32
    frag.yield %rstd_1 : f32
  }
  frag.store %rstd, %rstds[%bx] masked : !rows, memref<?xf32>
  scf.for %i_2 = %c0 to %n step %c1024 {
    %17 = frag.load %x[%bx, %i_2] masked : memref<?x?xf16> -> !read
    %v_2 = frag.cast %17 : !read -> !part
    %g = frag.load %gamma[%i_2] masked : memref<?xf32> -> !columns
    %bias = frag.load %beta[%i_2] masked : memref<?xf32> -> !columns
    %18 = frag.broadcast %mean along 1 : !rows -> !part
    %19 = frag.broadcast %rstd along 1 : !rows -> !part
    %r = frag.broadcast %g along 0 : !columns -> !part
    %r_1 = frag.broadcast %bias along 0 : !columns -> !part
    %r_2 = frag.map %v_2, %18, %19, %r, %r_1 : !part, !part, !part, !part, !part -> !part {
    ^bb0(%v_3: f32, %20: f32, %21: f32, %r_3: f32, %r_4: f32):
      %22 = arith.subf %v_3, %20 : f32
      %23 = arith.mulf %22, %21 : f32
      %r_5 = math.fma %23, %r_3, %r_4 : f32
      frag.yield %r_5 : f32
    }
    %24 = frag.cast %r_2 : !part -> !read
    frag.store %24, %y[%bx, %i_2] masked : !read, memref<?x?xf16>
  }
  func.return
}

// dx = rstd (g - mean of g - xhat mean of g xhat), g = dy gamma, xhat = (x - mean) rstd
func.func @layer_norm_backward(%x: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                               %gamma: memref<?xf32> {frag.sizes = ["n"]},
                               %means: memref<?xf32> {frag.sizes = ["m"]},
                               %rstds: memref<?xf32> {frag.sizes = ["m"]},
                               %dy: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                               %dx: memref<?x?xf16> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<m>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %f1 = arith.constant 1.0 : f32
  %f0 = arith.constant 0.0 : f32
  %bx = frag.block_id x
  %n = memref.dim %x, %c1 : memref<?x?xf16>
  %0 = arith.index_cast %n : index to i32
  %1 = arith.sitofp %0 : i32 to f32
  %count = arith.maximumf %1, %f1 : f32
  %2 = frag.load %means[%bx] masked : memref<?xf32> -> !rows
  %3 = frag.load %rstds[%bx] masked : memref<?xf32> -> !rows
  %zero = frag.fill %f0 : !part
  %sums, %products = scf.for %i = %c0 to %n step %c1024
      iter_args(%sums_1 = %zero, %products_1 = %zero) -> (!part, !part) {
    %4 = frag.load %x[%bx, %i] masked : memref<?x?xf16> -> !read
    %v = frag.cast %4 : !read -> !part
    %5 = frag.load %dy[%bx, %i] masked : memref<?x?xf16> -> !read
    %u = frag.cast %5 : !read -> !part
    %6 = frag.broadcast %2 along 1 : !rows -> !part
    %7 = frag.broadcast %3 along 1 : !rows -> !part
    %8 = frag.load %gamma[%i] masked : memref<?xf32> -> !columns
    %9 = frag.broadcast %8 along 0 : !columns -> !part
    %10 = frag.map %sums_1, %u, %9 : !part, !part, !part -> !part {
    ^bb0(%sums_2: f32, %u_1: f32, %11: f32):
      %12 = arith.mulf %u_1, %11 : f32
      %13 = arith.addf %sums_2, %12 : f32
      frag.yield %13 : f32
    }
    %products_2 = frag.map %u, %9, %v, %6, %7, %products_1
        : !part, !part, !part, !part, !part, !part -> !part {
    ^bb0(%u_2: f32, %14: f32, %v_1: f32, %15: f32, %16: f32, %products_3: f32):
      %17 = arith.mulf %u_2, %14 : f32
      %18 = arith.subf %v_1, %15 : f32
      %19 = arith.mulf %18, %16 : f32
      %products_4 = math.fma %17, %19, %products_3 : f32
      frag.yield %products_4 : f32
    }
    scf.yield %10, %products_2 : !part, !part
  }
  %20 = frag.reduce add dim 1 %sums : !part -> !rows
  %21 = frag.map %20 : !rows -> !rows {
  ^bb0(%22: f32):
    %23 = arith.divf %22, %count : f32
    frag.yield %23 : f32
  }
  %24 = frag.reduce add dim 1 %products : !part -> !rows
  %25 = frag.map %24 : !rows -> !rows {
  ^bb0(%26: f32):
    %27 = arith.divf %26, %count : f32
    frag.yield %27 : f32
  }
  scf.for %i_1 = %c0 to %n step %c1024 {
    %28 = frag.load %x[%bx, %i_1] masked : memref<?x?xf16> -> !read
    %v_2 = frag.cast %28 : !read -> !part
    %29 = frag.load %dy[%bx, %i_1] masked : memref<?x?xf16> -> !read
    %u_3 = frag.cast %29 : !read -> !part
    %30 = frag.broadcast %2 along 1 : !rows -> !part
    %31 = frag.broadcast %3 along 1 : !rows -> !part
    %32 = frag.load %gamma[%i_1] masked : memref<?xf32> -> !columns
    %33 = frag.broadcast %32 along 0 : !columns -> !part
    %34 = frag.broadcast %21 along 1 : !rows -> !part
    %35 = frag.broadcast %25 along 1 : !rows -> !part
    %r = frag.broadcast %3 along 1 : !rows -> !part
    %r_1 = frag.map %r, %u_3, %33, %34, %v_2, %30, %31, %35
        : !part, !part, !part, !part, !part, !part, !part, !part -> !part {
    ^bb0(%r_2: f32, %u_4: f32, %36: f32, %37: f32, %v_3: f32, %38: f32, %39: f32, %40: f32):
      %41 = arith.mulf %u_4, %36 : f32
      %42 = arith.subf %41, %37 : f32
      %43 = arith.subf %v_3, %38 : f32
      %44 = arith.mulf %43, %39 : f32
      %45 = arith.mulf %44, %40 : f32
      %46 = arith.subf %42, %45 : f32
      %r_3 = arith.mulf %r_2, %46 : f32
      frag.yield %r_3 : f32
    }
    %47 = frag.cast %r_1 : !part -> !read
    frag.store %47, %dx[%bx, %i_1] masked : !read, memref<?x?xf16>
  }
  func.return
}

// Sums for gamma and beta: block p of a column adds the rows 16 p ..., 16 (p + parts) ..., and so on.
// What is left, parts x n, is for column_sums.mlir.
func.func @layer_norm_weights(%x: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                              %means: memref<?xf32> {frag.sizes = ["m"]},
                              %rstds: memref<?xf32> {frag.sizes = ["m"]},
                              %dy: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                              %dgammas: memref<?x?xf32> {frag.sizes = ["parts", "n"]},
                              %dbetas: memref<?x?xf32> {frag.sizes = ["parts", "n"]})
    attributes {frag.grid = #frag.grid<n by 128, parts>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %f0 = arith.constant 0.0 : f32
  %bx = frag.block_id x
  %column = arith.muli %bx, %c128 : index
  %by = frag.block_id y
  %zero = frag.fill %f0 : !block
  %parts = memref.dim %dgammas, %c0 : memref<?x?xf32>
  %step = arith.muli %parts, %c16 : index
  %0 = arith.muli %by, %c16 : index
  %m = memref.dim %x, %c0 : memref<?x?xf16>
  %dgamma, %dbeta = scf.for %i = %0 to %m step %step
      iter_args(%dgamma_1 = %zero, %dbeta_1 = %zero) -> (!block, !block) {
    %1 = frag.load %x[%i, %column] masked : memref<?x?xf16> -> !half
    %v = frag.cast %1 : !half -> !block
    %2 = frag.load %dy[%i, %column] masked : memref<?x?xf16> -> !half
    %g = frag.cast %2 : !half -> !block
    %3 = frag.load %means[%i] masked : memref<?xf32> -> !height
    %4 = frag.load %rstds[%i] masked : memref<?xf32> -> !height
    %5 = frag.broadcast %3 along 1 : !height -> !block
    %6 = frag.broadcast %4 along 1 : !height -> !block
    %dgamma_2 = frag.map %g, %v, %5, %6, %dgamma_1 : !block, !block, !block, !block, !block -> !block {
    ^bb0(%g_1: f32, %v_1: f32, %7: f32, %8: f32, %dgamma_3: f32):
      %9 = arith.subf %v_1, %7 : f32
      %10 = arith.mulf %9, %8 : f32
      %dgamma_4 = math.fma %g_1, %10, %dgamma_3 : f32
      frag.yield %dgamma_4 : f32
    }
    %11 = frag.map %dbeta_1, %g : !block, !block -> !block {
    ^bb0(%dbeta_2: f32, %g_2: f32):
      %12 = arith.addf %dbeta_2, %g_2 : f32
      frag.yield %12 : f32
    }
    scf.yield %dgamma_2, %11 : !block, !block
  }
  %13 = frag.reduce add dim 0 %dgamma : !block -> !width
  %14 = frag.reshape %13 : !width -> !line
  frag.store %14, %dgammas[%by, %column] masked : !line, memref<?x?xf32>
  %15 = frag.reduce add dim 0 %dbeta : !block -> !width
  %16 = frag.reshape %15 : !width -> !line
  frag.store %16, %dbetas[%by, %column] masked : !line, memref<?x?xf32>
  func.return
}
