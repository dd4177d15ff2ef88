// RUN: 
// A function of the host, with memory of its own, and the kernels that it launches.
func.func @main(%x: memref<?x64xf32>, %y: memref<?x64xf32>) attributes {frag.host} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %t = memref.alloc(%n) : memref<?x64xf32>
  frag.launch @twice(%x, %t) : memref<?x64xf32>, memref<?x64xf32>
  frag.launch @twice(%t, %y) : memref<?x64xf32>, memref<?x64xf32>
  frag.launch @nothing()
  memref.dealloc %t : memref<?x64xf32>
  func.return
}
func.func @twice(%x: memref<?x64xf32>, %y: memref<?x64xf32>) {
  func.return
}
func.func @nothing() {
  func.return
}
