// RUN: 
// TARGET: sm_90a
// What only some lanes load, and only those store.
ptx.text ".version 8.0"
ptx.text ".target sm_90a"
ptx.text ".address_size 64"
ptx.function ".visible .entry k(.param .u64 p)" {
  %p = ptx.op "ld.param.u64 $0, [p]" () : () -> i64
  %x = ptx.op "mov.u32 $0, %tid.x" () : () -> i32
  %q = ptx.op "setp.eq.s32 $0, $1, 0" (%x) : (i32) -> i1
  %none = ptx.undefined : i32
  %v = ptx.op "ld.global.u32 $0, [$1]" (%p) into (%none : i32) if %q : (i64) -> i32
  ptx.op "st.global.u32 [$0+4], $1" (%p, %v) if %q : (i64, i32) -> ()
  ptx.end "ret"
}
