// RUN: -p frag-place
// Tiles of one layout and scalars; a text alone; the general form.
func.func @p(%s: f32, %x: memref<16x8xf32>, %y: memref<16x8xf16>) {
  %t = frag.load %x[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>>
  %h = frag.cast %t : !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>> -> !frag.tile<16x8xf16, #frag.mma<m16n8k16.f16, c>>
  frag.print "t" , %t, %h, %s : !frag.tile<16x8xf32, #frag.mma<m16n8k16.f16, c>>, !frag.tile<16x8xf16, #frag.mma<m16n8k16.f16, c>>, f32
  frag.print "here"
  "frag.print"(%s) <{text = "s, 100% \22quoted\22"}> : (f32) -> ()
  frag.store %h, %y[0, 0] : !frag.tile<16x8xf16, #frag.mma<m16n8k16.f16, c>>, memref<16x8xf16>
  func.return
}
