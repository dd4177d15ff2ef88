// RUN: 
// -----
// Scales are missing.
func.func @k(%p: !ptx.ptr<global>, %a: vector<16xf8E4M3FN>, %b: vector<8xf4E2M1FN>, %c: vector<4xf32>, %x: vector<4xf8E8M0FNU>, %h: vector<2xf16>, %w: vector<8xf8E8M0FNU>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0" %a, %b, %c : vector<16xf8E4M3FN>, vector<8xf4E2M1FN>, vector<4xf32> -> vector<4xf32>
  func.return
}
// -----
// One scale.
func.func @k(%p: !ptx.ptr<global>, %a: vector<16xf8E4M3FN>, %b: vector<8xf4E2M1FN>, %c: vector<4xf32>, %x: vector<4xf8E8M0FNU>, %h: vector<2xf16>, %w: vector<8xf8E8M0FNU>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0" %a, %b, %c scaled %x [0, 0, 0, 0] : vector<16xf8E4M3FN>, vector<8xf4E2M1FN>, vector<4xf32>, vector<4xf8E8M0FNU> -> vector<4xf32>
  func.return
}
// -----
// Three selectors.
func.func @k(%p: !ptx.ptr<global>, %a: vector<16xf8E4M3FN>, %b: vector<8xf4E2M1FN>, %c: vector<4xf32>, %x: vector<4xf8E8M0FNU>, %h: vector<2xf16>, %w: vector<8xf8E8M0FNU>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0" %a, %b, %c scaled %x, %x [0, 0, 0] : vector<16xf8E4M3FN>, vector<8xf4E2M1FN>, vector<4xf32>, vector<4xf8E8M0FNU>, vector<4xf8E8M0FNU> -> vector<4xf32>
  func.return
}
// -----
// A has two lane pairs.
func.func @k(%p: !ptx.ptr<global>, %a: vector<16xf8E4M3FN>, %b: vector<8xf4E2M1FN>, %c: vector<4xf32>, %x: vector<4xf8E8M0FNU>, %h: vector<2xf16>, %w: vector<8xf8E8M0FNU>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0" %a, %b, %c scaled %x, %x [0, 2, 0, 0] : vector<16xf8E4M3FN>, vector<8xf4E2M1FN>, vector<4xf32>, vector<4xf8E8M0FNU>, vector<4xf8E8M0FNU> -> vector<4xf32>
  func.return
}
// -----
// A register has four bytes.
func.func @k(%p: !ptx.ptr<global>, %a: vector<16xf8E4M3FN>, %b: vector<8xf4E2M1FN>, %c: vector<4xf32>, %x: vector<4xf8E8M0FNU>, %h: vector<2xf16>, %w: vector<8xf8E8M0FNU>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0" %a, %b, %c scaled %x, %x [0, 0, 4, 0] : vector<16xf8E4M3FN>, vector<8xf4E2M1FN>, vector<4xf32>, vector<4xf8E8M0FNU>, vector<4xf8E8M0FNU> -> vector<4xf32>
  func.return
}
// -----
// Scales of f16.
func.func @k(%p: !ptx.ptr<global>, %a: vector<16xf8E4M3FN>, %b: vector<8xf4E2M1FN>, %c: vector<4xf32>, %x: vector<4xf8E8M0FNU>, %h: vector<2xf16>, %w: vector<8xf8E8M0FNU>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0" %a, %b, %c scaled %h, %h [0, 0, 0, 0] : vector<16xf8E4M3FN>, vector<8xf4E2M1FN>, vector<4xf32>, vector<2xf16>, vector<2xf16> -> vector<4xf32>
  func.return
}
// -----
// Two registers.
func.func @k(%p: !ptx.ptr<global>, %a: vector<16xf8E4M3FN>, %b: vector<8xf4E2M1FN>, %c: vector<4xf32>, %x: vector<4xf8E8M0FNU>, %h: vector<2xf16>, %w: vector<8xf8E8M0FNU>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0" %a, %b, %c scaled %w, %w [0, 0, 0, 0] : vector<16xf8E4M3FN>, vector<8xf4E2M1FN>, vector<4xf32>, vector<8xf8E8M0FNU>, vector<8xf8E8M0FNU> -> vector<4xf32>
  func.return
}
// -----
// An instruction that takes none.
func.func @k(%p: !ptx.ptr<global>, %a: vector<16xf8E4M3FN>, %b: vector<8xf4E2M1FN>, %c: vector<4xf32>, %x: vector<4xf8E8M0FNU>, %h: vector<2xf16>, %w: vector<8xf8E8M0FNU>) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.mma "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32" %a, %b, %c scaled %x, %x [0, 0, 0, 0] : vector<16xf8E4M3FN>, vector<8xf4E2M1FN>, vector<4xf32>, vector<4xf8E8M0FNU>, vector<4xf8E8M0FNU> -> vector<4xf32>
  func.return
}
