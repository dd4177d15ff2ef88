// RUN: 
// How large memory must be: a number, sizes, sizes divided.
func.func @f(%p: memref<?x?x?xf32> {frag.sizes = ["parts", "m", "n"], frag.least = #frag.least<4, m, n>}, %n: memref<?x?xi32> {frag.least = #frag.least<m by 64, n by 128>}) {
  func.return
}
