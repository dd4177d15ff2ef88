// RUN: -p frag-place
// -----
// Outside of lane-level code.
func.func @f(%a: memref<32xf32>, %i: index) {
  %p = frag.pointer %a[%i] : memref<32xf32> -> !ptx.ptr<global>
  func.return
}
// -----
// An index for each dimension.
func.func @f(%a: memref<32x4xf32>) {
  frag.lanes {
  ^bb0(%lane: index, %warp: index):
    %p = frag.pointer %a[%lane] : memref<32x4xf32> -> !ptx.ptr<global>
    frag.yield
  }
  func.return
}
// -----
// Another space.
func.func @f(%a: memref<32xf32>) {
  frag.lanes {
  ^bb0(%lane: index, %warp: index):
    %p = frag.pointer %a[%lane] : memref<32xf32> -> !ptx.ptr<shared>
    frag.yield
  }
  func.return
}
// -----
// Half a byte.
func.func @f(%a: memref<32xsi4>) {
  frag.lanes {
  ^bb0(%lane: index, %warp: index):
    %p = frag.pointer %a[%lane] : memref<32xsi4> -> !ptx.ptr<global>
    frag.yield
  }
  func.return
}
// -----
// No memory.
func.func @f(%a: f32) {
  frag.lanes {
  ^bb0(%lane: index, %warp: index):
    %p = frag.pointer %a[%lane] : f32 -> !ptx.ptr<global>
    frag.yield
  }
  func.return
}
