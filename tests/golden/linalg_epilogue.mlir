// RUN: -p convert-linalg-to-frag
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#col = affine_map<(m, n) -> (n)>
#row = affine_map<(m, n) -> (m)>
#col1 = affine_map<(m, n) -> (0, n)>
#row1 = affine_map<(m, n) -> (m, 0)>
#one = affine_map<(m, n) -> (0)>
#none = affine_map<(m, n) -> ()>
// In place.
func.func @relu(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%c : memref<?x?xf32>) {
  ^bb0(%v: f32):
    %w = arith.maximumf %v, %zero : f32
    linalg.yield %w : f32
  }
  func.return
}
// One value a column, one a row as a matrix of one column, one a matrix, one for all.
func.func @bias(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %u: memref<?xf32>, %q: memref<?x1xf32>, %w: memref<1x?xf16>, %o: memref<1xf32>, %r: memref<?x?xbf16>, %alpha: f32) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #col, #row1, #col1, #one, #id, #none, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %u, %q, %w, %o, %r, %alpha : memref<?x?xf32>, memref<?xf32>, memref<?x1xf32>, memref<1x?xf16>, memref<1xf32>, memref<?x?xbf16>, f32) outs(%c : memref<?x?xf32>) {
  ^bb0(%v: f32, %u1: f32, %v1: f32, %w1: f16, %o1: f32, %r1: bf16, %al: f32, %old: f32):
    %0 = arith.addf %v, %u1 : f32
    %1 = arith.mulf %0, %v1 : f32
    %2 = arith.extf %w1 : f16 to f32
    %3 = arith.addf %1, %2 : f32
    %4 = arith.mulf %3, %o1 : f32
    %5 = arith.extf %r1 : bf16 to f32
    %6 = arith.addf %4, %5 : f32
    %7 = arith.mulf %6, %al : f32
    linalg.yield %7 : f32
  }
  func.return
}
// One value a row as a vector: a matrix of one column.
func.func @row_vector(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %u: memref<?xf32>, %q: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %u, %q : memref<?x?xf32>, memref<?xf32>, memref<64xf32>) outs(%c : memref<?x?xf32>) {
  ^bb0(%v: f32, %u1: f32, %v1: f32, %old: f32):
    %0 = arith.addf %v, %u1 : f32
    %1 = arith.mulf %0, %v1 : f32
    linalg.yield %1 : f32
  }
  func.return
}
// The buffer of the sum disappears; the old value of the result is read.
func.func @alpha_beta(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %alpha: f32, %beta: f32) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf16>
  %n = memref.dim %b, %c1 : memref<?x?xf16>
  %tmp = memref.alloc(%m, %n) : memref<?x?xf32>
  linalg.fill ins(%zero : f32) outs(%tmp : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%tmp : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%tmp : memref<?x?xf32>) outs(%c : memref<?x?xf32>) {
  ^bb0(%v: f32, %old: f32):
    %0 = arith.mulf %v, %alpha : f32
    %1 = arith.mulf %old, %beta : f32
    %2 = arith.addf %0, %1 : f32
    linalg.yield %2 : f32
  }
  memref.dealloc %tmp : memref<?x?xf32>
  func.return
}
// Rounding alone needs no epilogue.
func.func @rounded(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf16>
  %n = memref.dim %b, %c1 : memref<?x?xf16>
  %tmp = memref.alloc(%m, %n) : memref<?x?xf32>
  linalg.fill ins(%zero : f32) outs(%tmp : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%tmp : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%tmp : memref<?x?xf32>) outs(%c : memref<?x?xf16>) {
  ^bb0(%v: f32, %old: f16):
    %0 = arith.truncf %v : f32 to f16
    linalg.yield %0 : f16
  }
  func.return
}
// Several operations and buffers; a size is asked of a buffer.
func.func @chain(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>, %u: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf16>
  %n = memref.dim %b, %c1 : memref<?x?xf16>
  %tmp = memref.alloc(%m, %n) : memref<?x?xf32>
  linalg.fill ins(%zero : f32) outs(%tmp : memref<?x?xf32>)
  %m1 = memref.dim %tmp, %c0 : memref<?x?xf32>
  %t1 = memref.alloc(%m1, %n) : memref<?x?xf32>
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%tmp : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%tmp, %u : memref<?x?xf32>, memref<?xf32>) outs(%t1 : memref<?x?xf32>) {
  ^bb0(%v: f32, %u1: f32, %old: f32):
    %0 = arith.addf %v, %u1 : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%t1 : memref<?x?xf32>) {
  ^bb0(%v: f32):
    %0 = arith.maximumf %v, %zero : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t1, %tmp, %u : memref<?x?xf32>, memref<?x?xf32>, memref<?xf32>) outs(%c : memref<?x?xf16>) {
  ^bb0(%v: f32, %w: f32, %u1: f32, %old: f16):
    %0 = arith.mulf %v, %w : f32
    %1 = arith.subf %0, %u1 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  }
  func.return
}
// Named operations and copies are elementwise too.
func.func @named(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %d: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf16>
  %n = memref.dim %b, %c1 : memref<?x?xf16>
  %tmp = memref.alloc(%m, %n) : memref<?x?xf32>
  linalg.fill ins(%zero : f32) outs(%tmp : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%tmp : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.add ins(%tmp, %d : memref<?x?xf32>, memref<?x?xf32>) outs(%tmp : memref<?x?xf32>)
  linalg.exp ins(%tmp : memref<?x?xf32>) outs(%tmp : memref<?x?xf32>)
  "memref.copy"(%tmp, %c) : (memref<?x?xf32>, memref<?x?xf32>) -> ()
  func.return
}
// The sum starts from a copy of another matrix.
func.func @copied_before(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %d: memref<?x?xf32>) {
  "memref.copy"(%d, %c) : (memref<?x?xf32>, memref<?x?xf32>) -> ()
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  func.return
}
// Loops that run over columns first.
func.func @transposed_loops(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %u: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [affine_map<(n, m) -> (m, n)>, affine_map<(n, m) -> (n)>, affine_map<(n, m) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%c, %u : memref<?x?xf32>, memref<?xf32>) outs(%c : memref<?x?xf32>) {
  ^bb0(%v: f32, %u1: f32, %old: f32):
    %0 = arith.addf %v, %u1 : f32
    linalg.yield %0 : f32
  }
  func.return
}
// What the result does not need is not read.
func.func @unused(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %u: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf16>
  %n = memref.dim %b, %c1 : memref<?x?xf16>
  %tmp = memref.alloc(%m, %n) : memref<?x?xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %s: f32):
    %x1 = arith.extf %x : f16 to f32
    %y1 = arith.extf %y : f16 to f32
    %p = arith.mulf %x1, %y1 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %u : memref<?x?xf32>, memref<?xf32>) outs(%tmp : memref<?x?xf32>) {
  ^bb0(%v: f32, %u1: f32, %old: f32):
    %0 = arith.addf %v, %u1 : f32
    linalg.yield %0 : f32
  }
  func.return
}
