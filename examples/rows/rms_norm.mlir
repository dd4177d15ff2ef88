// RMS norm of rows of any length: y = x rstd gamma, rstd = 1 / sqrt(mean of x^2 + eps), and gradients.
//
//   fragir run examples/rows/rms_norm.mlir --entry rms_norm --size m=20,n=300 --arg eps=1e-5
//   fragir run examples/rows/rms_norm.mlir --entry rms_norm_backward --size m=20,n=300
//   fragir run examples/rows/rms_norm.mlir --entry rms_norm_weights --size m=40,n=300,parts=2

!part = !frag.tile<1x1024xf32>
!read = !frag.tile<1x1024xbf16>
!rows = !frag.tile<1xf32>
!columns = !frag.tile<1024xf32>
!block = !frag.tile<16x128xf32>
!half = !frag.tile<16x128xbf16>
!height = !frag.tile<16xf32>
!width = !frag.tile<128xf32>
!line = !frag.tile<1x128xf32>

func.func @rms_norm(%x: memref<?x?xbf16> {frag.sizes = ["m", "n"]},
                    %gamma: memref<?xf32> {frag.sizes = ["n"]},
                    %y: memref<?x?xbf16> {frag.sizes = ["m", "n"]},
                    %rstds: memref<?xf32> {frag.sizes = ["m"]},
                    %eps: f32)
    attributes {frag.grid = #frag.grid<m>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %f1 = arith.constant 1.0 : f32
  %f0 = arith.constant 0.0 : f32
  %bx = frag.block_id x
  %n = memref.dim %x, %c1 : memref<?x?xbf16>
  %0 = arith.index_cast %n : index to i32
  %1 = arith.sitofp %0 : i32 to f32
  %count = arith.maximumf %1, %f1 : f32
  %2 = frag.fill %f0 : !part
  %squares = scf.for %i = %c0 to %n step %c1024 iter_args(%squares_1 = %2) -> (!part) {
    %3 = frag.load %x[%bx, %i] masked : memref<?x?xbf16> -> !read
    %v = frag.cast %3 : !read -> !part
    %squares_2 = frag.map %v, %squares_1 : !part, !part -> !part {
    ^bb0(%v_1: f32, %squares_3: f32):
      %squares_4 = math.fma %v_1, %v_1, %squares_3 : f32
      frag.yield %squares_4 : f32
    }
    scf.yield %squares_2 : !part
  }
  %4 = frag.reduce add dim 1 %squares : !part -> !rows
  %rstd = frag.map %4 : !rows -> !rows {
  ^bb0(%5: f32):
    %6 = arith.divf %5, %count : f32
    %7 = arith.addf %6, %eps : f32
    %rstd_1 = math.rsqrt %7 : f32
    frag.yield %rstd_1 : f32
  }
  frag.store %rstd, %rstds[%bx] masked : !rows, memref<?xf32>
  scf.for %i_1 = %c0 to %n step %c1024 {
    %8 = frag.load %x[%bx, %i_1] masked : memref<?x?xbf16> -> !read
    %v_2 = frag.cast %8 : !read -> !part
    %9 = frag.broadcast %rstd along 1 : !rows -> !part
    %10 = frag.load %gamma[%i_1] masked : memref<?xf32> -> !columns
    %r = frag.broadcast %10 along 0 : !columns -> !part
    %r_1 = frag.map %v_2, %9, %r : !part, !part, !part -> !part {
    ^bb0(%v_3: f32, %11: f32, %r_2: f32):
      %12 = arith.mulf %v_3, %11 : f32
      %r_3 = arith.mulf %12, %r_2 : f32
      frag.yield %r_3 : f32
    }
    %13 = frag.cast %r_1 : !part -> !read
    frag.store %13, %y[%bx, %i_1] masked : !read, memref<?x?xbf16>
  }
  func.return
}

