// RUN: -p linalg-tile
// Two operations of one kernel: a transposed operand, one value a row, one a column; a buffer in between.
#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
#r = affine_map<(i, j) -> (i)>
#c = affine_map<(i, j) -> (j)>
func.func @f(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %u: memref<?xf32>, %v: memref<?xf16>, %o: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf32>
  %n = memref.dim %a, %c1 : memref<?x?xf32>
  %s = memref.alloc(%m, %n) : memref<?x?xf32>
  linalg.generic {indexing_maps = [#id, #t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%s : memref<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %old: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  }
  linalg.generic {indexing_maps = [#id, #r, #c, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s, %u, %v : memref<?x?xf32>, memref<?xf32>, memref<?xf16>) outs(%o : memref<?x?xf32>) {
  ^bb0(%x: f32, %p: f32, %q: f16, %old: f32):
    %w = arith.extf %q : f16 to f32
    %y = arith.mulf %x, %p : f32
    %z = arith.addf %y, %w : f32
    linalg.yield %z : f32
  }
  func.return
}
// Three dimensions that lie behind each other are one.
func.func @flat(%a: memref<4x16x32xf16>, %o: memref<4x16x32xf16>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : memref<4x16x32xf16>) outs(%o : memref<4x16x32xf16>) {
  ^bb0(%x: f16, %old: f16):
    %y = arith.negf %x : f16
    linalg.yield %y : f16
  }
  func.return
}
