// Values of 8, 16, 32 and 64 bits between lanes.
func.func @swapped(%i8: memref<16x2xi8>, %i8out: memref<16x2xi8>,
                   %f16: memref<16x2xf16>, %f16out: memref<16x2xf16>,
                   %f32: memref<16x2xf32>, %f32out: memref<16x2xf32>,
                   %f64: memref<16x2xf64>, %f64out: memref<16x2xf64>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %i8x = frag.load %i8[0, 0] : memref<16x2xi8> -> !frag.tile<16x2xi8>
  %i8y = toy.swapped %i8x : !frag.tile<16x2xi8>
  frag.store %i8y, %i8out[0, 0] : !frag.tile<16x2xi8>, memref<16x2xi8>
  %f16x = frag.load %f16[0, 0] : memref<16x2xf16> -> !frag.tile<16x2xf16>
  %f16y = toy.swapped %f16x : !frag.tile<16x2xf16>
  frag.store %f16y, %f16out[0, 0] : !frag.tile<16x2xf16>, memref<16x2xf16>
  %f32x = frag.load %f32[0, 0] : memref<16x2xf32> -> !frag.tile<16x2xf32>
  %f32y = toy.swapped %f32x : !frag.tile<16x2xf32>
  frag.store %f32y, %f32out[0, 0] : !frag.tile<16x2xf32>, memref<16x2xf32>
  %f64x = frag.load %f64[0, 0] : memref<16x2xf64> -> !frag.tile<16x2xf64>
  %f64y = toy.swapped %f64x : !frag.tile<16x2xf64>
  frag.store %f64y, %f64out[0, 0] : !frag.tile<16x2xf64>, memref<16x2xf64>
  func.return
}
