// RUN: 
// TARGET: sm_90a
// A loop with two ways, a swap on the way back, and a value that is needed after it.
ptx.text ".version 8.0"
ptx.text ".target sm_90a"
ptx.text ".address_size 64"
ptx.function ".visible .entry k(.param .u64 out, .param .u32 n)" variables ".shared .align 4 .b8 room[128];" {
  %p = ptx.op "ld.param.u64 $0, [out]" () : () -> i64
  %n = ptx.op "ld.param.u32 $0, [n]" () : () -> i32
  %s = ptx.op "mov.u32 $0, room" () : () -> i32
  %a = ptx.op "mov.u32 $0, %tid.x" () : () -> i32
  %b = ptx.op "mov.u32 $0, 7" () : () -> i32
  cf.br ^loop(%a, %b, %n : i32, i32, i32)
^loop(%x: i32, %y: i32, %i: i32):
  %less = ptx.op "sub.s32 $0, $1, 1" (%i) : (i32) -> i32
  %more = ptx.op "setp.gt.s32 $0, $1, 0" (%less) : (i32) -> i1
  %z = ptx.op "add.s32 $0, $1, $2" (%x, %y) into (%x : i32) unless %more : (i32, i32) -> i32
  cf.cond_br %more, ^loop(%y, %z, %less : i32, i32, i32), ^after(%z : i32)
^after(%r: i32):
  ptx.op "st.shared.b32 [$0+4], $1" (%s, %r) if %more : (i32, i32) -> ()
  %none = ptx.op "setp.eq.s32 $0, $1, 0" (%r) : (i32) -> i1
  cf.cond_br %none, ^end, ^store {ptx.uni}
^store:
  %q = ptx.op "cvta.to.global.u64 $0, $1" (%p) : (i64) -> i64
  ptx.op "st.global.v2.b32 [$0], {$1, $2}" (%q, %r, %a) : (i64, i32, i32) -> ()
  cf.br ^end
^end:
  ptx.end "ret"
}
