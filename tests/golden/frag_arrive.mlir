// RUN: 
// Blocks that are counted: in one number, in one of several, and as many as a value says.
func.func @f(%one: memref<1xi32>, %many: memref<?x?xi32>, %parts: index) {
  %0 = frag.arrive %one[0] of %parts : memref<1xi32>
  %1 = frag.block_id x
  %2 = frag.arrive %many[%1, 3] of %parts : memref<?x?xi32>
  func.return
}
