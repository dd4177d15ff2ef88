// RUN: 
// TARGET: sm_90a
// What the named operations do not say: pairs, sinks, guards, tensors, wgmma, 8 and 128 bits.
func.func @k(%p: !ptx.ptr<global>, %map: i64) attributes {ptx.ntid = 128 : i64} {
  %s = ptx.shared 4096 : !ptx.ptr<shared>
  %v = ptx.load %p[0] : !ptx.ptr<global> -> i32
  %lane = ptx.op "mov.u32 $0, %laneid" () : () -> i32
  %0, %in = ptx.op "shfl.sync.up.b32 $0|$1, $2, 1, 0, -1" (%v) : (i32) -> (i32, i1)
  %1 = ptx.op "add.s32 $0, $1, $2" (%v, %0) into (%v : i32) if %in : (i32, i32) -> i32
  %2 = ptx.op "lop3.b32 $0, $1, $2, 15, 0xCA" (%1, %lane) : (i32, i32) -> i32
  %3 = ptx.op "vote.sync.ballot.b32 $0, !$1, -1" (%in) : (i1) -> i32
  %one = ptx.op "elect.sync _|$0, -1" () : () -> i1
  ptx.op "mbarrier.init.shared::cta.b64 [$0+1024], 1" (%s) if %one : (!ptx.ptr<shared>) -> ()
  ptx.op "fence.proxy.async" () : () -> ()
  ptx.op "bar.sync 0" () : () -> ()
  ptx.op "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0+1024], 1024" (%s) if %one : (!ptx.ptr<shared>) -> ()
  ptx.op "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$2, 0}], [$0+1024]" (%s, %map, %v) if %one : (!ptx.ptr<shared>, i64, i32) -> ()
  %done = ptx.op "mbarrier.try_wait.parity.shared::cta.b64 $0, [$1+1024], 0" (%s) : (!ptx.ptr<shared>) -> i1
  ptx.op "trap" () unless %done : () -> ()
  %4 = ptx.op "ld.shared.v4.b32 $0, [$1+16]" (%s) : (!ptx.ptr<shared>) -> vector<4xf32>
  %d = ptx.descriptor %s, 0
  ptx.op "wgmma.fence.sync.aligned" () : () -> ()
  %5 = ptx.op "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 $0, $1, $1, 1, 1, 1, 0, 0" (%d) into (%4 : vector<4xf32>) : (i64) -> vector<4xf32>
  ptx.op "wgmma.commit_group.sync.aligned" () : () -> ()
  %6 = ptx.op "wgmma.wait_group.sync.aligned 0" () into (%5 : vector<4xf32>) : () -> vector<4xf32>
  %7 = ptx.op "mov.b128 $0, {$1, $2}" (%d, %map) : (i64, i64) -> !ptx.bits<128>
  %8, %9 = ptx.op "mov.b128 {$0, $1}, $2" (%7) : (!ptx.bits<128>) -> (i64, i64)
  %10 = ptx.op "atom.add.global.u32 $0, [$1+64], $2" (%p, %2) : (!ptx.ptr<global>, i32) -> i32
  %11 = arith.addi %10, %3 : i32
  ptx.op "st.global.v4.b32 [$0], $1" (%p, %6) : (!ptx.ptr<global>, vector<4xf32>) -> ()
  ptx.op "st.global.v2.b64 [$0+16], {$1, $2}" (%p, %8, %9) : (!ptx.ptr<global>, i64, i64) -> ()
  ptx.store %11, %p[32] : i32, !ptx.ptr<global>
  func.return
}
