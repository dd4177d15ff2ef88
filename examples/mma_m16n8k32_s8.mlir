// One warp, one instruction: m16n8k32 of 8-bit integers, signed, unsigned and mixed, summed in i32.
//
//   fragir run examples/mma_m16n8k32_s8.mlir --entry s8

func.func @s8(%a: memref<16x32xsi8>, %b: memref<32x8xsi8>, %c: memref<16x8xi32>, %d: memref<16x8xi32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xsi8> -> !frag.tile<16x32xsi8>
  %1 = frag.load %b[0, 0] : memref<32x8xsi8> -> !frag.tile<32x8xsi8>
  %2 = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x32xsi8>, !frag.tile<32x8xsi8>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xi32>, memref<16x8xi32>
  func.return
}

func.func @u8(%a: memref<16x32xui8>, %b: memref<32x8xui8>, %c: memref<16x8xi32>, %d: memref<16x8xi32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xui8> -> !frag.tile<16x32xui8>
  %1 = frag.load %b[0, 0] : memref<32x8xui8> -> !frag.tile<32x8xui8>
  %2 = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x32xui8>, !frag.tile<32x8xui8>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xi32>, memref<16x8xi32>
  func.return
}

func.func @s8_u8(%a: memref<16x32xsi8>, %b: memref<32x8xui8>, %c: memref<16x8xi32>, %d: memref<16x8xi32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xsi8> -> !frag.tile<16x32xsi8>
  %1 = frag.load %b[0, 0] : memref<32x8xui8> -> !frag.tile<32x8xui8>
  %2 = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x32xsi8>, !frag.tile<32x8xui8>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xi32>, memref<16x8xi32>
  func.return
}

func.func @u8_s8(%a: memref<16x32xui8>, %b: memref<32x8xsi8>, %c: memref<16x8xi32>, %d: memref<16x8xi32>) {
  %0 = frag.load %a[0, 0] : memref<16x32xui8> -> !frag.tile<16x32xui8>
  %1 = frag.load %b[0, 0] : memref<32x8xsi8> -> !frag.tile<32x8xsi8>
  %2 = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %3 = frag.mma %0, %1, %2 : !frag.tile<16x32xui8>, !frag.tile<32x8xsi8>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  frag.store %3, %d[0, 0] : !frag.tile<16x8xi32>, memref<16x8xi32>
  func.return
}
