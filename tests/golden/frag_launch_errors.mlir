// RUN: 
// -----
// In a kernel.
func.func @main() {
  frag.launch @k()
  func.return
}
func.func @k() {
  func.return
}
// -----
// No such function.
func.func @main() attributes {frag.host} {
  frag.launch @k()
  func.return
}
// -----
// A function of the host.
func.func @main() attributes {frag.host} {
  frag.launch @other()
  func.return
}
func.func @other() attributes {frag.host} {
  func.return
}
// -----
// Too few arguments.
func.func @main(%x: memref<4xf32>) attributes {frag.host} {
  frag.launch @k(%x) : memref<4xf32>
  func.return
}
func.func @k(%x: memref<4xf32>, %n: index) {
  func.return
}
// -----
// Of another type.
func.func @main(%x: memref<4xf32>) attributes {frag.host} {
  frag.launch @k(%x) : memref<4xf32>
  func.return
}
func.func @k(%x: memref<?xf32>) {
  func.return
}
