// Parts of memory
// arrays: a 33x40, o 33x40
// result: np.vstack([o[:8], np.hstack([o[8:24, :4], np.tanh(a[8:24, 4:20]), o[8:24, 20:]]), o[24:]])
func.func @f(%a: memref<33x40xf32>, %o: memref<33x40xf32>) {
  %s = memref.subview %a[8, 4] [16, 16] [1, 1] : memref<33x40xf32> to memref<16x16xf32, strided<[40, 1], offset: 324>>
  %t = memref.subview %o[8, 4] [16, 16] [1, 1] : memref<33x40xf32> to memref<16x16xf32, strided<[40, 1], offset: 324>>
  linalg.tanh ins(%s : memref<16x16xf32, strided<[40, 1], offset: 324>>) outs(%t : memref<16x16xf32, strided<[40, 1], offset: 324>>)
  return
}
