// RUN: 
// -----
// Divided by nothing.
func.func @f(%n: memref<?xi32> {frag.least = #frag.least<m by 0>}) {
  func.return
}
// -----
// No size.
func.func @f(%n: memref<?xi32> {frag.least = #frag.least<4.5>}) {
  func.return
}
