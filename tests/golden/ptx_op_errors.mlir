// RUN: 
// -----
// No such opcode.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  ptx.op "mbarier.init.shared.b64 [$0], 1" (%s) : (!ptx.ptr<shared>) -> ()
  func.return
}
// -----
// A modifier that it has not.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "redux.sync.mul.u32 $0, $1, -1" (%i) : (i32) -> i32
  func.return
}
// -----
// An operand less.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "shfl.sync.idx.b32 $0, $1, 0, 31" (%i) : (i32) -> i32
  func.return
}
// -----
// A float where bits of 64 are.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "mul.wide.s32 $0, $1, $1" (%f) : (f32) -> f32
  func.return
}
// -----
// A predicate.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "vote.sync.ballot.b32 $0, $1, -1" (%i) : (i32) -> i32
  func.return
}
// -----
// A value that is not there.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "add.s32 $0, $1, $2" (%i) : (i32) -> i32
  func.return
}
// -----
// A value that nothing names.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "neg.s32 $0, $1" (%i, %i) : (i32, i32) -> i32
  func.return
}
// -----
// What is written is a result.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  ptx.op "neg.s32 $0, $1" (%i, %i) : (i32, i32) -> ()
  func.return
}
// -----
// What is read is none.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "add.s32 $0, $0, $1" (%i) : (i32) -> i32
  func.return
}
// -----
// No statement.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  ptx.op "bar.sync 0; bar.sync" () : () -> ()
  func.return
}
// -----
// A guard within it.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  ptx.op "@$0 bar.sync 0" (%q) : (i1) -> ()
  func.return
}
// -----
// Not PTX.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  ptx.op "bar.sync (" () : () -> ()
  func.return
}
// -----
// A branch.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  ptx.op "bra END" () : () -> ()
  func.return
}
// -----
// A register that nobody declared.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "mov.u32 $0, %nosuch" () : () -> i32
  func.return
}
// -----
// A sum without what it is added to.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 $0, $1, $1, 1, 1, 1, 0, 0" (%d) : (i64) -> vector<4xf32>
  func.return
}
// -----
// Registers too few.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "ldmatrix.sync.aligned.m8n8.x4.shared.b16 $0, [$1]" (%s) : (!ptx.ptr<shared>) -> vector<4xf16>
  func.return
}
// -----
// Two guards.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  ptx.op "bar.warp.sync -1" () if %q unless %q : () -> ()
  func.return
}
// -----
// What was there before, of another type.
func.func @k(%p: !ptx.ptr<global>, %s: !ptx.ptr<shared>, %i: i32, %f: f32, %q: i1, %d: i64) attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.op "neg.s32 $0, $1" (%i) into (%f : f32) if %q : (i32) -> i32
  func.return
}
