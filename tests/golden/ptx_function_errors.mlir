// RUN: 
// -----
// No head.
ptx.function "k()" {
  
  ptx.end "ret"
}
// -----
// A body in the head.
ptx.function ".entry k() { ret; }" {
  
  ptx.end "ret"
}
// -----
// Two functions.
ptx.function ".entry k() { ret; } .entry j()" {
  
  ptx.end "ret"
}
// -----
// Variables that are none.
ptx.function ".visible .entry k(.param .u64 p)" variables ".shared .b8 x" {
  
  ptx.end "ret"
}
// -----
// A block that takes parameters.
ptx.function ".entry k()" {
^0(%x: i32):
  ptx.end "ret"
}
// -----
// A name that nobody declared.
ptx.function ".visible .entry k(.param .u64 p)" {
  %x = ptx.op "mov.u64 $0, nosuch" () : () -> i64
  ptx.end "ret"
}
// -----
// A branch as a statement.
ptx.function ".visible .entry k(.param .u64 p)" {
  ptx.op "bra END" () : () -> ()
  ptx.end "ret"
}
// -----
// A value that is not there yet.
ptx.function ".visible .entry k(.param .u64 p)" {
  ptx.op "bar.sync $0" (%x) : (i32) -> ()
  %x = ptx.undefined : i32
  ptx.end "ret"
}
