// RUN: -p linalg-dispatch
// Two products with what follows the first, each a kernel; a size's name goes with the temporary.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#whole = affine_map<(m, n) -> (m, n)>
func.func @mlp(%x: memref<?x64xf16> {frag.sizes = ["rows", "k"]}, %w: memref<64x96xf16>, %y: memref<?x64xf32> {frag.sizes = ["rows", "k"]}, %v: memref<96x64xf16>) attributes {frag.divisible = {rows = 16}} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x64xf16>
  %h = memref.alloc(%n) : memref<?x96xf32>
  %0 = memref.alloc(%n) : memref<?x96xf16>
  linalg.fill ins(%zero : f32) outs(%h : memref<?x96xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<?x64xf16>, memref<64x96xf16>) outs(%h : memref<?x96xf32>) {
  ^bb0(%p: f16, %q: f16, %s: f32):
    %p1 = arith.extf %p : f16 to f32
    %q1 = arith.extf %q : f16 to f32
    %m = arith.mulf %p1, %q1 : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%h : memref<?x96xf32>) outs(%0 : memref<?x96xf16>) {
  ^bb0(%in: f32, %out: f16):
    %r = arith.truncf %in : f32 to f16
    linalg.yield %r : f16
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<?x64xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%0, %v : memref<?x96xf16>, memref<96x64xf16>) outs(%y : memref<?x64xf32>) {
  ^bb0(%p: f16, %q: f16, %s: f32):
    %p1 = arith.extf %p : f16 to f32
    %q1 = arith.extf %q : f16 to f32
    %m = arith.mulf %p1, %q1 : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  }
  memref.dealloc %0 : memref<?x96xf16>
  func.return
}
// One group: the function is the kernel.
func.func @one(%x: memref<32x64xf16>, %w: memref<64x96xf16>, %y: memref<32x96xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<32x96xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<32x64xf16>, memref<64x96xf16>) outs(%y : memref<32x96xf32>) {
  ^bb0(%p: f16, %q: f16, %s: f32):
    %p1 = arith.extf %p : f16 to f32
    %q1 = arith.extf %q : f16 to f32
    %m = arith.mulf %p1, %q1 : f32
    %t = arith.addf %s, %m : f32
    linalg.yield %t : f32
  }
  func.return
}