// dx = rstd (g - xhat mean of g xhat), g = dy gamma, xhat = x rstd
func.func @rms_norm_backward(%x: memref<?x?xbf16> {frag.sizes = ["m", "n"]},
                             %gamma: memref<?xf32> {frag.sizes = ["n"]},
                             %rstds: memref<?xf32> {frag.sizes = ["m"]},
                             %dy: memref<?x?xbf16> {frag.sizes = ["m", "n"]},
                             %dx: memref<?x?xbf16> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<m>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %f1 = arith.constant 1.0 : f32
  %f0 = arith.constant 0.0 : f32
  %bx = frag.block_id x
  %n = memref.dim %x, %c1 : memref<?x?xbf16>
  %0 = arith.index_cast %n : index to i32
  %1 = arith.sitofp %0 : i32 to f32
  %count = arith.maximumf %1, %f1 : f32
  %2 = frag.load %rstds[%bx] masked : memref<?xf32> -> !rows
  %3 = frag.fill %f0 : !part
  %products = scf.for %i = %c0 to %n step %c1024 iter_args(%products_1 = %3) -> (!part) {
    %4 = frag.load %x[%bx, %i] masked : memref<?x?xbf16> -> !read
    %v = frag.cast %4 : !read -> !part
    %5 = frag.load %dy[%bx, %i] masked : memref<?x?xbf16> -> !read
    %u = frag.cast %5 : !read -> !part
    %6 = frag.load %gamma[%i] masked : memref<?xf32> -> !columns
    %g = frag.broadcast %6 along 0 : !columns -> !part
    %7 = frag.broadcast %2 along 1 : !rows -> !part
    %products_2 = frag.map %u, %g, %v, %7, %products_1 : !part, !part, !part, !part, !part -> !part {
    ^bb0(%u_1: f32, %g_1: f32, %v_1: f32, %8: f32, %products_3: f32):
      %g_2 = arith.mulf %u_1, %g_1 : f32
      %9 = arith.mulf %v_1, %8 : f32
      %products_4 = math.fma %g_2, %9, %products_3 : f32
      frag.yield %products_4 : f32
    }
    scf.yield %products_2 : !part
  }
  %10 = frag.reduce add dim 1 %products : !part -> !rows
  %11 = frag.map %10 : !rows -> !rows {
  ^bb0(%12: f32):
    %13 = arith.divf %12, %count : f32
    frag.yield %13 : f32
  }
  scf.for %i_1 = %c0 to %n step %c1024 {
    %14 = frag.load %x[%bx, %i_1] masked : memref<?x?xbf16> -> !read
    %v_2 = frag.cast %14 : !read -> !part
    %15 = frag.load %dy[%bx, %i_1] masked : memref<?x?xbf16> -> !read
    %u_2 = frag.cast %15 : !read -> !part
    %16 = frag.load %gamma[%i_1] masked : memref<?xf32> -> !columns
    %g_3 = frag.broadcast %16 along 0 : !columns -> !part
    %17 = frag.broadcast %2 along 1 : !rows -> !part
    %18 = frag.broadcast %11 along 1 : !rows -> !part
    %r = frag.broadcast %2 along 1 : !rows -> !part
    %r_1 = frag.map %r, %u_2, %g_3, %v_2, %17, %18 : !part, !part, !part, !part, !part, !part -> !part {
    ^bb0(%r_2: f32, %u_3: f32, %g_4: f32, %v_3: f32, %19: f32, %20: f32):
      %g_5 = arith.mulf %u_3, %g_4 : f32
      %21 = arith.mulf %v_3, %19 : f32
      %22 = arith.mulf %21, %20 : f32
      %23 = arith.subf %g_5, %22 : f32
      %r_3 = arith.mulf %r_2, %23 : f32
      frag.yield %r_3 : f32
    }
    %24 = frag.cast %r_1 : !part -> !read
    frag.store %24, %dx[%bx, %i_1] masked : !read, memref<?x?xbf16>
  }
  func.return
}

// Sums for gamma: block p of a column adds the rows 16 p ..., 16 (p + parts) ..., and so on. What is
// left, parts x n, is for column_sums.mlir.
func.func @rms_norm_weights(%x: memref<?x?xbf16> {frag.sizes = ["m", "n"]},
                            %rstds: memref<?xf32> {frag.sizes = ["m"]},
                            %dy: memref<?x?xbf16> {frag.sizes = ["m", "n"]},
                            %dgammas: memref<?x?xf32> {frag.sizes = ["parts", "n"]})
    attributes {frag.grid = #frag.grid<n by 128, parts>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %f0 = arith.constant 0.0 : f32
  %bx = frag.block_id x
  %column = arith.muli %bx, %c128 : index
  %by = frag.block_id y
  %parts = memref.dim %dgammas, %c0 : memref<?x?xf32>
  %step = arith.muli %parts, %c16 : index
  %zero = frag.fill %f0 : !block
  %0 = arith.muli %by, %c16 : index
  %m = memref.dim %x, %c0 : memref<?x?xbf16>
  %dgamma = scf.for %i = %0 to %m step %step iter_args(%dgamma_1 = %zero) -> (!block) {
    %1 = frag.load %x[%i, %column] masked : memref<?x?xbf16> -> !half
    %v = frag.cast %1 : !half -> !block
    %2 = frag.load %dy[%i, %column] masked : memref<?x?xbf16> -> !half
    %g = frag.cast %2 : !half -> !block
    %3 = frag.load %rstds[%i] masked : memref<?xf32> -> !height
    %4 = frag.broadcast %3 along 1 : !height -> !block
    %dgamma_2 = frag.map %g, %v, %4, %dgamma_1 : !block, !block, !block, !block -> !block {
    ^bb0(%g_1: f32, %v_1: f32, %5: f32, %dgamma_3: f32):
      %6 = arith.mulf %v_1, %5 : f32
      %dgamma_4 = math.fma %g_1, %6, %dgamma_3 : f32
      frag.yield %dgamma_4 : f32
    }
    scf.yield %dgamma_2 : !block
  }
  %7 = frag.reduce add dim 0 %dgamma : !block -> !width
  %8 = frag.reshape %7 : !width -> !line
  frag.store %8, %dgammas[%by, %column] masked : !line, memref<?x?xf32>
  func.return
}
