// RUN: -p frag-place
// For every element, with what to print; for the block; the general form.
func.func @p(%x: memref<64xf32>, %y: memref<64xf32>) {
  %t = frag.load %x[0] : memref<64xf32> -> !frag.tile<64xf32>
  %p = frag.map %t : !frag.tile<64xf32> -> !frag.tile<64xi1> {
  ^bb0(%v: f32):
    %k = arith.constant 1.0e30 : f32
    %q = arith.cmpf olt, %v, %k : f32
    frag.yield %q : i1
  }
  frag.assert %p, "x is finite", %t : !frag.tile<64xi1>, !frag.tile<64xf32>
  %true = arith.constant true
  frag.assert %true, "always" : i1
  "frag.assert"(%p) <{text = "x is finite"}> : (!frag.tile<64xi1>) -> ()
  frag.store %t, %y[0] : !frag.tile<64xf32>, memref<64xf32>
  func.return
}
