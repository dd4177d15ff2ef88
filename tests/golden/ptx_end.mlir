// RUN: 
// TARGET: sm_90a
// Two ends, and one that only some lanes come to.
ptx.text ".version 8.0"
ptx.text ".target sm_90a"
ptx.text ".address_size 64"
ptx.function ".visible .entry k()" {
  %x = ptx.op "mov.u32 $0, %tid.x" () : () -> i32
  %p = ptx.op "setp.eq.s32 $0, $1, 0" (%x) : (i32) -> i1
  ptx.op "exit" () if %p : () -> ()
  %q = ptx.op "setp.eq.s32 $0, $1, 1" (%x) : (i32) -> i1
  cf.cond_br %q, ^a, ^b
^a:
  ptx.end "trap"
^b:
  ptx.end "exit"
}
