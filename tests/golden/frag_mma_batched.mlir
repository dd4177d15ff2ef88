// RUN: -p frag-place
// Sums that a loop carries, of three matrices.
func.func @a(%x: memref<3x32x64xf16>, %y: memref<3x64x16xf16>, %z: memref<3x32x16xf32>) attributes {frag.warps = array<i64: 2, 1>} {
  %0 = arith.constant 0 : index
  %16 = arith.constant 16 : index
  %64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %c = frag.fill %zero : !frag.tile<3x32x16xf32>
  %r = scf.for %k = %0 to %64 step %16 iter_args(%s = %c) -> (!frag.tile<3x32x16xf32>) {
    %a = frag.load %x[0, 0, %k] : memref<3x32x64xf16> -> !frag.tile<3x32x16xf16>
    %b = frag.load %y[0, %k, 0] : memref<3x64x16xf16> -> !frag.tile<3x16x16xf16>
    %d = frag.mma_batched %a, %b, %s using "m16n8k8.f16" {note = "kept"} : !frag.tile<3x32x16xf16>, !frag.tile<3x16x16xf16>, !frag.tile<3x32x16xf32> -> !frag.tile<3x32x16xf32>
    scf.yield %d : !frag.tile<3x32x16xf32>
  }
  frag.store %r, %z[0, 0, 0] : !frag.tile<3x32x16xf32>, memref<3x32x16xf32>
  func.return
}
// One matrix, bytes that saturate, in the general form.
func.func @b(%x: memref<1x16x32xsi8>, %y: memref<1x32x8xui8>, %z: memref<1x16x8xi32>) {
  %a = frag.load %x[0, 0, 0] : memref<1x16x32xsi8> -> !frag.tile<1x16x32xsi8>
  %b = frag.load %y[0, 0, 0] : memref<1x32x8xui8> -> !frag.tile<1x32x8xui8>
  %c = frag.load %z[0, 0, 0] : memref<1x16x8xi32> -> !frag.tile<1x16x8xi32>
  %d = "frag.mma_batched"(%a, %b, %c) <{satfinite}> : (!frag.tile<1x16x32xsi8>, !frag.tile<1x32x8xui8>, !frag.tile<1x16x8xi32>) -> !frag.tile<1x16x8xi32>
  frag.store %d, %z[0, 0, 0] : !frag.tile<1x16x8xi32>, memref<1x16x8xi32>
  func.return
}
