// RUN: 
// TARGET: sm_90a
// Directives, variables and functions that others define.
ptx.text ".version 8.0"
ptx.text ".target sm_90a"
ptx.text ".address_size 64"
ptx.text ".global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};"
ptx.text ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);"
ptx.function ".func twice(.param .b64 to)" variables ".param .b64 arg0;" {
  ptx.text ".pragma \"nounroll\";"
  %t = ptx.op "mov.u64 $0, table+4" () : () -> i64
  %v = ptx.op "ld.global.u32 $0, [$1]" (%t) : (i64) -> i32
  %p = ptx.op "ld.param.u64 $0, [to]" () : () -> i64
  ptx.op "st.u32 [$0], $1" (%p, %v) : (i64, i32) -> ()
  ptx.op "st.param.b64 [arg0], $0" (%p) : (i64) -> ()
  %q = ptx.op "setp.eq.s32 $0, $1, 0" (%v) : (i32) -> i1
  ptx.op "call.uni twice, (arg0)" () if %q : () -> ()
  ptx.end "ret"
}
